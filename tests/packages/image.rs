//! The container image and the composition file. No container engine runs where these tests run, so the test lays out the
//! image's layers and starts its entrypoint itself: as its user, in its folder, with its variables, on a root that can't be
//! written.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::service::http::ask;
use crate::support::control_plane::{until, within_patience};
use crate::support::{Run, copy, examples, files, free_port, skipped};

/// The largest image without its program, in bytes. With the release's program, it has to stay below 60 MB.
const LARGEST_REST: u64 = 12_000_000;

/// The schema of composition files, from github.com/compose-spec/compose-go 2.16.2 (Apache-2.0).
const COMPOSE_SPEC: &str = include_str!("compose-spec.json");

struct Image {
    folder: TempDir,
    config: Value,
    digest: String,
}

fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Whether a tool is here. Where everything has to be tested, it has to be.
pub fn has(tool: &str) -> bool {
    let is_here = Command::new(tool).arg("--version").output().is_ok_and(|output| output.status.success());
    if !is_here {
        assert!(std::env::var("STREAMFLEET_TESTS").is_err(), "{tool} is missing: `.ci/packages` installs it");
        skipped(&format!("there is no {tool} here; `.ci/packages` installs it"));
    }
    is_here
}

fn build(archive: &Path) -> String {
    let mut image = Command::new(repository().join("packaging/image"));
    image.args([Path::new(env!("CARGO_BIN_EXE_streamfleet")), archive]);
    let built: Run = image.output().unwrap().into();
    built.expect(0).out.trim().rsplit('@').next().unwrap().to_owned()
}

impl Image {
    /// Builds the image and lays it out; `None` where it can't be built.
    fn new() -> Option<Image> {
        let is_root = fs::metadata("/proc/self").unwrap().uid() == 0;
        if !is_root || !has("buildah") {
            skipped("building an image takes root and buildah");
            return None;
        }
        let folder = tempfile::tempdir_in(repository().join("target")).unwrap();
        let archive = folder.path().join("image.tar");
        let digest = build(&archive);
        let (parts, root) = (folder.path().join("parts"), folder.path().join("root"));
        let unpack = |archive: &Path, to: &Path| {
            fs::create_dir_all(to).unwrap();
            let tar = Command::new("tar").arg("-xf").arg(archive).arg("-C").arg(to).status().unwrap();
            assert!(tar.success());
        };
        unpack(&archive, &parts);
        let blob = |digest: &Value| parts.join("blobs").join(digest.as_str().unwrap().replace(':', "/"));
        let read = |path: &Path| -> Value { serde_json::from_slice(&fs::read(path).unwrap()).unwrap() };
        let index = read(&parts.join("index.json"));
        let manifest = read(&blob(&index["manifests"][0]["digest"]));
        for layer in manifest["layers"].as_array().unwrap() {
            unpack(&blob(&layer["digest"]), &root);
        }
        let config = read(&blob(&manifest["config"]["digest"]))["config"].clone();
        // Engines make it, too.
        fs::create_dir(root.join("proc")).unwrap();
        Some(Image { folder, config, digest })
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join("root")
    }

    /// A volume as an engine makes it: it starts as the image's folder does.
    fn volume(&self, at: &str) -> PathBuf {
        let (volume, of) = (self.folder.path().join("volume"), self.root().join(at));
        let of = fs::metadata(of).unwrap();
        fs::create_dir(&volume).unwrap();
        chown(&volume, Some(of.uid()), Some(of.gid())).unwrap();
        volume
    }

    fn command(&self, container: &Container<'_>) -> Command {
        let mut mounts =
            String::from("mount --bind \"$ROOT\" \"$ROOT\"; mount --bind /proc \"$ROOT/proc\"\n");
        for (from, to) in container.mounts {
            mounts += &format!("mount --bind '{}' \"$ROOT{to}\"\n", from.display());
        }
        let user = self.config["User"].as_str().unwrap();
        let (user, group) = user.split_once(':').unwrap();
        let place = self.config["WorkingDir"].as_str().unwrap();
        let script = format!(
            "{mounts}mount -o remount,bind,ro \"$ROOT\"\nR=$ROOT; unset ROOT PWD OLDPWD SHLVL _\n\
             exec /usr/bin/unshare --root=\"$R\" --wd={place} --setgid={group} --setuid={user} -- \"$@\""
        );
        let words = |field: &str| -> Vec<String> {
            serde_json::from_value(self.config[field].clone()).unwrap_or_default()
        };
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-euc", &script, "sh"]).args(words("Entrypoint"));
        command.args(container.command).env_clear().env("ROOT", self.root());
        command.envs(words("Env").iter().map(|variable| variable.split_once('=').unwrap()));
        command.envs(container.variables);
        command
    }

    fn run(&self, container: &Container<'_>) -> Run {
        self.command(container).output().unwrap().into()
    }
}

struct Container<'c> {
    command: &'c [String],
    mounts: &'c [(PathBuf, String)],
    variables: &'c BTreeMap<String, String>,
}

/// Ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn the_image_is_small_says_what_it_is_and_is_built_the_same_again() {
    let Some(image) = Image::new() else { return };
    assert_eq!(build(&image.folder.path().join("again.tar")), image.digest);
    assert_eq!(image.config["User"], "65532:65532");
    let labels = &image.config["Labels"];
    assert_eq!(labels["org.opencontainers.image.version"], env!("CARGO_PKG_VERSION"));
    for label in ["title", "description", "licenses", "revision", "created"] {
        assert!(labels[&format!("org.opencontainers.image.{label}")].is_string(), "{label}: {labels}");
    }
    let content = files(&image.root());
    let rest = content.iter().filter(|(name, _)| name != "usr/bin/streamfleet");
    let rest: u64 = rest.map(|(_, bytes)| bytes.len() as u64).sum();
    assert!(rest < LARGEST_REST, "{rest}");
    assert!(content.iter().all(|(name, _)| !name.ends_with("/sh") && !name.contains("/bash")));
}

