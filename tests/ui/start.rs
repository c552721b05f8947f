//! The beginning: one variable, a link, and why a link signs nobody in.

use std::fs;
use std::process::Command;

use super::forms::hidden;
use super::{Browser, header, post, post_with};
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
    let page = curl(&serve, &[link]);
    assert!(page.contains("This link signs you in once."), "{page}");
    assert!(
        page.contains("name=\"organization\" value=\"root\""),
        "the form asks for an organization: {page}"
    );
    let secret = format!("organization=root&link={}", link.split_once("&link=").unwrap().1);
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
    run.out.trim().split("&link=").nth(1).unwrap().to_owned()
}

#[test]
fn a_link_leads_back_to_the_page_that_one_came_for() {
    let tree = Tree::example("quickstart");
    let api = Api::start(&tree);
    api.settle();
    let typed = "/ui/new/clusters?step=2&%2Forganization=acme&%2Fidentifier=payments";
    for page in ["/ui/plan", typed] {
        let asked = send(&api.address, &format!("GET {page}"), &[], "");
        let line = asked.head_as_sent.lines().find_map(|line| {
            let (name, value) = line.split_once(": ")?;
            name.eq_ignore_ascii_case("location").then(|| value.to_owned())
        });
        let form = send(&api.address, &format!("GET {}", line.unwrap()), &[], "");
        let is_told =
            form.body.contains("What you typed in the steps before is kept: sign in to go on with it.");
        assert_eq!(is_told, page == typed, "{}", form.body);
        let (kept, attributes) = form.cookie().unwrap();
        assert_eq!(attributes, "Path=/ui/sign-in; Max-Age=1800; HttpOnly; SameSite=Lax; Secure");
        // The same browser opens the link.
        let link = new_link(&tree);
        let form = send(&api.address, &format!("GET /ui/sign-in?link={link}"), &[("Cookie", &kept)], "");
        assert!(form.cookie().is_none());
        let next = hidden(&form.body, "next").unwrap().replace("&#38;", "&");
        assert_eq!(next, page);
        let origin = format!("http://{}", api.address);
        let headers = [("Origin", origin.as_str()), ("Cookie", &kept)];
        let click = [("link", link.as_str()), ("next", &next)];
        let done = post_with(&api.address, "/ui/sign-in", &headers, &click);
        assert_eq!(done.status, 303, "{}", done.body);
        assert!(
            done.head_as_sent
                .to_ascii_lowercase()
                .contains(&format!("location: {}", page.to_ascii_lowercase()))
        );
        let ended = "streamfleet_next=; path=/ui/sign-in; max-age=0;";
        assert!(done.head.contains(ended), "{}", done.head);
    }
    // In another browser, it leads to the first page.
    let done = post(&api.address, "/ui/sign-in", "", &[("link", &new_link(&tree)), ("next", "")]);
    assert_eq!(header(&done, "location").as_deref(), Some("/ui/"));
    assert_eq!(api.serve.stop(), Some(0));
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
        assert!(
            refused.body.contains("this token is for organization <code>acme</code> alone"),
            "{}",
            refused.body
        );
        assert!(header(&refused, "set-cookie").is_none());
        assert_eq!(hidden(&refused.body, "link").as_deref(), Some(link.as_str()), "it can be corrected");
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
