//! Loads the API on loopback with `wrk` (Debian's package of that name): reads, lists, creates up to the
//! durable answer, and the memory of many connections.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::Run;
use crate::daemon::{FEW, git};
use crate::floor::memory_kib;
use crate::serve::{Serve, Told};
use crate::tree::{Hosts, Tree};

const EACH: &str = "10s";

/// Target for the 99th percentile of reads, in milliseconds.
const READ: f64 = 1.0;
const CREATE: f64 = 20.0;

/// The path of a read.
pub const ONE: &str = "/v1/clusters/cluster-00007?organization=org-00";

/// Measures with few clusters and with many, in a folder and in git.
pub fn measure(folder: &Path, clusters: usize) -> io::Result<()> {
    if !has_wrk() {
        return Ok(());
    }
    println!(
        "\nthe API; aims of 99 of 100 answers: a read within {READ} ms, a create in a folder within {CREATE} ms\n"
    );
    for clusters in [FEW, clusters] {
        let folder = folder.join(format!("asked-{clusters}"));
        let hosts = Hosts { clusters: 100, infra_type: "directory", settings: String::new() };
        let tree = Tree::write(&folder.join("tree"), clusters, hosts);
        Run::of(&["apply", "--yes"], tree.root())?;
        println!("{clusters} clusters");
        in_folder(&folder, &tree)?;
        in_git(&folder, &tree)?;
    }
    Ok(())
}

/// Says so if there is none.
pub fn has_wrk() -> bool {
    let has = Command::new("wrk").arg("--version").output().is_ok();
    if !has {
        println!("\nnothing is asked by HTTP: there is no `wrk`, which Debian has");
    }
    has
}

fn in_folder(folder: &Path, tree: &Tree) -> io::Result<()> {
    let settings = folder.join("api.toml");
    let port = port()?;
    fs::write(&settings, listening(port))?;
    let mut serve = Serve::start(&[Path::new("--specs"), tree.root(), Path::new("--config"), &settings])?;
    serve.wait_for(Told::Planned)?;
    serve.wait_until_idle()?;
    let token = token(&[tree.root(), Path::new("--config"), &settings])?;
    let asks = Asks { port, header: bearer(&token) };
    asks.tell("a read, one caller", ONE, 1, None, READ)?;
    asks.tell("a read, 16 callers", ONE, 16, None, READ)?;
    asks.tell("a page of 50 clusters, one caller", "/v1/clusters?page_size=50", 1, None, READ)?;
    let id = serve.id().to_string();
    let before = memory_kib(&id, "VmRSS:") / 1024;
    asks.tell("a read, 512 callers", ONE, 512, None, READ)?;
    let peak = memory_kib(&id, "VmHWM:") / 1024;
    println!("  512 connections: {before} MB before, {peak} MB at most");
    let script = creating(folder, "f")?;
    asks.tell("a create in a folder", "/organizations/org-00/identity-providers", 1, Some(&script), CREATE)?;
    let script = script_of(folder, "PATCH", r#"{"tags": [{"key": "number", "value": "%d"}]}"#)?;
    asks.tell("a change of a cluster in a folder", ONE, 1, Some(&script), CREATE)?;
    serve.stop()
}

fn in_git(folder: &Path, tree: &Tree) -> io::Result<()> {
    fs::remove_dir_all(tree.root().join(".streamfleet"))?;
    git(folder, &["init", "--quiet", "--bare", "--initial-branch=main", "specs.git"])?;
    git(tree.root(), &["init", "--quiet", "--initial-branch=main"])?;
    git(tree.root(), &["add", "--all"])?;
    git(tree.root(), &["commit", "--quiet", "--message=all"])?;
    git(tree.root(), &["push", "--quiet", "../specs.git", "main"])?;
    let settings = folder.join("git.toml");
    let port = port()?;
    let source = format!(
        "[source]\ngit = \"{}\"\n[secrets]\nallow_plain_in_git = true\n",
        folder.join("specs.git").display()
    );
    let text = format!(
        "state_dir = \"state\"\noutput_dir = \"output\"\n[policy]\nmode = \"plan-only\"\n{source}{}",
        listening(port)
    );
    fs::write(&settings, text)?;
    let mut serve = Serve::start(&[Path::new("--config"), &settings])?;
    serve.wait_for(Told::Planned)?;
    serve.wait_until_idle()?;
    let asks = Asks { port, header: bearer(&token(&[Path::new("--config"), &settings])?) };
    let script = creating(folder, "g")?;
    asks.tell("a create in git", "/organizations/org-00/identity-providers", 1, Some(&script), CREATE)?;
    serve.stop()
}

pub fn port() -> io::Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

pub fn listening(port: u16) -> String {
    format!(
        "[api]\nlisten = \"127.0.0.1:{port}\"\nsuper_user_emails = [\"bench@example.com\"]\nrequests_per_owner = 1000000\n\
         max_connections = 600\nmax_connections_per_address = 600\n"
    )
}

pub fn token(tree: &[&Path]) -> io::Result<String> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_streamfleet"));
    command.args(["token", "create"]).args(tree);
    command.args([
        "--name",
        "bench",
        "--owner",
        "bench@example.com",
        "--all-organizations",
        "--access",
        "admin",
    ]);
    let output = command.output()?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned()),
        false => Err(io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned())),
    }
}

