//! Commands beside a running daemon, which they ask over its socket.

use std::fs::{self, Permissions};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::{Command, Stdio};
use std::thread;

use serde_json::Value;

use super::quiet;
use crate::support::serve::Serve;
use crate::support::{Run, Tree, install, skipped};

const SERVE: &str = "serve --specs tree";
const SOCKET: &str = "tree/.streamfleet/state/socket";
const ORDERS: &str = "acme/clusters/orders.yaml";
const MADE: [&str; 3] = ["fleet acme/eu", "cluster acme/orders", "cluster acme/sandbox"];

#[test]
fn what_a_command_prints_is_the_same_with_a_daemon_and_without() {
    let tree = quiet();
    let serve = Serve::start(&tree, SERVE);
    serve.has_made(&MADE);
    let verbs = [
        ("plan tree", 0),
        ("plan tree --format markdown", 0),
        ("plan tree --at 2040-01-01T00:00:00Z --format json", 0),
        ("status tree", 0),
        ("status tree --format json", 0),
        ("get clusters tree", 0),
        ("get fleets tree --format yaml", 0),
        ("get cluster/acme/orders tree", 0),
        ("get organization/acme tree --format json", 0),
        ("why orders tree", 0),
        ("why cluster/acme/sandbox tree --format json", 0),
        ("client-properties orders tree --listener tls", 0),
        ("events tree", 0),
        ("get cluster/acme/nothing tree", 1),
        ("why nothing tree", 1),
        ("approve 123456789abc tree", 1),
    ];
    let run = || verbs.map(|(words, code)| tree.run(words).expect(code));
    let asked = run();
    let by = format!("the running daemon (pid {}) answers", serve.id());
    assert_eq!(serve.stop(), Some(0));
    let errors = |run: &Run| run.err.find("error: ").map(|at| run.err[at..].to_owned());
    for ((verb, _), (with, without)) in verbs.iter().zip(asked.iter().zip(run())) {
        assert_eq!(with.out, without.out);
        assert_eq!(errors(with), errors(&without));
        assert!(
            with.err.starts_with(&by) || errors(with).is_some() || verb.starts_with("events"),
            "{}",
            with.err
        );
        assert!(!without.err.contains("daemon"), "{}", without.err);
    }
    let who = asked[3].err.strip_prefix(&format!("{by}, by plan ")).unwrap();
    assert!(who.ends_with(" s ago\n") && who.contains(" of "), "{who}");
}

#[test]
fn a_plan_is_made_when_it_is_asked_for() {
    let tree = quiet();
    fs::write(tree.beside("settings.toml"), "[policy]\nmode = \"plan-only\"\n").unwrap();
    tree.run("apply tree --yes").expect(0);
    let serve = Serve::start(&tree, &format!("{SERVE} --config settings.toml"));
    serve.says(&["looked="]);
    // However soon a command follows a saved file.
    for units in 2..9 {
        tree.edit(ORDERS, &format!("kafka_units: {}\n", units - 1), &format!("kafka_units: {units}\n"));
        tree.run("plan tree --config settings.toml")
            .expect(3)
            .says(&[&format!("kafka_units 1 → {units}"), "of 0 s ago\n"]);
    }
    assert_eq!(serve.stop(), Some(0));

    let settings = "state_dir = \"state\"\noutput_dir = \"output\"\n[source]\ngit = \"gone.git\"\n";
    fs::write(tree.beside("settings.toml"), settings).unwrap();
    let serve = Serve::start(&tree, "serve --config settings.toml");
    serve.says(&["cannot fetch, and there is no earlier commit, so nothing is applied"]);
    for verb in ["plan", "status"] {
        let said = tree.run(&format!("{verb} --config settings.toml")).expect(1).err;
        let expected = "error: the specs have not been fetched yet\n  help: check the log of `streamfleet serve`, and try \
                        again when it reads the specs\n";
        assert_eq!(said, expected);
    }
    assert_eq!(serve.stop(), Some(0));
}

#[test]
fn the_socket_is_its_owners_alone_and_goes_with_the_daemon() {
    let tree = quiet();
    let serve = Serve::start(&tree, SERVE);
    serve.has_made(&MADE);
    let socket = fs::metadata(tree.beside(SOCKET)).unwrap();
    assert!(socket.file_type().is_socket());
    assert_eq!(socket.permissions().mode() & 0o777, 0o600);
    // A killed daemon leaves its socket behind, which disturbs no command.
    serve.signal("KILL");
    assert_eq!(serve.ended(), None);
    assert!(tree.beside(SOCKET).exists());
    let alone = tree.run("status tree").expect(0);
    assert!(!alone.err.contains("daemon"), "{}", alone.err);
    let serve = Serve::start(&tree, SERVE);
    serve.has_made(&[]);
    tree.run("status tree").expect(0).says(&[&format!("the running daemon (pid {}) answers", serve.id())]);
    assert_eq!(serve.stop(), Some(0));
    assert!(!tree.beside(SOCKET).exists());
}

