//! Every possible mistake in a file with its exact message, as data in `problems.txt`.

use std::collections::BTreeMap;

use super::*;
use crate::problem::render;
use crate::spec::SourceId;

pub(super) fn snapshot(files: &[(&str, &[u8])]) -> Snapshot {
    let entry = |(path, bytes): &(&str, &[u8])| {
        (path.parse().unwrap(), SnapshotEntry::File { bytes: Arc::from(*bytes), digest: Digest::of(bytes) })
    };
    Snapshot {
        source: SourceId("/specs".into()),
        revision: "1".into(),
        commit: None,
        skipped: BTreeMap::new(),
        entries: files.iter().map(entry).collect(),
    }
}

fn file(text: impl AsRef<[u8]>) -> Arc<ParsedFile> {
    let documents = read(&snapshot(&[("acme/a.yaml", text.as_ref())]), None);
    documents.files.into_values().next().unwrap()
}

fn report(text: &[u8]) -> String {
    let file = file(text);
    let mut lines: Vec<(u32, String)> = Vec::new();
    lines.extend(file.documents.iter().map(|d| (d.origin.line, format!("{}: good", d.key))));
    lines.extend(file.invalid.iter().map(|d| (d.origin.line, format!("{}: invalid", d.key))));
    lines.extend(file.unreadable.iter().map(|d| (d.origin.line, "unreadable".to_owned())));
    lines.sort();
    let outcomes: Vec<String> =
        lines.into_iter().map(|(line, what)| format!("line {line}: {what}")).collect();
    format!("{}\n{}", outcomes.join("\n"), render(&file.problems, false))
}

pub(super) const CLUSTER: &str = "\
apiVersion: streamfleet/v1
kind: Cluster
organization: acme
identifier: orders
infrastructure: eu
cluster_type: kafka
tenancy_mode: Shared
kafka_units: 2
advanced_config:
  version: 4.1.0
";

pub(super) const FLEET: &str = "\
apiVersion: streamfleet/v1
kind: Fleet
organization: acme
identifier: eu
infra_type: byok
tenancy_mode: shared
max_tenants: 10
max_kafka_units: 40
advanced_config:
  kubeconfig: {from_file: eu}
";

/// Expands a case, which may begin with one of the documents above and changes to it: `@cluster`, then
/// `- line` and `+ line`.
fn input(case: &str) -> String {
    let bases = BTreeMap::from([("@cluster", CLUSTER), ("@fleet", FLEET)]);
    let mut text = String::new();
    for line in case.lines() {
        if let Some(base) = bases.get(line) {
            text.push_str(base);
        } else if let Some(gone) = line.strip_prefix("- ").filter(|_| case.starts_with('@')) {
            assert!(text.contains(&format!("{gone}\n")), "no such line: {gone}");
            text = text.replacen(&format!("{gone}\n"), "", 1);
        } else {
            let added = if case.starts_with('@') { line.strip_prefix("+ ").unwrap_or(line) } else { line };
            text.push_str(added);
            text.push('\n');
        }
    }
    text
}

#[test]
fn each_mistake_has_its_words() {
    let cases = include_str!("problems.txt");
    let mut actual = String::new();
    for case in cases.split("=== ").filter(|case| !case.trim().is_empty()) {
        let (given, _) = case.split_once("\n>>>\n").unwrap();
        let (name, text) = given.split_once('\n').unwrap();
        let report = report(input(text).as_bytes());
        actual.push_str(&format!("=== {name}\n{text}\n>>>\n{}\n\n", report.trim()));
    }
    similar_lines(cases.trim(), actual.trim());
}

fn similar_lines(expected: &str, actual: &str) {
    let diff = similar::TextDiff::from_lines(expected, actual);
    assert!(expected == actual, "{}\nThe whole:\n{actual}", diff.unified_diff());
}

#[test]
fn files_that_are_no_text_are_unreadable_as_a_whole() {
    let large = vec![b' '; yaml::MAX_BYTES + 1];
    for (bytes, message, hint) in [
        (b"a: b\nc: \xff\n".as_slice(), "the file is not UTF-8 text", "save the file as UTF-8"),
        (b"\xff\xfea\0".as_slice(), "the file is not UTF-8 text", "save the file as UTF-8"),
        (
            b"a: b\n\0kind: Cluster\n".as_slice(),
            "the file contains the control character U+0000, which YAML does not allow",
            "remove it; in a value, write it as an escape in double quotes",
        ),
        (
            b"a: \x1b[31m\n".as_slice(),
            "the file contains the control character U+001B, which YAML does not allow",
            "remove it; in a value, write it as an escape in double quotes",
        ),
        (
            large.as_slice(),
            "the file has 1048577 bytes, more than 1 MiB",
            "split the file; a certificate or kubeconfig needs a few KiB",
        ),
    ] {
        let file = file(bytes);
        assert_eq!(
            (file.problems[0].message.as_str(), file.problems[0].hint.as_deref()),
            (message, Some(hint))
        );
        assert_eq!(file.unreadable.len(), 1);
        assert_eq!(file.unreadable[0].top_folder.as_deref(), Some("acme"));
        assert!(file.documents.is_empty() && file.invalid.is_empty());
    }
}