#[test]
fn the_composition_file_needs_an_address_alone_and_its_state_survives() {
    let text = fs::read_to_string(repository().join("packaging/compose.yaml")).unwrap();
    let compose: Value = serde_saphyr::from_str(&text).unwrap();
    let schema: Value = serde_json::from_str(COMPOSE_SPEC).unwrap();
    let schema = jsonschema::draft202012::new(&schema).unwrap();
    assert_eq!(schema.iter_errors(&compose).map(|error| error.to_string()).collect::<Vec<_>>(), [""; 0]);
    let service = &compose["services"]["streamfleet"];
    assert_eq!(service["read_only"], true);
    assert_eq!(service["cap_drop"], serde_json::json!(["ALL"]));
    assert_eq!(service["security_opt"], serde_json::json!(["no-new-privileges:true"]));
    assert_eq!(service["ports"], serde_json::json!(["127.0.0.1:3000:3000"]));
    let version = format!("localhost/streamfleet:{}}}", env!("CARGO_PKG_VERSION"));
    assert!(service["image"].as_str().unwrap().ends_with(&version), "{}", service["image"]);
    // Every variable but one has a default.
    let variables = text.lines().filter(|line| !line.trim_start().starts_with('#'));
    let needed: Vec<&str> = variables.filter(|line| line.contains(":?")).map(str::trim).collect();
    assert_eq!(needed.len(), 1, "{needed:?}");

    let Some(image) = Image::new() else { return };
    let specs = image.folder.path().join("specs");
    copy(&examples().join("quickstart"), &specs);
    let mounts: Vec<(PathBuf, String)> = service["volumes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|volume| volume.as_str().unwrap().rsplit_once(':').unwrap())
        .map(|(from, to)| match from {
            "state" => (image.volume(to.trim_start_matches('/')), to.to_owned()),
            "${STREAMFLEET_SPECS:-../examples/quickstart}" => (specs.clone(), to.to_owned()),
            other => panic!("the test knows no volume {other}"),
        })
        .collect();
    let variable = service["environment"].as_object().unwrap().keys().map(String::as_str);
    assert_eq!(variable.collect::<Vec<_>>(), ["STREAMFLEET_SUPER_USER_EMAILS"]);
    let variables =
        BTreeMap::from([("STREAMFLEET_SUPER_USER_EMAILS".to_owned(), "you@example.com".to_owned())]);
    let list = |value: &Value| -> Vec<String> { serde_json::from_value(value.clone()).unwrap() };
    let port = free_port();
    let serve: Vec<String> =
        list(&service["command"]).iter().map(|word| word.replace(":3000", &format!(":{port}"))).collect();
    let health = list(&service["healthcheck"]["test"]);
    assert_eq!((health[0].as_str(), health[1].as_str()), ("CMD", "/usr/bin/streamfleet"));
    let [status, plan, approve, elsewhere] = [
        "status /specs",
        "plan /specs",
        "approve 0123456789ab /specs",
        "apply /specs --yes --output-dir /var/lib/other",
    ]
    .map(words);
    let container = |command| Container { command, mounts: &mounts, variables: &variables };

    assert_eq!(image.run(&container(&health[2..])).expect(1).out, "", "nothing runs yet");
    for first in [true, false] {
        let log = fs::File::create(image.folder.path().join("log")).unwrap();
        let mut started = image.command(&container(&serve));
        let mut running = Running(started.stdout(Stdio::null()).stderr(log).spawn().unwrap());
        let said = || fs::read_to_string(image.folder.path().join("log")).unwrap();
        within_patience(|| (image.run(&container(&health[2..])).code == 0).then_some(()))
            .unwrap_or_else(|| panic!("it is not healthy\n{}", said()));
        let address = format!("127.0.0.1:{port}");
        assert_eq!(ask(&address, "GET /readyz").status, 200);
        assert!(matches!(ask(&address, "GET /ui/").status, 200 | 303), "{}", said());
        let pool = "output/acme/eu/kafka-acme--orders/kafkanodepool-broker.yaml";
        let volume = image.folder.path().join("volume");
        until("the quickstart is applied", || volume.join(pool).exists().then_some(()));
        assert_eq!(fs::metadata(volume.join("state")).unwrap().mode() & 0o777, 0o700);
        assert!(said().contains(&format!("http://{address}/ui/")), "{}", said());
        // What `docker compose exec` and `kubectl exec` do.
        let status = image.run(&container(&status)).expect(0);
        assert!(
            status.out.contains("acme/orders") && status.err.contains("the running daemon"),
            "{status:?}"
        );
        if !first {
            let plan = image.run(&container(&plan)).expect(0);
            assert!(plan.out.contains("Nothing to do"), "{}", plan.out);
            let approve = image.run(&container(&approve)).expect(1);
            assert!(approve.err.contains("0123456789ab"), "{}", approve.err);
        }
        let process = running.0.id().to_string();
        assert!(Command::new("kill").args(["-s", "TERM", &process]).status().unwrap().success());
        assert_eq!(running.0.wait().unwrap().code(), Some(0), "{}", said());
    }

    // The root can't be written: only the volume is.
    let refused = image.run(&container(&elsewhere)).expect(1);
    assert!(refused.err.contains("Read-only file system"), "{}", refused.err);
}
