//! Probes and metrics, requested as a kubelet and Prometheus would.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{Read, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;

use super::quiet;
use crate::kubernetes::on;
use crate::support::control_plane::{ControlPlane, PATIENCE};
use crate::support::serve::Serve;
use crate::support::{Tree, copy, stable};

const SERVE: &str = "serve --specs tree --config settings.toml";

fn listening(tree: &Tree) {
    fs::write(tree.beside("settings.toml"), "[api]\nlisten = \"127.0.0.1:0\"\n").unwrap();
}

/// The address the daemon listens on, from its log.
pub fn address(serve: &Serve<'_>) -> String {
    serve.until("it listens", || {
        let log = serve.log();
        let line = log.lines().find(|line| line.contains("listening for HTTP"))?;
        Some(line.split_once("address=")?.1.split_whitespace().next()?.to_owned())
    })
}

pub struct Answer {
    pub status: u16,
    /// In lower case.
    pub head: String,
    pub body: String,
    pub head_as_sent: String,
}

impl Answer {
    /// The first cookie that it sets, with its name and value as a browser sends them, and its attributes.
    pub fn cookie(&self) -> Option<(String, String)> {
        let lines = self.head_as_sent.lines().filter_map(|line| line.split_once(": "));
        let mut cookies = lines.filter(|(name, _)| name.eq_ignore_ascii_case("set-cookie"));
        let (cookie, attributes) = cookies.next()?.1.split_once("; ")?;
        Some((cookie.to_owned(), attributes.to_owned()))
    }
}

pub fn ask(address: &str, what: &str) -> Answer {
    send(address, what, &[], "")
}

pub fn send(address: &str, what: &str, headers: &[(&str, &str)], body: &str) -> Answer {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let length = body.len();
    let head = format!("Host: {address}\r\nConnection: close\r\nContent-Length: {length}\r\n{headers}");
    write!(stream, "{what} HTTP/1.1\r\n{head}\r\n{body}").unwrap();
    answered(stream)
}

/// The answer to a body of which only the length is sent: a caller that sends one too large may be
/// disconnected before reading.
pub fn announce(address: &str, what: &str, headers: &[(&str, &str)], length: usize) -> Answer {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let head = format!("Host: {address}\r\nConnection: close\r\nContent-Length: {length}\r\n{headers}");
    write!(stream, "{what} HTTP/1.1\r\n{head}\r\n").unwrap();
    answered(stream)
}

/// Asks on a socket, as a user of this host.
pub fn socket(path: &Path, what: &str, headers: &[(&str, &str)]) -> Answer {
    let mut stream = UnixStream::connect(path).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    write!(stream, "{what} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n{headers}\r\n").unwrap();
    answered(stream)
}

fn answered(mut stream: impl Read) -> Answer {
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let status = head.split_whitespace().nth(1).unwrap().parse().unwrap();
    Answer { status, head: head.to_ascii_lowercase(), body: body.to_owned(), head_as_sent: head.to_owned() }
}

/// The samples of a page by name and labels, after the page was checked against the text format.
pub fn samples(page: &str) -> BTreeMap<String, f64> {
    let (mut help, mut types, mut samples) = (BTreeSet::new(), BTreeMap::new(), BTreeMap::new());
    let mut current = String::new();
    assert!(page.ends_with('\n'));
    for line in page.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, text) = rest.split_once(' ').unwrap();
            assert!(help.insert(name.to_owned()), "{name} is explained twice");
            assert!(text.ends_with('.') && text.len() > 10, "{line}");
            assert!(name.starts_with("streamfleet_"), "{line}");
            current = name.to_owned();
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            assert_eq!(name, current, "a type follows its help");
            assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
            assert!(["counter", "gauge", "histogram", "summary"].contains(&kind), "{line}");
            assert!(types.insert(name.to_owned(), kind.to_owned()).is_none());
        } else {
            let (series, value) = line.rsplit_once(' ').unwrap();
            let name = series.split('{').next().unwrap();
            let suffixes: &[&str] = match types[&current].as_str() {
                "histogram" => &["_bucket", "_sum", "_count"],
                "summary" => &["_sum", "_count"],
                _ => &[""],
            };
            let belongs = suffixes.iter().any(|suffix| name == format!("{current}{suffix}"));
            assert!(belongs, "{line} stands below {current}");
            if let Some(labels) = series.strip_prefix(name).filter(|labels| !labels.is_empty()) {
                let labels = labels.strip_prefix('{').and_then(|it| it.strip_suffix('}')).unwrap();
                for label in labels.split(',') {
                    let (name, value) = label.split_once('=').unwrap();
                    assert!(name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'), "{line}");
                    assert!(value.len() > 2 && value.starts_with('"') && value.ends_with('"'), "{line}");
                }
            }
            let value: f64 = value.parse().unwrap();
            assert!(value >= 0.0, "{line}");
            assert!(samples.insert(series.to_owned(), value).is_none(), "{series} is there twice");
        }
    }
    assert_eq!(help, types.into_keys().collect());
    samples
}

