//! What a form says of wrong values: what the API says, which says what `validate` says.

use serde_json::{Value, json};

use super::Browser;
use super::forms::{Fields, cluster, field_text, fleet, hidden, reviewed, text};
use crate::api::Api;
use crate::api::exchanges::certificate;
use crate::support::Tree;

/// A kind's pages, its list in the API, a form without a mistake, and fields with wrong values.
type Form<'f> = (&'f str, &'f str, Fields<'f>, &'f [(&'f str, &'f str)]);

/// Whether a form tells a message of the API, with labels in the place of the names of fields.
fn tells(told: &str, detail: &str) -> bool {
    if detail.starts_with("missing key") {
        return told.contains("it is required") || told.contains("choose one");
    }
    let own = detail.strip_prefix('`').and_then(|rest| rest.split_once("`: "));
    let prose = own.map_or(detail, |(_, rest)| rest).split('`').step_by(2);
    let parts = prose.flat_map(|part| {
        part.split(' ')
            .collect::<Vec<_>>()
            .split(|word| word.contains('_'))
            .map(|words| words.join(" "))
            .collect::<Vec<_>>()
    });
    let mut rest = told;
    parts.map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).all(|part| {
        match rest.split_once(&part) {
            Some((_, after)) => {
                rest = after;
                true
            }
            None => false,
        }
    })
}

/// Values of which most fields refuse most.
const ANY: [&str; 15] = [
    "",
    " ",
    "\u{7}",
    "\u{202e}x",
    "two words",
    "-1",
    "0",
    "1.5",
    "9999999999999",
    "ü",
    "Ada B",
    "-",
    "- {a",
    "{}",
    "[x]",
];

/// Fields that are written in YAML.
const LISTS: [&str; 7] = ["/tags", "/members", "/domains", "/config", "/produce", "/consume", "/rules"];

#[test]
fn a_mistake_is_told_at_its_field_as_the_api_tells_it_and_the_rest_is_kept() {
    let tree = Tree::example("quickstart");
    let serve = "serve --specs tree --config settings.toml";
    let api = Api::start_with(&tree, serve, "requests_per_address = 100000\nrequests_per_owner = 100000\n");
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
    let topic: Fields =
        vec![("/organization", "acme"), ("/cluster", "orders"), ("/name", "payments"), ("/partitions", "12")];
    let user: Fields = vec![
        ("/organization", "acme"),
        ("/cluster", "orders"),
        ("/identifier", "billing"),
        ("/produce", "- payments.*"),
        ("/password", "very-secret-key"),
    ];
    let forms: [Form<'_>; 8] = [
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
            &[
                ("/issuer", "login"),
                ("/issuer", ""),
                ("/audience", ""),
                ("/jwks_uri", "keys"),
                ("/identifier", "a/b"),
            ],
        ),
        (
            "cloud-accounts",
            "/organizations/acme/cloud-accounts",
            account,
            &[
                ("/provider", "azure"),
                ("/provider", "s3"),
                ("/identifier", "Store 1"),
                ("/endpoint", "ftp://store"),
                ("/credentials", ""),
            ],
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
                ("/domains", "- \"*.example.com\""),
                ("/members", "gus"),
                ("/members", "- {email: g@x.example}"),
                ("/quotas/clusters", "few"),
                ("/quotas/kafka_units", "1.5"),
                ("/display_name", "\u{7}"),
            ],
        ),
        (
            "topics",
            "/organizations/acme/topics",
            topic,
            &[
                ("/cluster", "none"),
                ("/name", "__consumer_offsets"),
                ("/partitions", "1501"),
                ("/replicas", "9"),
                ("/config/retention.ms", "soon"),
            ],
        ),
        (
            "users",
            "/organizations/acme/users",
            user,
            &[
                ("/cluster", "none"),
                ("/identifier", "orders-admin"),
                ("/produce", "- a*b"),
                ("/consume", "- {topic: a, groups: b}"),
                ("/rules", "- {resource: cluster, operations: [Read]}"),
            ],
        ),
    ];
    for (slug, list, right, wrongs) in &forms {
        let (mut tried, long) = (0, "x".repeat(300));
        let any = ANY.into_iter().chain([long.as_str()]);
        let fields = right.iter().map(|(name, _)| *name).filter(|name| *name != "/organization");
        let of_any: Vec<_> = fields.flat_map(|name| any.clone().map(move |value| (name, value))).collect();
        for (pointer, wrong) in wrongs.iter().chain(&of_any) {
            let mut fields: Fields = right.iter().filter(|(name, _)| name != pointer).copied().collect();
            fields.push((pointer, wrong));
            let answer = browser.submit(&format!("/new/{slug}"), &fields);
            let context = format!("{slug} {pointer} {wrong:?}: {}", text(&answer.body));
            let is_compared = !LISTS.contains(pointer);
            let refusal = api.call(&format!("POST {list}?dry_run=file"), body_of(&fields));
            if answer.status == 200 && of_any.contains(&(pointer, wrong)) {
                let told = &refusal.body;
                assert!(refusal.status == 200 || !is_compared, "{slug} {pointer} {wrong:?}: {told}");
                continue;
            }
            assert!(matches!(answer.status, 409 | 422), "{}: {context}", answer.status);
            let told = field_text(&answer.body, pointer);
            // The API says the same about the same body.
            if is_compared {
                let refusal = refusal.body;
                let errors = refusal["errors"].as_array();
                let at_field = errors.into_iter().flatten().find(|error| error["pointer"] == *pointer);
                let detail = at_field.unwrap_or(&refusal)["detail"].as_str().unwrap();
                // What no field is to blame for is at the top.
                let told = if at_field.is_some() { told.clone() } else { text(&answer.body) };
                assert!(tells(&told, detail), "{detail:?} is not in {told:?}: {context}");
                // The help below has names of other programs.
                let own = told.lines().next().unwrap_or_default();
                let is_name = |word: &str| {
                    word.starts_with(|first: char| first.is_ascii_lowercase()) && word.contains('_')
                };
                let is_for_programs =
                    own.contains("openapi") || own.contains("send ") || own.split(' ').any(is_name);
                assert!(at_field.is_none() || !is_for_programs, "{told:?}");
            }
            assert!(told.len() > 10, "{context}");
            for (name, value) in right.iter().filter(|(name, _)| name != pointer) {
                let is_secret = matches!(
                    *name,
                    "/advanced_config/kubeconfig" | "/tls_key" | "/credentials" | "/password"
                );
                match is_secret {
                    true => {
                        let part = value.lines().max_by_key(|line| line.len()).unwrap();
                        assert!(!answer.body.contains(part), "{part} is shown: {context}");
                        let told = field_text(&answer.body, name);
                        assert!(
                            told.contains("One was given, and is not shown."),
                            "{name}: {told}: {context}"
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
        assert!(tried >= 40, "{slug}: {tried}");
    }
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
    for (pointer, text) in fields.iter().filter(|(_, text)| !text.trim().is_empty()) {
        let is_number = pointer.contains("max_")
            || pointer.contains("units")
            || pointer.contains("size")
            || pointer.contains("num.")
            || pointer.contains("quotas")
            || matches!(*pointer, "/partitions" | "/replicas");
        let value = match *pointer {
            "/advanced_config/auto_upgrade" if *text == "false" => json!(false),
            "/tags" => json!([{"key": "team", "value": "payments"}]),
            "/members" => json!([{"email": "gus@globex.example", "role": "admin"}]),
            "/produce" => json!(["payments.*"]),
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
