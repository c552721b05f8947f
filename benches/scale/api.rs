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

/// Measures with few clusters and with many, in a folder and in git.
pub fn measure(folder: &Path, clusters: usize) -> io::Result<()> {
    if Command::new("wrk").arg("--version").output().is_err() {
        println!("\nthe API isn't asked: there is no `wrk`, which Debian has");
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

fn in_folder(folder: &Path, tree: &Tree) -> io::Result<()> {
    let settings = folder.join("api.toml");
    let port = port()?;
    fs::write(&settings, listening(port))?;
    let mut serve = Serve::start(&[Path::new("--specs"), tree.root(), Path::new("--config"), &settings])?;
    serve.wait_for(Told::Planned)?;
    serve.wait_until_idle()?;
    let token = token(&[tree.root(), Path::new("--config"), &settings])?;
    let asks = Asks { port, token };
    let one = "/v1/clusters/cluster-00007?organization=org-00";
    asks.tell("a read, one caller", one, 1, None, READ)?;
    asks.tell("a read, 16 callers", one, 16, None, READ)?;
    asks.tell("a page of 50 clusters, one caller", "/v1/clusters?page_size=50", 1, None, READ)?;
    let id = serve.id().to_string();
    let before = memory_kib(&id, "VmRSS:") / 1024;
    asks.tell("a read, 512 callers", one, 512, None, READ)?;
    let peak = memory_kib(&id, "VmHWM:") / 1024;
    println!("  512 connections: {before} MB before, {peak} MB at most");
    let script = creating(folder, "f")?;
    asks.tell("a create in a folder", "/organizations/org-00/identity-providers", 1, Some(&script), CREATE)?;
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
    let asks = Asks { port, token: token(&[Path::new("--config"), &settings])? };
    let script = creating(folder, "g")?;
    asks.tell("a create in git", "/organizations/org-00/identity-providers", 1, Some(&script), CREATE)?;
    serve.stop()
}

fn port() -> io::Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

fn listening(port: u16) -> String {
    format!(
        "[api]\nlisten = \"127.0.0.1:{port}\"\nsuper_user_emails = [\"bench@example.com\"]\nrequests_per_owner = 1000000\n\
         max_connections = 600\nmax_connections_per_address = 600\n"
    )
}

fn token(tree: &[&Path]) -> io::Result<String> {
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

/// Writes a `wrk` script that creates a resource with a new name in each request.
fn creating(folder: &Path, prefix: &str) -> io::Result<std::path::PathBuf> {
    let mut script = String::from(
        "local number = os.time()\nwrk.method = \"POST\"\nwrk.headers[\"Content-Type\"] = \"application/json\"\n",
    );
    let body = r#"{"organization": "org-00", "identifier": "PREFIX%d", "issuer": "https://login.example.com", "jwks_uri": "https://login.example.com/keys", "audience": "kafka"}"#;
    let body = body.replace("PREFIX", prefix);
    let _ = write!(
        script,
        "request = function()\n  number = number + 1\n  return wrk.format(nil, nil, nil, string.format('{body}', number))\nend\n"
    );
    let path = folder.join("create.lua");
    fs::write(&path, script)?;
    Ok(path)
}

struct Asks {
    port: u16,
    token: String,
}

impl Asks {
    /// Loads a path for a while, and prints the latency beside its target.
    fn tell(&self, what: &str, path: &str, callers: u32, script: Option<&Path>, aim: f64) -> io::Result<()> {
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
        wrk.arg("--header").arg(format!("Authorization: Bearer {}", self.token));
        wrk.args(script.into_iter().flat_map(|script| [Path::new("--script"), script]));
        wrk.arg(format!("http://127.0.0.1:{}{path}", self.port));
        let output = wrk.output()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let of = |part: &str| text.lines().find_map(|line| millis(line.trim().strip_prefix(part)?.trim()));
        let (Some(half), Some(most)) = (of("50%"), of("99%")) else {
            return Err(io::Error::other(format!("wrk says nothing of how long answers took:\n{text}")));
        };
        let rate = text
            .lines()
            .find_map(|line| line.trim().strip_prefix("Requests/sec:"))
            .unwrap_or_default()
            .trim();
        let refused =
            text.lines().find(|line| line.contains("Non-2xx")).map(|line| format!("; {}", line.trim()));
        println!(
            "  {what}: half within {half:.2} ms, 99 of 100 within {most:.2} ms ({:.1} x the aim), {rate} a second{}",
            most / aim,
            refused.unwrap_or_default()
        );
        std::thread::sleep(Duration::from_secs(1));
        Ok(())
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
