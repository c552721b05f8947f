//! Pebble, Let's Encrypt's authority for tests, built with Go.

use std::fs::{self, File};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use rcgen::{CertificateParams, KeyPair};
use serde_json::json;
use tempfile::TempDir;

use super::control_plane::programs::{at, once, run};
use super::control_plane::until;

const VERSION: &str = "v2.10.1";

/// An authority that asks one DNS server about every name.
pub struct Pebble {
    process: Child,
    pub address: SocketAddr,
    management: SocketAddr,
    folder: TempDir,
    dns: SocketAddr,
    variables: Vec<(String, String)>,
}

impl Drop for Pebble {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Pebble {
    /// `seconds` is the life of its certificates.
    pub fn start(dns: SocketAddr, seconds: u64) -> Pebble {
        Self::start_with(dns, seconds, &[])
    }

    pub fn start_with(dns: SocketAddr, seconds: u64, variables: &[(&str, &str)]) -> Pebble {
        let folder = TempDir::new().unwrap();
        let free = || TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let (address, management) = (free(), free());
        let pair = KeyPair::generate().unwrap();
        let params = CertificateParams::new(["localhost".to_owned(), "127.0.0.1".to_owned()]).unwrap();
        fs::write(folder.path().join("server.pem"), params.self_signed(&pair).unwrap().pem()).unwrap();
        fs::write(folder.path().join("server.key"), pair.serialize_pem()).unwrap();
        let file = |name: &str| folder.path().join(name);
        let config = json!({"pebble": {
            "listenAddress": address.to_string(), "managementListenAddress": management.to_string(),
            "certificate": file("server.pem"), "privateKey": file("server.key"),
            "httpPort": 5002, "tlsPort": 5001, "ocspResponderURL": "", "externalAccountBindingRequired": false,
            "retryAfter": {"authz": 1, "order": 1}, "keyAlgorithm": "ecdsa",
            "profiles": {"default": {"description": "usual", "validityPeriod": seconds}},
        }});
        fs::write(file("config.json"), config.to_string()).unwrap();
        let variables: Vec<_> =
            variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let process = spawn(folder.path(), dns, &variables);
        until("Pebble listens", || TcpStream::connect(address).ok());
        until("Pebble's management listens", || TcpStream::connect(management).ok());
        let pebble = Pebble { process, address, management, folder, dns, variables };
        let roots =
            [fs::read_to_string(pebble.folder.path().join("server.pem")).unwrap(), pebble.root()].concat();
        fs::write(pebble.folder.path().join("roots.pem"), roots).unwrap();
        pebble
    }

    /// The settings of an installation that gets its certificates here, through `port`.
    pub fn settings(&self, port: u16) -> String {
        format!(
            "[acme]\ndirectory = \"https://127.0.0.1:{port}/dir\"\nagree_to_terms = true\npropagation_seconds = 0\nroots = \"{}\"\n",
            self.folder.path().join("roots.pem").display()
        )
    }

    /// The certificate that its certificates are trusted by, in PEM.
    pub fn root(&self) -> String {
        let mut curl = Command::new("curl");
        curl.args(["--silent", "--fail", "--insecure", &format!("https://{}/roots/0", self.management)]);
        String::from_utf8(curl.output().unwrap().stdout).unwrap()
    }

    /// Starts without what it knows, at the same address.
    pub fn start_anew(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        self.process = spawn(self.folder.path(), self.dns, &self.variables);
        until("Pebble listens", || TcpStream::connect(self.address).ok());
    }

    /// Says from now on that a certificate should have been renewed.
    pub fn renews_now(&self, chain: &str) {
        let mut curl = Command::new("curl");
        let window =
            json!({"suggestedWindow": {"start": "2026-01-01T00:00:00Z", "end": "2026-01-02T00:00:00Z"}});
        let told = json!({"Certificate": chain, "ARIResponse": window.to_string()});
        let url = format!("https://{}/set-renewal-info/", self.management);
        curl.args(["--silent", "--fail", "--insecure", "--data", &told.to_string(), &url]);
        assert!(curl.status().unwrap().success());
    }

    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap()
    }

    /// How many orders were made here.
    pub fn orders(&self) -> usize {
        self.log().matches("Added order ").count()
    }
}

fn spawn(folder: &Path, dns: SocketAddr, variables: &[(String, String)]) -> Child {
    let log = File::create(folder.join("log")).unwrap();
    let mut pebble = Command::new(program());
    pebble.args(["-config", "config.json", "-dnsserver", &dns.to_string()]).current_dir(folder);
    pebble.env("PEBBLE_VA_NOSLEEP", "1").env("PEBBLE_WFE_NONCEREJECT", "0");
    pebble.envs(variables.iter().map(|(name, value)| (name, value)));
    pebble.stdout(log.try_clone().unwrap()).stderr(log).stdin(Stdio::null()).spawn().unwrap()
}

fn program() -> &'static Path {
    static PROGRAM: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let build = || {
        let folder = once(&format!("pebble-{VERSION}"), "building Pebble, some 20 seconds", |folder| {
            let folder = fs::canonicalize(folder).map_err(at(folder))?;
            let mut go = Command::new("go");
            go.env("GOBIN", &folder).env("CGO_ENABLED", "0");
            go.args(["install", &format!("github.com/letsencrypt/pebble/v2/cmd/pebble@{VERSION}")]);
            run(go, "the tests get certificates from an authority that is built with Go: install Go 1.26 or newer").map(drop)
        })?;
        Ok(folder.join("pebble"))
    };
    PROGRAM.get_or_init(build).as_ref().unwrap_or_else(|why| panic!("{why}"))
}
