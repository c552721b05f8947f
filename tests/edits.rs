//! The examples, edited field by field and at random.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};
use similar::{ChangeTag, TextDiff};
use streamfleet::names::{Digest, ResourceKey};
use streamfleet::spec::edit::{append, merge_patch, read, remove, set, write};
use streamfleet::spec::{self, Snapshot, SnapshotEntry, SourceId};

use crate::support::{examples, files};

#[derive(Debug, Clone)]
struct Example {
    path: String,
    text: String,
    key: ResourceKey,
}

fn all() -> Vec<Example> {
    let specs = files(&examples()).into_iter().filter(|(path, _)| path.ends_with(".yaml"));
    let found: Vec<Example> = specs
        .flat_map(|(path, bytes)| {
            let text = String::from_utf8(bytes).unwrap();
            let keys = keys(&text);
            keys.into_iter().map(move |key| Example { path: path.clone(), text: text.clone(), key })
        })
        .collect();
    assert!(found.len() > 30, "there are examples");
    found
}

fn keys(text: &str) -> Vec<ResourceKey> {
    let entry = SnapshotEntry::File { bytes: Arc::from(text.as_bytes()), digest: Digest::of(text) };
    let snapshot = Snapshot {
        source: SourceId("/specs".to_owned()),
        revision: "1".to_owned(),
        commit: None,
        skipped: BTreeMap::new(),
        entries: BTreeMap::from([("a.yaml".parse().unwrap(), entry)]),
    };
    spec::read(&snapshot, None).documents().map(|document| document.key.clone()).collect()
}

fn changed(before: &str, after: &str) -> (Vec<String>, Vec<String>) {
    let diff = TextDiff::from_lines(before, after);
    let lines = |tag: ChangeTag| {
        let changes = diff.iter_all_changes().filter(|change| change.tag() == tag);
        changes.map(|change| change.value().trim_end().to_owned()).collect()
    };
    (lines(ChangeTag::Delete), lines(ChangeTag::Insert))
}

fn leaves(value: &Value, pointer: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                leaves(value, &format!("{pointer}/{name}"), found);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                leaves(item, &format!("{pointer}/{index}"), found);
            }
        }
        _ => found.push(pointer.to_owned()),
    }
}

fn another(value: &Value) -> Value {
    match value {
        Value::String(text) if text.contains('\n') => text.replacen('\n', "9\n", 1).into(),
        Value::String(text) => format!("{text}9").into(),
        Value::Number(number) => (number.as_i64().unwrap() + 1).into(),
        Value::Bool(value) => (!value).into(),
        other => panic!("{other}"),
    }
}

#[test]
fn one_changed_value_is_one_changed_line() {
    for Example { path, text, key } in all() {
        let says = read(&text, &key).unwrap();
        let mut pointers = Vec::new();
        leaves(&says, "", &mut pointers);
        for pointer in pointers {
            let mut wanted = says.clone();
            let value = wanted.pointer_mut(&pointer).unwrap();
            *value = another(value);
            let after = set(&text, &key, &wanted).unwrap();
            let (gone, new) = changed(&text, &after);
            assert_eq!((gone.len(), new.len()), (1, 1), "{path}{pointer}: {gone:?} {new:?}");
        }
    }
}

#[test]
fn a_field_that_goes_leaves_the_others_and_comes_back() {
    for Example { path, text, key } in all() {
        let says = read(&text, &key).unwrap();
        for name in says.as_object().unwrap().keys() {
            let mut wanted = says.clone();
            merge_patch(&mut wanted, &json!({ name: null }));
            let after = set(&text, &key, &wanted).unwrap();
            let (gone, new) = changed(&text, &after);
            assert_eq!(new, [""; 0], "{path}: {name}");
            let own = |line: &String| line.starts_with(name.as_str()) || line.starts_with([' ', '-', '#']);
            assert!(gone.iter().all(own), "{path}: {name}: {gone:?}");
            if !keys(&after).contains(&key) {
                // Without this value the document has no identity or is invalid.
                continue;
            }
            let back = set(&after, &key, &says).unwrap();
            assert_eq!(read(&back, &key).unwrap(), says);
        }
    }
}

