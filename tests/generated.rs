//! Pairwise tests: specs with every value of every field, and each together with every value of every other.
//! The rendered objects pass the strict validation of a real API server.

mod documents;
mod pairs;
mod schema;
pub mod table;

use std::thread;

use serde_json::Value;

use crate::accepted_by_kubernetes::{documents as in_one, lost};
use crate::support::Tree;
use crate::support::control_plane::ControlPlane;
use documents::{Author, parse};
use table::{Choice, ELSEWHERE, FIELDS, MONITORED, OWN, PRIVATE_OWN, REFUSED};

/// Images of what the specs may ask for.
const SETTINGS: &str = "[images]\nschema_registry = \"a.example/r@sha256:0000000000000000000000000000000000000000000000000000000000000000\"\nconsole = \"a.example/c@sha256:0000000000000000000000000000000000000000000000000000000000000000\"\nprometheus = \"a.example/p@sha256:0000000000000000000000000000000000000000000000000000000000000000\"\n";

fn is_refused(chosen: &[pairs::Choice]) -> bool {
    let is = |&(field, value): &pairs::Choice, &(kind, path, refused): &Choice| {
        let field = &FIELDS[field];
        field.kinds.contains(&kind) && field.path == path && field.values[value] == refused
    };
    REFUSED.iter().any(|refused| refused.iter().all(|one| chosen.iter().any(|choice| is(choice, one))))
}

fn rows() -> Vec<Vec<Choice>> {
    let counts: Vec<usize> = FIELDS.iter().map(|field| field.values.len()).collect();
    let choices = |row: Vec<usize>| {
        let chosen = FIELDS.iter().zip(row);
        chosen.flat_map(|(field, value)| {
            field.kinds.iter().map(move |kind| (*kind, field.path, field.values[value]))
        })
    };
    pairs::rows(&counts, is_refused).into_iter().map(|row| choices(row).collect()).collect()
}

/// The objects of every row, as they are written for directory fleets.
fn manifests() -> Vec<Value> {
    let (tree, author) = (Tree::empty(), Author::new());
    let rows = rows();
    rows.iter().enumerate().for_each(|(number, row)| author.write(&tree, &format!("row{number}"), row));
    tree.write("settings.toml", SETTINGS);
    tree.run("apply tree --yes --config tree/settings.toml").expect(0).says(&["0 waiting"]);
    let files = tree.output().into_iter().filter(|(path, _)| path.ends_with(".yaml"));
    // Another test has made a Prometheus on this server, whose disk can't change.
    let text =
        |bytes: Vec<u8>| String::from_utf8(bytes).unwrap().replace("kafka-monitoring", "kafka-generated");
    files.map(|(_, bytes)| serde_saphyr::from_str(&text(bytes)).unwrap()).collect()
}

#[test]
fn whatever_the_specs_say_the_server_takes_what_is_rendered() {
    let plane = ControlPlane::shared();
    plane.serve_gateways();
    plane.serve_monitoring();
    let (namespaces, rest): (Vec<_>, Vec<_>) =
        manifests().into_iter().partition(|manifest| manifest["kind"] == "Namespace");
    let rows = rows();
    let having: [Choice; 4] = [
        ("Fleet", "advanced_config/exposure", r#""tlsroute""#),
        ("Fleet", "advanced_config/monitoring", MONITORED),
        ("Fleet", "advanced_config/monitoring", OWN),
        ("Fleet", "advanced_config/monitoring", PRIVATE_OWN),
    ];
    let of_fleets = rows.iter().flatten().filter(|choice| having.contains(choice)).count();
    assert_eq!(namespaces.len(), rows.len() + of_fleets);
    // A dry run needs an existing namespace.
    assert_eq!(plane.apply(&in_one(&namespaces)).expect(0).err, "");
    thread::scope(|scope| {
        for some in rest.chunks(rest.len().div_ceil(4)) {
            scope.spawn(move || is_taken(plane, some));
        }
    });
}

/// Asserts that the server would store the objects unchanged and without a warning.
fn is_taken(plane: &ControlPlane, manifests: &[Value]) {
    let words =
        "apply --server-side --validate=strict --field-manager=streamfleet --dry-run=server -o json -f -";
    let answer = plane.kubectl(words, &in_one(manifests)).expect(0);
    assert_eq!(answer.err, "", "the server warns");
    let list: Value = serde_json::from_str(&answer.out).unwrap();
    let taken = list["items"].as_array().unwrap();
    assert_eq!(taken.len(), manifests.len());
    for (sent, taken) in manifests.iter().zip(taken) {
        let name = format!("{} {}", sent["kind"], sent["metadata"]);
        assert_eq!(lost(sent, taken, ""), [""; 0], "{name}");
    }
}

#[test]
fn what_the_table_leaves_out_is_refused() {
    let (tree, author) = (Tree::empty(), Author::new());
    for (number, refused) in REFUSED.iter().enumerate() {
        author.write(&tree, &format!("refused{number}"), refused);
    }
    tree.write("settings.toml", SETTINGS);
    let said = tree.run("validate tree --config tree/settings.toml").expect(1);
    let said = format!("{}{}", said.out, said.err);
    let taken: Vec<_> = REFUSED
        .iter()
        .enumerate()
        .filter(|(number, _)| !said.contains(&format!("refused{number}/all.yaml:")))
        .map(|(_, refused)| refused)
        .collect();
    assert!(taken.is_empty(), "these are taken, so they belong into the table: {taken:?}\n{said}");
}

#[test]
fn the_table_has_every_field_and_value_of_the_schemas() {
    let mut known: Vec<String> = Author::new().names("row0", &[]);
    for field in FIELDS {
        for (kind, value) in field.kinds.iter().flat_map(|kind| field.values.iter().map(move |it| (kind, it)))
        {
            known.extend(schema::names_in(kind, &field.path.replace('/', "."), &parse(value)));
        }
    }
    for &(kind, path, value) in REFUSED.iter().copied().flatten() {
        known.extend(schema::names_in(kind, &path.replace('/', "."), &parse(value)));
    }
    known.extend(ELSEWHERE.iter().map(|(name, _)| (*name).to_owned()));
    let all = schema::names();
    let missing: Vec<_> = all.iter().filter(|name| !known.contains(name)).collect();
    assert!(missing.is_empty(), "tests/generated/table.rs lacks {missing:#?}");
    let gone: Vec<_> = ELSEWHERE.iter().map(|(name, _)| *name).filter(|name| !all.contains(*name)).collect();
    assert!(gone.is_empty(), "there is no {gone:?} any more");
}
