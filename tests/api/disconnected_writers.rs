//! Callers that disconnect during their write, and writers that wait for a hanging repository.

use std::io::Write as _;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use std::{fs, thread};

use serde_json::{Value, json};

use super::{Api, Reply, git, push};
use crate::support::ssh::{Server, make_key};
use crate::support::{Tree, files, install_script};

const ORDERS: &str = "/v1/clusters/orders";

/// A proxy between the daemon and its git remote.
struct GitProxy {
    port: u16,
    state: Arc<Mutex<State>>,
}

enum State {
    /// Forwards everything.
    Open,
    /// Accepts and keeps connections without forwarding.
    Hanging(Vec<TcpStream>),
    /// Closes connections at once.
    Shut,
}

impl GitProxy {
    fn before(to: u16) -> GitProxy {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (port, state) = (listener.local_addr().unwrap().port(), Arc::new(Mutex::new(State::Open)));
        let door = GitProxy { port, state: Arc::clone(&state) };
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                match &mut *state.lock().unwrap() {
                    State::Open => pass(&client, &TcpStream::connect(("127.0.0.1", to)).unwrap()),
                    State::Hanging(held) => held.push(client),
                    State::Shut => {}
                }
            }
        });
        door
    }

    fn set(&self, state: State) {
        *self.state.lock().unwrap() = state;
    }

    fn holds_somebody(&self) -> bool {
        matches!(&*self.state.lock().unwrap(), State::Hanging(held) if !held.is_empty())
    }
}

/// Forwards both directions until either side closes.
fn pass(client: &TcpStream, server: &TcpStream) {
    for (from, to) in [(client, server), (server, client)] {
        let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
        thread::spawn(move || {
            let _ = std::io::copy(&mut from, &mut to);
            let _ = to.shutdown(Shutdown::Both);
        });
    }
}

fn start<'t>(tree: &'t Tree, flags: &[&str]) -> (Api<'t>, Server, GitProxy) {
    let folder = tree.beside("");
    git(&folder, "init --quiet --bare --initial-branch=main specs.git");
    git(&tree.path(), "init --quiet --initial-branch=main");
    push(tree, "first");
    ["host", "user"].iter().for_each(|name| make_key(&folder, name, ""));
    let server = Server::start(&folder, flags);
    let door = GitProxy::before(server.port);
    let known = server.known_as(&folder, "host").replace(&server.port.to_string(), &door.port.to_string());
    fs::write(folder.join("known_hosts"), known).unwrap();
    let source = format!(
        "[source]\ngit = \"ssh://git@127.0.0.1:{}/specs.git\"\nssh_key = \"user\"\nknown_hosts = \"known_hosts\"\n\
         interval_seconds = 3600\ntimeout_seconds = 5\n[secrets]\nallow_plain_in_git = true\n",
        door.port
    );
    (Api::start_with(tree, "serve --config settings.toml", &source), server, door)
}

fn send_and_disconnect(api: &Api<'_>, path: &str, body: &Value, after: Duration) {
    let (address, token, body) = (&api.address, &api.token, body.to_string());
    let mut stream = TcpStream::connect(address).unwrap();
    write!(
        stream,
        "PATCH {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\nContent-Type: application/merge-patch+json\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    // The disconnect may fall anywhere into the work.
    thread::sleep(after);
}

#[test]
fn what_a_client_asked_for_that_went_away_is_there_as_a_whole_or_not_at_all() {
    let tree = Tree::example("quickstart");
    let api = Api::start(&tree);
    api.settle();
    let file = "acme/clusters/orders.yaml";
    let (before, all) = (tree.read(file), files(&tree.path()));
    let dry = format!("{ORDERS}?dry_run=true");
    for after in 0..10 {
        send_and_disconnect(&api, &dry, &json!({"kafka_units": 2}), Duration::from_millis(after * 3));
        assert_eq!(api.get(ORDERS).expect(200).body["kafka_units"], 1);
    }
    assert_eq!(files(&tree.path()), all, "a plan writes nothing, whoever waits for it");
    let mut last = 1;
    for after in 0..30 {
        let tags = json!({"tags": [{"key": "turn", "value": after.to_string()}]});
        send_and_disconnect(&api, ORDERS, &tags, Duration::from_micros(after * 300));
        let shown = api.get(ORDERS).expect(200).body;
        let text = tree.read(file);
        let (head, tail) =
            (before.split_once("tags:\n").unwrap().0, before.split_once("advanced_config").unwrap().1);
        assert!(text.starts_with(head) && text.ends_with(tail), "{text}");
        let turn = shown["tags"][0]["value"].as_str().unwrap();
        last = turn.parse().unwrap_or(last);
        assert!(last <= after.max(1), "{shown:#}");
    }
    // Every write that began completes before the next one.
    api.call(&format!("PATCH {ORDERS}"), json!({"kafka_units": 2})).expect(200);
    assert!(tree.read(file).contains("kafka_units: 2\n"));
    let names = |all: &[(String, Vec<u8>)]| all.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&files(&tree.path())), names(&all), "nothing lies about");
    api.serve.until("a round is made of it", || {
        let pool = tree.beside("output/acme/eu/kafka-acme--orders/kafkanodepool-broker.yaml");
        fs::read_to_string(pool).ok()?.contains("replicas: 6\n").then_some(())
    });
    assert_eq!(api.serve.stop(), Some(0));
}