#[test]
fn marks_line_breaks_and_editor_comments_do_not_matter() {
    let plain = file(CLUSTER);
    let dressed = format!("\u{feff}# yaml-language-server: $schema=x.json\n{CLUSTER}").replace('\n', "\r\n");
    let dressed = file(dressed);
    assert_eq!(dressed.problems, []);
    assert_eq!(dressed.documents[0].spec.redacted(), plain.documents[0].spec.redacted());
    let place = dressed.documents[0].locate("/kafka_units");
    assert_eq!((place.line, place.column, place.text.as_str()), (9, 14, "kafka_units: 2"));
}

#[test]
fn what_is_loosely_written_is_made_exact_and_absent_is_absent() {
    let text = CLUSTER.replace("Shared", "sHARED")
        + "  cluster_access: internal & EXTERNAL\n  number_of_zones: 3\n  oauth: \"\"\n  storage: {}\ntags: ~\n";
    let documents = file(text);
    assert_eq!(documents.problems, []);
    let Spec::Cluster(cluster) = &documents.documents[0].spec else { panic!("a cluster") };
    assert_eq!(cluster.tenancy_mode, crate::spec::TenancyMode::Shared);
    assert_eq!(cluster.advanced_config.cluster_access, crate::spec::ClusterAccess::InternalAndExternal);
    assert_eq!(cluster.advanced_config.number_of_zones.get(), 3);
    assert!(cluster.advanced_config.oauth.is_none() && cluster.deletion_protection);
}

#[test]
fn an_object_of_which_nothing_is_said_is_absent() {
    let with = |provider: &str| file(format!("{CLUSTER}  tiered_storage_provider: {provider}\n"));
    for nothing in ["{}", "{cloud_account: \"\", cloud_region: \"\"}", "{cloud_account: , cloud_region: ''}"]
    {
        let file = with(nothing);
        assert_eq!(file.problems, [], "{nothing}");
        let Spec::Cluster(cluster) = &file.documents[0].spec else { panic!("a cluster") };
        assert!(cluster.advanced_config.tiered_storage_provider.is_none(), "{nothing}");
    }
    // Unknown fields are not ignored.
    let wrong = with("{cloud_acount: \"\"}");
    assert!(wrong.problems.iter().any(|problem| problem.code == "unknown-key"), "{:?}", wrong.problems);
}

#[test]
fn fields_are_found_or_what_is_around_them() {
    let document = &file(CLUSTER).documents[0];
    let at = |pointer: &str| {
        let place = document.locate(pointer);
        (place.line, place.column, place.width)
    };
    assert_eq!(at("/advanced_config/version"), (10, 12, 5));
    assert_eq!(at("/advanced_config/storage/class"), (9, 1, 15));
    assert_eq!(at("/region"), (2, 7, 7));
    assert_eq!(Fields::default().locate("/x", &document.origin.path).line, 0);
}

/// In no problem, no quoted field, and no `Debug` output.
#[test]
fn secrets_are_never_shown() {
    let block = "|\n    hunter2\n    hunter2 again\n";
    let armour = "|\n    -----BEGIN RSA PRIVATE KEY-----\n    hunter2\n    -----END RSA PRIVATE KEY-----\n";
    let fleet = |kubeconfig: &str| FLEET.replace("{from_file: eu}", kubeconfig);
    let texts = [
        fleet("hunter2"),
        fleet("'hunter2'"),
        fleet("\"hun\\\n    ter2 hunter2\""),
        fleet(block),
        fleet(armour),
        fleet("!!str hunter2"),
        fleet("[hunter2]"),
        fleet("{encrypted: hunter2}"),
        fleet("{from_env: hunter2}"),
        fleet("*k").replace("identifier: eu\n", "identifier: eu\nplacement_config: {a: &k hunter2}\n"),
        fleet("&k hunter2") + "placement_config: {a: *k}\n",
        fleet("&k hunter2") + "domain: *k\n*k : x\n",
        fleet("&k hunter2").replace("identifier: eu\n", "") + "identifier: *k\n",
        fleet("hunter2\n  kubeconfig: hunter2"),
        fleet("hunter2\n  kubeconfg: hunter2\n  exposure: tlsroute"),
        fleet("hunter2").replace("  kubeconfig", "kubeconfig"),
        fleet("hunter2").replace("kind: Fleet", "kind: Flet"),
        fleet("hunter2").replace("max_tenants: 10", "max_tenants: [10"),
        fleet(block).replace("max_tenants: 10", "max_tenants: \"10"),
        fleet("'hunter2"),
        fleet(armour).replace("    hunter2", "hunter2"),
        fleet(block).replace("    hunter2", "  hunter2"),
        fleet("hunter2").replace("identifier: eu", "identifier: EU"),
        format!("{}---\n{}", fleet("hunter2"), "a: ]"),
        fleet("hunter2\u{1}"),
        fleet(&block.replace(" again", "\0")),
    ];
    for text in texts {
        let file = file(&text);
        let shown = format!("{}\n{:?}", render(&file.problems, false), file);
        assert!(!shown.contains("hunter2") && !shown.contains("hunter\\n"), "{text}\n{shown}");
        let fields = file.documents.iter().flat_map(|d| {
            ["", "/advanced_config", "/advanced_config/kubeconfig", "/placement_config/a"]
                .map(|p| d.locate(p).text)
        });
        for text in fields {
            assert!(!text.contains("hunter2"), "{text}");
        }
        let valid = file.documents.iter().map(|document| &document.key);
        let keys = valid.chain(file.invalid.iter().map(|document| &document.key));
        for text in keys.filter_map(|key| Some(file.text_of(key)?.text)) {
            assert!(!text.contains("hunter2") && !text.contains("hunter\\n"), "{text}");
        }
    }
    // Every line of a block is hidden, wherever a location points.
    let text = fleet(block);
    let masked = MaskedText::new("a.yaml".parse().unwrap(), &text, {
        let root = yaml::parse(&text).remove(0).root.unwrap().unwrap();
        check::check(Kind::Fleet, &root).secrets
    });
    assert!((0..text.len()).all(|at| !masked.locate(Span { start: at, end: at }).text.contains("hunter2")));
}

