//! The pages of the web UI, as a browser without script requests them.

mod boundaries;
mod drafts;
mod forms;
mod members;
mod mistakes;
mod plans;
mod size;
mod start;
mod told;

use serde_json::Value;

use crate::api::{Api, new_token};
use crate::service::http::{Answer, send};
use crate::support::Tree;

const PAGES: [&str; 28] = [
    "/",
    "/plan",
    "/fleets",
    "/clusters",
    "/base-domains",
    "/identity-providers",
    "/cloud-accounts",
    "/organizations",
    "/events",
    "/tokens",
    "/you",
    "/about",
    "/members",
    "/fleets/acme/eu",
    "/clusters/acme/orders",
    "/clusters/acme/orders/why",
    "/clusters/acme/orders/connect",
    "/clusters/acme/orders/file",
    "/fleets/acme/eu/history",
    "/organizations/acme/acme",
    "/plan?resource=Cluster%2Facme%2Forders",
    "/new/fleets",
    "/new/clusters",
    "/new/base-domains",
    "/clusters/acme/orders/events",
    "/clusters/acme/orders/edit",
    "/clusters/acme/orders/delete",
    "/clusters/acme/sandbox/delete",
];

/// A browser that is signed in.
struct Browser {
    address: String,
    cookie: String,
}

impl Browser {
    #[track_caller]
    fn sign_in(api: &Api<'_>, token: &str, organization: &str) -> Browser {
        let fields = [("token", token), ("organization", organization)];
        let answer = post(&api.address, "/ui/sign-in", "", &fields);
        assert_eq!(answer.status, 303, "{}{}", answer.head, answer.body);
        let (cookie, attributes) = answer.cookie().unwrap();
        assert!(cookie.starts_with("__Host-streamfleet=sf_"), "{cookie}");
        assert_eq!(attributes, "Path=/; Max-Age=86400; HttpOnly; SameSite=Lax; Secure");
        Browser { address: api.address.clone(), cookie }
    }

    fn get(&self, path: &str) -> Answer {
        send(&self.address, &format!("GET /ui{path}"), &[("Cookie", &self.cookie)], "")
    }

    #[track_caller]
    fn page(&self, path: &str) -> String {
        let answer = self.get(path);
        assert_eq!(answer.status, 200, "{path}: {}{}", answer.head, answer.body);
        answer.body
    }

    /// The hidden field of this session's forms.
    fn form_token(&self) -> String {
        let page = self.page("/");
        let hidden = page.split("name=\"csrf\" value=\"").nth(1).and_then(|rest| rest.split('"').next());
        hidden.unwrap().to_owned()
    }

    /// Submits a form with the hidden field of a page, and follows to the page of what was typed.
    fn submit(&self, path: &str, fields: &[(&str, &str)]) -> Answer {
        let hidden = self.form_token();
        let fields: Vec<_> = fields.iter().copied().chain([("csrf", hidden.as_str())]).collect();
        let answer = post(&self.address, &format!("/ui{path}"), &self.cookie, &fields);
        let draft = header(&answer, "location").filter(|place| place.starts_with("/ui/drafts/"));
        draft.map_or(answer, |draft| self.get(draft.trim_start_matches("/ui")))
    }
}

fn post(address: &str, path: &str, cookie: &str, fields: &[(&str, &str)]) -> Answer {
    let origin = format!("http://{address}");
    let headers = [("Origin", origin.as_str()), ("Cookie", cookie)];
    post_with(address, path, &headers, fields)
}

fn post_with(address: &str, path: &str, headers: &[(&str, &str)], fields: &[(&str, &str)]) -> Answer {
    let body = form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
    let form = [("Content-Type", "application/x-www-form-urlencoded")];
    let headers: Vec<_> = form.into_iter().chain(headers.iter().copied()).collect();
    send(address, &format!("POST {path}"), &headers, &body)
}

fn header(answer: &Answer, name: &str) -> Option<String> {
    let mut lines = answer.head.lines().filter_map(|line| line.split_once(": "));
    lines.find(|(known, _)| *known == name).map(|(_, value)| value.to_owned())
}

