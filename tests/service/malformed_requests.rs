//! Malformed requests on the port: each gets the right refusal, and other callers are still answered.

use std::collections::BTreeSet;
use std::fs;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::http::{address, announce, ask};
use super::limits::raw;
use super::quiet;
use crate::support::Tree;
use crate::support::control_plane::PATIENCE;
use crate::support::serve::Serve;

const POST: &str = "POST /webhook HTTP/1.1\r\nHost: h\r\n";
const SERVE: &str = "serve --config settings.toml";

/// A tree whose daemon accepts webhooks, the route with a body.
fn webhook_tree(api: &str) -> Tree {
    let tree = quiet();
    let settings = format!(
        "state_dir = \"state\"\noutput_dir = \"output\"\n[source]\ngit = \"gone.git\"\nwebhook_secret_file = \"secret\"\n\
         [api]\nlisten = \"127.0.0.1:0\"\n{api}"
    );
    fs::write(tree.beside("secret"), "hunter2").unwrap();
    fs::write(tree.beside("settings.toml"), settings).unwrap();
    tree
}

fn statuses(answer: &str) -> Vec<&str> {
    let lines = answer.split("HTTP/1.1 ").skip(1);
    lines.map(|line| &line[..3]).collect()
}

#[test]
fn what_is_no_request_is_refused_and_nothing_is_smuggled_behind_it() {
    let tree = webhook_tree("");
    let serve = Serve::start(&tree, SERVE);
    let address = &address(&serve);
    let second = "GET /metrics HTTP/1.1\r\nHost: h\r\n\r\n";
    let headers = |number: usize| -> String { (0..number).map(|n| format!("X-{n}: y\r\n")).collect() };
    let get = "GET /healthz HTTP/1.1\r\nHost: h\r\n";
    for (shape, expected) in [
        (format!("{get}{}\r\n", headers(101)), "431"),
        (format!("{get}X: {}\r\n\r\n", "x".repeat(20_000)), "431"),
        (format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(20_000)), "431"),
        (format!("{POST}Content-Length: 4\r\nContent-Length: 5\r\n\r\nabcde{second}"), "400"),
        (format!("{POST}Content-Length: 4, 5\r\n\r\nabcde{second}"), "400"),
        (format!("{POST}Content-Length: +4\r\n\r\nabcd{second}"), "400"),
        (format!("{POST}Content-Length: -4\r\n\r\n{second}"), "400"),
        (format!("{POST}Content-Length: 0x4\r\n\r\nabcd{second}"), "400"),
        (format!("{POST}Content-Length: 1{}\r\n\r\n{second}", "0".repeat(30)), "400"),
        (format!("{POST}Content-Length : 4\r\n\r\nabcd{second}"), "400"),
        (format!("{POST}Transfer-Encoding: identity\r\n\r\n{second}"), "400"),
        (format!("{POST}Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n{second}"), "400"),
        (format!("{POST}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n{second}"), "400"),
        (format!("{POST}Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n{second}"), "400"),
        (format!("POST /webhook HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{second}"), "400"),
        (format!("{POST}Transfer-Encoding: chunked\r\n\r\nzz\r\nabcd\r\n0\r\n\r\n{second}"), "400"),
        (
            format!("{POST}Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\nabcd\r\n0\r\n\r\n{second}"),
            "400",
        ),
        (
            format!(
                "{POST}Transfer-Encoding: chunked\r\n\r\n4;{}\r\nabcd\r\n0\r\n\r\n{second}",
                "x".repeat(40_000)
            ),
            "400",
        ),
        (format!("{get}X: a\r\n b\r\n\r\n{second}"), "400"),
        (format!("{get}X: a\0b\r\n\r\n{second}"), "400"),
        (format!("{get}X y: a\r\n\r\n{second}"), "400"),
        (format!("GET  /healthz HTTP/1.1\r\n\r\n{second}"), "400"),
        (format!("GET /healthz HTTP/9.9\r\n\r\n{second}"), "400"),
        ("\x16\x03\x01\x02\x00\x01\x00\x01\u{fc}\x03\x03\r\n\r\n".to_owned(), "400"),
    ] {
        let answer = raw(address, &shape);
        let shown = shape.chars().take(120).collect::<String>();
        assert_eq!(statuses(&answer), [expected], "{shown}\n{answer}");
        assert_eq!(ask(address, "GET /healthz").status, 200, "{shown}");
    }
    // HTTP/2 isn't answered at all.
    assert_eq!(raw(address, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), "");
    // A length beside chunks is ignored, and the connection ends with the answer: what follows isn't read as
    // a request.
    for both in [
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
    ] {
        let answer = raw(address, &format!("{POST}{both}\r\n0\r\n\r\n{second}"));
        assert_eq!(statuses(&answer), ["401"], "{answer}");
    }
    assert_eq!(serve.stop(), Some(0));
}

