//! The programs of the control plane, and the resource definitions: as named by environment variables, or
//! built here once.

use std::env;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use sha2::{Digest as _, Sha256};
use tempfile::TempDir;

pub struct Programs {
    folder: PathBuf,
    pub definitions: String,
    pub gateway_definitions: String,
    pub monitoring_definitions: String,
}

const NAMES: [&str; 4] = ["etcd", "kube-apiserver", "kube-controller-manager", "kubectl"];

/// The Strimzi version whose resources are rendered.
const STRIMZI: &str = "1.2.0";

/// The artifacts that generate the definitions, with the digests of that version.
const ARTIFACTS: [(&str, &str); 2] = [
    ("crd-generator", "76bb2430e702a1e6a24c071d26c865d5e9572cbc630d176d3b912033ae23ed00"),
    ("api", "566961ae5e5646a001ae91312beda5cba3a5d467e740e205e1b761754335fe4e"),
];

/// The generated definitions: of rendered kinds, and of the pods' owner.
const DEFINITIONS: [&str; 5] =
    ["kafka.Kafka", "nodepool.KafkaNodePool", "user.KafkaUser", "topic.KafkaTopic", "podset.StrimziPodSet"];

/// Definitions that come with a module of Go.
struct DefinitionsModule {
    name: &'static str,
    module: &'static str,
    version: &'static str,
    /// Go's checksum of it.
    digest: &'static str,
    folder: &'static str,
    files: &'static [&'static str],
}

/// The Gateway API whose resources are rendered: these, their class, and the routes that Strimzi creates.
const GATEWAY_API: DefinitionsModule = DefinitionsModule {
    name: "gateway-api",
    module: "sigs.k8s.io/gateway-api",
    version: "v1.5.1",
    digest: "h1:RqVRIlkhLhUO8wOHKTLnTJA6o/1un4po4/6M1nRzdd0=",
    folder: "config/crd/standard",
    files: &[
        "gateway.networking.k8s.io_gatewayclasses.yaml",
        "gateway.networking.k8s.io_gateways.yaml",
        "gateway.networking.k8s.io_tlsroutes.yaml",
    ],
};

/// The Prometheus operator whose resources are rendered and read.
const PROMETHEUS_OPERATOR: DefinitionsModule = DefinitionsModule {
    name: "prometheus-operator",
    module: "github.com/prometheus-operator/prometheus-operator",
    version: "v0.94.0",
    digest: "h1:VxMKzqr8Xqw5/QInNT7a3B5XInPnHqE7SD2UIdwKpRM=",
    folder: "example/prometheus-operator-crd",
    files: &[
        "monitoring.coreos.com_podmonitors.yaml",
        "monitoring.coreos.com_prometheuses.yaml",
        "monitoring.coreos.com_prometheusrules.yaml",
    ],
};

/// The oldest Java that runs the generator.
const JAVA: u32 = 21;

impl Programs {
    pub fn get() -> &'static Programs {
        static PROGRAMS: OnceLock<Result<Programs, String>> = OnceLock::new();
        let find = || {
            let folder = env::var_os("KUBEBUILDER_ASSETS").map(PathBuf::from).map_or_else(programs, Ok)?;
            let given = env::var_os("STRIMZI_CRDS").map(PathBuf::from).map_or_else(definitions, Ok)?;
            Ok(Programs {
                folder: fs::canonicalize(&folder).map_err(at(&folder))?,
                definitions: documents(&given)?,
                gateway_definitions: documents(&GATEWAY_API.definitions()?)?,
                monitoring_definitions: documents(&PROMETHEUS_OPERATOR.definitions()?)?,
            })
        };
        PROGRAMS.get_or_init(find).as_ref().unwrap_or_else(|why| panic!("{why}"))
    }

    pub fn command(&self, name: &str) -> Command {
        let path = self.folder.join(name);
        assert!(path.exists(), "{} is missing: KUBEBUILDER_ASSETS names a folder without it", path.display());
        let mut command = Command::new(path);
        command.env_clear();
        command
    }
}

/// The folder for everything that this module builds.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("control-plane")
}

/// Locks [`root`] against other threads and processes until the result is dropped.
pub fn lock_root() -> io::Result<File> {
    fs::create_dir_all(root())?;
    let lock = File::create(root().join("lock"))?;
    lock.lock()?;
    Ok(lock)
}