#[test]
fn every_page_is_shown_and_takes_nothing_from_elsewhere() {
    let tree = Tree::example("quickstart");
    let api = Api::start(&tree);
    api.settle();
    let browser = Browser::sign_in(&api, &api.token, "root");
    for path in PAGES {
        let answer = browser.get(path);
        assert_eq!(answer.status, 200, "{path}: {}{}", answer.head, answer.body);
        let policy = header(&answer, "content-security-policy").unwrap();
        assert!(policy.starts_with("default-src 'none'; script-src 'self'; "), "{policy}");
        for (name, value) in [
            ("cache-control", "no-store"),
            ("content-type", "text/html; charset=utf-8"),
            ("referrer-policy", "same-origin"),
            ("x-content-type-options", "nosniff"),
            ("x-frame-options", "deny"),
        ] {
            assert_eq!(header(&answer, name).as_deref(), Some(value), "{path}: {name}");
        }
        assert!(!answer.body.contains("sf_"), "{path} shows a token");
        let links = answer.body.split(['"', '\'']).filter(|text| text.contains("://"));
        assert_eq!(links.collect::<Vec<_>>(), [""; 0], "{path} refers to another site");
    }
    // How full a fleet is, in the words of `status`, and fields by names for people.
    let status = tree.run("status tree --config settings.toml").expect(0).out;
    let line = status.lines().find(|line| line.starts_with("fleet acme/eu")).unwrap();
    let (_, gauges) = line.split_once("units ").unwrap();
    let (units, clusters) = gauges.split_once(", clusters ").unwrap();
    let (fleet, fleets) = (browser.page("/fleets/acme/eu"), browser.page("/fleets"));
    for gauge in [units, clusters] {
        assert!(
            fleet.contains(&format!("</svg>{gauge}")) && fleets.contains(&format!("</svg>{gauge}")),
            "{status}"
        );
    }
    let record = browser.page("/clusters/acme/orders");
    for (name, label) in [("advanced_config.version", "Kafka version"), ("kafka_units", "Kafka units")] {
        assert!(record.contains(&format!("title=\"{name}\">{label}<")), "{record}");
    }
    let names = record.split("<th ").skip(1).filter_map(|rest| rest.split_once('>')?.1.split('<').next());
    assert_eq!(names.filter(|name| name.contains('_')).collect::<Vec<_>>(), [""; 0]);
    let slashed = browser.get("/clusters/");
    assert_eq!((slashed.status, header(&slashed, "location").as_deref()), (303, Some("/ui/clusters")));
    for (short, page) in [
        ("/organizations/acme", "/ui/organizations/acme/acme"),
        ("/fleets/acme", "/ui/fleets?organization=acme"),
    ] {
        let answer = browser.get(short);
        assert_eq!((answer.status, header(&answer, "location").as_deref()), (303, Some(page)));
    }
    let refused = post(&api.address, "/ui/plan", &browser.cookie, &[]);
    assert!(refused.body.starts_with("<!doctype html>"), "{}", refused.body);
    // Whoever asks: nobody learns from an unknown address what there is.
    for cookie in [browser.cookie.as_str(), ""] {
        let path = "/ui/a/b/c/d/e/f";
        let none = send(&api.address, &format!("GET {path}"), &[("Cookie", cookie)], "");
        assert_eq!(none.status, 404, "{path}");
        assert_eq!(
            header(&none, "content-type").as_deref(),
            Some("text/html; charset=utf-8"),
            "{}",
            none.body
        );
        assert!(none.body.contains("there is no such page"), "{}", none.body);
        assert!(
            header(&none, "content-security-policy").is_some() && header(&none, "x-request-id").is_some()
        );
    }
    let api_s = send(&api.address, "GET /uix/a", &[], "");
    assert_eq!(header(&api_s, "content-type").as_deref(), Some("application/problem+json"));
    let none = browser.get("/clusters/acme/none");
    assert_eq!(none.status, 404);
    assert!(none.body.contains("<h1>"), "{}", none.body);
    assert_eq!(api.serve.stop(), Some(0));
}

