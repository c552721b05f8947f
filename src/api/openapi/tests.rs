use std::collections::BTreeSet;

use super::*;

fn references(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                match value {
                    Value::String(reference) if name == "$ref" => drop(found.insert(reference.clone())),
                    value => references(value, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, found)),
        _ => {}
    }
}

/// A schema that carries the components that it may refer to.
fn whole(schema: &Value, document: &Value) -> Value {
    let mut whole = schema.clone();
    whole["components"] = document["components"].clone();
    whole
}

/// Resolves the references of a schema or a parameter.
fn resolved<'d>(document: &'d Value, value: &'d Value) -> &'d Value {
    let target = |reference: &str| document.pointer(reference.strip_prefix('#').unwrap()).unwrap();
    value["$ref"].as_str().map_or(value, |reference| resolved(document, target(reference)))
}

#[test]
fn every_reference_leads_somewhere_and_nothing_is_named_in_vain() {
    let document = document("/");
    let mut found = BTreeSet::new();
    references(&document, &mut found);
    for reference in &found {
        let pointer = reference.strip_prefix('#').unwrap();
        assert!(document.pointer(pointer).is_some(), "{reference}");
    }
    for group in ["schemas", "parameters", "headers", "responses"] {
        for name in document["components"][group].as_object().unwrap().keys() {
            assert!(found.contains(&format!("#/components/{group}/{name}")), "{name}");
        }
    }
}

/// A schema that occurs several times is a component, or else it is twice as large. Each kind of resource adds some 14 kB.
#[test]
fn the_document_is_small() {
    let size = document("/").to_string().len();
    assert!(size < 300_000, "{size}");
}

#[test]
fn schemas_are_schemas_of_their_draft() {
    let document = document("/");
    for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
        jsonschema::draft202012::meta::validate(schema).unwrap_or_else(|error| panic!("{name}: {error}"));
        jsonschema::draft202012::new(&whole(schema, &document))
            .unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    let text = document.to_string();
    for word in ["\"x-", "#/definitions/", "patternErrorMessage"] {
        assert!(!text.contains(word), "{word}");
    }
}

#[test]
fn every_example_is_valid() {
    let document = document("/");
    let mut seen = 0;
    for (path, operations) in document["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            let contents = operation["requestBody"]["content"].as_object();
            for content in contents.into_iter().flat_map(|contents| contents.values()) {
                let validator = jsonschema::draft202012::new(&whole(&content["schema"], &document)).unwrap();
                for (name, example) in content["examples"].as_object().into_iter().flatten() {
                    let errors: Vec<String> = validator
                        .iter_errors(&example["value"])
                        .map(|error| format!("{}: {error}", error.instance_path()))
                        .collect();
                    assert!(errors.is_empty(), "{method} {path}, {name}:\n{}", errors.join("\n"));
                    seen += 1;
                }
            }
        }
    }
    assert!(seen >= 9, "{seen}");
}

#[test]
fn problems_are_as_they_are_described() {
    let document = document("/");
    let schema = whole(&document["components"]["schemas"]["Problem"], &document);
    let validator = jsonschema::draft202012::new(&schema).unwrap();
    for code in code::ALL {
        let written = ProblemDocument::new(code, "why").hint("what next").document(None, "");
        let errors = validator.iter_errors(&serde_json::from_slice(&written).unwrap()).count();
        assert_eq!(errors, 0, "{}", code.word);
    }
}

