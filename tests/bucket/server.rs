//! A server with the S3 API, versitygw, built from the module in `tests/s3_server`: it checks signatures, clocks and
//! regions, and knows whose a bucket is.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use serde_json::json;
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;

use crate::probe::pki::Authority;
use crate::support::control_plane::process::Process;
use crate::support::control_plane::programs::{at, once, run};
use crate::support::control_plane::until;

pub const REGION: &str = "eu-central-1";
const ADMIN: &str = "the-administrator";

/// Its users, each with the secret key [`secret_of`]: two that may make buckets, and one that may not.
const USERS: [(&str, &str); 3] = [("acme", "userplus"), ("globex", "userplus"), ("reader", "user")];

pub struct Server {
    pub port: u16,
    folder: TempDir,
    _process: Process,
}

pub fn secret_of(user: &str) -> String {
    format!("secret-key-of-{user}-4711")
}

impl Server {
    pub fn start() -> Server {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        for name in ["buckets", "attributes", "users"] {
            fs::create_dir(path(name)).unwrap();
        }
        let account = |(user, role): &(&str, &str)| {
            let account =
                json!({"access": user, "secret": secret_of(user), "role": role, "userID": 0, "groupID": 0});
            ((*user).to_owned(), account)
        };
        let accounts: serde_json::Map<_, _> = USERS.iter().map(account).collect();
        let accounts = json!({"accessAccounts": accounts}).to_string();
        fs::write(path("users/users.json"), accounts).unwrap();
        let authority = Authority::new("an authority for buckets");
        let own = authority.server(&["localhost"]);
        fs::write(path("authority.pem"), &authority.pem).unwrap();
        fs::write(path("certificate.pem"), &own.certificate).unwrap();
        fs::write(path("key.pem"), &own.key).unwrap();
        // The server can't say which port it took.
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut command = Command::new(program());
        command.args(["--access", ADMIN, "--secret", "an-administrator's", "--region", REGION]);
        command.args(["--port", &format!("127.0.0.1:{port}"), "--iam-dir"]).arg(path("users"));
        command.arg("--cert").arg(path("certificate.pem")).arg("--key").arg(path("key.pem"));
        command.args(["posix", "--sidecar"]).arg(path("attributes")).arg(path("buckets"));
        command.current_dir(folder.path());
        let process = Process::start(command, path("s3.log"));
        until("the server for buckets answers", || std::net::TcpStream::connect(("127.0.0.1", port)).ok());
        Server { port, folder, _process: process }
    }

    pub fn url(&self) -> String {
        format!("https://localhost:{}", self.port)
    }

    /// The file with the certificate of its authority.
    pub fn authority(&self) -> String {
        self.folder.path().join("authority.pem").display().to_string()
    }

    pub fn has(&self, bucket: &str) -> bool {
        self.folder.path().join("buckets").join(bucket).is_dir()
    }
}

fn program() -> PathBuf {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    let build = || {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/s3_server");
        let mut digest = Sha256::new();
        for file in ["go.mod", "go.sum"] {
            digest.update(fs::read(source.join(file)).map_err(at(&source))?);
        }
        let name = format!("s3-server-{}", &hex::encode(digest.finalize())[..12]);
        let folder = once(&name, "building a server with the S3 API, some two minutes", |folder| {
            let mut go = Command::new("go");
            go.current_dir(&source).env("CGO_ENABLED", "0");
            go.args(["build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o"]);
            go.arg(folder.join("versitygw")).arg("github.com/versity/versitygw/cmd/versitygw");
            run(go, "the tests make buckets at a server that is built with Go: install Go 1.26 or newer")
                .map(drop)
        })?;
        Ok::<_, String>(folder.join("versitygw"))
    };
    PROGRAM.get_or_init(|| build().unwrap_or_else(|why| panic!("{why}"))).clone()
}