#[test]
fn a_resource_has_its_plan_and_what_it_used_lately() {
    let tree = Tree::example("quickstart");
    let settings = "[prices]\ncurrency = \"EUR\"\ncpu_hour = 0.03\n";
    let api = Api::start_with(&tree, "serve --specs tree --config settings.toml", settings);
    api.settle();
    let browser = Browser::sign_in(&api, &api.token, "root");
    // The plan of a resource is one of its tabs.
    let leads = browser.get("/clusters/acme/orders/plan");
    let address = "/ui/plan?resource=Cluster%2Facme%2Forders";
    assert_eq!((leads.status, header(&leads, "location")), (303, Some(address.to_lowercase())));
    let plan = browser.page("/plan?resource=Cluster%2Facme%2Forders");
    assert!(plan.contains("<h1>orders</h1>"), "{plan}");
    assert!(plan.contains(&format!("<a href=\"{address}\" aria-current=\"page\">Plan</a>")), "{plan}");
    assert_eq!(browser.get("/clusters/acme/none/plan").status, 404);
    // The pictures have the sizes and the cost that the API has.
    for (page, path) in [
        ("/clusters/acme/orders", "/v1/clusters/orders/cost?organization=acme"),
        ("/fleets/acme/eu", "/organizations/acme/infrastructure/eu/cost"),
    ] {
        let report = api.get(path).expect(200).body;
        let sizes = report["clusters"].as_array().unwrap().iter();
        let last =
            |it: &Value| it["periods"].as_array().unwrap().last().unwrap()["disk_gib"].as_u64().unwrap();
        let disks: u64 = sizes.map(last).sum();
        let shown = browser.page(page);
        assert!(shown.contains("Last 30 days <span class=\"muted\">EUR 0.0"), "{shown}");
        let disks = format!("<span class=\"muted\">Disks</span> <strong>{disks} GiB</strong><svg");
        assert!(shown.contains(&disks) && shown.contains("<polyline points=\"0.0,"), "{disks}: {shown}");
    }
    // Fields are in the order of the form.
    let record = browser.page("/clusters/acme/orders");
    let at =
        |label: &str| record.find(&format!(">{label}</th>")).unwrap_or_else(|| panic!("{label}: {record}"));
    let order = ["Cluster type", "Name", "Kafka units", "Fleet", "Created at"].map(at);
    assert!(order.is_sorted(), "{order:?}");
    assert!(browser.page("/clusters").contains("team=checkout"));
    // Sign-ins are events of the installation.
    let (all, of) = (browser.page("/events"), browser.page("/events?about=resources"));
    assert!(
        all.contains("created token") && !of.contains("created token") && of.contains("cluster acme/orders")
    );
    assert!(!browser.page("/").contains("created token"));
    assert_eq!(api.serve.stop(), Some(0));
}

#[test]
fn the_console_of_a_cluster_is_a_link() {
    let tree = Tree::example("schema-registry");
    let settings = tree.read("streamfleet.toml");
    let api = Api::start_with(&tree, "serve --specs tree --config settings.toml", &settings);
    api.settle();
    let page = Browser::sign_in(&api, &api.token, "root").page("/clusters/acme/meters");
    let link = "<a href=\"https://console--meters.stream.example.com\" rel=\"noreferrer\">";
    assert!(page.contains(link), "{page}");
}

#[test]
fn nobody_sees_a_page_without_a_session() {
    let tree = Tree::example("quickstart");
    let api = Api::start(&tree);
    for path in PAGES {
        let answer = send(&api.address, &format!("GET /ui{path}?a=b"), &[], "");
        assert_eq!(answer.status, 303, "{path}");
        let place = header(&answer, "location").unwrap();
        assert!(place.starts_with("/ui/sign-in?next=%2fui%2f"), "{place}");
    }
    let html = [("Accept", "text/html,*/*")];
    assert_eq!(header(&send(&api.address, "GET /", &html, ""), "location").as_deref(), Some("/ui/"));
    let program = send(&api.address, "GET /", &[], "");
    assert_eq!(program.status, 404, "programs look for the API");
    assert_eq!(header(&program, "content-type").as_deref(), Some("application/problem+json"));
    let program: Value = serde_json::from_str(&program.body).unwrap();
    assert_eq!(program["hint"], "`/openapi.json` lists all paths");
    let unknown = format!("sf_{}", "0".repeat(64));
    for token in [unknown.as_str(), "sf_short", ""] {
        let answer = post(&api.address, "/ui/sign-in", "", &[("token", token), ("organization", "root")]);
        assert_eq!(answer.status, 401, "{}", answer.body);
        assert!(answer.body.contains("this is not a valid token"), "{}", answer.body);
        assert!(header(&answer, "set-cookie").is_none());
        assert!(token.is_empty() || !answer.body.contains(token), "the token is shown");
    }
    let acme = new_token(&tree, "platform@acme.example.com", "acme", "read");
    let answer = post(&api.address, "/ui/sign-in", "", &[("token", &acme), ("organization", "root")]);
    assert_eq!(answer.status, 422);
    assert!(
        answer.body.contains("this token is for organization <code>acme</code> alone"),
        "{}",
        answer.body
    );

    // The cookie is for pages alone, and ends when somebody signs out.
    let browser = Browser::sign_in(&api, &api.token, "");
    let cookie = [("Cookie", browser.cookie.as_str())];
    assert_eq!(send(&api.address, "GET /v1/clusters", &cookie, "").status, 401);
    let out = browser.submit("/sign-out", &[]);
    assert_eq!((out.status, header(&out, "location").as_deref()), (303, Some("/ui/sign-in")));
    assert_eq!(out.cookie().unwrap().0, "__Host-streamfleet=");
    assert_eq!(browser.get("/").status, 303);
    assert_eq!(api.serve.stop(), Some(0));
}