/// Builds the programs from the module in `tests/control_plane`, again whenever it changes.
fn programs() -> Result<PathBuf, String> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/control_plane");
    let mut digest = Sha256::new();
    for file in ["go.mod", "go.sum", "main.go"] {
        digest.update(fs::read(source.join(file)).map_err(at(&source))?);
    }
    let version = kubernetes_version(&source)?;
    let name = format!("kubernetes-{version}-{}", &hex::encode(digest.finalize())[..12]);
    let what = format!("building etcd and Kubernetes {version}, some five minutes on two cores");
    once(&name, &what, |folder| {
        let mut numbers = version.trim_start_matches('v').split('.');
        let mut number = || numbers.next().unwrap_or_default();
        // The reported version: clients read it.
        let stamps = [("gitVersion", &*version), ("gitMajor", number()), ("gitMinor", number())];
        let stamps = stamps.map(|(name, value)| format!("-X k8s.io/component-base/version.{name}={value}"));
        let flags = format!("-s -w {}", stamps.join(" "));
        let mut go = Command::new("go");
        go.current_dir(&source).env("CGO_ENABLED", "0");
        go.args(["build", "-trimpath", "-buildvcs=false", "-ldflags", &flags, "-o"])
            .arg(folder.join(NAMES[0]));
        run(
            go,
            "the tests talk to a control plane of Kubernetes that is built with Go: install Go 1.26 or newer, or name a \
             folder with etcd, kube-apiserver, kube-controller-manager and kubectl in KUBEBUILDER_ASSETS",
        )?;
        NAMES[1..]
            .iter()
            .try_for_each(|name| fs::hard_link(folder.join(NAMES[0]), folder.join(name)).map_err(at(folder)))
    })
}

fn kubernetes_version(source: &Path) -> Result<String, String> {
    let module = fs::read_to_string(source.join("go.mod")).map_err(at(source))?;
    let line = module.lines().find_map(|line| line.trim().strip_prefix("k8s.io/kubernetes "));
    line.map(str::to_owned)
        .ok_or_else(|| "tests/control_plane/go.mod requires no k8s.io/kubernetes".to_owned())
}

fn definitions() -> Result<PathBuf, String> {
    let what = format!("fetching Strimzi {STRIMZI}'s resource definitions, some 20 seconds");
    once(&format!("strimzi-{STRIMZI}-{}", DEFINITIONS.len()), &what, |folder| {
        let jars = TempDir::new().map_err(at(folder))?;
        let jars = ARTIFACTS.iter().map(|(name, digest)| fetch(name, digest, jars.path()));
        let class_path: Vec<PathBuf> = jars.collect::<Result<_, String>>()?;
        let mut generator = Command::new(java()?);
        generator.arg("-cp").arg(env::join_paths(&class_path).map_err(|error| error.to_string())?);
        generator.args(["io.strimzi.crdgenerator.CrdGenerator", "--yaml"]);
        for class in DEFINITIONS {
            let file = folder.join(class).with_extension("yaml");
            generator.arg(format!("io.strimzi.api.kafka.model.{class}={}", file.display()));
        }
        run(generator, "Strimzi's resource definitions are made by a Java program").map(drop)
    })
}

impl DefinitionsModule {
    /// Fetches the definitions with Go, which checks the module's checksum.
    fn definitions(&self) -> Result<PathBuf, String> {
        let DefinitionsModule { name, module, version, digest, folder: source, files } = self;
        let what = format!("fetching the resource definitions of {name} {version}");
        once(&format!("{name}-{version}"), &what, |folder| {
            let mut go = Command::new("go");
            go.current_dir(folder).args(["mod", "download", "-json", &format!("{module}@{version}")]);
            let said = run(
                go,
                "the tests check manifests against resource definitions that come as modules of Go: install Go 1.26 or \
                 newer",
            )?;
            let said: serde_json::Value = serde_json::from_slice(&said).map_err(|error| error.to_string())?;
            if said["Sum"] != *digest {
                return Err(format!(
                    "Go gave {name} {version} as {}, and it has to be {digest}",
                    said["Sum"]
                ));
            }
            let source = Path::new(said["Dir"].as_str().unwrap_or_default()).join(source);
            files.iter().try_for_each(|name| {
                let file = source.join(name);
                fs::copy(&file, folder.join(name)).map(drop).map_err(at(&file))
            })
        })
    }
}

