//! What pages keep out: requests of other sites, markup in texts, and what belongs to other organizations.

use std::fs;
use std::path::Path;

use super::forms::{cluster, sent, text};
use super::{Browser, PAGES, header, post, post_with};
use crate::api::{Api, new_token};
use crate::support::{Tree, files};

const SLUGS: [&str; 6] =
    ["fleets", "clusters", "base-domains", "identity-providers", "cloud-accounts", "organizations"];

/// Every path that takes a form, as the table of pages has them.
fn posts() -> Vec<String> {
    let table = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/ui/pages.rs")).unwrap();
    let paths: Vec<&str> = table
        .lines()
        .filter_map(|line| line.trim().strip_prefix("page!(POST \"")?.split('"').next())
        .collect();
    assert!(paths.len() >= 6, "{paths:?}");
    let mut posts = vec!["/sign-in".to_owned(), "/sign-out".to_owned()];
    for path in paths {
        let path = path.replace("{organization}", "acme").replace("{name}", "orders");
        let path = path.replace("{id}", "01a20a48-a83b-753e-acd7-973cf859e64d");
        let slugs = if path.starts_with("/new") { &SLUGS[..] } else { &["clusters"] };
        let of_kinds = slugs.iter().map(|slug| path.replace("{kind}", slug));
        if path.contains("{kind}") { posts.extend(of_kinds) } else { posts.push(path) }
    }
    posts
}

#[test]
fn no_form_of_another_site_is_taken() {
    let tree = Tree::example("quickstart");
    let api = Api::start(&tree);
    api.settle();
    let browser = Browser::sign_in(&api, &api.token, "root");
    let tokens = || api.get("/v1/tokens").expect(200).body["total"].clone();
    let before = (files(&tree.path()), tokens());
    let page = browser.page("/");
    let csrf = page.split("name=\"csrf\" value=\"").nth(1).unwrap().split('"').next().unwrap();
    let own = format!("http://{}", api.address);
    // Right in all but where they come from.
    let fields: Vec<_> = cluster()
        .into_iter()
        .chain([("csrf", csrf), ("token", api.token.as_str()), ("organization", "root")])
        .chain([("name", "evil"), ("access", "read"), ("confirm", "orders"), ("id", "0123456789ab")])
        .collect();
    for path in posts() {
        for headers in [
            vec![],
            vec![("Origin", "https://evil.example.com")],
            vec![("Origin", "null")],
            vec![("Origin", own.as_str()), ("Sec-Fetch-Site", "same-site")],
            vec![("Origin", own.as_str()), ("Sec-Fetch-Site", "cross-site")],
            vec![("Origin", own.as_str()), ("Sec-Fetch-Site", "none")],
        ] {
            let headers: Vec<_> = headers.into_iter().chain([("Cookie", browser.cookie.as_str())]).collect();
            let answer = post_with(&api.address, &format!("/ui{path}"), &headers, &fields);
            assert_eq!(answer.status, 403, "{path} {headers:?}: {}", answer.body);
            assert!(header(&answer, "set-cookie").is_none(), "{path} {headers:?}");
        }
        // These two need no more than the right origin.
        if !matches!(path.as_str(), "/sign-in" | "/sign-out") {
            let unread: Vec<_> = fields.iter().filter(|(name, _)| *name != "csrf").copied().collect();
            let answer = post(&api.address, &format!("/ui{path}"), &browser.cookie, &unread);
            assert_eq!(answer.status, 403, "{path} without the form's token: {}", answer.body);
        }
    }
    assert_eq!((files(&tree.path()), tokens()), before);
    browser.page("/");
    assert_eq!(api.serve.stop(), Some(0));
}

const MARKUP: &str = "<img src=x onerror=alert(1)>";
const ENCODED: &str = "%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E";