#[test]
fn a_link_signs_in_once_and_others_sign_nobody_in() {
    let tree = Tree::example("quickstart");
    let api = Api::start(&tree);
    api.settle();
    let run = tree.run("sign-in platform@acme.example.com tree --config settings.toml").expect(0);
    let digits = run.out.trim().split("link=").nth(1).unwrap().to_owned();
    let page = send(&api.address, &format!("GET /ui/sign-in?link={digits}"), &[], "");
    assert!(page.body.contains("This link signs you in once."), "{}", page.body);
    assert!(run.out.contains("?organization=acme&link="), "{}", run.out);
    let follow = |link: &str| post(&api.address, "/ui/sign-in", "", &[("link", link)]);
    let first = follow(&digits);
    assert_eq!(first.status, 303, "{}", first.body);
    let browser = Browser { address: api.address.clone(), cookie: first.cookie().unwrap().0 };
    let you = browser.page("/you");
    assert!(you.contains("platform@acme.example.com") && you.contains("organizations.yaml:"), "{you}");
    let tokens = browser.page("/tokens");
    assert!(tokens.contains("outlive the session") && tokens.contains("(this session)"), "{tokens}");
    // Neither the same link, nor a token of the API in its place.
    let attacker = api.token.trim_start_matches("sf_");
    for link in [digits.as_str(), attacker, "none"] {
        let again = follow(link);
        assert_eq!(again.status, 401, "{}", again.body);
        assert!(again.body.contains("this link was used already, or it has expired"), "{}", again.body);
        assert!(header(&again, "set-cookie").is_none());
    }
    // A session that is replaced ends.
    let fields = [("token", api.token.as_str()), ("organization", "root")];
    assert_eq!(post(&api.address, "/ui/sign-in", &browser.cookie, &fields).status, 303);
    assert_eq!(browser.get("/").status, 303);
    assert_eq!(api.serve.stop(), Some(0));
}

#[test]
fn signing_out_ends_the_session_that_the_browser_has_also_from_an_older_tab() {
    let tree = Tree::example("quickstart");
    let api = Api::start(&tree);
    api.settle();
    let first = Browser::sign_in(&api, &api.token, "root");
    let in_tab = first.form_token();
    // Another tab signs in anew, which replaces the session of all tabs.
    let fields = [("token", api.token.as_str()), ("organization", "root")];
    let (cookie, _) = post(&api.address, "/ui/sign-in", &first.cookie, &fields).cookie().unwrap();
    let second = Browser { address: api.address.clone(), cookie };
    second.page("/");
    let out = post(&api.address, "/ui/sign-out", &second.cookie, &[("csrf", &in_tab)]);
    assert_eq!(out.cookie().unwrap().0, "__Host-streamfleet=");
    assert_eq!(second.get("/").status, 303);
    let valid = api.get("/v1/sessions").expect(200).body;
    let valid = valid["items"].as_array().unwrap().iter().filter(|it| it["revoked_at"].is_null()).count();
    assert_eq!(valid, 0, "on the server, too");
    assert_eq!(api.serve.stop(), Some(0));
}