#[test]
fn a_path_that_is_too_long_for_a_socket_works_all_the_same() {
    let tree = quiet();
    let folder = "long/".repeat(30) + "state";
    let serve = Serve::start(&tree, &format!("{SERVE} --state-dir {folder} --output-dir output"));
    serve.says(&["looked="]);
    let words = format!("status tree --state-dir {folder} --output-dir output");
    tree.run(&words).expect(0).says(&["the running daemon (pid "]);
    assert_eq!(serve.stop(), Some(0));
    assert!(!tree.beside(&folder).join("socket").exists());
}

#[test]
fn where_somebody_else_listens_no_daemon_starts_and_nothing_is_removed() {
    let tree = quiet();
    fs::write(tree.beside("settings.toml"), "[api]\nsocket = \"run\"\n").unwrap();
    let serve = Serve::start(&tree, &format!("{SERVE} --config settings.toml"));
    serve.says(&["looked="]);
    tree.run("status tree --config settings.toml").expect(0).says(&["the running daemon (pid "]);
    let start = |why: &str| {
        let said = tree.run("serve --specs tree --config settings.toml --state-dir other").expect(1).err;
        let expected = format!(
            "error: cannot listen on the socket `{}`\n  because: {why}\n  help: set another path in `api.socket` in the \
             config file, in a folder that streamfleet may write to\n",
            tree.beside("run").display()
        );
        assert!(said.ends_with(&expected), "{said}");
    };
    // A daemon with a state folder of its own has a socket of its own, unless the settings name both.
    fs::write(tree.beside("settings.toml"), "state_dir = \"other\"\n[api]\nsocket = \"run\"\n").unwrap();
    start("another process is listening there");
    assert_eq!(serve.stop(), Some(0));
    fs::write(tree.beside("run"), "mine").unwrap();
    start("another file is there, which is not a socket");
    assert_eq!(fs::read_to_string(tree.beside("run")).unwrap(), "mine");
}

/// Answers one request, as the daemon of a version.
fn daemon(tree: &Tree, version: &str, status: &'static str, answer: &'static str) -> thread::JoinHandle<()> {
    let server = format!("Server: streamfleet/{version} (pid 7)");
    fs::create_dir_all(tree.beside(SOCKET).parent().unwrap()).unwrap();
    let _ = fs::remove_file(tree.beside(SOCKET));
    let listener = UnixListener::bind(tree.beside(SOCKET)).unwrap();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut head = BufReader::new(stream.try_clone().unwrap()).lines();
        while !head.next().unwrap().unwrap().is_empty() {}
        let length = answer.len();
        write!(stream, "HTTP/1.1 {status}\r\n{server}\r\nContent-Length: {length}\r\n\r\n{answer}").unwrap();
    })
}