#[test]
fn documents_are_written_anew_and_moved_between_files() {
    for Example { path, text, key } in all() {
        let says = read(&text, &key).unwrap();
        let new = write(&says).unwrap();
        assert_eq!(keys(&new), std::slice::from_ref(&key), "{path}");
        assert_eq!(read(&new, &key).unwrap(), says);
        assert_eq!(remove(&new, &key), Ok(None));
        let other =
            "# Kept as it is.\napiVersion: streamfleet/v1\nkind: Organization # ours\nidentifier: other\n";
        let both = append(other, &says).unwrap();
        assert_eq!(both, format!("{other}---\n{new}"));
        assert_eq!(remove(&both, &key), Ok(Some(other.to_owned())));
        let organization = ResourceKey::organization(&"other".parse().unwrap());
        assert_eq!(remove(&both, &organization), Ok(Some(new)));
    }
}

#[test]
fn more_units_for_a_cluster_are_one_line() {
    let orders = ResourceKey::try_from("Cluster/acme/orders".to_owned()).unwrap();
    let text = std::fs::read_to_string(examples().join("quickstart/acme/clusters/orders.yaml")).unwrap();
    let mut wanted = read(&text, &orders).unwrap();
    merge_patch(&mut wanted, &json!({"kafka_units": 2}));
    let after = set(&text, &orders, &wanted).unwrap();
    assert_eq!(
        changed(&text, &after),
        (vec!["kafka_units: 1".to_owned()], vec!["kafka_units: 2".to_owned()])
    );
}

/// Merge patches with known and unknown fields.
fn patch() -> impl Strategy<Value = Value> {
    let names = vec![
        "kafka_units",
        "region",
        "tags",
        "advanced_config",
        "version",
        "storage",
        "size_gib",
        "config",
        "log.retention.ms",
        "members",
        "quotas",
        "clusters",
        "tls_cert",
        "tls_key",
        "encrypted",
        "credentials",
        "domain",
        "suspend",
        "new",
    ];
    let texts = vec![
        "eu",
        "4.3.2",
        "1.30",
        "yes",
        "",
        "a: b",
        "-----BEGIN X-----\nMIIB\n-----END X-----\n",
        "a\nb",
        "ä",
    ];
    let leaf = prop_oneof![
        prop::sample::select(texts).prop_map(Value::from),
        (0..100_i64).prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        Just(Value::Null),
    ];
    let value = leaf.prop_recursive(3, 12, 4, {
        let names = names.clone();
        move |inner| {
            let fields =
                prop::collection::btree_map(prop::sample::select(names.clone()), inner.clone(), 0..4);
            prop_oneof![
                prop::collection::vec(inner, 0..3).prop_map(Value::from),
                fields.prop_map(|fields| json!(fields)),
            ]
        }
    });
    prop::collection::btree_map(prop::sample::select(names), value, 1..5).prop_map(|fields| json!(fields))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn any_patch_of_an_example_is_made_exactly(example in prop::sample::select(all()), patches in prop::collection::vec(patch(), 1..4)) {
        let Example { mut text, key, .. } = example;
        // The identity fields stay, so that the document is found again.
        let says = read(&text, &key).unwrap();
        for patch in patches {
            let mut wanted = read(&text, &key).unwrap();
            merge_patch(&mut wanted, &patch);
            for name in ["organization", "identifier", "domain", "dns_provider"] {
                merge_patch(&mut wanted, &json!({ name: says.get(name) }));
            }
            let after = set(&text, &key, &wanted);
            let after = after.unwrap_or_else(|refusal| panic!("{refusal}\n{text}\n{wanted}"));
            prop_assert_eq!(read(&after, &key), Ok(wanted));
            // A comment at the top stays there.
            let top = text.lines().next().filter(|line| line.starts_with('#'));
            prop_assert!(top.is_none_or(|top| after.starts_with(top)));
            text = after;
        }
    }
}