/// Fetches one of Strimzi's artifacts.
fn fetch(name: &str, digest: &str, folder: &Path) -> Result<PathBuf, String> {
    let why = "the tests check manifests against Strimzi's resource definitions, which come with Maven: install Maven 3.8 or \
               newer, or name a file or folder with the definitions in STRIMZI_CRDS";
    artifact(["io.strimzi", name, STRIMZI], digest, folder, why)
}

/// Fetches an artifact with Maven, and checks its digest.
pub fn artifact(
    [group, name, version]: [&str; 3],
    digest: &str,
    folder: &Path,
    why: &str,
) -> Result<PathBuf, String> {
    let mut maven = Command::new("mvn");
    maven.args(["-q", "-B", "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy"]);
    maven.arg(format!("-Dartifact={group}:{name}:{version}"));
    maven.arg(format!("-DoutputDirectory={}", folder.display())).current_dir(folder);
    run(maven, why)?;
    let jar = folder.join(format!("{name}-{version}.jar"));
    let found = hex::encode(Sha256::digest(fs::read(&jar).map_err(at(&jar))?));
    if found == digest {
        return Ok(jar);
    }
    Err(format!(
        "Maven gave {group}:{name}:{version} with the SHA-256 digest {found}, and it has to be {digest}"
    ))
}

/// A Java that is new enough: often an older one comes first in `PATH`, for the sake of other programs.
pub fn java() -> Result<PathBuf, String> {
    let home = env::var_os("JAVA_HOME").map(PathBuf::from);
    let installed = fs::read_dir("/usr/lib/jvm").into_iter().flatten().flatten().map(|entry| entry.path());
    let candidates = home.into_iter().chain(installed).map(|home| home.join("bin/java"));
    candidates.chain(["java".into()]).find(|java| java_version(java) >= Some(JAVA)).ok_or_else(|| {
        format!(
            "Strimzi's resource definitions are made by a program for Java {JAVA}, and neither JAVA_HOME, /usr/lib/jvm \
             nor the path has one: install Java {JAVA} or newer, or name a file or folder with the definitions in \
             STRIMZI_CRDS"
        )
    })
}

/// The 21 of `openjdk version "21.0.4" 2024-07-16`.
fn java_version(java: &Path) -> Option<u32> {
    let output = Command::new(java).arg("-version").output().ok()?;
    let text = String::from_utf8(output.stderr).ok()?;
    text.split('"').nth(1)?.split('.').next()?.parse().ok()
}

fn documents(path: &Path) -> Result<String, String> {
    if path.is_file() {
        return fs::read_to_string(path).map_err(at(path));
    }
    let entries = fs::read_dir(path).map_err(at(path))?.flatten().map(|entry| entry.path());
    let files = entries.filter(|file| file.extension().is_some_and(|extension| extension == "yaml"));
    let texts: Result<Vec<_>, _> = files.map(|file| fs::read_to_string(&file).map_err(at(&file))).collect();
    Ok(texts?.join("\n---\n"))
}

/// A folder below [`root`] that is created once, by its first user, and atomically.
pub fn once(
    name: &str,
    what: &str,
    make: impl FnOnce(&Path) -> Result<(), String>,
) -> Result<PathBuf, String> {
    let folder = root().join(name);
    let _lock = lock_root().map_err(at(&folder))?;
    if !folder.exists() {
        // Not by `eprintln!`, which the test harness captures until a test fails.
        let _ = writeln!(io::stderr(), "{what}; it is kept in {}", folder.display());
        let unfinished = root().join("unfinished");
        let _ = fs::remove_dir_all(&unfinished);
        fs::create_dir(&unfinished).map_err(at(&unfinished))?;
        make(&unfinished)?;
        fs::rename(&unfinished, &folder).map_err(at(&folder))?;
    }
    Ok(folder)
}

/// Runs a tool to its end, and returns its output. `purpose` says what it is for, and what to do if the tool
/// is missing.
pub fn run(mut command: Command, purpose: &str) -> Result<Vec<u8>, String> {
    let tool = command.get_program().display().to_string();
    let output = command.output().map_err(|error| format!("`{tool}` can't be run ({error}); {purpose}"))?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let said = [output.stdout, output.stderr].concat();
    Err(format!("`{tool}` failed; {purpose}\n{}", String::from_utf8_lossy(&said)))
}

pub fn at(path: &Path) -> impl Fn(io::Error) -> String {
    move |error| format!("what the tests need can't be made: {}: {error}", path.display())
}
