//! The schemas in `schemas/` are generated from the types, and agree with the reader about every document.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use jsonschema::Validator;
use serde_json::{Value, json};

use crate::support::{Tree, examples, files, settings, stories};
use streamfleet::names::{Digest, Kind};
use streamfleet::spec;

const UPDATE: &str = "UPDATE_SCHEMAS";

const CLUSTER: &str = "\
apiVersion: streamfleet/v1
kind: Cluster
organization: acme
infrastructure: eu
identifier: orders
cluster_type: kafka
tenancy_mode: Shared
kafka_units: 1
advanced_config: {version: 4.3.1}
";

/// The folder of the schemas; the first caller rewrites them if asked to.
fn folder() -> &'static Path {
    static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas");
        if std::env::var_os(UPDATE).is_some() {
            fs::create_dir_all(&folder).unwrap();
            files(&folder).iter().for_each(|(name, _)| fs::remove_file(folder.join(name)).unwrap());
            made().iter().for_each(|(name, bytes)| fs::write(folder.join(name), bytes).unwrap());
        }
        folder
    });
    &FOLDER
}

fn made() -> BTreeMap<String, Vec<u8>> {
    let tree = Tree::empty();
    tree.run("schema --out made").expect(0).says(&["wrote made/cluster.json"]);
    files(&tree.beside("made")).into_iter().collect()
}

fn schema(name: &str) -> Value {
    let path = folder().join(format!("{name}.json"));
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap()
}

fn validator(name: &str) -> Validator {
    jsonschema::draft7::new(&schema(name)).unwrap()
}

fn documents(text: &str) -> Vec<(&'static str, Value)> {
    let values: Vec<Value> = serde_saphyr::from_multiple(text).unwrap();
    let kind = |value: &Value| value["kind"].as_str().unwrap().parse::<Kind>().unwrap().singular();
    values.into_iter().map(|value| (kind(&value), value)).collect()
}

#[track_caller]
fn assert_valid(name: &str, value: &Value, of: &str) {
    let errors: Vec<String> = validator(name)
        .iter_errors(value)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{of} against {name}.json:\n{}", errors.join("\n"));
}

#[test]
fn the_files_are_those_of_the_types() {
    let kept: BTreeMap<_, _> = files(folder()).into_iter().collect();
    let made = made();
    let stale: Vec<&String> =
        made.keys().chain(kept.keys()).filter(|name| made.get(*name) != kept.get(*name)).collect();
    assert!(
        stale.is_empty(),
        "schemas/ is stale: {stale:?}\nrewrite it: {UPDATE}=1 cargo test --test all schemas"
    );
    let tree = Tree::empty();
    let listed = tree.run("schema").expect(0).out;
    assert_eq!(listed.lines().count(), made.len());
    for name in listed.lines() {
        assert_eq!(
            tree.run(&format!("schema {name}")).expect(0).out.as_bytes(),
            made[&format!("{name}.json")]
        );
    }
}

#[test]
fn schemas_are_schemas_without_words_of_our_own() {
    for (name, bytes) in files(folder()).into_iter().filter(|(name, _)| name != "openapi.json") {
        let schema: Value = serde_json::from_slice(&bytes).unwrap();
        jsonschema::draft7::meta::validate(&schema).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(schema["title"].is_string() && schema["description"].is_string(), "{name}");
        assert!(!String::from_utf8(bytes).unwrap().contains("\"x-"), "{name}");
    }
}

#[test]
fn every_document_of_every_example_is_valid() {
    let mut seen = Vec::new();
    for (path, bytes) in
        files(&examples()).iter().filter(|(path, _)| path.ends_with(".yaml") && !path.contains("/."))
    {
        for (name, document) in documents(std::str::from_utf8(bytes).unwrap()) {
            assert_valid(name, &document, path);
            seen.push(name);
        }
    }
    assert!(Kind::ALL.iter().all(|kind| seen.contains(&kind.singular())), "{seen:?}");
}

#[test]
fn plans_and_settings_are_valid() {
    for story in ["quickstart", "oauth", "tiered-storage"] {
        let tree = Tree::example(story);
        let plan = tree.run("plan tree --format json").expect(2).out;
        assert_valid("plan", &serde_json::from_str(&plan).unwrap(), story);
    }
    let default = streamfleet::config::Config::default();
    assert_valid("config", &serde_json::to_value(&default).unwrap(), "the default config");
    let hour = json!({"policy": {"approval_hour": 1}});
    assert!(!validator("config").is_valid(&hour) && !validator("plan").is_valid(&hour));
}

