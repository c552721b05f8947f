//! Forms: what they write, what they say of mistakes, and what they keep.

use std::fs;

use serde_json::{Value, json};

use super::{Browser, header};
use crate::api::exchanges::KUBECONFIG;
use crate::api::{Api, git, new_token};
use crate::service::http::Answer;
use crate::support::Tree;

pub(super) type Fields<'f> = Vec<(&'f str, &'f str)>;

/// A fleet on the Kubernetes cluster of [`KUBECONFIG`].
pub(super) fn fleet<'f>() -> Fields<'f> {
    vec![
        ("/infra_type", "byok"),
        ("/organization", "acme"),
        ("/identifier", "us"),
        ("/tenancy_mode", "Shared"),
        ("/domain", "kafka.acme.example.com"),
        ("/max_tenants", "3"),
        ("/max_kafka_units", "5"),
        ("/advanced_config/kubeconfig", KUBECONFIG),
    ]
}

pub(super) fn cluster<'f>() -> Fields<'f> {
    vec![
        ("/cluster_type", "kafka"),
        ("/organization", "acme"),
        ("/identifier", "payments"),
        ("/cloud_provider", "directory"),
        ("/tenancy_mode", "Shared"),
        ("/kafka_units", "1"),
        ("/infrastructure", "eu"),
        ("/region", "Köln <west>"),
        ("/advanced_config/version", "4.3.1"),
        ("/advanced_config/auto_upgrade", "false"),
        ("/advanced_config/storage/size_gib", "20"),
        ("/advanced_config/config/num.partitions", "3"),
        ("/tags", "- {key: team, value: payments}"),
    ]
}

fn cluster_body() -> Value {
    json!({
        "cluster_type": "kafka", "organization": "acme", "identifier": "payments", "cloud_provider": "directory",
        "tenancy_mode": "Shared", "kafka_units": 1, "infrastructure": "eu", "region": "Köln <west>",
        "advanced_config": {
            "version": "4.3.1", "auto_upgrade": false, "storage": {"size_gib": 20}, "config": {"num.partitions": 3},
        },
        "tags": [{"key": "team", "value": "payments"}],
    })
}

/// The value of a page's hidden field.
pub(super) fn hidden(page: &str, name: &str) -> Option<String> {
    let mark = format!("name=\"{name}\" value=\"");
    page.split(&mark).nth(1)?.split('"').next().map(str::to_owned)
}

/// A page's text as a person reads it.
pub(super) fn text(page: &str) -> String {
    let mut text = String::new();
    let mut is_tag = false;
    for letter in page.chars() {
        match letter {
            '<' => is_tag = true,
            '>' => is_tag = false,
            _ if !is_tag => text.push(letter),
            _ => {}
        }
    }
    ["&#60;", "&#62;", "&#34;", "&#39;", "&#38;"]
        .iter()
        .zip(["<", ">", "\"", "'", "&"])
        .fold(text, |text, (from, to)| text.replace(from, to))
}

/// The text of a field of a form, with its mistakes.
pub(super) fn field_text(page: &str, pointer: &str) -> String {
    let id = format!("id=\"f{}-help\"", pointer.replace(['/', '.'], "-"));
    let rest = page.split(&id).nth(1).unwrap_or_else(|| panic!("there is no field {pointer}: {page}"));
    text(rest.split("</div>").next().unwrap().split_once('>').unwrap().1)
}

#[track_caller]
pub(super) fn reviewed(answer: &Answer) -> String {
    assert_eq!(answer.status, 200, "{}", text(&answer.body));
    hidden(&answer.body, "draft").unwrap_or_else(|| panic!("{}", text(&answer.body)))
}

