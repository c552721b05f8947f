//! `streamfleet sign-in`, and the link in the log of a first start.

use std::fs;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::service::http::{address, send, socket};
use crate::support::Tree;
use crate::support::serve::Serve;

const SERVE: &str = "serve --specs tree --config settings.toml";
const SETTINGS: &str =
    "state_dir = \"state\"\n[api]\nsuper_user_emails = [\"ada@example.com\", \"bob@example.com\"]\n";

fn tree(listen: &str) -> Tree {
    let tree = Tree::example("quickstart");
    fs::write(tree.beside("settings.toml"), format!("{SETTINGS}listen = \"{listen}\"\n")).unwrap();
    tree
}

/// Whom a link signs in. It does that once, and nothing else.
#[track_caller]
fn signed_in(address: &str, link: &str) -> Value {
    let digits = link
        .strip_prefix(&format!("http://{address}/ui/sign-in?"))
        .and_then(|query| query.split("link=").nth(1))
        .expect(link);
    let call = |what: &str, secret: &str| {
        let bearer = format!("Bearer {secret}");
        let body = if what.starts_with("POST") { "{}" } else { "" };
        send(address, what, &[("Authorization", &bearer), ("Content-Type", "application/json")], body)
    };
    let secret = format!("sf_{digits}");
    for what in ["GET /v1/me", "GET /v1/clusters", "POST /v1/tokens", "POST /v1/sign-in-links"] {
        assert_eq!(call(what, &secret).status, 401, "{what}");
    }
    let session = call("POST /v1/sessions", &secret);
    assert_eq!(session.status, 201, "{}", session.body);
    assert_eq!(call("POST /v1/sessions", &secret).status, 401, "a link works once");
    let session: Value = serde_json::from_str(&session.body).unwrap();
    assert_eq!((&session["name"], &session["purpose"]), (&json!("web session"), &json!("session")));
    let [from, until] = ["created_at", "expires_at"]
        .map(|name| session[name].as_str().unwrap().parse::<Timestamp>().unwrap());
    assert_eq!(until.duration_since(from).as_hours(), 24);
    let me = call("GET /v1/me", session["token"].as_str().unwrap());
    assert_eq!(me.status, 200, "{}", me.body);
    let me: Value = serde_json::from_str(&me.body).unwrap();
    json!([me["email"], me["organization"], me["access"], me["is_super_user"]])
}

/// The links in a log.
fn links(log: &str) -> Vec<String> {
    let lines = log.lines().filter(|line| line.contains("/ui/sign-in?organization="));
    lines.map(|line| line[line.find("http://").unwrap()..].trim().to_owned()).collect()
}

#[test]
fn the_log_of_a_first_start_has_a_link_for_the_first_super_user_and_later_ones_have_none() {
    let tree = tree("127.0.0.1:0");
    let serve = Serve::start(&tree, SERVE);
    let address = address(&serve);
    serve.says(&["INFO", "sign in to the web UI as ada@example.com, once and until 20", "Z: http://"]);
    let logged = links(&serve.log());
    assert_eq!(logged.len(), 1, "{}", serve.log());
    let ada = json!(["ada@example.com", "*", "admin", true]);
    assert_eq!(signed_in(&address, &logged[0]), ada);
    assert_eq!(serve.stop(), Some(0));
    let serve = Serve::start(&tree, SERVE);
    serve.says(&["looked="]);
    assert_eq!(links(&serve.log()), [""; 0], "there is a way in already");
    assert_eq!(serve.stop(), Some(0));
}

#[test]
fn no_link_is_logged_where_none_is_needed_or_it_would_lead_nowhere() {
    let with_token = tree("127.0.0.1:0");
    let token =
        "token create tree --config settings.toml --name ci --owner ada@example.com --all-organizations";
    with_token.run(token).expect(0);
    let closed = tree("none");
    let nobody = tree("127.0.0.1:0");
    let settings = "state_dir = \"state\"\n[api]\nlisten = \"127.0.0.1:0\"\n";
    fs::write(nobody.beside("settings.toml"), settings).unwrap();
    for tree in [with_token, closed, nobody] {
        let serve = Serve::start(&tree, SERVE);
        serve.says(&["looked="]);
        assert_eq!(links(&serve.log()), [""; 0]);
        assert_eq!(serve.stop(), Some(0));
    }
}