#[test]
fn writers_that_wait_for_a_repository_that_hangs_are_all_answered_and_hold_up_nobody_who_reads() {
    const WRITERS: usize = 60;
    let tree = Tree::example("quickstart");
    let (api, _server, door) = start(&tree, &[]);
    api.settle();
    api.call(&format!("PATCH {ORDERS}"), json!({"region": "before"})).expect(200);
    let (repository, memory) = (tree.beside("specs.git"), api.serve.memory());
    let tip = git(&repository, "rev-parse main");
    door.set(State::Hanging(Vec::new()));
    thread::scope(|scope| {
        let api = &api;
        let write = move |number: usize| {
            let long = "v".repeat(60_000);
            let patch = json!({"region": format!("r{number}"), "tags": [{"key": "k", "value": long}]});
            api.call(&format!("PATCH {ORDERS}"), patch)
        };
        let writers: Vec<_> = (0..WRITERS).map(|number| scope.spawn(move || write(number))).collect();
        let (mut reads, mut slowest, mut most) = (0, Duration::ZERO, 0);
        let waiting = || writers.iter().filter(|writer| !writer.is_finished()).count();
        while reads < 200 || !door.holds_somebody() || waiting() > 9 {
            let begun = Instant::now();
            assert_eq!(api.get(ORDERS).expect(200).body["region"], "before");
            (reads, slowest) = (reads + 1, slowest.max(begun.elapsed()));
            most = most.max(api.serve.memory());
        }
        assert_eq!(waiting(), 9, "one has its turn, and as many wait as one owner may have in line");
        assert!(slowest < Duration::from_secs(5), "the slowest read took {slowest:?}");
        assert!(most < memory + (64 << 20), "{memory} bytes became {most}");
        door.set(State::Shut);
        let answers = writers.into_iter().map(|writer| writer.join().unwrap());
        let (many, waited): (Vec<Reply>, Vec<Reply>) = answers.partition(|answer| answer.status == 429);
        assert_eq!((many.len(), waited.len()), (WRITERS - 9, 9));
        for answer in many {
            let why = "too many queued requests (limit 8 per owner)";
            answer.refused(429, "too_many", why);
            assert_eq!(answer.header("retry-after").as_deref(), Some("2"), "{}", answer.head);
        }
        for answer in waited {
            answer.refused(
                503,
                "unavailable",
                "the git repository of the specs can't be reached; nothing was written",
            );
            assert_eq!(answer.header("retry-after").as_deref(), Some("10"), "{}", answer.head);
        }
    });
    assert_eq!(git(&repository, "rev-parse main"), tip, "nothing was written");
    door.set(State::Open);
    api.call(&format!("PATCH {ORDERS}"), json!({"region": "after"})).expect(200);
    assert_eq!(git(&repository, "rev-parse main~1"), tip);
    assert_eq!(api.serve.stop(), Some(0));
}

#[test]
fn where_nobody_knows_whether_it_was_written_that_is_said_and_asking_again_writes_it_once() {
    let tree = Tree::example("quickstart");
    let (api, _server, _door) = start(&tree, &["-leaving"]);
    api.settle();
    let repository = tree.beside("specs.git");
    let hook = repository.join("hooks/pre-receive");
    install_script(&hook, "touch ../received\nuntil [ -e ../go ]; do sleep 0.01; done");
    let tip = git(&repository, "rev-parse main");
    let read = api.get(ORDERS).expect(200);
    let tag = read.header("etag").unwrap();
    let patch = || {
        let what = format!("PATCH {ORDERS}");
        api.call_as(&api.token, &what, &[("If-Match", &tag)], json!({"kafka_units": 2}))
    };
    let answer = patch();
    answer.refused(
        503,
        "unsure",
        "the connection to the git repository of the specs was lost, and it is unknown whether it received the change",
    );
    assert_eq!(
        answer.body["hint"],
        "read the resource again in a minute, and repeat the change if it is missing; with the earlier `ETag` in \
         `If-Match` nothing is written twice"
    );
    assert_eq!(answer.header("retry-after").as_deref(), Some("30"), "{}", answer.head);
    assert_eq!(git(&repository, "rev-parse main"), tip);
    assert_eq!(api.get(ORDERS).expect(200).body["kafka_units"], 1);

    fs::write(tree.beside("go"), "").unwrap();
    api.serve.until("it is there", || (git(&repository, "rev-parse main") != tip).then_some(()));
    patch().refused(412, "stale", "it changed since the version in `If-Match`");
    api.call(&format!("PATCH {ORDERS}"), json!({"kafka_units": 2})).expect(200);
    assert_eq!(git(&repository, "rev-parse main~1"), tip, "it was written once");
    api.serve.until("it is read", || (api.get(ORDERS).expect(200).body["kafka_units"] == 2).then_some(()));
    assert_eq!(api.serve.stop(), Some(0));
}
