//! The Debian package and its unit under a real systemd, which the test boots in namespaces from a Debian that
//! `.ci/packages` made.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use serde_json::Value;
use tempfile::TempDir;

use crate::support::control_plane::{until, within_patience};
use crate::support::{Run, examples, skipped};

const SETTINGS: &str = "/etc/streamfleet/streamfleet.toml";
const DOMAIN: &str = "/etc/streamfleet/specs/acme/base-domains/kafka.acme.example.com.yaml";
const POOL: &str = "/var/lib/streamfleet/output/acme/eu/kafka-acme--orders/kafkanodepool-broker.yaml";

/// What an administrator adds to the unit: a folder of specs, secrets as credentials, and a watchdog that a test can
/// wait for.
const OVERRIDE: &str = "[Service]\nExecStart=\nExecStart=/usr/bin/streamfleet serve --specs /etc/streamfleet/specs \
                        --config /etc/streamfleet/streamfleet.toml\nLoadCredential=secrets:/etc/streamfleet/secrets\n\
                        WatchdogSec=15s\n";

fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Builds the package with the tests' program; `None` where it can't be built.
fn package(version: &str, into: &Path) -> Option<PathBuf> {
    if !repository().join("target/tools/bin/cargo-deb").exists() {
        assert!(
            std::env::var("STREAMFLEET_TESTS").is_err(),
            "cargo-deb is missing: `.ci/packages` builds it"
        );
        skipped("there is no cargo-deb in target/tools; `.ci/packages` builds it");
        return None;
    }
    let file = into.join(format!("streamfleet_{version}.deb"));
    let mut debian = Command::new(repository().join("packaging/debian"));
    debian.args([Path::new(env!("CARGO_BIN_EXE_streamfleet")), &file, Path::new(version)]);
    Run::from(debian.output().unwrap()).expect(0);
    Some(file)
}

/// A group of processes of its own, below which systemd makes one for each unit.
struct Group(PathBuf);

impl Group {
    fn new() -> Option<Group> {
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
        let mut mounts = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
        let Some(mount) = mounts.find(|fields| fields[2] == "cgroup2") else {
            skipped("systemd needs cgroup v2, which is not mounted here");
            return None;
        };
        let group = Path::new(mount[1]).join(format!("streamfleet-tests-{}", std::process::id()));
        if let Err(error) = fs::create_dir(&group) {
            skipped(&format!("no group of processes can be made in {}: {error}", mount[1]));
            return None;
        }
        Some(Group(group))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        fn remove(group: &Path) {
            for entry in fs::read_dir(group).into_iter().flatten().flatten() {
                if entry.path().is_dir() {
                    remove(&entry.path());
                }
            }
            // A process that ends is counted for a moment longer.
            within_patience(|| fs::remove_dir(group).is_ok().then_some(()));
        }
        remove(&self.0);
    }
}

/// A Debian with systemd as its first process. It ends with the test.
struct Host {
    // Declared in drop order.
    namespaces: Child,
    init: String,
    _group: Group,
    folder: TempDir,
}

impl Drop for Host {
    fn drop(&mut self) {
        // The first process of the namespaces ends with it, and all others with that one.
        let _ = self.namespaces.kill();
        let _ = self.namespaces.wait();
    }
}

impl Host {
    /// Boots; `None` where that can't be done.
    fn boot() -> Option<Host> {
        let debian = repository().join("target/debian");
        if !debian.join("lib/systemd/systemd").exists() {
            assert!(
                std::env::var("STREAMFLEET_TESTS").is_err(),
                "target/debian is missing: `.ci/packages` makes it"
            );
            skipped("there is no Debian in target/debian; `.ci/packages` makes it");
            return None;
        }
        let group = Group::new()?;
        let folder = tempfile::tempdir().unwrap();
        let mut unshare = Command::new("sh");
        // Into the group first, so that it is the root of the namespace's groups.
        unshare.args(["-euc", "echo $$ > \"$0/cgroup.procs\"; exec \"$@\""]).arg(&group.0);
        unshare.args([
            "unshare",
            "--mount",
            "--pid",
            "--uts",
            "--ipc",
            "--cgroup",
            "--net",
            "--fork",
            "--kill-child",
        ]);
        unshare.arg(repository().join("tests/packages/systemd/boot")).arg(debian).arg(folder.path());
        let mut namespaces = unshare.spawn().unwrap();
        let children = format!("/proc/{0}/task/{0}/children", namespaces.id());
        let init = within_patience(|| {
            assert_eq!(namespaces.try_wait().unwrap(), None, "systemd was not started");
            let init = fs::read_to_string(&children).ok()?.trim().to_owned();
            let program = fs::read_to_string(format!("/proc/{init}/comm")).ok()?;
            (program == "systemd\n").then_some(init)
        });
        let mut host = Host { namespaces, init: String::new(), _group: group, folder };
        host.init = init.expect("systemd is the first process");
        host.until("it has booted", || {
            matches!(host.run("systemctl is-system-running").out.as_str(), "running\n" | "degraded\n")
                .then_some(())
        });
        Some(host)
    }