#[test]
fn a_daemon_of_another_version_is_named_with_what_to_do() {
    let tree = quiet();
    let place = tree.path().canonicalize().unwrap().join(".streamfleet/state/socket");
    let own = env!("CARGO_PKG_VERSION");
    let refused =
        r#"{"status":404,"code":"not_found","detail":"there is nothing at this path","hint":"look"}"#;
    let not_understood = |version: &str, help: &str| {
        format!(
            "error: the running daemon (pid 7) is streamfleet {version}, and this command, {own}, can't read its \
             answers\n  help: {help}\n"
        )
    };
    let restart = "restart the daemon with the installed version: systemctl restart streamfleet";
    for (version, status, answer, expected) in [
        (
            "9.0.0",
            "200 OK",
            r#"{"news":[]}"#,
            not_understood("9.0.0", "use the command of streamfleet 9.0.0"),
        ),
        ("0.0.1", "200 OK", r#"{"items":[{"status":"Fine"}]}"#, not_understood("0.0.1", restart)),
        (
            "0.0.1",
            "404 Not Found",
            refused,
            format!(
                "error: there is nothing at this path\n  help: look; the daemon is streamfleet 0.0.1, and this command \
                    is {own}: {restart}\n"
            ),
        ),
        (own, "404 Not Found", refused, "error: there is nothing at this path\n  help: look\n".to_owned()),
        (
            own,
            "200 OK",
            "no JSON",
            format!(
                "error: cannot reach the running daemon at `{}`\n  because: expected ident at line 1 column 2\n  help: \
                 check whether it still runs and read its log; then try again\n",
                place.display()
            ),
        ),
    ] {
        let answers = daemon(&tree, version, status, answer);
        assert_eq!(tree.run("status tree").expect(1).err, expected);
        answers.join().unwrap();
    }
}

#[test]
fn the_api_is_there_without_a_token_and_says_which_daemon_answers() {
    let tree = quiet();
    let serve = Serve::start(&tree, SERVE);
    serve.has_made(&MADE);
    let ask = |what: &str, headers: &str| -> (String, String, Value) {
        let mut stream = UnixStream::connect(tree.beside(SOCKET)).unwrap();
        write!(
            stream,
            "{what} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 0\r\n{headers}\r\n"
        )
        .unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let status = head.split_whitespace().nth(1).unwrap().to_owned();
        (status, head.to_ascii_lowercase(), serde_json::from_str(body).unwrap_or_else(|_| body.into()))
    };
    let (status, head, answer) = ask("GET /v1/status", "");
    assert_eq!((status.as_str(), &answer["items"][0]["status"]), ("200", &"Healthy".into()));
    let server = format!("server: streamfleet/{} (pid {})", env!("CARGO_PKG_VERSION"), serve.id());
    assert!(head.contains(&server) && head.contains("streamfleet-plan: "), "{head}");
    let json = "Content-Type: application/json\r\n";
    let nothing = "there is nothing at this path";
    for (what, headers, status, detail) in [
        ("GET /v1/nothing", "", "404", nothing),
        ("GET /commands/status", "", "404", nothing),
        ("GET /v1/clusters/none/why", "", "404", "there is no cluster `none`, or the caller may not see it"),
        (
            "GET /v1/plan?at=x",
            "",
            "400",
            "the query parameter `at` is `x`, and must be a time such as \
            2026-01-31T12:00:00Z",
        ),
        ("POST /v1/plans", json, "400", "cannot read the body: it is empty"),
        (
            "POST /v1/plans/x/approve",
            "",
            "409",
            "nothing waits for approval `x`, or the caller may not see it",
        ),
    ] {
        let (found, _, problem) = ask(what, headers);
        assert_eq!((found.as_str(), &problem["detail"]), (status, &detail.into()), "{what}");
    }
    let (status, _, problem) = ask("GET /v1/status", "Streamfleet-Source: /elsewhere\r\n");
    assert_eq!((status.as_str(), &problem["code"]), ("409", &"other_source".into()), "{problem}");
    assert_eq!(ask("GET /healthz", "").0, "200");
    assert_eq!(ask("DELETE /v1/plan", "").0, "405");
    assert_eq!(serve.stop(), Some(0));
}

#[test]
fn events_are_followed_from_one_daemon_to_the_next() {
    let tree = quiet();
    let serve = Serve::start(&tree, SERVE);
    serve.has_made(&MADE);
    let mut follow = tree
        .command("events tree --follow --format json --resource acme/sandbox")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(follow.stdout.take().unwrap()).lines();
    let mut until = |what: &str| loop {
        let event: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        if event["outcome"] == "done" && event["what"] == what {
            return event["number"].as_u64().unwrap();
        }
    };
    let made = until("created");
    assert_eq!(serve.stop(), Some(0));
    let serve = Serve::start(&tree, SERVE);
    tree.edit("acme/clusters/sandbox.yaml", "deletion_protection: false", "deletion_protection: true");
    assert!(until("changed") > made);
    follow.kill().unwrap();
    follow.wait().unwrap();
    assert_eq!(serve.stop(), Some(0));
}

#[test]
fn nobody_else_may_ask() {
    if fs::metadata("/proc/self").unwrap().uid() != 0 {
        skipped("only root can be somebody else");
        return;
    }
    let tree = quiet();
    let serve = Serve::start(&tree, &format!("{SERVE} --state-dir state --output-dir output"));
    serve.has_made(&MADE);
    let binary = tree.beside("streamfleet");
    install(env!("CARGO_BIN_EXE_streamfleet"), &binary);
    let open =
        |path: &str, mode| fs::set_permissions(tree.beside(path), Permissions::from_mode(mode)).unwrap();
    open("", 0o755);
    let status = || -> Run {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&binary);
        command.args(["status", "tree", "--state-dir", "state", "--output-dir", "output"]);
        command.current_dir(tree.beside("")).output().unwrap().into()
    };
    let owner = rustix::process::geteuid().as_raw();
    let expected = format!(
        "error: cannot look for a running daemon at `state/socket`\n  because: Permission denied (os error 13)\n  help: run the \
         command as the user that the state belongs to: sudo -u '#{owner}' streamfleet …\n"
    );
    assert_eq!(status().expect(1).err, expected);
    // Even where the file system would permit it.
    open("state", 0o755);
    open("state/socket", 0o666);
    let refused = status().expect(1).err;
    assert!(refused.starts_with("error: cannot reach the running daemon at `state/socket`\n"), "{refused}");
    assert_eq!(serve.stop(), Some(0));
}