#[test]
fn markup_is_text_wherever_it_stands() {
    let tree = Tree::example("quickstart");
    let edits = [
        ("organizations.yaml", "Acme Corporation"),
        ("acme/clusters/orders.yaml", "checkout"),
        ("acme/clusters/orders.yaml", "# A production cluster"),
        ("acme/clusters/orders.yaml", "tags:"),
        ("acme/fleets/eu.yaml", "tenancy_mode"),
    ];
    for (file, from) in edits {
        let to = match from {
            "tags:" => format!("region: '{MARKUP}'\nprovisioner_name: '{MARKUP}'\ntags:"),
            "tenancy_mode" => {
                format!("placement_config: {{provider: '{MARKUP}', region: '{MARKUP}'}}\ntenancy_mode")
            }
            from if from.starts_with('#') => format!("# {MARKUP}"),
            _ => format!("'{MARKUP}'"),
        };
        tree.edit(file, from, &to);
    }
    let api = Api::start(&tree);
    api.settle();
    // Mistakes quote what is wrong, also the name of a file.
    let wrong = "apiVersion: streamfleet/v1\nkind: Cluster\norganization: acme\nidentifier: wrong\n";
    tree.write(&format!("acme/{MARKUP}.yaml"), format!("{wrong}'{MARKUP}': '{MARKUP}'\n"));
    tree.write("acme/wrong.yaml", format!("{wrong}tenancy_mode: '{MARKUP}'\n"));
    let browser = Browser::sign_in(&api, &api.token, "root");
    let shows = |page: &str| text(page).contains("img src=x onerror=alert(1)");
    api.serve.until("the mistakes are told", || {
        let page = browser.page("/plan");
        (shows(&page) && page.contains("wrong.yaml")).then_some(())
    });
    let named = browser.submit("/tokens", &[("name", MARKUP), ("organization", "acme"), ("access", "read")]);
    assert_eq!(named.status, 303, "{}", named.body);
    for path in PAGES {
        let page = browser.page(path);
        assert!(!page.contains("<img"), "{path}: {page}");
    }
    for path in
        ["/plan", "/tokens", "/organizations", "/clusters", "/fleets/acme/eu", "/clusters/acme/orders/file"]
    {
        assert!(shows(&browser.page(path)), "{path}");
    }
    // In addresses.
    for name in ["q", "status", "tag", "fleet", "sort", "organization", "page", "next", "step", "created"] {
        for path in ["/clusters", "/fleets", "/events", "/plan", "/tokens", "/new/clusters", "/sign-in"] {
            let page = browser.get(&format!("{path}?{name}={ENCODED}")).body;
            assert!(!page.contains("<img"), "{path} {name}: {page}");
        }
    }
    for path in [
        format!("/clusters/acme/{ENCODED}"),
        format!("/clusters/{ENCODED}/orders/why"),
        format!("/{ENCODED}"),
        format!("/new/{ENCODED}"),
    ] {
        let page = browser.get(&path).body;
        assert!(!page.contains("<img"), "{path}: {page}");
    }
    // In every field of every form, one at a time.
    let mut tried = 0;
    let forms = SLUGS.map(|slug| format!("/new/{slug}"));
    for path in forms.iter().map(String::as_str).chain(["/clusters/acme/orders/edit"]) {
        let fields: Vec<(String, String)> = match path.strip_prefix("/new/") {
            // Its fields are on four pages.
            Some(slug @ ("clusters" | "fleets")) => {
                (1..=4).flat_map(|step| sent(&browser.page(&format!("/new/{slug}?step={step}")))).collect()
            }
            _ => sent(&browser.page(path)),
        };
        let all: Vec<_> = fields.iter().map(|(name, _)| (name.as_str(), MARKUP)).collect();
        let page = browser.submit(path, &all).body;
        assert!(!page.contains("<img") && shows(&page), "{path}: {page}");
        tried += fields.len();
    }
    assert!(tried > 60, "{tried} fields");
    assert_eq!(api.serve.stop(), Some(0));
}

