//! Webhooks of git servers, with polling effectively disabled (one hour).

use std::fs;

use aws_lc_rs::hmac::{HMAC_SHA256, Key, sign};

use super::{ORDERS, SERVE, Specs, replicas};
use crate::service::http::{address, send};
use crate::support::serve::Serve;

const SECRET: &str = "It's a Secret to Everybody";

fn signature(body: &str) -> String {
    hex::encode(sign(&Key::new(HMAC_SHA256, SECRET.as_bytes()), body.as_bytes()))
}

fn heard(specs: &Specs) {
    let settings = format!(
        "state_dir = \"state\"\noutput_dir = \"output\"\n\n[source]\ngit = \"{}\"\ninterval_seconds = 3600\n\
         webhook_secret_file = \"$CREDENTIALS_DIRECTORY/webhook\"\n\n[secrets]\nallow_plain_in_git = true\n\n\
         [api]\nlisten = \"127.0.0.1:0\"\n",
        specs.remote().display()
    );
    fs::write(specs.tree.beside("config.toml"), settings).unwrap();
}

#[test]
fn a_push_is_applied_when_a_git_server_tells_of_it_though_the_interval_is_an_hour() {
    let specs = Specs::new();
    heard(&specs);
    fs::write(specs.tree.beside("webhook"), format!("{SECRET}\n")).unwrap();
    let folder = specs.folder();
    let credentials = [("CREDENTIALS_DIRECTORY", folder.to_str().unwrap())];
    let serve = Serve::start_with(&specs.tree, SERVE, &credentials);
    replicas(&serve, &specs, "3");
    let address = address(&serve);
    let tell = |headers: &[(&str, &str)], body: &str| {
        let answer = send(&address, "POST /webhook", headers, body);
        (answer.status, answer.body)
    };
    let (units, fetched) =
        (|units: u32| format!("kafka_units: {units}\n"), (202, "fetching the branch\n".to_owned()));
    let push = |more: u32| {
        specs.tree.edit(ORDERS, &units(more - 1), &units(more));
        specs.push("grow")
    };
    let body = |branch: &str, commit: &str| {
        format!(
            "{{\"ref\":\"refs/heads/{branch}\",\"after\":\"{commit}\",\"commits\":[],\"repository\":{{\"id\":1}}}}"
        )
    };

    // A wrong secret, and events other than a push of the branch, change nothing.
    let commit = push(2);
    let text = body("main", &commit);
    let signed = format!("sha256={}", signature(&text));
    let nothing = (401, String::new());
    let github = ("X-GitHub-Event", "push");
    assert_eq!(tell(&[github], &text), nothing);
    assert_eq!(tell(&[github, ("X-Hub-Signature-256", &signed)], &text.replace("main", "mine")), nothing);
    assert_eq!(tell(&[("X-Gitlab-Event", "Push Hook"), ("X-Gitlab-Token", "It's")], &text), nothing);
    assert_eq!(tell(&[github, ("X-Hub-Signature-256", "sha256=00")], &text), nothing);
    let other = body("other", &commit);
    let of_other = format!("sha256={}", signature(&other));
    let ignored = (200, "nothing to fetch\n".to_owned());
    assert_eq!(tell(&[github, ("X-Hub-Signature-256", &of_other)], &other), ignored);
    assert_eq!(tell(&[("X-GitHub-Event", "ping"), ("X-Hub-Signature-256", &signed)], &text), ignored);
    assert_eq!(
        tell(&[("X-Gitlab-Event", "Push Hook"), ("X-Gitlab-Token", SECRET)], "{}"),
        (400, String::new())
    );
    assert_eq!(send(&address, "GET /webhook", &[], "").status, 405);
    let log = serve.log();
    assert!(!log.contains(&commit), "{log}");
    for why in [
        "the webhook is not signed: ",
        "the webhook is signed with another secret: ",
        "the webhook's body is not",
    ] {
        assert_eq!(log.matches(&format!("webhook refused: {why}")).count(), 1, "{log}");
    }
    assert!(!log.contains(SECRET) && !log.contains(&signed), "{log}");

    // GitHub, GitLab and Gitea, each in its own form.
    assert_eq!(tell(&[github, ("X-Hub-Signature-256", &signed)], &text), fetched);
    replicas(&serve, &specs, "6");
    let text = body("main", &push(3));
    assert_eq!(tell(&[("X-Gitlab-Event", "Push Hook"), ("X-Gitlab-Token", SECRET)], &text), fetched);
    replicas(&serve, &specs, "9");
    let text = body("main", &push(4));
    let (plain, hub) = (signature(&text), format!("sha256={}", signature(&text)));
    let headers =
        [("X-Gitea-Event", "push"), ("X-Gitea-Signature", &plain), github, ("X-Hub-Signature-256", &hub)];
    assert_eq!(tell(&headers, &text), fetched);
    replicas(&serve, &specs, "12");
    let own = || specs.tree.run("plan --config config.toml");
    serve.until("all is done", || own().out.starts_with("Nothing to do").then_some(()));

    // An unpushed commit is planned as a proposal.
    specs.tree.edit(ORDERS, &units(4), &units(5));
    let checkout = || specs.tree.run("plan --config config.toml --checkout tree").expect(2);
    let proposed = checkout().says(&["the running daemon (pid ", "kafka_units 4 → 5"]);
    assert_eq!(serve.stop(), Some(0));
    assert_eq!(checkout().out, proposed.out);
}