#[test]
fn an_empty_installation_says_what_to_do() {
    let tree = Tree::empty();
    tree.write("README.md", "nothing yet");
    let api = Api::start(&tree);
    let browser = Browser::sign_in(&api, &api.token, "root");
    for path in &PAGES[..13] {
        browser.page(path);
    }
    assert!(browser.page("/fleets").contains("There are none yet. A fleet is a Kubernetes cluster"));
    let overview = browser.page("/");
    assert!(overview.contains("There are no fleets and no clusters yet."), "{overview}");
    for form in ["organizations", "base-domains", "fleets", "clusters"] {
        assert!(overview.contains(&format!("href=\"/ui/new/{form}\"")), "{form}: {overview}");
    }
    assert_eq!(api.serve.stop(), Some(0));
}

#[test]
fn a_form_needs_the_token_of_its_session() {
    let tree = Tree::example("quickstart");
    let api = Api::start(&tree);
    api.settle();
    let browser = Browser::sign_in(&api, &api.token, "root");
    let known = || api.get("/v1/tokens").expect(200).body["total"].clone();
    let before = known();
    let order = [("name", "evil"), ("organization", "acme"), ("access", "read")];
    let answer = post(&api.address, "/ui/tokens", &browser.cookie, &order);
    assert_eq!(answer.status, 403);
    assert!(answer.body.contains("the form was not sent from a page of this session"), "{}", answer.body);
    assert_eq!(known(), before);
    let made = browser.submit("/tokens", &order);
    let place = header(&made, "location").unwrap();
    let place = place.strip_prefix("/ui").unwrap();
    assert_eq!(browser.page(place).matches("sf_").count(), 1, "the secret is shown");
    assert_eq!(browser.page(place).matches("sf_").count(), 0, "and only once");
    let wrong = browser.submit("/tokens", &[("name", "ci"), ("organization", "Nö"), ("access", "read")]);
    assert_eq!(wrong.status, 422);
    assert!(
        wrong.body.contains("value=\"ci\"") && wrong.body.contains("is not an identifier"),
        "{}",
        wrong.body
    );
    assert_eq!(api.serve.stop(), Some(0));
}

#[test]
fn a_deletion_is_read_and_approved_by_who_may() {
    let tree = Tree::example("quickstart");
    let api = Api::start(&tree);
    api.settle();
    tree.write("acme/clusters/sandbox.yaml", "");
    let browser = Browser::sign_in(&api, &api.token, "root");
    let id = api.serve.until("the deletion waits for an approval", || {
        let page = browser.page("/plan");
        let id = page.split("name=\"id\" value=\"").nth(1)?.split('"').next()?.to_owned();
        assert!(page.contains("waiting to delete cluster <strong>sandbox</strong>"), "{page}");
        Some(id)
    });
    let overview = browser.page("/");
    assert!(overview.contains("waiting to delete cluster sandbox"), "{overview}");
    let refused = browser.submit("/plan/approve", &[("id", "0123456789ab")]);
    assert_eq!(
        (refused.status, header(&refused, "location").as_deref()),
        (303, Some("/ui/plan?other=0123456789ab"))
    );
    assert!(browser.page("/plan?other=0123456789ab").contains("Nothing was approved: the plan has changed"));
    let member = new_token(&tree, "platform@acme.example.com", "acme", "read");
    let viewer = Browser::sign_in(&api, &member, "acme");
    assert!(viewer.page("/plan").contains("An administrator of the organization may approve it."));
    assert_eq!(viewer.submit("/plan/approve", &[("id", &id)]).status, 403);
    let approved = browser.submit("/plan/approve", &[("id", &id)]);
    assert_eq!(approved.status, 303, "{}", approved.body);
    api.serve.until("the cluster is deleted", || {
        (browser.get("/clusters/acme/sandbox").status == 404).then_some(())
    });
    assert_eq!(api.serve.stop(), Some(0));
}

#[test]
fn what_people_write_is_text() {
    let tree = Tree::example("quickstart");
    tree.edit(
        "acme/clusters/orders.yaml",
        "kafka_units: 1",
        "kafka_units: 1\nregion: <img src=x onerror=alert(1)>",
    );
    let api = Api::start(&tree);
    api.settle();
    let browser = Browser::sign_in(&api, &api.token, "");
    for path in PAGES {
        let page = browser.page(path);
        assert!(!page.contains("<img"), "{path}");
    }
    let page = browser.page("/clusters/acme/orders");
    assert!(page.contains("img src=x onerror=alert(1)"), "{page}");
    assert_eq!(api.serve.stop(), Some(0));
}