    fn enter(&self) -> Command {
        let mut enter = Command::new("nsenter");
        enter.args(["--target", &self.init, "--mount", "--pid", "--uts", "--ipc", "--cgroup", "--net", "--"]);
        enter.env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").current_dir("/");
        enter
    }

    fn run(&self, words: &str) -> Run {
        let mut command = self.enter();
        command.args(words.split_whitespace());
        command.output().unwrap().into()
    }

    /// Writes a file of root's alone.
    fn write(&self, path: &str, bytes: impl AsRef<[u8]>) {
        let file = self.folder.path().join("written");
        fs::write(&file, bytes).unwrap();
        let mut command = self.enter();
        command.args(["sh", "-euc", "umask 077; mkdir -p \"${1%/*}\"; cat > \"$1\"", "sh", path]);
        Run::from(command.stdin(fs::File::open(file).unwrap()).output().unwrap()).expect(0);
    }

    fn read(&self, path: &str) -> String {
        self.run(&format!("cat {path}")).expect(0).out
    }

    fn install(&self, package: &Path) -> Run {
        self.write("/root/streamfleet.deb", fs::read(package).unwrap());
        self.run("dpkg --install /root/streamfleet.deb")
    }

    fn property(&self, name: &str) -> String {
        let shown = self.run(&format!("systemctl show streamfleet --value --property={name}")).expect(0);
        shown.out.trim_end().to_owned()
    }

    /// Waits until a property of the service has this value.
    #[track_caller]
    fn is(&self, name: &str, value: &str) {
        self.until(&format!("{name} is {value}"), || (self.property(name) == value).then_some(()));
    }

