//! Token guessing: what it reveals, and what it costs others behind the same address.

use std::fs;
use std::io::Write as _;
use std::net::TcpStream;

use serde_json::Value;

use super::http::{Answer, address, ask, send};
use super::quiet;
use crate::support::Tree;
use crate::support::serve::Serve;

const SERVE: &str = "serve --specs tree --config settings.toml";

fn limited(limits: &str) -> Tree {
    let tree = quiet();
    let settings = format!(
        "state_dir = \"state\"\noutput_dir = \"output\"\n[api]\nlisten = \"127.0.0.1:0\"\n\
         super_user_emails = [\"ada@example.com\"]\n{limits}"
    );
    fs::write(tree.beside("settings.toml"), settings).unwrap();
    tree
}

fn new_token(tree: &Tree) -> String {
    let words =
        "token create tree --config settings.toml --name ci --owner ada@example.com --all-organizations";
    tree.run(words).expect(0).out.trim().to_owned()
}

fn show(address: &str, token: &str) -> Answer {
    send(address, "GET /v1/tokens", &[("Authorization", &format!("Bearer {token}"))], "")
}

fn detail(answer: &Answer) -> String {
    serde_json::from_str::<Value>(&answer.body).unwrap()["detail"].as_str().unwrap().to_owned()
}

#[test]
fn who_guesses_is_sent_away_and_keeps_nobody_else_behind_their_address_out() {
    let tree = limited("requests_per_address = 5\nrequests_per_owner = 20\n");
    let (good, revoked) = (new_token(&tree), new_token(&tree));
    let id = &tree.run("token list tree --config settings.toml --format json").expect(0).out;
    let id = serde_json::from_str::<Value>(id).unwrap()[1]["id"].as_str().unwrap().to_owned();
    tree.run(&format!("token revoke {id} tree --config settings.toml")).expect(0);
    let serve = Serve::start(&tree, SERVE);
    serve.has_made(&["cluster acme/sandbox"]);
    let address = &address(&serve);
    let unknown = format!("sf_{}", "0".repeat(64));
    let shown = [unknown.as_str(), &revoked, "sf_no"].into_iter().cycle();
    let statuses: Vec<u16> = shown.clone().take(60).map(|token| show(address, token).status).collect();
    // As many as the settings allow, and one more for every twelve seconds that this takes.
    assert!(statuses.starts_with(&[401; 5]), "{statuses:?}");
    assert!(statuses.iter().filter(|status| **status == 429).count() > 40, "{statuses:?}");
    // The answer doesn't reveal the reason.
    for token in shown.take(3) {
        let refused = show(address, token);
        if refused.status == 429 {
            assert_eq!(detail(&refused), "too many requests without a valid token from this address");
            assert!(refused.head.contains("retry-after: "), "{}", refused.head);
        }
    }
    // Other callers behind that address, as behind a proxy, have the limit of an owner, whichever token they
    // send.
    let (other, begin) = (new_token(&tree), std::time::Instant::now());
    let answered = (0..40).map(|number| show(address, [&good, &other][number % 2]));
    let answered: Vec<Answer> = answered.collect();
    let limit = 20 + begin.elapsed().as_secs() as usize / 3 + 1;
    let fine = answered.iter().filter(|answer| answer.status == 200).count();
    assert!((20..=limit).contains(&fine), "{fine} of {limit}");
    let many = answered.iter().find(|answer| answer.status == 429).unwrap();
    assert_eq!(detail(many), "too many requests with tokens of this owner");
    assert!(many.head.contains("retry-after: "), "{}", many.head);
    assert_eq!(serve.stop(), Some(0));
    let log = fs::read_to_string(tree.beside("serve.log")).unwrap();
    let refused = statuses.iter().filter(|status| **status == 401).count();
    let told = |line: &&str| !line.contains(" DEBUG ");
    let lines = log.lines().filter(told).filter(|line| line.contains("request refused: ")).count();
    assert!((refused..=refused + 3).contains(&lines), "{lines} lines for {refused}: {log}");
    assert!(!log.lines().filter(told).any(|line| line.contains("status=429")), "{log}");
}

