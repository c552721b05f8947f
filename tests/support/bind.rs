//! Debian's BIND.

use std::fs;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Stdio};
use std::sync::OnceLock;

use tempfile::TempDir;

use super::control_plane::until;
use super::debian;
use super::knot::{SECRET, answers, key};

/// A server with the zone `example.test`, in which the key `streamfleet` may change names below `kafka.example.test`.
pub struct Bind {
    process: Child,
    pub address: SocketAddr,
    _folder: TempDir,
}

impl Drop for Bind {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Bind {
    pub fn start() -> Bind {
        static FOLDER: OnceLock<Result<std::path::PathBuf, String>> = OnceLock::new();
        let found = FOLDER.get_or_init(|| debian::programs("bind9", &["usr/sbin/named"], &["bind9"]));
        let folder = TempDir::new().unwrap();
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let root = folder.path().display();
        let zone = "$ORIGIN example.test.\n$TTL 60\n@ SOA ns hostmaster 1 3600 600 86400 60\n@ NS ns\nns A 127.0.0.1\n";
        fs::write(folder.path().join("example.test.zone"), zone).unwrap();
        let config = format!(
            "options {{ directory \"{root}\"; listen-on port {} {{ 127.0.0.1; }}; listen-on-v6 {{ none; }}; pid-file none; \
             session-keyfile none; recursion no; }};\ncontrols {{ }};\n{}zone \"example.test\" {{ type primary; file \
             \"example.test.zone\"; update-policy {{ grant streamfleet subdomain kafka.example.test. ANY; }}; }};\n",
            address.port(),
            key("streamfleet", SECRET)
        );
        fs::write(folder.path().join("named.conf"), config).unwrap();
        let mut command =
            debian::command(found.as_ref().unwrap_or_else(|why| panic!("{why}")), "usr/sbin/named");
        command.arg("-g").arg("-c").arg(folder.path().join("named.conf")).stdout(Stdio::null());
        let log = fs::File::create(folder.path().join("log")).unwrap();
        let process = command.stderr(log).spawn().unwrap();
        until("BIND listens", || TcpStream::connect(address).ok());
        // It answers before it has read the zone.
        until("BIND has the zone", || (!answers(address, "example.test", "SOA").is_empty()).then_some(()));
        Bind { process, address, _folder: folder }
    }
}
