//! Forms: what they write, what they say of mistakes, and what they keep.

use std::fs;

use serde_json::{Value, json};

use super::{Browser, header};
use crate::api::exchanges::{KUBECONFIG, certificate};
use crate::api::{Api, git, new_token};
use crate::service::http::Answer;
use crate::support::Tree;

pub(super) type Fields<'f> = Vec<(&'f str, &'f str)>;

/// A kind's pages, its list in the API, a form without a mistake, and fields with wrong values.
type Form<'f> = (&'f str, &'f str, Fields<'f>, &'f [(&'f str, &'f str)]);

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
fn a_mistake_is_told_at_its_field_as_the_api_tells_it_and_the_rest_is_kept() {
    let tree = Tree::example("quickstart");
    let api = Api::start(&tree);
    api.settle();
    let browser = Browser::sign_in(&api, &api.token, "root");
    let (tls_cert, tls_key) = certificate("kafka.acme.example.com");
    let fleet = fleet();
    let domain: Fields = vec![
        ("/organization", "acme"),
        ("/domain", "more.acme.example.com"),
        ("/tls_cert", &tls_cert),
        ("/tls_key", &tls_key),
    ];
    let provider: Fields = vec![
        ("/organization", "acme"),
        ("/identifier", "login"),
        ("/issuer", "https://login.acme.example.com"),
        ("/jwks_uri", "https://login.acme.example.com/keys"),
        ("/audience", "kafka"),
    ];
    let account: Fields = vec![
        ("/organization", "acme"),
        ("/identifier", "store"),
        ("/provider", "aws"),
        ("/region", "eu-central-1"),
        ("/credentials", "[default]\naws_access_key_id = A\naws_secret_access_key = very-secret-key"),
    ];
    let organization: Fields =
        vec![("/identifier", "globex"), ("/members", "- {email: gus@globex.example, role: admin}")];
    let forms: [Form<'_>; 6] = [
        (
            "clusters",
            "/v1/clusters",
            cluster(),
            &[
                ("/cluster_type", "redpanda"),
                ("/cluster_type", ""),
                ("/organization", "none"),
                ("/organization", "Acme"),
                ("/identifier", ""),
                ("/identifier", "Payments"),
                ("/identifier", "a b"),
                ("/tenancy_mode", "alone"),
                ("/tenancy_mode", "Isolated"),
                ("/kafka_units", ""),
                ("/kafka_units", "many"),
                ("/kafka_units", "0"),
                ("/kafka_units", "1.5"),
                ("/kafka_units", "257"),
                ("/kafka_units", "100"),
                ("/infrastructure", "nowhere"),
                ("/infrastructure", ""),
                ("/advanced_config/version", ""),
                ("/advanced_config/version", "4.3"),
                ("/advanced_config/version", "1.0.0"),
                ("/advanced_config/auto_upgrade", "perhaps"),
                ("/advanced_config/storage/size_gib", "0"),
                ("/advanced_config/storage/size_gib", "big"),
                ("/advanced_config/config/num.partitions", "0"),
                ("/tags", "- [a, b]"),
                ("/tags", "team"),
                ("/tags", "- {key: a"),
                ("/cloud_provider", "aws"),
                ("/advanced_config/oauth", "nobody"),
                ("/advanced_config/cluster_access", "All"),
            ],
        ),
        (
            "fleets",
            "/organizations/acme/infrastructure",
            fleet,
            &[
                ("/infra_type", "gke"),
                ("/domain", "none.example.com"),
                ("/max_tenants", "-1"),
                ("/max_kafka_units", "1000000"),
                ("/tenancy_mode", ""),
                ("/advanced_config/kubeconfig", "no kubeconfig"),
                ("/advanced_config/kubeconfig", ""),
                ("/placement_config/region", "\u{7}"),
            ],
        ),
        (
            "base-domains",
            "/organizations/acme/base-domains",
            domain,
            &[
                ("/domain", "not a domain"),
                ("/domain", "foreign.example.org"),
                ("/tls_cert", "no certificate"),
                ("/tls_key", "no key"),
                ("/dns_provider", "route53"),
            ],
        ),
        (
            "identity-providers",
            "/organizations/acme/identity-providers",
            provider,
            &[("/issuer", "login"), ("/audience", ""), ("/jwks_uri", "keys")],
        ),
        (
            "cloud-accounts",
            "/organizations/acme/cloud-accounts",
            account,
            &[("/provider", "azure"), ("/identifier", "Store 1")],
        ),
        (
            "organizations",
            "/organizations",
            organization,
            &[
                ("/identifier", "acme"),
                ("/members", "- {email: gus, role: admin}"),
                ("/members", "- {email: g@x.example, role: boss}"),
                ("/quotas/fleets", "-1"),
                ("/domains", "- [a]"),
            ],
        ),
    ];
    let mut tried = 0;
    for (slug, list, right, wrongs) in &forms {
        for (pointer, wrong) in *wrongs {
            let mut fields: Fields = right.iter().filter(|(name, _)| name != pointer).copied().collect();
            fields.push((pointer, wrong));
            let answer = browser.submit(&format!("/new/{slug}"), &fields);
            let context = format!("{slug} {pointer} {wrong}: {}", text(&answer.body));
            assert!(matches!(answer.status, 409 | 422), "{}: {context}", answer.status);
            let told = field_text(&answer.body, pointer);
            // The API says the same about the same body.
            if !matches!(*pointer, "/tags" | "/members" | "/domains") {
                let refusal = api.call(&format!("POST {list}"), body_of(&fields)).body;
                let errors = refusal["errors"].as_array();
                let at_field = errors.into_iter().flatten().find(|error| error["pointer"] == *pointer);
                let detail = at_field.unwrap_or(&refusal)["detail"].as_str().unwrap();
                // What no field is to blame for is at the top.
                let told = if at_field.is_some() { told.clone() } else { text(&answer.body) };
                assert!(told.contains(&detail.replace('`', "")), "{detail:?} is not in {told:?}: {context}");
            }
            assert!(told.len() > 10, "{context}");
            for (name, value) in right.iter().filter(|(name, _)| name != pointer) {
                let is_secret = matches!(*name, "/advanced_config/kubeconfig" | "/tls_key" | "/credentials");
                match is_secret {
                    true => {
                        assert!(!answer.body.contains(value.lines().nth(2).unwrap_or(value)), "{context}");
                        assert!(
                            field_text(&answer.body, name).contains("One was given, and is not shown."),
                            "{context}"
                        );
                    }
                    false => {
                        let first = value.lines().next().unwrap();
                        assert!(
                            answer.body.replace("&#60;", "<").replace("&#62;", ">").contains(first),
                            "{name}: {context}"
                        );
                    }
                }
            }
            assert!(
                !answer.body.contains("very-secret-key") && !answer.body.contains("kubeconfig-token"),
                "{context}"
            );
            tried += 1;
        }
    }
    assert!(tried > 50);
    // The secret that a refused form had is still there.
    let mut fields: Fields = forms[1].2.iter().filter(|(name, _)| *name != "/max_tenants").copied().collect();
    fields.push(("/max_tenants", "none"));
    let refused = browser.submit("/new/fleets", &fields);
    let draft = hidden(&refused.body, "draft").unwrap();
    let right: Fields = forms[1].2.iter().filter(|(name, _)| !name.contains("kubeconfig")).copied().collect();
    let review = browser.submit(
        "/new/fleets",
        &[right.as_slice(), &[("draft", &draft), ("/advanced_config/kubeconfig", "")]].concat(),
    );
    let draft = reviewed(&review);
    let back = browser.get(&format!("/drafts/{draft}/edit"));
    assert!(field_text(&back.body, "/advanced_config/kubeconfig").contains("One was given"), "{}", back.body);
    assert_eq!(browser.submit("/carry-out", &[("draft", &draft)]).status, 303);
    let log = api.serve.log();
    assert!(!log.contains("very-secret-key") && !log.contains("kubeconfig-token"), "{log}");
    assert_eq!(api.serve.stop(), Some(0));
}

/// The body of a call with the values of a form.
fn body_of(fields: &[(&str, &str)]) -> Value {
    let mut body = json!({});
    for (pointer, text) in fields.iter().filter(|(_, text)| !text.is_empty()) {
        let is_number = pointer.contains("max_")
            || pointer.contains("units")
            || pointer.contains("size")
            || pointer.contains("num.")
            || pointer.contains("quotas");
        let value = match *pointer {
            "/advanced_config/auto_upgrade" if *text == "false" => json!(false),
            "/tags" => json!([{"key": "team", "value": "payments"}]),
            "/members" => json!([{"email": "gus@globex.example", "role": "admin"}]),
            _ if is_number => text.parse::<i64>().map_or_else(|_| json!(text), Value::from),
            _ => json!(text.trim()),
        };
        let mut at = &mut body;
        for name in pointer.split('/').skip(1) {
            at = &mut at[name];
        }
        *at = value;
    }
    body
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