#[test]
fn what_is_taken_is_what_a_document_has_without_its_head() {
    let document = document("/");
    let taken = |name: &str, value: Value| {
        let schema = json!({"$ref": format!("#/components/schemas/{name}")});
        jsonschema::draft202012::is_valid(&whole(&schema, &document), &value)
    };
    let fleet = json!({
        "organization": "acme", "identifier": "eu", "infra_type": "byok", "tenancy_mode": "shared", "max_tenants": 1,
        "max_kafka_units": 1, "advanced_config": {"kubeconfig": "x"}, "domain": null, "placement_config": {},
    });
    let with = |pointer: &str, value: Value| {
        let mut changed = fleet.clone();
        *changed.pointer_mut(pointer).unwrap() = value;
        changed
    };
    assert!(taken("FleetNew", fleet.clone()));
    for (pointer, value) in [
        ("/advanced_config/kubeconfig", json!({"from_file": "eu"})),
        ("/advanced_config/kubeconfig", json!({"redacted": true})),
        ("/max_tenants", json!("1")),
        ("/tenancy_mode", json!("none")),
    ] {
        assert!(!taken("FleetNew", with(pointer, value.clone())), "{pointer} {value}");
    }
    let mut headed = fleet.clone();
    headed["kind"] = "Fleet".into();
    assert!(!taken("FleetNew", headed));
    // A record can be sent back as it was returned.
    assert!(taken("FleetWhole", with("/advanced_config/kubeconfig", json!({"redacted": true}))));
    assert!(taken("FleetPatch", json!({"max_tenants": 2})) && !taken("FleetPatch", json!({"max_tenant": 2})));
    let account = json!({"organization": "acme", "identifier": "dns", "provider": "aws"});
    assert!(taken("CloudAccountWhole", account.clone()) && !taken("CloudAccountNew", account));
}

#[test]
fn what_is_described_is_what_is_taken() {
    let document = document("/");
    let taken = |name: &str, value: Value| {
        let schema = json!({"$ref": format!("#/components/schemas/{name}")});
        jsonschema::draft202012::is_valid(&whole(&schema, &document), &value)
    };
    let order = |owner: Value, days: Value| json!({"name": "ci", "organization": "*", "access": "read", "owner": owner, "days": days});
    assert!(
        taken("TokenNew", order(Value::Null, Value::Null)) && !taken("TokenNew", order(json!(1), json!(1)))
    );
    for (name, with) in [
        ("OrganizationPatch", json!({"display_name": "a\u{7}b"})),
        ("OrganizationPatch", json!({"members": [{"email": "a\u{1}@example.com", "role": "admin"}]})),
        ("OrganizationPatch", json!({"display_name": "two\nlines"})),
        ("ClusterPatch", json!({"region": "a\u{85}b"})),
        ("ClusterPatch", json!({"tags": [{"key": "a\u{0}", "value": "b"}]})),
    ] {
        let text = with.to_string();
        assert!(!taken(name, with), "{text}");
    }
    assert!(taken("OrganizationPatch", json!({"display_name": "Acme \u{e9}t\u{e9}", "members": null})));
    // An empty list of members would lock everybody out, but answers use it when there are none.
    assert!(!taken("OrganizationPatch", json!({"members": []})));
    let shown = &document["components"]["schemas"]["Organization"]["properties"]["members"];
    let shown = resolved(&document, shown);
    assert_eq!(shown["minItems"], Value::Null, "{shown}");
    let provider = |provider: Value| json!({"advanced_config": {"tiered_storage_provider": provider}});
    for nothing in [json!({}), json!(null), json!({"cloud_account": "", "cloud_region": null})] {
        assert!(taken("ClusterPatch", provider(nothing.clone())), "{nothing}");
    }
    for wrong in [json!({"cloud_acount": ""}), json!({"cloud_account": "A B"})] {
        assert!(!taken("ClusterPatch", provider(wrong.clone())), "{wrong}");
    }
}

#[test]
fn every_parameter_of_a_path_is_described() {
    let document = document("/");
    for (path, operations) in document["paths"].as_object().unwrap() {
        let named: Vec<&str> =
            path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}')).collect();
        let described = operations["parameters"].as_array();
        let described = described.into_iter().flatten().map(|parameter| resolved(&document, parameter));
        let described: Vec<&str> = described.map(|parameter| parameter["name"].as_str().unwrap()).collect();
        assert_eq!(named, described, "{path}");
    }
}

/// Client generators make one type of an `enum`, and one for each constant otherwise.
#[test]
fn words_are_enumerations() {
    let document = document("/");
    let config = &document["components"]["schemas"]["Cluster"]["properties"]["advanced_config"];
    let access = resolved(&document, &resolved(&document, config)["properties"]["cluster_access"]);
    assert_eq!(access["enum"], json!(["Internal", "External", "Internal & External"]));
    let text = access["description"].as_str().unwrap();
    assert!(text.ends_with("\n- `External`: Those outside only.\n- `Internal & External`: Both."), "{text}");
}