#[test]
fn metrics_follow_what_is_there_and_what_was_done() {
    let tree = quiet();
    listening(&tree);
    let serve = Serve::start(&tree, SERVE);
    let address = address(&serve);
    let metrics = || {
        let answer = ask(&address, "GET /metrics");
        assert_eq!(answer.status, 200);
        assert!(answer.head.contains("content-type: text/plain; version=0.0.4"), "{}", answer.head);
        samples(&answer.body)
    };
    let healthy = "streamfleet_clusters{status=\"Written\"}";
    let first = serve.until("both clusters are made", || Some(metrics()).filter(|it| it[healthy] == 2.0));
    for (series, value) in [
        (format!("streamfleet_build_info{{version=\"{}\"}}", env!("CARGO_PKG_VERSION")), 1.0),
        ("streamfleet_fleets{status=\"Healthy\"}".to_owned(), 1.0),
        ("streamfleet_fleets{status=\"Failed\"}".to_owned(), 0.0),
        ("streamfleet_dns_records{state=\"kept\"}".to_owned(), 0.0),
        ("streamfleet_changes_total{verb=\"create\"}".to_owned(), 5.0),
        ("streamfleet_failures_total".to_owned(), 0.0),
        ("streamfleet_steps_total{verb=\"create\",outcome=\"failed\"}".to_owned(), 0.0),
        ("streamfleet_waiting_resources{for=\"protected\"}".to_owned(), 0.0),
        ("streamfleet_fleet_runs_total{outcome=\"done\"}".to_owned(), 1.0),
    ] {
        assert_eq!(first.get(&series), Some(&value), "{series} in {first:#?}");
    }
    assert!(first["streamfleet_steps_total{verb=\"create\",outcome=\"done\"}"] > 10.0);
    assert!(first["streamfleet_source_last_success_timestamp_seconds"] > 1.7e9);
    // The example's certificate ends in 2126.
    assert!(first["streamfleet_certificate_expiry_timestamp_seconds"] > 4.9e9);
    assert!(first["streamfleet_round_duration_seconds_sum"] > 0.0);

    // A protected resource without a file waits, and is counted by its reason.
    fs::remove_file(tree.path().join("acme/clusters/orders.yaml")).unwrap();
    let waits = "streamfleet_waiting_resources{for=\"protected\"}";
    let rounds = "streamfleet_round_duration_seconds_count";
    // A round is counted after its plan.
    let second = serve.until("a deletion waits", || {
        Some(metrics()).filter(|it| it[waits] == 1.0 && it[rounds] > first[rounds])
    });
    assert_eq!(first.keys().collect::<Vec<_>>(), second.keys().collect::<Vec<_>>(), "series come and go");
    assert_eq!(serve.stop(), Some(0));
}