/// `get` prints the API's answers: every field of the schema, and no other.
#[test]
fn records_are_valid_by_the_openapi_document() {
    let document = schema("openapi");
    let schemas = &document["components"]["schemas"];
    let mut seen = Vec::new();
    for story in stories() {
        let tree = Tree::example(&story);
        for kind in Kind::ALL {
            let run = tree.run(&format!("get {} tree --format json{}", kind.plural(), settings(&story)));
            let records: Value = serde_json::from_str(&run.expect(0).out).unwrap();
            let whole =
                json!({"$ref": format!("#/components/schemas/{kind}"), "components": document["components"]});
            let validator = jsonschema::draft202012::new(&whole).unwrap();
            for record in records.as_array().unwrap() {
                let errors: Vec<String> = validator
                    .iter_errors(record)
                    .map(|error| format!("{}: {error}", error.instance_path()))
                    .collect();
                assert!(errors.is_empty(), "{kind} of {story}:\n{}", errors.join("\n"));
                let named = schemas[kind.as_str()]["properties"].as_object().unwrap();
                for name in record.as_object().unwrap().keys() {
                    assert!(named.contains_key(name), "{name} of a {kind} is not described");
                }
                seen.push(kind);
            }
        }
    }
    assert!(Kind::ALL.iter().all(|kind| seen.contains(kind)), "{seen:?}");
}

#[test]
fn defaults_and_examples_are_valid() {
    fn walk(schema: &Value, root: &Value, at: &str, seen: &mut usize) {
        let given =
            schema.get("default").into_iter().chain(schema["examples"].as_array().into_iter().flatten());
        for value in given {
            let mut whole = schema.clone();
            whole["definitions"] = root["definitions"].clone();
            assert!(jsonschema::draft7::is_valid(&whole, value), "{at}: {value}");
            *seen += 1;
        }
        for (name, field) in schema["properties"].as_object().into_iter().flatten() {
            walk(field, root, &format!("{at}/{name}"), seen);
        }
        let inner = schema.get("items").into_iter().chain(schema["anyOf"].as_array().into_iter().flatten());
        inner.for_each(|inner| walk(inner, root, at, seen));
    }
    let mut seen = 0;
    for name in Kind::ALL.map(Kind::singular).into_iter().chain(["config"]) {
        walk(&schema(name), &schema(name), name, &mut seen);
    }
    assert!(seen > 25, "{seen}");
}

fn is_readable(text: &str) -> bool {
    let bytes = text.as_bytes();
    let entry = spec::SnapshotEntry::File { bytes: bytes.into(), digest: Digest::of(bytes) };
    let snapshot = spec::Snapshot {
        source: spec::SourceId("/tree".to_owned()),
        revision: String::new(),
        commit: None,
        skipped: BTreeMap::new(),
        entries: BTreeMap::from([("a.yaml".parse().unwrap(), entry)]),
    };
    spec::read(&snapshot, None).problems().next().is_none()
}

/// Asserts that the schema and the reader agree on an edited document, and returns their verdict.
#[track_caller]
fn verdict(text: &str) -> bool {
    let [(name, document)] = &documents(text)[..] else { panic!("one document at a time:\n{text}") };
    let by_schema = validator(name).is_valid(document);
    assert_eq!(by_schema, is_readable(text), "the schema ({by_schema}) and the reader differ on\n{text}");
    by_schema
}

/// A document with fields set by `path: value`; without a value the field is removed.
fn edited(text: &str, edit: &str) -> String {
    let (_, mut document) = documents(text).remove(0);
    let (path, value) = edit.split_once(": ").unwrap_or((edit.trim_end_matches(':'), "GONE"));
    let (around, name) = path.rsplit_once('/').unwrap_or(("", path));
    let pointer = if around.is_empty() { String::new() } else { format!("/{around}") };
    let fields = document.pointer_mut(&pointer).and_then(Value::as_object_mut).unwrap();
    match value {
        "GONE" => drop(fields.remove(name)),
        value => drop(fields.insert(name.to_owned(), serde_saphyr::from_str(value).unwrap())),
    }
    // JSON is YAML with every string in quotes.
    document.to_string()
}

#[test]
fn what_the_reader_takes_the_schema_takes() {
    assert!(verdict(CLUSTER));
    for edit in [
        "kafka_units: 256",
        "cluster_type: kafka",
        "tenancy_mode: shared",
        "tenancy_mode: ISOLATED",
        "advanced_config/cluster_access: internal & EXTERNAL",
        "advanced_config/number_of_zones: 3",
        "advanced_config/number_of_zones: '3'",
        "advanced_config/oauth: corp",
        "advanced_config/storage: {class: gp3, size_gib: 100, on_delete: retain}",
        "advanced_config/profile: dev",
        "tags: [{key: team, value: ''}]",
        "region: ''",
        "region: null",
        "region: {}",
        "suspend: null",
        "suspend: ''",
        "suspend: {}",
        "tags: null",
        "tags: {}",
        "cloud_provider: null",
        "cloud_provider: directory",
        "advanced_config/cluster_access: ''",
        "advanced_config/number_of_zones: null",
        "advanced_config/storage: ''",
        "advanced_config/storage: {}",
        "advanced_config/storage: {class: null, size_gib: '', on_delete: {}}",
        "advanced_config/tiered_storage_provider: {}",
        "region: 'ééééé'",
    ] {
        assert!(verdict(&edited(CLUSTER, edit)), "{edit} should be right");
    }
}