#[test]
fn what_is_refused_is_a_problem_document_with_the_id_of_the_request() {
    let tree = webhook_tree("");
    let serve = Serve::start(&tree, SERVE);
    let address = &address(&serve);
    let mut ids = BTreeSet::new();
    let mut refused = |answer: super::http::Answer, status: u16, code: &str, detail: &str| {
        let problem: Value = serde_json::from_str(&answer.body).unwrap();
        assert_eq!(answer.status, status, "{}", answer.body);
        assert!(answer.head.contains("content-type: application/problem+json"), "{}", answer.head);
        assert_eq!((&problem["code"], &problem["detail"]), (&code.into(), &detail.into()));
        assert_eq!(problem["status"], status);
        let id = problem["request_id"].as_str().unwrap();
        assert!(answer.head.contains(&format!("x-request-id: {id}")), "{}", answer.head);
        assert!(ids.insert(id.to_owned()));
        answer.head
    };
    refused(ask(address, "GET /nowhere"), 404, "not_found", "there is nothing at this path");
    refused(ask(address, "GET /../../etc/passwd"), 404, "not_found", "there is nothing at this path");
    let not_done = "this method is not allowed here";
    let head = refused(ask(address, "DELETE /healthz"), 405, "method_not_allowed", not_done);
    assert!(head.contains("allow: get,head"), "{head}");
    let large = "the body is larger than the limit of 1048576 bytes";
    refused(announce(address, "POST /webhook", &[], 1 << 20 | 1), 413, "too_large", large);
    let told = |text: &str| {
        let answer = raw(address, text);
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head[9..12].to_owned(), serde_json::from_str::<Value>(body).unwrap()["detail"].clone())
    };
    let huge = format!("{POST}Content-Length: 100000000000000\r\n\r\n");
    assert_eq!(told(&huge), ("413".to_owned(), large.into()));
    // Chunks without an end.
    let endless = format!(
        "{POST}Transfer-Encoding: chunked\r\n\r\n{}",
        format!("1000\r\n{}\r\n", "x".repeat(0x1000)).repeat(257)
    );
    assert_eq!(told(&endless), ("413".to_owned(), large.into()));
    let late = format!("{POST}Content-Length: 10\r\n\r\nabc");
    assert_eq!(told(&late), ("408".to_owned(), "the body did not arrive within 10 s".into()));

    let head = ask(address, "HEAD /healthz");
    assert_eq!((head.status, head.body.as_str()), (200, ""));
    let get = "GET /healthz HTTP/1.1\r\nHost: h\r\n";
    let both = raw(
        address,
        &format!("{get}\r\nGET /nowhere HTTP/1.1\r\nHost: h\r\n\r\n{get}Connection: close\r\n\r\n"),
    );
    assert_eq!(statuses(&both), ["200", "404", "200"]);
    assert_eq!(serve.stop(), Some(0));
    let id = ids.first().unwrap();
    assert!(serve_log(&tree).lines().any(|line| line.contains(id) && line.contains("path=")));
}

fn serve_log(tree: &Tree) -> String {
    fs::read_to_string(tree.beside("serve.log")).unwrap()
}