#[test]
fn calls_to_clusters_are_counted_and_a_quiet_one_is_asked_nothing() {
    let plane = ControlPlane::lease();
    let tree = on(&plane);
    let settings = fs::read_to_string(tree.beside("config.toml")).unwrap();
    fs::write(tree.beside("config.toml"), settings + "\n[api]\nlisten = \"127.0.0.1:0\"\n").unwrap();
    let serve = Serve::start(&tree, "serve --specs tree --config config.toml");
    let address = address(&serve);
    let calls = || {
        let samples = samples(&ask(&address, "GET /metrics").body);
        ["answered", "refused", "failed"]
            .map(|outcome| samples[&format!("streamfleet_kubernetes_calls_total{{outcome=\"{outcome}\"}}")])
    };
    serve.says(&["done", "cluster acme/orders"]);
    serve.says(&["cluster acme/orders is Pending"]);
    let [answered, _, failed] = calls();
    assert!(answered > 10.0 && failed == 0.0, "{:?}", calls());
    serve.until("nothing is asked any more", || {
        let (before, rounds) = (calls(), serve.rounds());
        serve.signal("HUP");
        serve.until("there is another round", || (serve.rounds() > rounds).then_some(()));
        (calls() == before).then_some(())
    });
    // Reads and proposals are answered from what the process already knows.
    let before = calls();
    copy(&tree.path(), &tree.beside("checkout"));
    fs::remove_dir_all(tree.beside("checkout/.streamfleet")).unwrap();
    for (words, said) in [
        ("status tree", "cluster acme/orders   Pending"),
        ("plan tree", "Nothing to do"),
        ("plan tree --checkout checkout", "Nothing to do"),
    ] {
        tree.run(&format!("{words} --config config.toml")).expect(0).says(&[said]);
    }
    assert_eq!(calls(), before);
    let orders = tree.beside("checkout/acme/clusters/orders.yaml");
    let text = fs::read_to_string(&orders).unwrap();
    fs::write(orders, text.replace("kafka_units: 1", "kafka_units: 2")).unwrap();
    let proposal = "plan tree --config config.toml --checkout checkout";
    let proposed = tree.run(proposal).expect(2).says(&["kafka_units 1 → 2"]);
    // It left nothing behind: the process watches the cluster, and has nothing to do.
    tree.run("plan tree --config config.toml").expect(0);
    let what = "delete --namespace=kafka-acme--orders kafkanodepool/broker";
    plane.kubectl(what, "").expect(0);
    serve.says(&["decided", "cluster acme/orders", "cause=\"drift\""]);
    serve.until("it is put back", || {
        let there = plane.kubectl("get --namespace=kafka-acme--orders kafkanodepool/broker", "");
        (there.code == 0).then_some(())
    });
    assert_eq!(serve.stop(), Some(0));
    // Only the plan id differs, which depends on the uid of the recreated object.
    assert_eq!(stable(&tree.run(proposal).expect(2).out), stable(&proposed.out));
}

#[test]
fn probes_tell_alive_from_ready_and_nothing_else_is_answered() {
    let tree = quiet();
    // An unreachable repository: the process continues, without knowing the wanted state.
    let settings = "state_dir = \"state\"\noutput_dir = \"output\"\n[source]\ngit = \"gone.git\"\n[api]\nlisten = \"127.0.0.1:0\"\n";
    fs::write(tree.beside("settings.toml"), settings).unwrap();
    let serve = Serve::start(&tree, "serve --config settings.toml");
    let address = address(&serve);
    let said = |what: &str| {
        let answer = ask(&address, what);
        (answer.status, answer.body)
    };
    serve.says(&["cannot fetch, and there is no earlier commit, so nothing is applied"]);
    assert_eq!(said("GET /healthz"), (200, "ok\n".to_owned()));
    assert_eq!(said("GET /readyz"), (503, "the specs have not been read yet\n".to_owned()));
    assert_eq!(samples(&said("GET /metrics").1)["streamfleet_source_last_success_timestamp_seconds"], 0.0);
    assert_eq!(said("GET /").0, 404);
    assert_eq!(said("GET /metrics/../state").0, 404);
    assert_eq!(said("POST /metrics").0, 405);
    assert_eq!(said("HEAD /healthz"), (200, String::new()));
    assert_eq!(serve.stop(), Some(0));

    listening(&tree);
    let serve = Serve::start(&tree, SERVE);
    let address = self::address(&serve);
    serve.until("it is ready", || (ask(&address, "GET /readyz").status == 200).then_some(()));
    assert_eq!(serve.stop(), Some(0));
}

