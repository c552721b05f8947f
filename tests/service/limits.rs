//! The cost of malicious callers: a deadline each, and nothing for other callers.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::{Duration, Instant};

use super::http::{address, ask};
use super::quiet;
use crate::support::control_plane::PATIENCE;
use crate::support::serve::Serve;

/// Sends a text, and returns the answer up to the end of the connection.
pub fn raw(address: &str, text: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(text.as_bytes()).unwrap();
    let mut bytes = Vec::new();
    // A caller disconnected while sending may get a reset after the answer.
    let _ = stream.read_to_end(&mut bytes);
    String::from_utf8(bytes).unwrap()
}

/// Sends a byte now and then until the connection is closed.
fn drip(address: &str) {
    let mut stream = TcpStream::connect(address).unwrap();
    let begin = Instant::now();
    stream.write_all(b"GET /healthz HTTP/1.1\r\nX-Slow: ").unwrap();
    stream.set_read_timeout(Some(Duration::from_millis(250))).unwrap();
    // A read of zero bytes means a closed connection.
    while !stream.read(&mut [0; 64]).is_ok_and(|read| read == 0) {
        assert!(begin.elapsed() < PATIENCE, "it is still listened to");
        if stream.write_all(b"x").is_err() {
            return;
        }
    }
}

#[test]
fn slow_and_greedy_callers_are_cut_off_and_others_are_answered() {
    let tree = quiet();
    let settings = "state_dir = \"state\"\noutput_dir = \"output\"\n[source]\ngit = \"gone.git\"\n\
                    webhook_secret_file = \"secret\"\n[api]\nlisten = \"127.0.0.1:0\"\n";
    fs::write(tree.beside("secret"), "hunter2").unwrap();
    fs::write(tree.beside("settings.toml"), settings).unwrap();
    let serve = Serve::start(&tree, "serve --config settings.toml");
    let address = &address(&serve);
    let status = |text: &str| raw(address, text).split_whitespace().nth(1).map(str::to_owned);
    let post = "POST /webhook HTTP/1.1\r\nHost: h\r\n";
    thread::scope(|scope| {
        // More than the limit: later connections wait until these end.
        for _ in 0..100 {
            scope.spawn(|| drip(address));
        }
        scope.spawn(|| assert_eq!(ask(address, "GET /healthz").status, 200));
        scope.spawn(|| {
            // A body that never comes.
            assert_eq!(status(&format!("{post}Content-Length: 10\r\n\r\n")).as_deref(), Some("408"));
        });
        scope.spawn(|| {
            for length in ["1048577", "100000000000000"] {
                let huge = format!("{post}Content-Length: {length}\r\n\r\n");
                assert_eq!(status(&huge).as_deref(), Some("413"), "{length}");
            }
            let endless =
                format!("{post}Transfer-Encoding: chunked\r\n\r\n100001\r\n{}", "x".repeat(0x100001));
            assert_eq!(status(&endless).as_deref(), Some("413"));
            let head = format!("GET /healthz HTTP/1.1\r\nX: {}\r\n\r\n", "x".repeat(20_000));
            assert_eq!(status(&head).as_deref(), Some("431"));
            let smuggled = format!("{post}Content-Length: 4\r\nContent-Length: 5\r\n\r\nabcde");
            assert_eq!(status(&smuggled).as_deref(), Some("400"));
        });
    });
    assert_eq!(ask(address, "GET /healthz").status, 200);
    assert_eq!(serve.stop(), Some(0));
}

#[test]
fn who_goes_away_before_the_answer_costs_nothing() {
    let tree = quiet();
    let serve = Serve::start(&tree, "serve --specs tree");
    serve.has_made(&["cluster acme/sandbox"]);
    let socket = tree.path().join(".streamfleet/state/socket");
    for _ in 0..300 {
        let mut stream = UnixStream::connect(&socket).unwrap();
        stream.write_all(b"GET /v1/plan HTTP/1.1\r\nHost: h\r\n\r\n").unwrap();
    }
    tree.run("plan tree").expect(0).says(&["Nothing to do"]);
    tree.edit("acme/clusters/orders.yaml", "kafka_units: 1", "kafka_units: 2");
    serve.says(&["decided", "cluster acme/orders", "cause=\"spec\""]);
    // They don't cause a plan each.
    assert!(serve.rounds() < 200, "{}", serve.rounds());
    assert_eq!(serve.stop(), Some(0));
}
