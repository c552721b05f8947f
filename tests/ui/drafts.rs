//! What was typed into a form: it is kept when a session ends, and when there is too much of it.

use std::fs;

use serde_json::Value;

use super::forms::{Fields, cluster, field_text, fleet, hidden, reviewed, text};
use super::{Browser, header, post, post_with};
use crate::api::exchanges::KUBECONFIG;
use crate::api::{Api, git, new_token};
use crate::support::{Tree, install_script};

const PERSON: &str = "platform@acme.example.com";

/// Ends all sessions of a person, as an administrator of the host may.
fn end_sessions(api: &Api<'_>, owner: &str) {
    let sessions = api.get("/v1/sessions").expect(200).body;
    for session in sessions["items"].as_array().unwrap().iter().filter(|session| session["owner"] == owner) {
        api.call(&format!("DELETE /v1/tokens/{}", session["id"].as_str().unwrap()), Value::Null).expect(204);
    }
}

/// Follows from the form of a session that ended to a new sign-in, and returns the browser with the page that it leads to.
fn sign_in_again(api: &Api<'_>, token: &str, answer: &crate::service::http::Answer) -> (Browser, String) {
    let place = header(answer, "location").unwrap();
    let (form, next) = place.split_once("?next=").unwrap_or_else(|| panic!("{place}"));
    assert_eq!((answer.status, form), (303, "/ui/sign-in"));
    let next: String =
        form_urlencoded::parse(format!("next={next}").as_bytes()).next().unwrap().1.into_owned();
    let asked = crate::service::http::send(&api.address, &format!("GET {place}"), &[], "");
    assert!(text(&asked.body).contains("What you typed is kept for half an hour"), "{}", text(&asked.body));
    let answer =
        post(&api.address, "/ui/sign-in", "", &[("token", token), ("organization", ""), ("next", &next)]);
    assert_eq!((answer.status, header(&answer, "location").as_deref()), (303, Some(next.as_str())));
    let (cookie, _) = answer.cookie().unwrap();
    (Browser { address: api.address.clone(), cookie }, next.trim_start_matches("/ui").to_owned())
}

#[test]
fn what_was_typed_outlives_its_session() {
    let tree = Tree::example("quickstart");
    let api = Api::start(&tree);
    api.settle();
    let token = new_token(&tree, PERSON, "acme", "admin");
    let browser = Browser::sign_in(&api, &token, "acme");
    let form_token = browser.form_token();
    let sent: Fields = fleet().into_iter().chain([("csrf", form_token.as_str())]).collect();
    // The review was asked for after the session had ended: it is told by its cookie, or the browser dropped that, too.
    end_sessions(&api, PERSON);
    for cookie in [browser.cookie.as_str(), ""] {
        let answer = post(&api.address, "/ui/new/fleets", cookie, &sent);
        let (again, draft) = sign_in_again(&api, &token, &answer);
        let review = again.page(&draft);
        assert!(text(&review).contains("New fleet: review"), "{}", text(&review));
        // It is nobody else's.
        let stranger = Browser::sign_in(&api, &api.token, "root");
        assert!(stranger.get(&draft).body.contains("what was typed is no longer kept"));
    }
    // A form that no page of ours showed is not kept.
    let forged: Fields = fleet().into_iter().chain([("csrf", "0123")]).collect();
    let answer = post(&api.address, "/ui/new/fleets", "", &forged);
    assert!(header(&answer, "location").unwrap().ends_with("?next="), "{}", answer.head);

    // The session ends between the review and its button.
    let browser = Browser::sign_in(&api, &token, "acme");
    let review = browser.submit("/new/fleets", &fleet());
    let draft = reviewed(&review);
    let form_token = hidden(&review.body, "csrf").unwrap();
    end_sessions(&api, PERSON);
    let origin = format!("http://{}", api.address);
    let referer = format!("{origin}/ui/drafts/{draft}");
    let headers = [("Origin", origin.as_str()), ("Cookie", &browser.cookie), ("Referer", &referer)];
    let order = [("draft", draft.as_str()), ("csrf", &form_token)];
    let answer = post_with(&api.address, "/ui/carry-out", &headers, &order);
    let (again, page) = sign_in_again(&api, &token, &answer);
    assert_eq!(page, format!("/drafts/{draft}"));
    // The page can be loaded any number of times, until it is carried out.
    for _ in 0..2 {
        assert!(text(&again.page(&page)).contains("New fleet: review"));
    }
    let done = again.submit("/carry-out", &[("draft", &draft)]);
    assert_eq!(header(&done, "location").as_deref(), Some("/ui/fleets/acme/us"), "{}", text(&done.body));
    assert!(again.get(&page).body.contains("what was typed is no longer kept"));

    // A change, and whoever signs out leaves nothing behind.
    let etag = hidden(&again.page("/fleets/acme/us/edit"), "etag").unwrap().replace("&#34;", "\"");
    let form_token = again.form_token();
    end_sessions(&api, PERSON);
    let order = [("etag", etag.as_str()), ("/max_tenants", "4"), ("csrf", &form_token)];
    let answer = post(&api.address, "/ui/fleets/acme/us/edit", &again.cookie, &order);
    let (again, page) = sign_in_again(&api, &token, &answer);
    assert!(text(&again.page(&page)).contains("+ max_tenants: 4"));
    assert_eq!(again.submit("/sign-out", &[]).status, 303);
    let later = Browser::sign_in(&api, &token, "acme");
    assert!(later.get(&page).body.contains("what was typed is no longer kept"));
    let log = api.serve.log();
    assert!(!log.contains("kubeconfig-token"), "{log}");
    assert_eq!(api.serve.stop(), Some(0));
}