#[test]
fn what_the_reader_refuses_the_schema_refuses() {
    for edit in [
        "apiVersion: streamfleet/v2",
        "apiVersion:",
        "kafka_unit: 1",
        "organization:",
        "organization: null",
        "advanced_config:",
        "advanced_config: {}",
        "advanced_config: ''",
        "advanced_config/version:",
        "advanced_config/version: 4.3",
        "advanced_config/version: latest",
        "kafka_units: 0",
        "kafka_units: 257",
        "kafka_units: -1",
        "kafka_units: 1.5",
        "kafka_units: '1'",
        "kafka_units: null",
        "kafka_units: [1]",
        "identifier: Orders",
        "identifier: a--b",
        "identifier: 1a",
        "identifier: a-",
        "identifier: ''",
        "identifier: ../../etc",
        "identifier: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        "cluster_type: pulsar",
        "cluster_type: Kafka",
        "tenancy_mode: Share",
        "tenancy_mode: ' Shared'",
        "tenancy_mode: null",
        "suspend: 'yes'",
        "suspend: 0",
        "suspend: []",
        "region: 5",
        "region: [eu]",
        "tags: [team]",
        "tags: [null]",
        "tags: [{key: team}]",
        "tags: [{key: '', value: x}]",
        "tags: [{key: team, value: x, colour: red}]",
        "cloud_provider: Byok",
        "cloud_provider: [byok]",
        "advanced_config/cluster_access: Everywhere",
        "advanced_config/number_of_zones: 0",
        "advanced_config/number_of_zones: 10",
        "advanced_config/number_of_zones: '03'",
        "advanced_config/storage: {size_gib: 0}",
        "advanced_config/storage: {klass: gp3}",
        "advanced_config/storage: []",
        "advanced_config/storage: {class: Fast!}",
        "advanced_config/tiered_storage_provider: {cloud_region: eu}",
        "advanced_config/profile: Dev",
    ] {
        assert!(!verdict(&edited(CLUSTER, edit)), "{edit} should be wrong");
    }
    let long = "x".repeat(101);
    assert!(!verdict(&edited(CLUSTER, &format!("region: {long}"))));
    let tags = vec!["{key: a, value: b}"; 51].join(", ");
    assert!(!verdict(&edited(CLUSTER, &format!("tags: [{tags}]"))));
}

const FLEET: &str = "\
apiVersion: streamfleet/v1
kind: Fleet
organization: acme
identifier: eu
infra_type: byok
tenancy_mode: Shared
max_tenants: 1
max_kafka_units: 1
advanced_config: {kubeconfig: {from_file: eu}}
";

#[test]
fn secrets_have_one_form() {
    for (value, right) in [
        ("secret", true),
        ("{from_file: eu}", true),
        ("{from_env: EU}", true),
        ("{from_env: eu}", false),
        ("{from_file: ../eu}", false),
        ("{from_file: eu, from_env: EU}", false),
        ("{from_vault: eu}", false),
        ("{encrypted: nonsense}", false),
        ("{redacted: true}", false),
        ("[eu]", false),
        ("5", false),
    ] {
        let document = edited(FLEET, &format!("advanced_config/kubeconfig: {value}"));
        assert_eq!(verdict(&document), right, "{value}");
    }
}

#[test]
fn maps_take_strings_and_nothing() {
    for (value, right) in
        [("{zone: a}", true), ("{zone: null}", true), ("{zone: ''}", true), ("{zone: 1}", false)]
    {
        assert_eq!(verdict(&edited(FLEET, &format!("placement_config: {value}"))), right, "{value}");
    }
}

#[test]
fn what_init_writes_names_schemas_that_are_there_and_fit() {
    let tree = Tree::empty();
    tree.run("init tree --organization globex").expect(0).says(&["wrote tree/schemas/cluster.json"]);
    tree.run("validate tree").expect(0).says(&["checked, no problems found."]);
    let written = files(&tree.path());
    let specs: Vec<&String> =
        written.iter().map(|(path, _)| path).filter(|path| path.ends_with(".yaml")).collect();
    assert_eq!(specs.len(), 3);
    for path in specs {
        let text = tree.read(path);
        let named = text.lines().next().unwrap().strip_prefix("# yaml-language-server: $schema=").unwrap();
        let schema = fs::read(tree.path().join(path).parent().unwrap().join(named)).unwrap();
        let (name, document) = documents(&text).remove(0);
        assert_eq!(schema, fs::read(folder().join(format!("{name}.json"))).unwrap(), "{path} names {named}");
        assert_valid(name, &document, path);
    }
}
