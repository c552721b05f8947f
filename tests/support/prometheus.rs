//! Prometheus with its `promtool`, built with Go: Debian's is old, and finds no pods of Kubernetes.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use serde_json::Value;

use super::control_plane::process::Process;
use super::control_plane::programs::{artifact, at, once, run};
use super::control_plane::until;
use super::{Run, free_port};

/// The folder with the programs.
fn folder() -> &'static PathBuf {
    static FOLDER: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let build = || {
        once("prometheus-3.16.0", "building Prometheus 3.16.0, some two minutes on two cores", |folder| {
            let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/prometheus");
            let mut go = Command::new("go");
            go.current_dir(&source).env("CGO_ENABLED", "0");
            go.args(["build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w"]);
            go.args(["-tags=remove_all_sd,enable_kubernetes_sd", "-o"]).arg(format!("{}/", folder.display()));
            go.args(PROGRAMS);
            run(go, "the tests start Prometheus, which is built with Go: install Go 1.26 or newer").map(drop)
        })
    };
    FOLDER.get_or_init(build).as_ref().unwrap_or_else(|why| panic!("{why}"))
}

const PROGRAMS: [&str; 2] =
    ["github.com/prometheus/prometheus/cmd/prometheus", "github.com/prometheus/prometheus/cmd/promtool"];

pub fn command(program: &str) -> Command {
    Command::new(folder().join(program))
}

/// Runs `promtool` with an input.
pub fn promtool(words: &str, input: &str) -> Run {
    let mut command = command("promtool");
    command
        .args(words.split_whitespace())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap().into()
}

/// A server without a login.
pub struct Server {
    process: Process,
    pub port: u16,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.process.tell_of_failure("Prometheus");
    }
}

impl Server {
    /// Starts one with a configuration in a folder, below which it keeps its `data`. Returns when it answers queries.
    pub fn start(folder: &Path, configuration: &str) -> Server {
        let port = free_port();
        let mut prometheus = command("prometheus");
        prometheus.arg(format!("--config.file={configuration}")).args([
            "--storage.tsdb.path=data",
            "--log.level=error",
            &format!("--web.listen-address=127.0.0.1:{port}"),
        ]);
        prometheus.current_dir(folder);
        let mut server = Server { process: Process::start(prometheus, folder.join("prometheus.log")), port };
        until("Prometheus answers queries", || {
            if let Some(why) = server.process.last_words() {
                panic!("{why}");
            }
            server.asked("query?query=1")["result"].is_array().then_some(())
        });
        server
    }

    /// The data that a call of its API gives, or null.
    pub fn asked(&self, path: &str) -> Value {
        let ask = || -> io::Result<String> {
            let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
            // An answer to this version of HTTP isn't in chunks.
            write!(stream, "GET /api/v1/{path} HTTP/1.0\r\n\r\n")?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer)?;
            Ok(answer)
        };
        let answer = ask().unwrap_or_default();
        let (_, body) = answer.split_once("\r\n\r\n").unwrap_or_default();
        // Until it has read its files, it says so in a text.
        serde_json::from_str::<Value>(body).unwrap_or_default()["data"].take()
    }

    /// Every rule that makes an alert, once each was judged without an error.
    pub fn judged(&self) -> Vec<Value> {
        until("every alert was judged", || {
            let groups = self.asked("rules?type=alert")["groups"].take();
            let rules =
                groups.as_array()?.iter().flat_map(|group| group["rules"].as_array().unwrap().clone());
            let rules: Vec<Value> = rules.collect();
            (!rules.is_empty() && rules.iter().all(|rule| rule["health"] == "ok")).then_some(rules)
        })
    }
}

/// The option of a Java whose program has metrics at this port: the JMX exporter, which gives Kafka's gauges the names that
/// Strimzi's reporter gives them.
pub fn metrics_option(port: u16) -> String {
    let agent = once("jmx-exporter-1.0.1", "fetching the JMX exporter, 3 MB", |folder| {
        let rules = "lowercaseOutputName: true\nrules:\n- pattern: 'kafka.(\\w+)<type=(.+), name=(.+)><>Value'\n  \
                     name: kafka_$1_$2_$3\n  type: GAUGE\n";
        fs::write(folder.join("rules.yaml"), rules).map_err(at(folder))?;
        let digest = "7d61f737fd661610ccc14aea79764faa1ea94a340cbc8f0029b3d2edea3d80c1";
        let why = "a Prometheus reads a broker's metrics from an agent that comes with Maven: install Maven 3.8 or newer";
        artifact(["io.prometheus.jmx", "jmx_prometheus_javaagent", "1.0.1"], digest, folder, why).map(drop)
    });
    let folder = agent.unwrap_or_else(|why| panic!("{why}"));
    let [jar, rules] = ["jmx_prometheus_javaagent-1.0.1.jar", "rules.yaml"].map(|file| folder.join(file));
    format!("-javaagent:{}=127.0.0.1:{port}:{}", jar.display(), rules.display())
}