/// Where a step's form leads, as the browser takes it.
fn leads_to(answer: &crate::service::http::Answer) -> String {
    let line = answer.head_as_sent.lines().find_map(|line| {
        let (name, value) = line.split_once(": ")?;
        name.eq_ignore_ascii_case("location").then(|| value.to_owned())
    });
    line.unwrap_or_else(|| panic!("{}{}", answer.head, answer.body))
}

#[test]
fn a_step_comes_back_with_what_was_typed_after_its_session_ended() {
    let tree = Tree::example("quickstart");
    let api = Api::start(&tree);
    api.settle();
    let token = new_token(&tree, PERSON, "acme", "admin");
    let browser = Browser::sign_in(&api, &token, "acme");
    let form_token = browser.form_token();
    let fields: Fields =
        cluster().into_iter().take(6).chain([("step", "3"), ("csrf", &form_token)]).collect();
    let step = leads_to(&post(&api.address, "/ui/new/clusters", &browser.cookie, &fields));
    assert!(step.starts_with("/ui/new/clusters?step=3&/cluster_type=kafka&/organization=acme"), "{step}");
    assert!(!step.contains(&form_token) && text(&browser.page(&step[3..])).contains("Step 3 of 4"), "{step}");
    end_sessions(&api, PERSON);
    // The cookie tells it, or the browser dropped that, too.
    for cookie in [browser.cookie.as_str(), ""] {
        let asked = leads_to(&post(&api.address, "/ui/new/clusters", cookie, &fields));
        let form = crate::service::http::send(&api.address, &format!("GET {asked}"), &[], "");
        assert!(
            text(&form.body).contains("What you typed in the steps before is kept"),
            "{}",
            text(&form.body)
        );
        let next = hidden(&form.body, "next").unwrap().replace("&#38;", "&");
        let done = post(&api.address, "/ui/sign-in", "", &[("token", &token), ("next", &next)]);
        assert_eq!(leads_to(&done), step);
        let again = Browser { address: api.address.clone(), cookie: done.cookie().unwrap().0 };
        let page = again.page(&step[3..]);
        assert!(text(&page).contains("Step 3 of 4") && page.contains("value=\"payments\""), "{page}");
    }
    assert_eq!(api.serve.stop(), Some(0));
}