#[test]
fn no_port_is_opened_unasked_and_one_that_is_taken_is_told() {
    let tree = quiet();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    fs::write(tree.beside("settings.toml"), format!("[api]\nlisten = \"{address}\"\n")).unwrap();
    let refused = tree.run(SERVE).expect(1);
    let expected = format!(
        "error: cannot listen on {address}\n  because: Address already in use (os error 98)\n  help: choose another \
         address with `--listen`, the variable STREAMFLEET_LISTEN or `api.listen` in the config file, or stop the program \
         that listens there\n"
    );
    assert!(refused.err.ends_with(&expected), "{}", refused.err);

    fs::write(tree.beside("settings.toml"), "[api]\nlisten = \"localhost\"\n").unwrap();
    tree.run(SERVE)
        .expect(1)
        .says(&["2 | listen = \"localhost\"\n  |          ^^^^^^^^^^^\nit is no address with a port, such as 127.0.0.1:3000\n"]);

    let serve = Serve::start(&tree, "serve --specs tree");
    serve.says(&["looked="]);
    assert!(!serve.log().contains("listening for HTTP"));
}

const WITH_SUPER_USER: &str =
    "state_dir = \"state\"\noutput_dir = \"output\"\n[api]\nsuper_user_emails = [\"ada@example.com\"]\n";

#[test]
fn where_a_super_user_is_named_a_port_of_this_host_opens_and_the_log_has_the_link() {
    let tree = quiet();
    fs::write(tree.beside("settings.toml"), WITH_SUPER_USER).unwrap();
    let Some(serve) = Serve::start_in_own_network(&tree, SERVE) else { return };
    serve.says(&["listening for HTTP", "address=127.0.0.1:3000", "tls=false"]);
    serve.says(&["the web UI is at http://127.0.0.1:3000/ui/"]);
    assert_eq!(serve.stop(), Some(0));
}

#[test]
fn a_second_daemon_says_that_the_default_port_is_taken_and_goes_on() {
    let tree = quiet();
    fs::write(tree.beside("settings.toml"), WITH_SUPER_USER).unwrap();
    // If this fails, another program has the port, which is the same to the daemon.
    let _taken = TcpListener::bind("127.0.0.1:3000");
    let serve = Serve::start(&tree, SERVE);
    serve.says(&[
        "WARN",
        "cannot listen on 127.0.0.1:3000, the default address of the web UI and the API; the daemon goes on without a port",
        "error=\"Address already in use (os error 98)\"",
        "choose another address with `--listen`, the variable STREAMFLEET_LISTEN or `api.listen` in the config file, or",
    ]);
    serve.says(&["looked="]);
    tree.run("status tree --config settings.toml").expect(0);
    assert!(!serve.log().contains("listening for HTTP"));
    assert_eq!(serve.stop(), Some(0));
}

#[test]
fn the_address_comes_from_the_flag_then_the_variable_then_the_settings() {
    let tree = quiet();
    fs::write(tree.beside("settings.toml"), format!("{WITH_SUPER_USER}listen = \"none\"\n")).unwrap();
    let serve = Serve::start(&tree, SERVE);
    serve.says(&["looked="]);
    assert!(!serve.log().contains("listening for HTTP"));
    assert_eq!(serve.stop(), Some(0));
    let variable = [("STREAMFLEET_LISTEN", "127.0.0.2:0")];
    for (flag, ip) in [("", "127.0.0.2:"), (" --listen 127.0.0.3:0", "127.0.0.3:")] {
        let serve = Serve::start_with(&tree, &format!("{SERVE}{flag}"), &variable);
        let address = address(&serve);
        assert!(address.starts_with(ip), "{address}");
        // Reading the settings again isn't reading of another address.
        serve.signal("HUP");
        serve.says(&["settings reloaded; no setting changed that can change without a restart"]);
        assert!(!serve.log().contains("restart the service"), "{}", serve.log());
        assert_eq!(serve.stop(), Some(0));
    }
    let serve = Serve::start_with(&tree, &format!("{SERVE} --listen none"), &variable);
    serve.says(&["looked="]);
    assert!(!serve.log().contains("listening for HTTP"));
    assert_eq!(serve.stop(), Some(0));
    let refused = tree.run(&format!("{SERVE} --listen 3000")).expect(64).err;
    let expected = "error: invalid value '3000' for '--listen <ADDR>': it is no address with a port, such as 127.0.0.1:3000\n";
    assert!(refused.starts_with(expected), "{refused}");
}