    /// The entries of the service's journal that match.
    fn journal(&self, matches: &str) -> Vec<Value> {
        let entries = self.run(&format!("journalctl --output=json --unit=streamfleet {matches}"));
        entries.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    #[track_caller]
    fn says(&self, words: &str) {
        self.until(&format!("it says {words}"), || {
            let entries = self.journal("");
            let said = entries.iter().filter_map(|entry| entry["MESSAGE"].as_str());
            { said }.any(|message| message.contains(words)).then_some(())
        });
    }

    #[track_caller]
    fn until<T>(&self, what: &str, ask: impl FnMut() -> Option<T>) -> T {
        within_patience(ask).unwrap_or_else(|| {
            let log = self.run("journalctl --no-pager --lines=60");
            panic!("it is still not so that {what}\n{}{}", log.out, log.err)
        })
    }

    /// The specs of the quickstart, whose key is a credential.
    fn has_specs(&self) {
        let example = examples().join("quickstart");
        let mut archive = Command::new("tar");
        archive.arg("-C").arg(example).args([
            "--exclude=.streamfleet",
            "--owner=0",
            "--group=0",
            "-cf",
            "-",
            ".",
        ]);
        let archive = archive.output().unwrap();
        assert!(archive.status.success());
        self.write("/root/specs.tar", archive.stdout);
        self.run("mkdir --parents /etc/streamfleet/specs").expect(0);
        self.run("tar -C /etc/streamfleet/specs -xf /root/specs.tar").expect(0);
        let domain = self.read(DOMAIN);
        let (domain, key) = domain.split_once("tls_key: |\n").unwrap();
        let key: String = key.lines().map(|line| format!("{}\n", line.trim())).collect();
        self.write("/etc/streamfleet/secrets/acme/tls", key);
        self.write(DOMAIN, format!("{domain}tls_key: {{from_file: tls}}\n"));
        self.run("chmod -R a+rX /etc/streamfleet/specs").expect(0);
    }
}

#[test]
fn the_package_and_its_unit_live_under_systemd() {
    if fs::metadata("/proc/self").unwrap().uid() != 0 {
        skipped("booting a systemd takes root");
        return;
    }
    let Some(host) = Host::boot() else { return };
    let Some(first) = package("0.0.1", host.folder.path()) else { return };
    host.install(&first).expect(0);
    assert_eq!(host.run("systemctl is-enabled streamfleet").out, "disabled\n", "nothing starts unasked");
    host.run("getent passwd streamfleet").expect(0);

    refused_without_specs(&host);
    started_with_credentials(&host);
    asked_by_commands(&host);
    reloaded(&host);
    killed_and_hung(&host);
    without_its_state(&host);
    upgraded_and_removed(&host);
}

/// What it says is an error of the journal, in the words that a terminal or the log of a container has.
fn refused_without_specs(host: &Host) {
    host.run("systemctl start streamfleet").expect(1);
    host.run("systemctl stop streamfleet").expect(0);
    let expected = [
        "error: nothing names the specs",
        "  help: name their folder, streamfleet serve --specs DIR, or set `git` under `[source]` in the settings",
    ];
    host.until("the journal has the refusal", || {
        let errors = host.journal("--priority=err _COMM=streamfleet");
        let said: Vec<&str> = errors.iter().filter_map(|entry| entry["MESSAGE"].as_str()).take(2).collect();
        (said == expected).then_some(())
    });
}

fn started_with_credentials(host: &Host) {
    host.has_specs();
    let settings = host.read(SETTINGS).replace(
        "secrets_dir = \"/etc/streamfleet/secrets\"",
        "secrets_dir = \"$CREDENTIALS_DIRECTORY/secrets\"",
    );
    assert!(settings.contains("$CREDENTIALS_DIRECTORY/secrets\""));
    host.write(SETTINGS, settings);
    host.run(&format!("chmod 644 {SETTINGS}")).expect(0);
    host.write("/etc/systemd/system/streamfleet.service.d/tests.conf", OVERRIDE);
    host.run("systemctl daemon-reload").expect(0);
    host.run("systemctl start streamfleet").expect(0);
    host.is("StatusText", "1 fleet, 2 clusters, 0 waiting");
    host.until("it is applied", || (host.run(&format!("test -f {POOL}")).code == 0).then_some(()));
    assert_eq!(
        host.run("stat --format=%U:%a /var/lib/streamfleet/state").out,
        "streamfleet:700\n",
        "the state is its user's alone"
    );
    host.until("its decisions are found by their fields", || {
        let made = "PRIORITY=6 STREAMFLEET_FLEET=acme/eu STREAMFLEET_VERB=create";
        let made = host.journal(&format!("{made} --grep=^done"));
        let made = made.iter().find(|entry| entry["STREAMFLEET_RESOURCE"] == "cluster acme/orders")?;
        assert_eq!(made["SYSLOG_IDENTIFIER"], "streamfleet");
        assert!(made["STREAMFLEET_PLAN"].is_string(), "{made}");
        Some(())
    });
}

fn asked_by_commands(host: &Host) {
    let ask = |verb: &str| {
        host.run(&format!(
            "runuser -u streamfleet -- streamfleet {verb} /etc/streamfleet/specs --config {SETTINGS}"
        ))
    };
    ask("ready").expect(0);
    ask("status").expect(0).says(&["the running daemon", "acme/orders"]);
    ask("plan").expect(0).says(&["Nothing to do"]);
}

fn reloaded(host: &Host) {
    let process = host.property("MainPID");
    host.write(SETTINGS, format!("{}\n[policy]\napproval_hours = 12\n", host.read(SETTINGS)));
    host.run(&format!("chmod 644 {SETTINGS}")).expect(0);
    host.run("systemctl reload streamfleet").expect(0);
    host.says("settings reloaded; the new ones are active");
    host.is("ActiveState", "active");
    assert_eq!(host.property("MainPID"), process);
}

fn killed_and_hung(host: &Host) {
    host.run("systemctl kill --signal=KILL --kill-who=main streamfleet").expect(0);
    host.is("NRestarts", "1");
    host.is("StatusText", "1 fleet, 2 clusters, 0 waiting");
    let process = host.property("MainPID");
    host.run("systemctl kill --signal=STOP --kill-who=main streamfleet").expect(0);
    host.until("its watchdog ended it", || {
        let log = host.run("journalctl --unit=streamfleet --grep=Watchdog.timeout");
        log.out.contains("Watchdog timeout").then_some(())
    });
    host.is("NRestarts", "2");
    host.is("StatusText", "1 fleet, 2 clusters, 0 waiting");
    assert_ne!(host.property("MainPID"), process);
}

/// What is started again would begin a new installation, so it stays down.
fn without_its_state(host: &Host) {
    let restarts = host.property("NRestarts");
    host.run("mv /var/lib/streamfleet/state /var/lib/streamfleet/away").expect(0);
    host.is("ActiveState", "failed");
    assert_eq!((host.property("ExecMainStatus"), host.property("NRestarts")), ("4".to_owned(), restarts));
    host.run("mv /var/lib/streamfleet/away /var/lib/streamfleet/state").expect(0);
    host.run("systemctl start streamfleet").expect(0);
    host.is("StatusText", "1 fleet, 2 clusters, 0 waiting");
}

fn upgraded_and_removed(host: &Host) {
    let identity = host.read("/var/lib/streamfleet/state/identity.age-keys");
    let process = host.property("MainPID");
    let second = package("0.0.2", host.folder.path()).unwrap();
    host.install(&second).expect(0);
    until("the new version runs", || {
        let now = host.property("MainPID");
        (now != process && now != "0").then_some(())
    });
    host.is("StatusText", "1 fleet, 2 clusters, 0 waiting");
    assert!(host.read(SETTINGS).contains("approval_hours"), "the settings of the administrator stay");

    host.run("systemctl enable streamfleet").expect(0);
    host.run("dpkg --remove streamfleet").expect(0);
    assert_eq!(host.property("ActiveState"), "inactive");
    assert_eq!(host.property("Result"), "success", "it ended by itself");
    host.run("dpkg --purge streamfleet").expect(0).says(&["/var/lib/streamfleet is kept"]);
    host.run(&format!("test -e {SETTINGS}")).expect(1);
    assert_eq!(host.read("/var/lib/streamfleet/state/identity.age-keys"), identity);
}
