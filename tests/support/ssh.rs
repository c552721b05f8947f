//! An ssh server that runs git's commands, built from the module in `tests/ssh_server`, and keys for it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use sha2::{Digest as _, Sha256};

use super::control_plane::process::Process;
use super::control_plane::programs::{at, once, run};
use super::control_plane::until;

/// A server for the repositories in a folder, stopped on drop. The key files `host` (its own) and `user` (the
/// one that may log in) are in that folder.
pub struct Server {
    pub port: u16,
    _process: Process,
}

impl Server {
    pub fn start(folder: &Path, flags: &[&str]) -> Server {
        let mut command = Command::new(program());
        command.arg("-root").arg(folder).arg("-host-key").arg(folder.join("host"));
        command.arg("-authorized").arg(folder.join("user.pub")).args(flags).current_dir(folder);
        let process = Process::start(command, folder.join("ssh.log"));
        let port = until("the ssh server says its port", || process.said().lines().next()?.parse().ok());
        Server { port, _process: process }
    }

    /// A line of `known_hosts` for this server with a key of the folder.
    pub fn known_as(&self, folder: &Path, key: &str) -> String {
        let key = fs::read_to_string(folder.join(key).with_extension("pub")).unwrap();
        format!("[127.0.0.1]:{} {key}", self.port)
    }

    pub fn url(&self, repository: &str) -> String {
        format!("ssh://git@127.0.0.1:{}/{repository}", self.port)
    }
}

/// Creates a key pair, `NAME` and `NAME.pub`.
pub fn make_key(folder: &Path, name: &str, passphrase: &str) {
    let mut keygen = Command::new("ssh-keygen");
    keygen.args(["-q", "-t", "ed25519", "-C", name, "-N", passphrase, "-f"]).arg(folder.join(name));
    run(keygen, "the tests of ssh make keys with it: install OpenSSH").unwrap();
}

fn program() -> PathBuf {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    let build = || {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ssh_server");
        let mut digest = Sha256::new();
        for file in ["go.mod", "go.sum", "main.go"] {
            digest.update(fs::read(source.join(file)).map_err(at(&source))?);
        }
        let name = format!("ssh-server-{}", &hex::encode(digest.finalize())[..12]);
        let folder = once(&name, "building an ssh server, some ten seconds", |folder| {
            let mut go = Command::new("go");
            go.current_dir(&source).env("CGO_ENABLED", "0");
            go.args(["build", "-trimpath", "-buildvcs=false", "-o"]).arg(folder.join("ssh-server"));
            run(go, "the tests talk to an ssh server that is built with Go: install Go 1.26 or newer")
                .map(drop)
        })?;
        Ok::<_, String>(folder.join("ssh-server"))
    };
    PROGRAM.get_or_init(|| build().unwrap_or_else(|why| panic!("{why}"))).clone()
}
