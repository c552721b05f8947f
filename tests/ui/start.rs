//! The beginning: one variable, a link, and why a link signs nobody in.

use std::fs;
use std::process::Command;

use super::{Browser, header, post};
use crate::api::Api;
use crate::serve::clock::library;
use crate::service::http::{address, send};
use crate::support::serve::Serve;
use crate::support::{Tree, skipped};

const SUPER_USER: &[(&str, &str)] = &[("STREAMFLEET_SUPER_USER_EMAILS", "ada@example.com")];

/// Runs curl in the network of a process.
fn curl(serve: &Serve<'_>, words: &[&str]) -> String {
    let target = serve.id().to_string();
    let within = ["--user", "--net", "--preserve-credentials", "--target", &target];
    let mut command = Command::new("nsenter");
    command.args(within).args(["curl", "--silent", "--show-error", "--max-time", "60"]).args(words);
    let out = command.output().unwrap();
    format!("{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr))
}

#[test]
fn one_variable_opens_the_pages_and_a_second_daemon_goes_on_without_them() {
    let (tree, other) = (Tree::example("quickstart"), Tree::example("quickstart"));
    let Some(serve) = Serve::start_in_own_network_with(&tree, "serve --specs tree", SUPER_USER) else {
        return;
    };
    serve.says(&["listening for HTTP", "address=127.0.0.1:3000"]);
    if !curl(&serve, &["http://127.0.0.1:3000/healthz"]).contains("ok") {
        skipped("the network of its own has no loopback device");
        return;
    }
    // The log has the link, and one click signs in.
    let line = serve.until("the log has the link", || {
        let log = serve.log();
        log.lines().find(|line| line.contains("sign in to the web UI as ada@example.com")).map(str::to_owned)
    });
    let link = line.split_whitespace().find(|word| word.starts_with("http://127.0.0.1:3000/ui/")).unwrap();
    assert!(curl(&serve, &[link]).contains("This link signs you in once."));
    let secret = format!("link={}", link.split_once("?link=").unwrap().1);
    let jar = tree.beside("cookies");
    let jar = jar.to_str().unwrap();
    let click =
        ["--location", "--cookie-jar", jar, "--cookie", jar, "--header", "Sec-Fetch-Site: same-origin"];
    let form = ["--data", secret.as_str(), "http://127.0.0.1:3000/ui/sign-in"];
    let overview = curl(&serve, &[&click[..], &form[..]].concat());
    assert!(overview.contains("<h1>Overview</h1>") && overview.contains("ada@example.com"), "{overview}");
    // Another one on the same host finds the port taken.
    let target = serve.id().to_string();
    let within = ["nsenter", "--user", "--net", "--preserve-credentials", "--target", &target];
    let second = Serve::start_through_with(&other, &within, "serve --specs tree", SUPER_USER);
    let taken = "cannot listen on 127.0.0.1:3000, the default address of the web UI and the API; the daemon goes on without \
                 a port";
    second.says(&["WARN", taken]);
    second.says(&["looked="]);
    assert_eq!(second.stop(), Some(0));
    assert!(curl(&serve, &["http://127.0.0.1:3000/healthz"]).contains("ok"));
    assert_eq!(serve.stop(), Some(0));
}

/// The secret of a new link for a member of acme.
fn new_link(tree: &Tree) -> String {
    let run = tree.run("sign-in platform@acme.example.com tree --config settings.toml").expect(0);
    run.out.trim().split("?link=").nth(1).unwrap().to_owned()
}

#[test]
fn a_link_for_another_organization_says_so_and_signs_nobody_in() {
    let tree = Tree::example("quickstart");
    let api = Api::start(&tree);
    api.settle();
    let link = new_link(&tree);
    let click = |organization: &str| {
        post(&api.address, "/ui/sign-in", "", &[("link", &link), ("organization", organization)])
    };
    for other in ["globex", "root"] {
        let refused = click(other);
        assert_eq!(refused.status, 422, "{}", refused.body);
        assert!(refused.body.contains("this token is for organization `acme` alone"), "{}", refused.body);
        assert!(header(&refused, "set-cookie").is_none());
    }
    // It was not used up.
    let first = click("acme");
    assert_eq!(first.status, 303, "{}", first.body);
    let browser = Browser { address: api.address.clone(), cookie: first.cookie().unwrap().0 };
    assert!(browser.page("/you").contains("platform@acme.example.com"));
    let again = click("acme");
    assert_eq!(again.status, 401, "{}", again.body);
    assert!(again.body.contains("this link was used already, or it has expired"), "{}", again.body);
    assert_eq!(api.serve.stop(), Some(0));
}

#[test]
fn a_link_that_is_too_old_says_so_and_signs_nobody_in() {
    let tree = Tree::example("quickstart");
    let clock = tree.beside("clock");
    fs::write(&clock, "0").unwrap();
    let variables = [("LD_PRELOAD", library(&tree)), ("CLOCK_FILE", clock.to_str().unwrap().to_owned())];
    let variables: Vec<_> = variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let settings = "state_dir = \"state\"\noutput_dir = \"output\"\n[api]\nlisten = \"127.0.0.1:0\"\n\
                    super_user_emails = [\"ada@example.com\"]\n";
    fs::write(tree.beside("settings.toml"), settings).unwrap();
    let serve = Serve::start_with(&tree, "serve --specs tree --config settings.toml", &variables);
    let address = address(&serve);
    serve.says(&["looked="]);
    let link = new_link(&tree);
    fs::write(&clock, "930").unwrap();
    let late = post(&address, "/ui/sign-in", "", &[("link", &link)]);
    assert_eq!(late.status, 401, "{}", late.body);
    assert!(late.body.contains("this link was used already, or it has expired"), "{}", late.body);
    assert!(header(&late, "set-cookie").is_none());
    assert_eq!(send(&address, "GET /ui/", &[], "").status, 303);
    // One that is not so old yet works: it lasts for a quarter of an hour.
    let link = new_link(&tree);
    fs::write(&clock, "1590").unwrap();
    let in_time = post(&address, "/ui/sign-in", "", &[("link", &link)]);
    assert_eq!(in_time.status, 303, "{}", in_time.body);
    assert_eq!(serve.stop(), Some(0));
}