#[test]
fn a_token_that_somebody_uses_without_end_is_revoked_all_the_same() {
    let tree = limited("requests_per_owner = 5\n");
    let stolen = new_token(&tree);
    let list = tree.run("token list tree --config settings.toml --format json").expect(0).out;
    let id = serde_json::from_str::<Value>(&list).unwrap()[0]["id"].as_str().unwrap().to_owned();
    let serve = Serve::start(&tree, SERVE);
    serve.has_made(&["cluster acme/sandbox"]);
    let address = &address(&serve);
    let revoke = |token: &str, id: &str| {
        let bearer = format!("Bearer {token}");
        send(address, &format!("DELETE /v1/tokens/{id}"), &[("Authorization", &bearer)], "")
    };
    let is_over = || (0..200).any(|_| show(address, &stolen).status == 429);
    assert!(is_over());
    // A stolen token also floods revocations, which have a limit of their own.
    let none = "01a20489-87dc-713a-9565-d4f3af63f552";
    let statuses: Vec<u16> = (0..60).map(|_| revoke(&stolen, none).status).collect();
    assert!(statuses.starts_with(&[404; 10]) && statuses.ends_with(&[429]), "{statuses:?}");
    let own = new_token(&tree);
    assert!(is_over());
    assert_eq!(revoke(&own, &id).status, 204);
    assert_eq!(show(address, &stolen).status, 401);
    assert_eq!(serve.stop(), Some(0));
}

#[test]
fn what_takes_no_token_is_counted_by_address_and_probes_are_not() {
    let tree = quiet();
    fs::write(tree.beside("secret"), "hunter2").unwrap();
    let settings = "state_dir = \"state\"\noutput_dir = \"output\"\n[source]\ngit = \"gone.git\"\n\
                    webhook_secret_file = \"secret\"\n[api]\nlisten = \"127.0.0.1:0\"\nrequests_per_address = 20\n";
    fs::write(tree.beside("settings.toml"), settings).unwrap();
    let serve = Serve::start(&tree, "serve --config settings.toml");
    let address = &address(&serve);
    let hook = |secret: &str| {
        let headers = [("X-Gitlab-Event", "Tag Push Hook"), ("X-Gitlab-Token", secret)];
        send(address, "POST /webhook", &headers, "{}")
    };
    let each = || {
        let asked = ["GET /openapi.json", "GET /v1/errors", "GET /nowhere", "POST /metrics"];
        asked.map(|what| ask(address, what)).into_iter().chain([hook("*******")])
    };
    let first: Vec<u16> = each().map(|answer| answer.status).collect();
    assert_eq!(first, [200, 200, 404, 405, 401]);
    // As many as the settings allow, and one more for every three seconds that this takes.
    serve.until("there were too many", || each().all(|answer| answer.status == 429).then_some(()));
    let many: Vec<Answer> = each().filter(|answer| answer.status == 429).collect();
    assert!(!many.is_empty());
    for answer in many {
        assert_eq!(detail(&answer), "too many requests without a valid token from this address");
        assert!(answer.head.contains("retry-after: "), "{}", answer.head);
    }
    for _ in 0..50 {
        assert_eq!(["GET /healthz", "GET /metrics"].map(|what| ask(address, what).status), [200; 2]);
        // A signed webhook is accepted from any address.
        assert_eq!(hook("hunter2").status, 200);
    }
    assert_eq!(serve.stop(), Some(0));
}

#[test]
fn who_shows_no_token_does_not_fill_the_log() {
    let tree = limited("requests_per_address = 1000000\n");
    let serve = Serve::start(&tree, SERVE);
    let address = &address(&serve);
    let mut stream = TcpStream::connect(address).unwrap();
    let (begin, count) = (std::time::Instant::now(), 3000);
    let request = "GET /nowhere HTTP/1.1\r\nHost: h\r\n\r\n".repeat(count - 1);
    let last = "GET /nowhere HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";
    let reads = stream.try_clone().unwrap();
    let read = std::thread::spawn(move || std::io::read_to_string(reads).unwrap());
    stream.write_all(format!("{request}{last}").as_bytes()).unwrap();
    assert_eq!(read.join().unwrap().matches("HTTP/1.1 404 ").count(), count);
    let most = 600 + 10 * (begin.elapsed().as_secs() as usize + 1);
    assert_eq!(ask(address, "GET /healthz").status, 200);
    assert_eq!(serve.stop(), Some(0));
    let log = fs::read_to_string(tree.beside("serve.log")).unwrap();
    let is_told = |line: &&str| line.contains("path=\"/nowhere\"") && !line.contains(" DEBUG ");
    let lines = log.lines().filter(is_told).count();
    assert!((600..=most).contains(&lines), "{lines}");
}