#[test]
fn pages_are_below_the_path_that_the_settings_name() {
    let tree = Tree::example("quickstart");
    let base = "base_url = \"https://kafka.example.com/streamfleet/\"\n";
    let api = Api::start_with(&tree, "serve --specs tree --config settings.toml", base);
    let headers = [("Sec-Fetch-Site", "same-origin")];
    let fields = [("token", api.token.as_str()), ("organization", "root")];
    let answer = post_with(&api.address, "/streamfleet/ui/sign-in", &headers, &fields);
    assert_eq!((answer.status, header(&answer, "location").as_deref()), (303, Some("/streamfleet/ui/")));
    let (cookie, attributes) = answer.cookie().unwrap();
    assert!(cookie.starts_with("__Secure-streamfleet=sf_"), "{cookie}");
    assert_eq!(attributes, "Path=/streamfleet/ui/; Max-Age=86400; HttpOnly; SameSite=Lax; Secure");
    let page = send(&api.address, "GET /streamfleet/ui/clusters", &[("Cookie", &cookie)], "");
    assert_eq!(page.status, 200);
    let links = page.body.split("=\"/").skip(1).filter(|rest| !rest.starts_with("streamfleet/ui/"));
    assert_eq!(links.collect::<Vec<_>>(), [""; 0]);
    assert_eq!(send(&api.address, "GET /ui/", &[], "").status, 404);
    let html = [("Accept", "text/html,*/*")];
    for path in ["/streamfleet", "/streamfleet/"] {
        let start = send(&api.address, &format!("GET {path}"), &html, "");
        assert_eq!(header(&start, "location").as_deref(), Some("/streamfleet/ui/"), "{path}: {}", start.body);
        let program: Value =
            serde_json::from_str(&send(&api.address, &format!("GET {path}"), &[], "").body).unwrap();
        assert_eq!(program["hint"], "`/streamfleet/openapi.json` lists all paths");
    }
    // Whoever signs in again comes back to the page, or to the one with the form.
    let asked = send(&api.address, "GET /streamfleet/ui/clusters?q=a", &[], "");
    let expected = "/streamfleet/ui/sign-in?next=%2fstreamfleet%2fui%2fclusters%3fq%3da";
    assert_eq!(header(&asked, "location").unwrap().to_ascii_lowercase(), expected);
    let before = [
        ("Sec-Fetch-Site", "same-origin"),
        ("Referer", "https://kafka.example.com/streamfleet/ui/clusters?q=a"),
    ];
    let asked = post_with(&api.address, "/streamfleet/ui/new/clusters", &before, &[]);
    assert_eq!(header(&asked, "location").unwrap().to_ascii_lowercase(), expected);
    assert_eq!(api.serve.stop(), Some(0));
}

#[test]
fn a_member_sees_nothing_of_other_organizations() {
    let tree = Tree::example("quickstart");
    tree.write("organizations/other.yaml", "apiVersion: streamfleet/v1\nkind: Organization\nidentifier: globex\nmembers:\n  - {email: gus@globex.example.com, role: viewer}\n");
    let api = Api::start(&tree);
    api.settle();
    let token = new_token(&tree, "gus@globex.example.com", "globex", "admin");
    let browser = Browser::sign_in(&api, &token, "globex");
    for path in PAGES {
        let answer = browser.get(path);
        let is_theirs = path.contains("/acme");
        // A viewer is told before a form is filled in.
        let expected = if is_theirs {
            404
        } else if path.starts_with("/new/") {
            403
        } else {
            200
        };
        assert_eq!(answer.status, expected, "{path}: {}", answer.body);
        let told = answer.body.replace(path, "");
        assert!(is_theirs || !told.contains("acme"), "{path}: {}", answer.body);
        assert!(!told.contains("sandbox"), "{path}: {}", answer.body);
    }
    let me: Value = api.get("/v1/sessions").expect(200).body;
    assert!(me.to_string().contains("web session"));
    assert_eq!(api.serve.stop(), Some(0));
}
