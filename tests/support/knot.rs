//! Debian's Knot DNS with its tools.

use std::fs;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use tempfile::TempDir;

use super::control_plane::until;
use super::{Run, debian};

/// The secret of the key `streamfleet`, in base64.
pub const SECRET: &str = "bWFueS1zZWNyZXQtYnl0ZXMtb2YtYS10c2lnLWtleSE=";

/// The key as BIND's tools write it.
pub fn key(name: &str, secret: &str) -> String {
    format!("key \"{name}\" {{\n  algorithm hmac-sha256;\n  secret \"{secret}\";\n}};\n")
}

/// A server with the zone `example.test`, in which the key `streamfleet` may change names below `kafka.example.test`.
pub struct Knot {
    process: Option<Child>,
    pub address: SocketAddr,
    folder: TempDir,
}

impl Drop for Knot {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Knot {
    pub fn start() -> Knot {
        let folder = TempDir::new().unwrap();
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let root = folder.path().display();
        let zone = "$ORIGIN example.test.\n$TTL 60\n@ SOA ns hostmaster 1 3600 600 86400 60\n@ NS ns\nns A 127.0.0.1\n\
                    theirs.kafka A 192.0.2.99\n";
        fs::write(folder.path().join("example.test.zone"), zone).unwrap();
        let config = format!(
            "server:\n  listen: 127.0.0.1@{}\n  rundir: {root}\ndatabase:\n  storage: {root}\nkey:\n- id: streamfleet\n  \
             algorithm: hmac-sha256\n  secret: {SECRET}\nacl:\n- id: ours\n  key: streamfleet\n  action: [query, update]\n  \
             update-owner: name\n  update-owner-match: sub-or-equal\n  update-owner-name: [kafka]\n- id: anybody\n  address: \
             127.0.0.0/8\n  action: [update]\nzone:\n- domain: example.test\n  storage: {root}\n  file: \
             example.test.zone\n  acl: [ours, anybody]\n",
            address.port()
        );
        fs::write(folder.path().join("knot.conf"), config).unwrap();
        let mut knot = Knot { process: None, address, folder };
        knot.start_again();
        knot
    }

    pub fn start_again(&mut self) {
        let mut command = command("usr/sbin/knotd");
        command.arg("--config").arg(self.folder.path().join("knot.conf")).stdout(Stdio::null());
        self.process = Some(command.stderr(Stdio::null()).spawn().unwrap());
        until("Knot DNS listens", || TcpStream::connect(self.address).ok());
    }

    pub fn stop(&mut self) {
        if let Some(mut process) = self.process.take() {
            let _ = process.kill();
            let _ = process.wait();
        }
    }

    pub fn answers(&self, name: &str, kind: &str) -> Vec<String> {
        answers(self.address, name, kind)
    }

    /// It grows with every change of the zone.
    pub fn serial(&self) -> String {
        self.answers("example.test", "SOA")[0].split(' ').nth(2).unwrap().to_owned()
    }

    /// Changes the zone as somebody else does: `add theirs.kafka.example.test. 60 A 192.0.2.9`.
    pub fn update(&self, lines: &str) {
        let file = self.folder.path().join("update");
        let port = self.address.port();
        fs::write(&file, format!("server 127.0.0.1 {port}\nzone example.test.\n{lines}\nsend\n")).unwrap();
        let mut knsupdate = command("usr/bin/knsupdate");
        knsupdate.arg("-v").arg(&file);
        Run::from(knsupdate.output().unwrap()).expect(0);
    }
}

/// The answers that anybody gets from a server, sorted: `192.0.2.1`.
pub fn answers(server: SocketAddr, name: &str, kind: &str) -> Vec<String> {
    let mut kdig = command("usr/bin/kdig");
    kdig.args(["+short", "+tcp", "@127.0.0.1", "-p", &server.port().to_string(), name, kind]);
    let found = Run::from(kdig.output().unwrap()).expect(0).out;
    let mut found: Vec<String> = found.lines().map(str::to_owned).collect();
    found.sort();
    found
}

fn command(program: &str) -> Command {
    static FOLDER: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let programs = ["usr/sbin/knotd", "usr/bin/kdig", "usr/bin/knsupdate"];
    let found = FOLDER.get_or_init(|| debian::programs("knot", &programs, &["knot", "knot-dnsutils"]));
    debian::command(found.as_ref().unwrap_or_else(|why| panic!("{why}")), program)
}