#[test]
fn another_secret_holds_after_a_hangup_and_one_that_cannot_be_read_does_not() {
    let specs = Specs::new();
    heard(&specs);
    let file = specs.tree.beside("webhook");
    fs::write(&file, "one").unwrap();
    let folder = specs.folder();
    let serve = Serve::start_with(&specs.tree, SERVE, &[("CREDENTIALS_DIRECTORY", folder.to_str().unwrap())]);
    replicas(&serve, &specs, "3");
    let address = address(&serve);
    let body = "{\"ref\":\"refs/heads/main\",\"after\":\"0\",\"commits\":[],\"repository\":{\"id\":1}}";
    let heard = |secret: &str| {
        let headers = [("X-Gitlab-Event", "Push Hook"), ("X-Gitlab-Token", secret)];
        send(&address, "POST /webhook", &headers, body).status == 202
    };
    assert_eq!(["one", "two"].map(heard), [true, false]);

    fs::write(&file, "two\n").unwrap();
    assert_eq!(["one", "two"].map(heard), [true, false], "until it is asked to look");
    serve.signal("HUP");
    serve.says(&["webhook secret reloaded"]);
    assert_eq!(["one", "two"].map(heard), [false, true]);

    fs::write(&file, "").unwrap();
    serve.signal("HUP");
    serve.says(&["cannot reload the webhook secret; the previous one stays active", "it is empty"]);
    assert_eq!(["", "two"].map(heard), [false, true]);
    let log = serve.log();
    assert_eq!(log.matches("webhook secret reloaded").count(), 1, "{log}");
    assert_eq!(serve.stop(), Some(0));
}

#[test]
fn a_secret_that_is_missing_or_empty_is_told_at_the_start() {
    let specs = Specs::new();
    heard(&specs);
    let place = specs.folder();
    let place = place.to_str().unwrap().trim_end_matches('/');
    let start = || specs.tree.run_with(SERVE, &[("CREDENTIALS_DIRECTORY", place)], "").expect(1).err;
    let expected = |why: &str| {
        format!(
            "error: cannot read the webhook secret\n  because: cannot use {place}/webhook from \
             `source.webhook_secret_file`: {why}\n  help: check what is in the file, and that the user that runs streamfleet can read it\n"
        )
    };
    assert!(start().ends_with(&expected("No such file or directory (os error 2)")), "{}", start());
    fs::write(specs.tree.beside("webhook"), "\n").unwrap();
    assert!(start().ends_with(&expected("it is empty")), "{}", start());
}