#[test]
fn both_workflows_end_in_what_the_api_writes() {
    let (by_form, by_call) = (Tree::example("quickstart"), Tree::example("quickstart"));
    let (form_api, call_api) = (Api::start(&by_form), Api::start(&by_call));
    form_api.settle();
    call_api.settle();
    let browser = Browser::sign_in(&form_api, &form_api.token, "root");
    let fleet = [
        ("/infra_type", "byok"),
        ("/organization", "acme"),
        ("/identifier", "us"),
        ("/tenancy_mode", "Shared"),
        ("/domain", "kafka.acme.example.com"),
        ("/max_tenants", "3"),
        ("/max_kafka_units", "5"),
        ("/placement_config/provider", "our own racks"),
        ("/placement_config/region", ""),
        ("/advanced_config/kubeconfig", KUBECONFIG),
        ("/deletion_protection", ""),
    ];
    let fleet_body = json!({
        "infra_type": "byok", "organization": "acme", "identifier": "us", "tenancy_mode": "Shared",
        "domain": "kafka.acme.example.com", "max_tenants": 3, "max_kafka_units": 5,
        "placement_config": {"provider": "our own racks"}, "advanced_config": {"kubeconfig": KUBECONFIG.trim()},
    });
    let cluster = cluster();
    for (slug, noun, fields, list, body) in [
        ("clusters", "cluster", cluster.as_slice(), "/v1/clusters", cluster_body()),
        ("fleets", "fleet", &fleet[..], "/organizations/acme/infrastructure", fleet_body),
    ] {
        // Each of four steps is a page; the values of the others are kept.
        let query: String = fields
            .iter()
            .map(|(name, value)| {
                format!("&{name}={}", form_urlencoded::byte_serialize(value.as_bytes()).collect::<String>())
            })
            .filter(|pair| !pair.contains("kubeconfig"))
            .collect();
        for step in 1..=4 {
            let page = browser.page(&format!("/new/{slug}?step={step}{query}"));
            assert!(text(&page).contains(&format!("Step {step} of 4")), "{}", text(&page));
            assert!(page.contains("value=\"acme\""), "{page}");
        }
        let review = browser.submit(&format!("/new/{slug}"), fields);
        let draft = reviewed(&review);
        let told = text(&review.body);
        assert!(
            told.contains(&format!("New {noun}: review")) && told.contains("Nothing has changed yet."),
            "{told}"
        );
        // The fleet's Kubernetes cluster can't be reached, which its review says before anything is written.
        assert!(told.contains(if slug == "fleets" { "1 waiting" } else { "1 to create" }), "{told}");
        assert!(
            told.contains(&format!(
                "curl --fail-with-body --request POST 'http://{}{list}'",
                form_api.address
            )),
            "{told}"
        );
        assert!(!review.body.contains("kubeconfig-token"), "{told}");
        let done = browser.submit("/carry-out", &[("draft", &draft)]);
        assert_eq!(done.status, 303, "{}", text(&done.body));
        let again = browser.submit("/carry-out", &[("draft", &draft)]);
        assert!(again.body.contains("what was typed is no longer kept"), "{}", again.body);
        call_api.call(&format!("POST {list}"), body).expect(201);
        let place = header(&done, "location").unwrap();
        assert!(browser.page(place.strip_prefix("/ui").unwrap()).contains("<h1>"), "{place}");
    }
    let file = |tree: &Tree, path: &str| fs::read_to_string(tree.path().join(path)).unwrap();
    let path = "acme/clusters/payments.yaml";
    assert_eq!(file(&by_form, path), file(&by_call, path));
    // What is sealed differs each time.
    let open = |tree: &Tree| {
        let text = file(tree, "acme/fleets/us.yaml");
        assert!(text.contains("BEGIN AGE ENCRYPTED FILE"), "{text}");
        text.lines().filter(|line| !line.starts_with("      ")).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(open(&by_form), open(&by_call));
    for api in [form_api, call_api] {
        assert_eq!(api.serve.stop(), Some(0));
    }
}

#[test]
fn a_change_is_reviewed_and_refused_if_somebody_else_was_faster() {
    let tree = Tree::example("quickstart");
    let api = Api::start(&tree);
    api.settle();
    let browser = Browser::sign_in(&api, &api.token, "root");
    let path = "/clusters/acme/orders/edit";
    let page = browser.page(path);
    let etag = hidden(&page, "etag").unwrap().replace("&#34;", "\"");
    assert!(field_text(&page, "/tenancy_mode").contains("It can't change."), "{page}");
    // A form has all its fields; one of them is changed.
    let shown = api.get("/v1/clusters/orders").expect(200).body;
    let region = shown["region"].as_str().unwrap_or_default().to_owned();
    let fields = [("etag", etag.as_str()), ("/kafka_units", "2"), ("/region", &region), ("/tags", "")];
    let review = browser.submit(path, &fields);
    let draft = reviewed(&review);
    let told = text(&review.body);
    assert!(told.contains("- kafka_units: 1\n") && told.contains("+ kafka_units: 2\n"), "{told}");
    assert!(told.contains("--request PATCH"), "{told}");
    assert!(told.contains("1 to change"), "{told}");
    api.call("PATCH /v1/clusters/orders", json!({"region": "elsewhere"})).expect(200);
    let refused = browser.submit("/carry-out", &[("draft", &draft)]);
    assert_eq!(refused.status, 412, "{}", text(&refused.body));
    assert!(refused.body.contains("value=\"2\""), "what was typed is kept: {}", refused.body);
    let etag = hidden(&refused.body, "etag").unwrap().replace("&#34;", "\"");
    let review = browser.submit(path, &[("etag", etag.as_str()), ("/kafka_units", "2")]);
    let done = browser.submit("/carry-out", &[("draft", &reviewed(&review))]);
    assert_eq!(header(&done, "location").as_deref(), Some("/ui/clusters/acme/orders"));
    let now = api.get("/v1/clusters/orders").expect(200).body;
    assert_eq!((&now["kafka_units"], &now["region"]), (&json!(2), &json!("elsewhere")));
    let etag = hidden(&browser.page(path), "etag").unwrap().replace("&#34;", "\"");
    let same = browser.submit(path, &[("etag", etag.as_str()), ("/kafka_units", "2")]);
    assert!(text(&same.body).contains("nothing would change"), "{}", text(&same.body));

    // Deletion: the protection goes by a change of its own.
    let path = "/clusters/acme/orders/delete";
    let page = browser.page(path);
    assert!(page.contains("It is protected from deletion.") && !page.contains("name=\"confirm\""), "{page}");
    let etag = hidden(&page, "etag").unwrap().replace("&#34;", "\"");
    let refused = browser.submit(path, &[("etag", etag.as_str()), ("confirm", "orders")]);
    assert!(refused.status == 409 && refused.body.contains("protect"), "{} {}", refused.status, refused.body);
    let review = browser
        .submit("/clusters/acme/orders/edit", &[("etag", etag.as_str()), ("/deletion_protection", "false")]);
    assert_eq!(browser.submit("/carry-out", &[("draft", &reviewed(&review))]).status, 303);
    api.serve.until("the protection is gone", || {
        let page = browser.get(path).body;
        (page.contains("name=\"confirm\"") && page.contains("the cluster is deleted")).then_some(())
    });
    let etag = hidden(&browser.page(path), "etag").unwrap().replace("&#34;", "\"");
    let unread = browser.submit(path, &[("confirm", "orders")]);
    assert!(unread.body.contains("what was typed is no longer kept"), "{}", unread.body);
    let wrong = browser.submit(path, &[("confirm", "order")]);
    assert!(
        wrong.status == 422 && wrong.body.contains("is not the one of what would be deleted"),
        "{}",
        wrong.body
    );
    let plan = hidden(&browser.page(path), "plan").unwrap();
    let done =
        browser.submit(path, &[("etag", etag.as_str()), ("plan", plan.as_str()), ("confirm", "orders")]);
    // It may be gone by now.
    let place = header(&done, "location").unwrap_or_default();
    assert!(["/ui/clusters/acme/orders", "/ui/clusters"].contains(&place.as_str()), "{place}: {}", done.body);
    api.serve.until("it is gone", || (browser.get("/clusters/acme/orders").status == 404).then_some(()));
    assert_eq!(api.serve.stop(), Some(0));
}

#[test]
fn the_last_unit_goes_to_one_of_two_people() {
    let tree = Tree::example("quickstart");
    let api = Api::start(&tree);
    api.settle();
    let free = 10 - 2;
    let units = free.to_string();
    let drafts: Vec<_> = ["payments", "billing"]
        .into_iter()
        .map(|name| {
            let browser = Browser::sign_in(&api, &api.token, "root");
            let mut fields: Fields = cluster()
                .into_iter()
                .filter(|(pointer, _)| !matches!(*pointer, "/identifier" | "/kafka_units"))
                .collect();
            fields.extend([("/identifier", name), ("/kafka_units", &units)]);
            let review = browser.submit("/new/clusters", &fields);
            (reviewed(&review), browser)
        })
        .collect();
    let [first, second] = drafts.try_into().ok().unwrap();
    assert_eq!(first.1.submit("/carry-out", &[("draft", &first.0)]).status, 303);
    let refused = second.1.submit("/carry-out", &[("draft", &second.0)]);
    let told = text(&refused.body);
    assert!(refused.status == 409 || refused.status == 422, "{told}");
    assert!(told.contains("Kafka units") && refused.body.contains("value=\"billing\""), "{told}");
    // Nobody sees or carries out what somebody else reviewed.
    let token = new_token(&tree, "platform@acme.example.com", "acme", "admin");
    let stranger = Browser::sign_in(&api, &token, "acme");
    for refused in [
        stranger.submit("/carry-out", &[("draft", &second.0)]),
        stranger.get(&format!("/drafts/{}", second.0)),
    ] {
        assert!(refused.body.contains("what was typed is no longer kept"), "{}", refused.body);
    }
    assert_eq!(api.serve.stop(), Some(0));
}

#[test]
fn what_was_typed_is_kept_while_the_repository_is_away() {
    let tree = Tree::example("quickstart");
    let api = Api::start_git(&tree);
    api.settle();
    let browser = Browser::sign_in(&api, &api.token, "root");
    let draft = reviewed(&browser.submit("/new/clusters", &cluster()));
    let (remote, away) = (tree.beside("specs.git"), tree.beside("away.git"));
    let before = git(&remote, "rev-parse main");
    fs::rename(&remote, &away).unwrap();
    let refused = browser.submit("/carry-out", &[("draft", &draft)]);
    assert_eq!(refused.status, 503, "{}", text(&refused.body));
    assert!(
        refused.body.contains("value=\"payments\"") && text(&refused.body).contains("nothing was written"),
        "{}",
        text(&refused.body)
    );
    fs::rename(&away, &remote).unwrap();
    let draft = hidden(&refused.body, "draft").unwrap();
    let review = browser.submit("/new/clusters", &[cluster().as_slice(), &[("draft", &draft)]].concat());
    assert_eq!(browser.submit("/carry-out", &[("draft", &reviewed(&review))]).status, 303);
    assert_eq!(git(&remote, "rev-parse main~1"), before);
    let author = git(&remote, "log -1 --format=%ae main");
    assert_eq!(author.trim(), crate::api::ROOT);
    assert_eq!(api.serve.stop(), Some(0));
}

#[test]
fn readers_have_no_forms_that_work() {
    let tree = Tree::example("quickstart");
    let api = Api::start(&tree);
    api.settle();
    let token = new_token(&tree, "platform@acme.example.com", "acme", "read");
    let browser = Browser::sign_in(&api, &token, "acme");
    let list = browser.page("/clusters");
    assert!(!list.contains("/new/clusters"), "{list}");
    let page = browser.page("/clusters/acme/orders");
    assert!(!page.contains("/edit") && !page.contains("/delete"), "{page}");
    for form in
        ["/new/clusters", "/new/organizations", "/clusters/acme/orders/edit", "/clusters/acme/orders/delete"]
    {
        let refused = browser.get(form);
        assert_eq!(refused.status, 403, "{form}: {}", refused.body);
        assert!(text(&refused.body).contains(" requires "), "{form}: {}", text(&refused.body));
    }
    let refused = browser.submit("/new/clusters", &cluster());
    assert_eq!(refused.status, 403, "{}", refused.body);
    let changed = [("etag", "\"1\""), ("/kafka_units", "2")];
    let refused = browser.submit("/clusters/acme/orders/edit", &changed);
    assert_eq!(refused.status, 403, "{}", refused.body);
    let refused = browser.submit("/clusters/acme/orders/delete", &[("etag", "\"1\""), ("confirm", "orders")]);
    assert_eq!(refused.status, 403, "{}", refused.body);
    assert_eq!(api.serve.stop(), Some(0));
}

/// The fields of a page's form, as a browser without script sends them.
pub(super) fn sent(page: &str) -> Vec<(String, String)> {
    let plain = |text: &str| {
        ["&#60;", "&#62;", "&#34;", "&#39;", "&#38;"]
            .iter()
            .zip(["<", ">", "\"", "'", "&"])
            .fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
    };
    let form = page.split("class=\"sheet\">").nth(1).unwrap().split("</form>").next().unwrap();
    let attribute = |tag: &str, name: &str| {
        let found = tag.split(&format!("{name}=\"")).nth(1)?.split('"').next()?;
        Some(plain(found))
    };
    let mut fields = Vec::new();
    for tag in form.split('<').skip(1) {
        let name = attribute(tag.split('>').next().unwrap(), " name");
        match name {
            Some(name) if tag.starts_with("input") => {
                let is_radio = tag.contains("type=\"radio\"");
                if !is_radio || tag.contains(" checked") {
                    fields.push((name, attribute(tag, " value").unwrap_or_default()));
                }
            }
            Some(name) if tag.starts_with("textarea") => {
                fields.push((name, plain(tag.split_once('>').unwrap().1)));
            }
            Some(name) if tag.starts_with("select") => fields.push((name, String::new())),
            _ => {}
        }
        if tag.starts_with("option") && tag.contains(" selected") {
            fields.last_mut().unwrap().1 = attribute(tag, " value").unwrap_or_default();
        }
    }
    fields.retain(|(name, _)| name != "csrf");
    fields
}

/// Types a value into a field.
fn typed<'f>(fields: &'f [(String, String)], name: &str, value: &'f str) -> Fields<'f> {
    let fields = fields
        .iter()
        .map(|(known, text)| (known.as_str(), if known == name { value } else { text.as_str() }));
    fields.collect()
}

#[test]
fn what_somebody_else_changed_meanwhile_is_not_put_back() {
    let tree = Tree::example("quickstart");
    let api = Api::start(&tree);
    api.settle();
    let browser = Browser::sign_in(&api, &api.token, "root");
    let path = "/clusters/acme/orders/edit";
    let opened = sent(&browser.page(path));
    let other =
        json!({"deletion_protection": true, "region": "theirs", "tags": [{"key": "a", "value": "b"}]});
    api.call("PATCH /v1/clusters/orders", other.clone()).expect(200);
    let keeps_theirs = |context: &str| {
        let now = api.get("/v1/clusters/orders").expect(200).body;
        for (name, value) in other.as_object().unwrap() {
            assert_eq!(now[name], *value, "{context}: {now:#}");
        }
    };
    // The whole form is sent again after the refusal, as it came back.
    let refused = browser.submit(path, &typed(&opened, "/kafka_units", "2"));
    assert_eq!(refused.status, 412, "{}", text(&refused.body));
    let again = sent(&refused.body);
    assert!(again.contains(&("/kafka_units".to_owned(), "2".to_owned())), "{again:?}");
    let review = browser.submit(path, &typed(&again, "", ""));
    let told = text(&review.body);
    assert!(told.contains("+ kafka_units: 2\n") && !told.contains("- region"), "{told}");
    let draft = reviewed(&review);
    // And so it is when the review leads back to the form, and somebody else is faster once more.
    api.call("PATCH /v1/clusters/orders", json!({"provisioner_name": "them"})).expect(200);
    let back = browser.get(&format!("/drafts/{draft}/edit"));
    let again = sent(&back.body);
    let review = browser.submit(path, &typed(&again, "", ""));
    assert_eq!(browser.submit("/carry-out", &[("draft", &reviewed(&review))]).status, 303);
    keeps_theirs("after the change");
    let now = api.get("/v1/clusters/orders").expect(200).body;
    assert_eq!((&now["provisioner_name"], &now["kafka_units"]), (&json!("them"), &json!(2)));
    assert_eq!(api.serve.stop(), Some(0));
}
