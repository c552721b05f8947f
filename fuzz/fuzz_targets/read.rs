//! Fuzzes one file of a tree with arbitrary bytes: reading, resolving and rendering don't panic, every
//! problem is reported, and no secret is shown.

#![no_main]

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use jiff::Timestamp;
use libfuzzer_sys::fuzz_target;
use secrecy::ExposeSecret as _;
use streamfleet::catalog::{self, Recorded};
use streamfleet::component;
use streamfleet::config::Config;
use streamfleet::names::{Digest, SpecPath};
use streamfleet::problem::{Problem, render};
use streamfleet::secret::{Keyring, SecretStore};
use streamfleet::spec::{self, Documents, ParsedFile, SecretValue, Snapshot, SnapshotEntry, SourceId};

/// A time at which the certificate of the base domain is valid.
const NOW: Timestamp = Timestamp::constant(1_800_000_000, 0);
static FUZZED: LazyLock<SpecPath> = LazyLock::new(|| "acme/fuzzed.yaml".parse().unwrap());
/// Resources the bytes may refer to: an organization, a fleet, a base domain and clusters.
static AROUND: LazyLock<BTreeMap<SpecPath, SnapshotEntry>> = LazyLock::new(|| {
    macro_rules! example {
        ($($path:literal),*) => {
            [$(($path, include_str!(concat!("../../examples/quickstart/", $path)))),*]
        };
    }
    let files = example![
        "organizations.yaml",
        "acme/base-domains/kafka.acme.example.com.yaml",
        "acme/fleets/eu.yaml",
        "acme/clusters/orders.yaml"
    ];
    files.into_iter().map(|(path, text)| (path.parse().unwrap(), entry(text.as_bytes()))).collect()
});
static AROUND_READ: LazyLock<Documents> = LazyLock::new(|| spec::read(&snapshot(AROUND.clone()), None));

fn entry(bytes: &[u8]) -> SnapshotEntry {
    SnapshotEntry::File { bytes: Arc::from(bytes), digest: Digest::of(bytes) }
}

fn snapshot(entries: BTreeMap<SpecPath, SnapshotEntry>) -> Snapshot {
    Snapshot {
        source: SourceId("/specs".to_owned()),
        revision: "1".to_owned(),
        commit: None,
        skipped: BTreeMap::new(),
        entries,
    }
}

fuzz_target!(|bytes: &[u8]| {
    let mut entries = AROUND.clone();
    entries.insert(FUZZED.clone(), entry(bytes));
    let documents = spec::read(&snapshot(entries), Some(&AROUND_READ));
    let file = &documents.files[&*FUZZED];
    nothing_is_wrong_in_silence(file);
    is_shown_without_secrets(bytes, file, &file.problems);
    // The rest takes much longer, and hardly depends on a file without a valid document.
    if file.documents.is_empty() {
        return;
    }
    let store = SecretStore::new("/nowhere".into(), |_| None, Keyring::ephemeral().unwrap());
    let (recorded, config) = (Recorded::default(), Arc::new(Config::default()));
    let secrets = store.open_all(&documents);
    let catalog = catalog::resolve(&documents, &recorded, &secrets, &config, &component::host_names(), NOW);
    is_shown_without_secrets(bytes, file, &catalog.problems);
    streamfleet::render::render(&catalog);
});

fn nothing_is_wrong_in_silence(file: &ParsedFile) {
    let is_good = file.invalid.is_empty() && file.unreadable.is_empty();
    let has_errors = file.problems.iter().any(Problem::is_error);
    assert_eq!(has_errors, !is_good, "what is not good has an error, and nothing else has");
    for problem in &file.problems {
        assert!(problem.hint.is_some(), "a problem says what to do next: {}", problem.message);
    }
}

/// Searches for lines of secrets that occur nowhere else in the file; other lines may be shown.
fn is_shown_without_secrets(bytes: &[u8], file: &ParsedFile, problems: &[Problem]) {
    let shown = render(problems, false);
    assert!(!shown.contains('\u{1b}'), "what commands a terminal is shown");
    let text = String::from_utf8_lossy(bytes);
    for (_, secret) in file.documents.iter().flat_map(|document| document.spec.secrets()) {
        let SecretValue::Plain(value) = secret else { continue };
        // A part of what every key begins with tells nothing, and problems say it themselves.
        let is_told = |line: &str| "-----BEGIN PRIVATE KEY-----".contains(line);
        let telling = |line: &&str| line.len() >= 8 && text.matches(line).count() == 1 && !is_told(line);
        for line in value.expose_secret().lines().map(str::trim).filter(telling) {
            assert!(!shown.contains(line), "a secret is shown");
        }
    }
}