#[test]
fn routes_are_listed_with_their_topic() {
    let others = ROUTES.iter().filter(|route| route.kind().is_none());
    let told: Vec<(&str, &str)> = others.map(|route| (route.id, tag(route))).collect();
    let expected = [
        ("read_status", "clusters"),
        ("explain_cluster", "clusters"),
        ("read_client_properties", "clusters"),
        ("read_offers", "offers"),
        ("fit_cluster", "fit"),
        ("check_kubernetes_cluster", "checks"),
        ("read_plan", "plans"),
        ("list_changes", "plans"),
        ("propose_plan", "plans"),
        ("approve_plan", "plans"),
        ("list_events", "events"),
        ("stream_events", "events"),
        ("list_tokens", "tokens"),
        ("list_sessions", "sessions"),
        ("end_session", "sessions"),
        ("create_session", "sessions"),
        ("create_token", "tokens"),
        ("revoke_token", "tokens"),
        ("create_sign_in_link", "sign-in-links"),
        ("release_account", "sign-in-accounts"),
        ("read_about", "api"),
        ("read_me", "me"),
        ("list_errors", "api"),
        ("read_openapi", "api"),
    ];
    assert_eq!(told, expected);
}

/// Which routes may answer with an error code. A new code needs a row here.
fn may_be_heard(word: &str, route: &Route) -> bool {
    let writes = route.kind().is_some() && route.method != Method::Get;
    let names = |name: &str| route.query.iter().any(|query| query.name == name);
    match word {
        "malformed" | "too_large" | "too_many" | "internal" | "unavailable" | "timed_out" => true,
        "unauthenticated" | "forbidden" => route.needs != RequiredAccess::Nobody,
        "not_found" => {
            writes || names("organization") || (route.path.contains('{') && route.id != "approve_plan")
        }
        "late" | "unsupported" => route.takes.is_some(),
        "duplicate" | "capacity" | "protected" | "going" | "not_empty" | "not_editable" | "dependency"
        | "read_only" | "stale" | "unsure" | "disk_full" => writes,
        "not_waiting" => route.id == "approve_plan",
        "invalid" => {
            writes
                || ["propose_plan", "create_session", "create_token", "create_sign_in_link"]
                    .contains(&route.id)
        }
        // These are sent on the socket alone, and the others before the route is known.
        "other_source" | "no_port" | "method_not_allowed" | "not_acceptable" | "uri_too_long"
        | "expectation_failed" | "head_too_large" => false,
        word => panic!("where may `{word}` be heard?"),
    }
}

#[test]
fn every_status_that_a_route_may_answer_with_is_described() {
    let mut heard = BTreeSet::new();
    for route in ROUTES {
        let described = refused(route);
        for code in code::ALL.iter().filter(|code| may_be_heard(code.word, route)) {
            assert!(
                described.contains(&code.status),
                "{} {}: {}",
                route.method.as_str(),
                route.path,
                code.word
            );
            heard.insert(code.status);
        }
        let of_writes = [
            &code::MALFORMED,
            &code::FORBIDDEN,
            &code::NOT_FOUND,
            &code::DUPLICATE,
            &code::CAPACITY,
            &code::PROTECTED,
            &code::NOT_EMPTY,
            &code::NOT_EDITABLE,
            &code::DEPENDENCY,
            &code::READ_ONLY,
            &code::STALE,
            &code::INVALID,
            &code::INTERNAL,
            &code::UNAVAILABLE,
            &code::UNSURE,
            &code::DISK_FULL,
        ];
        if route.kind().is_some() && route.method != Method::Get {
            assert!(of_writes.iter().all(|code| may_be_heard(code.word, route)), "{}", route.id);
        }
        for status in described {
            assert!(code::ALL.iter().any(|code| code.status == status), "{status}");
        }
    }
    assert!(heard.contains(&412) && heard.contains(&507));
}