#[test]
fn what_others_have_is_as_what_does_not_exist() {
    let tree = Tree::example("quickstart");
    tree.write("organizations/other.yaml", "apiVersion: streamfleet/v1\nkind: Organization\nidentifier: globex\nmembers:\n  - {email: gus@globex.example.com, role: admin}\n");
    let api = Api::start(&tree);
    api.settle();
    let root = Browser::sign_in(&api, &api.token, "root");
    tree.write("acme/clusters/sandbox.yaml", "");
    let id = api.serve.until("the deletion waits for an approval", || {
        let page = root.page("/plan");
        Some(page.split("name=\"id\" value=\"").nth(1)?.split('"').next()?.to_owned())
    });
    let token = new_token(&tree, "gus@globex.example.com", "globex", "admin");
    let browser = Browser::sign_in(&api, &token, "globex");
    for path in ["/", "/plan", "/events", "/tokens", "/you", "/fleets", "/clusters", "/organizations"] {
        let page = text(&browser.page(path));
        for theirs in ["acme", "sandbox", "orders", "waiting to"] {
            assert!(!page.contains(theirs), "{path} tells of {theirs}: {page}");
        }
    }
    assert!(text(&browser.page("/plan")).contains("Nothing to do"), "{}", browser.page("/plan"));
    // Each with a name of theirs, and with one that nobody has.
    let tokens = api.get("/v1/tokens").expect(200).body;
    let theirs = tokens["items"][0]["id"].as_str().unwrap();
    let other = "01a20a48-a83b-753e-acd7-973cf859e64d";
    let is_same = |what: &str, [known, unknown]: [&str; 2], answers: [crate::service::http::Answer; 2]| {
        let told = |name: &str, answer: &crate::service::http::Answer| {
            let place = header(answer, "location").unwrap_or_default();
            (answer.status, place.replace(name, "NAME"), text(&answer.body).replace(name, "NAME"))
        };
        assert_eq!(told(known, &answers[0]), told(unknown, &answers[1]), "{what}");
    };
    for (path, names) in [
        ("/clusters/acme/NAME", ["orders", "qqqq"]),
        ("/clusters/NAME/orders", ["acme", "qqqq"]),
        ("/clusters/acme/NAME/why", ["orders", "qqqq"]),
        ("/clusters/acme/NAME/file", ["orders", "qqqq"]),
        ("/clusters/acme/NAME/history", ["orders", "qqqq"]),
        ("/clusters/acme/NAME/events", ["orders", "qqqq"]),
        ("/clusters/acme/NAME/connect", ["orders", "qqqq"]),
        ("/clusters/acme/NAME/edit", ["orders", "qqqq"]),
        ("/clusters/acme/NAME/delete", ["orders", "qqqq"]),
        ("/fleets/acme/NAME", ["eu", "qqqq"]),
        ("/base-domains/acme/NAME", ["kafka.acme.example.com", "qqqq.acme.example.com"]),
        ("/organizations/NAME/NAME", ["acme", "qqqq"]),
        ("/clusters?organization=NAME", ["acme", "qqqq"]),
        ("/fleets?organization=NAME", ["acme", "qqqq"]),
        ("/clusters?q=NAME", ["orders", "qqqq"]),
        ("/clusters?fleet=NAME", ["eu", "qqqq"]),
        ("/clusters?tag=team%3DNAME", ["checkout", "qqqq"]),
        (
            "/new/clusters?step=3&%2Forganization=NAME&%2Ftenancy_mode=Shared&%2Fkafka_units=1",
            ["acme", "qqqq"],
        ),
        ("/new/fleets?step=2&%2Forganization=NAME&%2Finfra_type=directory", ["acme", "qqqq"]),
    ] {
        is_same(path, names, names.map(|name| browser.get(&path.replace("NAME", name))));
    }
    let organization = |name: &'static str| -> Vec<(&'static str, &'static str)> {
        cluster()
            .into_iter()
            .map(|(field, value)| (field, if field == "/organization" { name } else { value }))
            .collect()
    };
    let submit = |what: &str, fields: &dyn Fn(&str) -> Vec<(String, String)>, names: [&str; 2]| {
        let answers = names.map(|name| {
            let fields = fields(name);
            let fields: Vec<_> = fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
            browser.submit(&what.replace("NAME", name), &fields)
        });
        is_same(what, names, answers);
    };
    let owned = |fields: &[(&str, &str)]| -> Vec<(String, String)> {
        fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    };
    submit(
        "/new/clusters",
        &|name| owned(&organization(if name == "acme" { "acme" } else { "qqqq" })),
        ["acme", "qqqq"],
    );
    submit(
        "/clusters/acme/NAME/edit",
        &|_| owned(&[("etag", "\"1\""), ("/kafka_units", "2")]),
        ["orders", "qqqq"],
    );
    submit(
        "/clusters/acme/NAME/delete",
        &|name| owned(&[("etag", "\"1\""), ("confirm", name)]),
        ["orders", "qqqq"],
    );
    submit("/plan/approve", &|name| owned(&[("id", name)]), [&id, "0123456789ab"]);
    submit("/tokens/NAME/revoke", &|_| Vec::new(), [theirs, other]);
    let page = root.page("/plan");
    assert!(page.contains(&id), "nothing was approved: {page}");
    assert_eq!(api.serve.stop(), Some(0));
}

#[test]
fn a_member_who_was_removed_is_out_at_the_next_click() {
    let tree = Tree::example("quickstart");
    let api = Api::start(&tree);
    api.settle();
    let token = new_token(&tree, "platform@acme.example.com", "acme", "admin");
    let browser = Browser::sign_in(&api, &token, "acme");
    browser.page("/clusters/acme/orders");
    tree.edit("organizations.yaml", "platform@acme.example.com", "other@acme.example.com");
    api.serve.until("the organization has another member", || {
        let now = api.get("/organizations/acme").body;
        (now["members"][0]["email"] == "other@acme.example.com").then_some(())
    });
    assert_eq!(browser.get("/clusters/acme/orders").status, 404);
    for path in ["/", "/plan", "/clusters", "/events"] {
        let answer = browser.get(path);
        assert!(!answer.body.contains("orders"), "{path}: {}", answer.body);
    }
    let refused = browser.submit("/new/clusters", &cluster());
    assert!(refused.status >= 400, "{}: {}", refused.status, text(&refused.body));
    assert!(!text(&refused.body).contains("review"), "{}", text(&refused.body));
    assert_eq!(api.serve.stop(), Some(0));
}

#[test]
fn a_form_that_is_larger_than_any_body_is_answered_with_a_page() {
    let tree = Tree::example("quickstart");
    let api = Api::start(&tree);
    api.settle();
    let browser = Browser::sign_in(&api, &api.token, "root");
    let large = "x".repeat((1 << 20) + 1);
    for path in ["/sign-in", "/new/clusters", "/tokens", "/plan/approve"] {
        let answer = post(&api.address, &format!("/ui{path}"), &browser.cookie, &[("/region", &large)]);
        assert_eq!(answer.status, 413, "{path}: {}", answer.body);
        assert!(answer.body.starts_with("<!doctype html>"), "{path}: {}", answer.body);
        let told = text(&answer.body);
        assert!(told.contains("the form is larger than 256 KiB, so it was not taken"), "{path}: {told}");
        assert!(told.contains("go back to the form, and shorten what is long"), "{path}: {told}");
        assert!(header(&answer, "content-security-policy").is_some());
    }
    assert_eq!(api.serve.stop(), Some(0));
}