#[test]
fn what_looks_like_a_secret_gets_into_no_address_and_no_page() {
    let tree = Tree::example("quickstart");
    let api = Api::start(&tree);
    api.settle();
    let browser = Browser::sign_in(&api, &api.token, "root");
    let form_token = browser.form_token();
    let key = "-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----";
    for (name, text_typed) in
        [("/domain", key), ("/advanced_config/kubeconfig", KUBECONFIG), ("/max_tenants", KUBECONFIG)]
    {
        let others = [("/organization", "acme"), ("/identifier", "us"), ("/infra_type", "byok")];
        let fields: Fields =
            others.into_iter().chain([(name, text_typed), ("step", "3"), ("csrf", &form_token)]).collect();
        let step = leads_to(&post(&api.address, "/ui/new/fleets", &browser.cookie, &fields));
        let is_own_field = name == "/advanced_config/kubeconfig";
        assert_eq!(step.starts_with("/ui/new/fleets?step=3&"), is_own_field, "{step}");
        assert_eq!(step.contains("withheld="), !is_own_field, "{step}");
        let asked = leads_to(&post(&api.address, "/ui/new/fleets", "", &fields));
        let page = browser.page(&step[3..]);
        // An address from elsewhere, or one of an older version.
        let encoded: String = form_urlencoded::byte_serialize(text_typed.as_bytes()).collect();
        let old = browser.page(&format!("/new/fleets?step=3&{name}={encoded}"));
        for secret in ["c2VjcmV0", "PRIVATE", "kubeconfig-token", "client-key-data", "certificate-authority"]
        {
            for shown in [&step, &asked, &page, &old] {
                assert!(!shown.contains(secret), "{name}: {secret}: {shown}");
            }
        }
        if !is_own_field {
            let told = field_text(&page, name);
            assert!(told.contains("looks like a private key, so it is not shown"), "{told}");
        }
    }
    assert_eq!(api.serve.stop(), Some(0));
}

#[test]
fn what_was_typed_is_kept_where_the_branch_is_protected() {
    let tree = Tree::example("quickstart");
    let api = Api::start_git(&tree);
    api.settle();
    let browser = Browser::sign_in(&api, &api.token, "root");
    let remote = tree.beside("specs.git");
    let before = git(&remote, "rev-parse main");
    let hook = remote.join("hooks/pre-receive");
    install_script(&hook, "echo 'protected branch' >&2; exit 1");
    let mut drafts = Vec::new();
    // One of them has a secret, which is kept and not shown.
    for (slug, fields) in [("clusters", cluster()), ("fleets", fleet())] {
        let draft = reviewed(&browser.submit(&format!("/new/{slug}"), &fields));
        let refused = browser.submit("/carry-out", &[("draft", &draft)]);
        let told = text(&refused.body);
        assert_eq!(refused.status, 409, "{told}");
        assert!(told.contains("the branch of the specs doesn't accept commits of the API"), "{told}");
        assert!(told.contains("make the change in the repository, with a merge request"), "{told}");
        for (name, typed) in &fields {
            let is_secret = name.ends_with("kubeconfig");
            let typed = typed.replace('<', "&#60;").replace('>', "&#62;");
            assert_eq!(refused.body.contains(&typed), !is_secret, "{name}: {}", refused.body);
        }
        drafts.push((slug, fields, hidden(&refused.body, "draft").unwrap()));
    }
    assert_eq!(git(&remote, "rev-parse main"), before);
    // Once it is open, what is on the page goes through, with the secret that isn't.
    fs::remove_file(hook).unwrap();
    for (slug, fields, draft) in drafts {
        let shown: Fields = fields.into_iter().filter(|(name, _)| !name.ends_with("kubeconfig")).collect();
        let fields = [shown.as_slice(), &[("draft", draft.as_str())]].concat();
        let review = reviewed(&browser.submit(&format!("/new/{slug}"), &fields));
        let done = browser.submit("/carry-out", &[("draft", &review)]);
        assert_eq!(done.status, 303, "{}", text(&done.body));
        let place = header(&done, "location").unwrap();
        assert!(place.starts_with(&format!("/ui/{slug}/acme/")), "{place}");
    }
    assert!(git(&remote, "show main:acme/fleets/us.yaml").contains("BEGIN AGE ENCRYPTED FILE"));
    assert_eq!(git(&remote, "rev-parse main~2"), before);
    assert_eq!(api.serve.stop(), Some(0));
}