#[test]
fn an_unchanged_file_is_not_parsed_again() {
    let first = read(&snapshot(&[("a.yaml", CLUSTER.as_bytes()), ("b.yaml", FLEET.as_bytes())]), None);
    let changed = CLUSTER.replace("kafka_units: 2", "kafka_units: 3");
    let files = [("a.yaml", changed.as_bytes()), ("b.yaml", FLEET.as_bytes()), ("c.yaml", FLEET.as_bytes())];
    let second = read(&snapshot(&files), Some(&first));
    let same = |path: &str| {
        first.files.get(path).zip(second.files.get(path)).is_some_and(|(a, b)| Arc::ptr_eq(a, b))
    };
    assert!(!same("a.yaml") && same("b.yaml") && !same("c.yaml"));
    assert_eq!(second.documents().count(), 3);
}

#[test]
fn what_the_source_could_not_read_is_unreadable() {
    let mut snapshot = snapshot(&[]);
    let entry = SnapshotEntry::Unreadable {
        code: "unreadable-folder".into(),
        message: "denied".into(),
        hint: "ask".into(),
    };
    snapshot.entries.insert("acme/clusters".parse().unwrap(), entry);
    let documents = read(&snapshot, None);
    let problem = documents.problems().next().unwrap();
    assert_eq!((problem.code.as_str(), problem.message.as_str()), ("unreadable-folder", "denied"));
    assert_eq!(documents.files.values().next().unwrap().unreadable[0].top_folder.as_deref(), Some("acme"));
    let again = read(&snapshot, Some(&documents));
    assert_eq!(again.differing(&documents).count(), 0, "it is the same as long as the reason is");
    for entry in snapshot.entries.values_mut() {
        let SnapshotEntry::Unreadable { message, .. } = entry else { continue };
        *message = "broken".into();
    }
    assert_eq!(read(&snapshot, Some(&again)).differing(&again).count(), 1);
}

#[test]
fn what_may_be_a_secret_is_hidden_where_it_is_no_value() {
    let account =
        "apiVersion: streamfleet/v1\nkind: CloudAccount\norganization: acme\nidentifier: a\nprovider: aws\n";
    for text in [
        format!("{account}credentials: !hunter2\n"),
        format!("{account}credentials: &hunter2\n"),
        format!("{account}credentials: *hunter2\n"),
        format!("{account}credentials: !hunter2 x\n"),
        format!("{account}credentials: {{from_fiel: &hunter2 hunter2}}\n"),
        CLUSTER.replace("infrastructure: eu", "infrastructure: {credentials: hunter2}"),
        CLUSTER.replace("infrastructure: eu", "infrastructure: [{x: {password: [hunter2]}}]"),
        CLUSTER.replace("infrastructure: eu", "infrastructure: https://u:hunter2@h"),
        CLUSTER.replace("infrastructure: eu", "https://u:hunter2@h: eu"),
    ] {
        let told = report(text.as_bytes());
        assert!(told.contains("error: ") && !told.contains("hunter2"), "{text}\n{told}");
    }
}

#[test]
fn the_problems_of_one_file_are_cut_short() {
    let keys: String = (0..150).map(|number| format!("x{number}: 1\n")).collect();
    let file = file(format!("{CLUSTER}{keys}"));
    assert_eq!(file.problems.len(), MAX_PROBLEMS + 1);
    let last = file.problems.last().unwrap();
    assert_eq!(last.message, "50 more problems in this file");
    assert_eq!(last.hint.as_deref(), Some("fix the others first"));
    assert!(last.is_error() && file.documents.is_empty());
}