#[test]
fn a_person_gets_a_link_from_the_running_daemon() {
    let tree = tree("127.0.0.1:0");
    let serve = Serve::start(&tree, SERVE);
    let address = address(&serve);
    serve.has_made(&["fleet acme/eu"]);
    let sign_in = |words: &str| tree.run(&format!("sign-in {words} tree --config settings.toml"));
    let run = sign_in("bob@example.com").expect(0);
    let link = run.out.strip_suffix('\n').unwrap();
    let bob = json!(["bob@example.com", "*", "admin", true]);
    assert_eq!(signed_in(&address, link), bob);
    let told = "This link signs in as bob@example.com for all organizations, once and until 20";
    assert!(run.err.lines().nth(1).unwrap().starts_with(told), "{}", run.err);
    assert!(run.err.ends_with("Z:\n") && !serve.log().contains(link), "{}", run.err);
    let member = "platform@acme.example.com";
    for words in [member.to_owned(), format!("{member} --organization acme")] {
        let run = sign_in(&words).expect(0);
        let of_acme = json!([member, "acme", "admin", false]);
        assert_eq!(signed_in(&address, run.out.trim()), of_acme);
        run.says(&[&format!("signs in as {member} for organization acme, once and until 20")]);
    }
    sign_in("carl@example.com --organization acme").expect(0).says(&[
        "warning: carl@example.com is neither a member of organization acme in the specs nor a super user; the link is \
         useless until that changes\n",
    ]);
    let by = format!("the running daemon (pid {}) answers\n", serve.id());
    for (words, expected) in [
        (
            "carl@example.com",
            "error: carl@example.com is neither a super user nor a member of an organization in the specs\n  help: check \
             the address; who signs in has to be one of the `members` of an organization, or a super user by the \
             settings\n",
        ),
        (
            "carl@example.com --organization acne",
            "error: there is no organization `acne` in the specs\n  help: did you mean `acme`?\n",
        ),
        (
            "carl",
            "error: `email`: expected an e-mail address, found the string `carl`\n  help: send an e-mail address\n",
        ),
    ] {
        let refused = sign_in(words).expect(64);
        assert_eq!((refused.out.as_str(), refused.err.trim_start_matches(&by)), ("", expected), "{words}");
    }
    // What is known of a caller on the socket.
    let me = socket(&tree.beside("state/socket"), "GET /v1/me", &[("Streamfleet-User", "ann")]);
    let me: Value = serde_json::from_str(&me.body).unwrap();
    assert_eq!(
        me,
        json!({
            "email": null, "name": "ann", "token_id": null, "organization": "*", "access": "admin",
            "sign_in": null, "created_at": null, "expires_at": null, "revision": null, "is_super_user": true, "organizations": [],
        })
    );
    assert_eq!(serve.stop(), Some(0));
}

#[test]
fn without_a_daemon_or_a_port_it_is_told_what_to_start() {
    let tree = tree("none");
    let state = tree.beside("state");
    assert_eq!(
        tree.run("sign-in ada@example.com tree --config settings.toml").expect(1).err,
        format!(
            "error: cannot create a sign-in link: no `serve` runs with the state in `{}`\n  help: start it, and try again: \
             streamfleet serve --specs tree --config settings.toml\n",
            state.display()
        )
    );
    assert!(!state.exists(), "asking leaves nothing behind");
    let serve = Serve::start(&tree, SERVE);
    serve.says(&["looked="]);
    assert_eq!(
        tree.run("sign-in ada@example.com tree --config settings.toml").expect(1).err,
        "error: cannot create a sign-in link, because the daemon has no open port and so no web UI\n  help: restart it with \
         an address: streamfleet serve --listen 127.0.0.1:3000; if it has one, its log says why the port was not opened\n"
    );
    assert_eq!(serve.stop(), Some(0));
}