/// A script that creates a resource with a new name in each request.
fn creating(folder: &Path, prefix: &str) -> io::Result<std::path::PathBuf> {
    let body = r#"{"organization": "org-00", "identifier": "PREFIX%d", "issuer": "https://login.example.com", "jwks_uri": "https://login.example.com/keys", "audience": "kafka"}"#;
    script_of(folder, "POST", &body.replace("PREFIX", prefix))
}

/// Writes a `wrk` script whose requests have another number each, in the place of `%d`.
fn script_of(folder: &Path, method: &str, body: &str) -> io::Result<std::path::PathBuf> {
    let mut script = format!(
        "local number = os.time()\nwrk.method = \"{method}\"\nwrk.headers[\"Content-Type\"] = \"application/json\"\n"
    );
    let _ = write!(
        script,
        "request = function()\n  number = number + 1\n  return wrk.format(nil, nil, nil, string.format('{body}', number))\nend\n"
    );
    let path = folder.join(format!("{method}.lua"));
    fs::write(&path, script)?;
    Ok(path)
}

pub fn bearer(token: &str) -> String {
    format!("Authorization: Bearer {token}")
}

pub struct Asks {
    pub port: u16,
    /// By which the server knows the caller.
    pub header: String,
}

/// How long answers took, in milliseconds.
pub struct Took {
    pub half: f64,
    /// 99 of 100.
    pub most: f64,
    pub requests: u32,
    rate: String,
    refused: String,
}

impl Asks {
    /// Loads a path for a while, and prints the latency beside its target.
    fn tell(&self, what: &str, path: &str, callers: u32, script: Option<&Path>, aim: f64) -> io::Result<()> {
        let Took { half, most, rate, refused, .. } = self.ask(path, callers, script)?;
        println!(
            "  {what}: half within {half:.2} ms, 99 of 100 within {most:.2} ms ({:.1} x the aim), {rate} a second{refused}",
            most / aim,
        );
        Ok(())
    }

    /// Loads a path for a while.
    pub fn ask(&self, path: &str, callers: u32, script: Option<&Path>) -> io::Result<Took> {
        let mut wrk = Command::new("wrk");
        wrk.args([
            "--threads",
            "1",
            "--connections",
            &callers.to_string(),
            "--duration",
            EACH,
            "--latency",
            "--timeout",
            "30s",
        ]);
        wrk.args(["--header", &self.header]);
        wrk.args(script.into_iter().flat_map(|script| [Path::new("--script"), script]));
        wrk.arg(format!("http://127.0.0.1:{}{path}", self.port));
        let output = wrk.output()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let of = |part: &str| text.lines().find_map(|line| millis(line.trim().strip_prefix(part)?.trim()));
        let (Some(half), Some(most)) = (of("50%"), of("99%")) else {
            return Err(io::Error::other(format!("wrk says nothing of how long answers took:\n{text}")));
        };
        let rate = text.lines().find_map(|line| line.trim().strip_prefix("Requests/sec:"));
        let refused = text.lines().find(|line| line.contains("Non-2xx"));
        let requests = text.lines().find_map(|line| line.trim().split_once(" requests in "));
        std::thread::sleep(Duration::from_secs(1));
        Ok(Took {
            half,
            most,
            requests: requests.and_then(|(number, _)| number.parse().ok()).unwrap_or_default(),
            rate: rate.unwrap_or_default().trim().to_owned(),
            refused: refused.map(|line| format!("; {}", line.trim())).unwrap_or_default(),
        })
    }
}

fn millis(text: &str) -> Option<f64> {
    let (number, factor) = match text {
        text if text.ends_with("us") => (&text[..text.len() - 2], 0.001),
        text if text.ends_with("ms") => (&text[..text.len() - 2], 1.0),
        text if text.ends_with('s') => (&text[..text.len() - 1], 1000.0),
        _ => return None,
    };
    Some(number.parse::<f64>().ok()? * factor)
}