#[test]
fn of_a_form_that_is_too_large_the_rest_is_kept() {
    let tree = Tree::example("quickstart");
    let api = Api::start(&tree);
    api.settle();
    let browser = Browser::sign_in(&api, &api.token, "root");
    let form_token = browser.form_token();
    let long = "x".repeat(600 << 10);
    let mut fields = vec![("csrf", form_token.as_str())];
    fields.extend(cluster().into_iter().filter(|(name, _)| *name != "/region"));
    fields.extend([("/region", long.as_str()), ("/provisioner_name", "after")]);
    let refused = browser.submit("/new/clusters", &fields);
    assert_eq!(refused.status, 413, "{}", text(&refused.body));
    let told = text(&refused.body);
    assert!(told.contains("larger than 256 KiB"), "{told}");
    assert!(
        refused.body.contains("href=\"#f-region\"") && refused.body.contains("value=\"payments\""),
        "{told}"
    );
    let other = browser.submit("/tokens", &[("csrf", &form_token), ("name", &long)]);
    assert_eq!(other.status, 413, "{}", other.body);
    assert!(text(&other.body).contains("go back to the form"), "{}", text(&other.body));
    assert_eq!(api.serve.stop(), Some(0));
}

#[test]
fn what_cannot_be_taken_back_needs_a_recent_sign_in() {
    let tree = Tree::example("quickstart");
    let api = Api::start(&tree);
    api.settle();
    let Browser { cookie, .. } = Browser::sign_in(&api, &api.token, "root");
    assert_eq!(api.serve.stop(), Some(0));
    // Backdate the session by 20 minutes instead of waiting.
    let file = tree.beside("state/tokens.jsonl");
    let tokens = std::fs::read_to_string(&file).unwrap();
    let back = |line: &str| {
        let mut token: Value = serde_json::from_str(line).unwrap();
        if token["purpose"] == "session" {
            let at: jiff::Timestamp = token["sign_in"]["proved_at"].as_str().unwrap().parse().unwrap();
            token["sign_in"]["proved_at"] = (at - jiff::SignedDuration::from_mins(20)).to_string().into();
        }
        format!("{token}\n")
    };
    std::fs::write(&file, tokens.lines().map(back).collect::<String>()).unwrap();
    let api = Api::start(&tree);
    api.settle();
    let browser = Browser { address: api.address.clone(), cookie };
    let order = [("name", "ci"), ("organization", "acme"), ("access", "read")];
    let before = api.get("/v1/tokens").expect(200).body["total"].clone();
    for (path, fields) in [
        ("/tokens", &order[..]),
        ("/plan/approve", &[("id", "0123456789ab")]),
        ("/clusters/acme/sandbox/delete", &[("etag", "\"1\""), ("confirm", "sandbox")]),
    ] {
        let asked = browser.submit(path, fields);
        let place = header(&asked, "location").unwrap_or_else(|| panic!("{path}: {}", asked.body));
        assert!(place.starts_with("/ui/sign-in?again=1&next="), "{path}: {place}");
        let form = browser.page(place.trim_start_matches("/ui"));
        assert!(text(&form).contains("it needs a sign-in of the last 15 minutes"), "{}", text(&form));
    }
    assert_eq!(api.get("/v1/tokens").expect(200).body["total"], before);
    // What was typed is there afterwards.
    let place = leads_to(&browser.submit("/tokens", &order));
    let next = hidden(&browser.page(&place[3..]), "next").unwrap().replace("&#38;", "&");
    assert_eq!(next, "/ui/tokens?name=ci&organization=acme&access=read");
    let form = browser.page(&next[3..]);
    assert!(form.contains("value=\"ci\"") && form.contains("value=\"acme\""), "{form}");
    // Everything else goes on.
    let draft = reviewed(&browser.submit("/new/clusters", &cluster()));
    assert_eq!(browser.submit("/carry-out", &[("draft", &draft)]).status, 303);
    let fresh = Browser::sign_in(&api, &api.token, "root");
    let made = fresh.submit("/tokens", &order);
    assert!(header(&made, "location").unwrap().starts_with("/ui/tokens?created="), "{}", made.head);
    assert_eq!(api.serve.stop(), Some(0));
}