#[test]
fn thousands_of_idle_connections_give_way_to_who_asks() {
    let tree = webhook_tree("max_connections = 40\nmax_connections_per_address = 40\n");
    let serve = Serve::start(&tree, SERVE);
    let address = &address(&serve);
    let mut idle = Vec::new();
    for number in 0..2000 {
        let mut stream = TcpStream::connect(address).unwrap();
        if number % 3 == 0 {
            // Some have sent the start of a request.
            stream.write_all(b"GET /healthz HTT").unwrap();
        }
        idle.push(stream);
        if idle.len() == 400 {
            assert_eq!(ask(address, "GET /healthz").status, 200);
            idle.clear();
        }
    }
    assert_eq!(serve.stop(), Some(0));
}

#[test]
fn who_takes_nothing_of_what_is_answered_is_cut_off() {
    let tree = webhook_tree("");
    let serve = Serve::start(&tree, SERVE);
    let address = &address(&serve);
    let mut stream = TcpStream::connect(address).unwrap();
    // More answers than the kernel buffers for a client that doesn't read.
    let requests = "GET /metrics HTTP/1.1\r\nHost: h\r\n\r\n".repeat(5000);
    stream.set_write_timeout(Some(Duration::from_millis(250))).unwrap();
    let (begin, mut sent) = (Instant::now(), 0);
    loop {
        assert!(begin.elapsed() < PATIENCE, "it is still waited for");
        // A byte of one more request, once all are sent.
        match stream.write(requests.as_bytes().get(sent..).filter(|rest| !rest.is_empty()).unwrap_or(b"G")) {
            Ok(written) => sent += written,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(_) => break,
        }
        if sent >= requests.len() {
            thread::sleep(Duration::from_millis(250));
        }
    }
    assert_eq!(ask(address, "GET /healthz").status, 200);
    assert_eq!(serve.stop(), Some(0));
}

fn connect_from(source: &str, address: &str) -> TcpStream {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let stream = runtime.block_on(async {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind(format!("{source}:0").parse().unwrap()).unwrap();
        socket.connect(address.parse::<SocketAddr>().unwrap()).await.unwrap()
    });
    let stream = stream.into_std().unwrap();
    stream.set_nonblocking(false).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

#[test]
fn one_address_does_not_take_all_connections() {
    let tree = webhook_tree("max_connections = 8\nmax_connections_per_address = 4\n");
    let serve = Serve::start(&tree, SERVE);
    let address = &address(&serve);
    let ask_from = |source: &str| {
        let mut stream = connect_from(source, address);
        // A refused connection may be closed by then.
        let _ = stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        String::from_utf8(bytes).unwrap()
    };
    // Connections that are still sending are closed for new requests, the one sending for longest first.
    let begin = |source: &str| {
        let mut stream = connect_from(source, address);
        stream
            .write_all(format!("{POST}Content-Length: 10\r\nExpect: 100-continue\r\n\r\n").as_bytes())
            .unwrap();
        let mut line = [0; 12];
        stream.read_exact(&mut line).unwrap();
        assert_eq!(&line, b"HTTP/1.1 100");
        stream
    };
    let sending: Vec<TcpStream> = (0..4).map(|_| begin("127.0.0.2")).collect();
    let mut again = Vec::new();
    for mut first in sending {
        assert_eq!(statuses(&ask_from("127.0.0.2")), ["200"]);
        again.push(begin("127.0.0.2"));
        let mut rest = Vec::new();
        let _ = first.read_to_end(&mut rest);
        assert!(!String::from_utf8_lossy(&rest).contains("HTTP/1.1"), "{rest:?}");
    }
    // No other address lost a connection.
    let others: Vec<TcpStream> = (0..4).map(|_| begin("127.0.0.3")).collect();
    for _ in 0..8 {
        drop(begin("127.0.0.2"));
        assert_eq!(statuses(&ask_from("127.0.0.2")), ["200"]);
    }
    for mut other in others {
        other.write_all(b"0123456789").unwrap();
        let mut line = [0; 64];
        let read = other.read(&mut line).unwrap();
        assert!(read > 0, "it was cut off");
    }
    assert_eq!(serve.stop(), Some(0));
}
