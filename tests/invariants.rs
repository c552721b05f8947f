//! Properties of every tree, tested on small random ones.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::LazyLock;

use camino::Utf8PathBuf;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Value, json};
use streamfleet::names::ResourceKey;
use streamfleet::plan::{Plan, Verb};
use streamfleet::problem;
use streamfleet::source::directory;
use streamfleet::spec;

use crate::damage::Damage;
use crate::interrupted::output;
use crate::pipeline::{Surroundings, converge, plan_round};
use crate::support::{Tree, copy, examples, memory_folder};

/// Few cases, since each goes through the disk many times. `PROPTEST_CASES` asks for more.
const CASES: u32 = 24;

/// The base domain that the trees share, with a private key in it.
const DOMAIN: &str = "quickstart/acme/base-domains/kafka.acme.example.com.yaml";

/// A document, and the folder for its file; the administrator's folder is the root.
#[derive(Debug, Clone)]
struct Document {
    folder: &'static str,
    kind: &'static str,
    name: String,
    text: String,
}

fn document(folder: &'static str, kind: &'static str, name: &str, fields: &str) -> Document {
    let text = format!("apiVersion: streamfleet/v1\nkind: {kind}\nidentifier: {name}\n{fields}");
    Document { folder, kind, name: name.to_owned(), text }
}

fn organization(name: &'static str) -> Document {
    let fields = format!("quotas:\n  clusters: 4\n  kafka_units: 12\ndomains: [kafka.{name}.example.com]\n");
    document("", "Organization", name, &fields)
}

fn fleet(folder: &'static str, name: &str, (tenancy, path, domain): (&str, bool, bool)) -> Document {
    let tenants = if tenancy == "Dedicated" { 1 } else { 3 };
    let mut fields = format!(
        "organization: {folder}\ninfra_type: directory\ntenancy_mode: {tenancy}\nmax_tenants: {tenants}\n\
         max_kafka_units: 8\ndeletion_protection: false\n"
    );
    if domain && folder == "acme" {
        fields.push_str("domain: kafka.acme.example.com\n");
    }
    if path {
        fields.push_str("advanced_config:\n  path: manifests\n");
    }
    document(folder, "Fleet", name, &fields)
}

#[derive(Debug, Clone)]
struct ClusterFields {
    fleet: Index,
    /// Whether it asks for more than its fleet has.
    odd: bool,
    units: u32,
    dev: bool,
    external: bool,
    zones: u32,
    delete: bool,
    protected: bool,
    suspend: bool,
}

fn cluster(folder: &'static str, name: &str, fleets: &[Document], fields: &ClusterFields) -> Document {
    let ClusterFields { fleet, odd, units, dev, external, zones, delete, protected, suspend } = fields;
    let Document { name: fleet, text: fleet_text, .. } = fleet.get(fleets);
    let tenancy =
        ["Shared", "Isolated", "Dedicated"].into_iter().find(|mode| fleet_text.contains(mode) != *odd);
    let tenancy = tenancy.unwrap_or("Shared");
    let external = *external && (*odd || fleet_text.contains("domain: "));
    let profile = if *dev { "dev" } else { "standard" };
    let access = if external { "Internal & External" } else { "Internal" };
    let on_delete = if *delete { "Delete" } else { "Retain" };
    let text = format!(
        "organization: {folder}\ninfrastructure: {fleet}\ncluster_type: kafka\ntenancy_mode: {tenancy}\n\
         kafka_units: {units}\ndeletion_protection: {protected}\nsuspend: {suspend}\nadvanced_config:\n  \
         version: 4.3.1\n  profile: {profile}\n  number_of_zones: {zones}\n  cluster_access: {access}\n  \
         storage:\n    on_delete: {on_delete}\n"
    );
    document(folder, "Cluster", name, &text)
}

fn tenancy() -> impl Strategy<Value = &'static str> {
    prop_oneof![4 => Just("Shared"), 1 => Just("Isolated"), 1 => Just("Dedicated")]
}

fn cluster_fields() -> impl Strategy<Value = ClusterFields> {
    let rarely = || prop::bool::weighted(0.1);
    let flags = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>(), rarely());
    (any::<Index>(), rarely(), 1..4_u32, 1..4_u32, flags).prop_map(
        |(fleet, odd, units, zones, (dev, external, delete, protected, suspend))| {
            let (units, zones) = if dev { (1, 1) } else { (units, zones) };
            ClusterFields { fleet, odd, units, dev, external, zones, delete, protected, suspend }
        },
    )
}

/// Random documents of one organization. Some are invalid and thus held, which is part of the test.
fn of_organization(folder: &'static str) -> impl Strategy<Value = Vec<Document>> {
    let fleets = vec((tenancy(), any::<bool>(), any::<bool>()), 1..3);
    (fleets, vec(cluster_fields(), 1..4)).prop_map(move |(fleets, clusters)| {
        let named = |(fields, name): (_, &&str)| fleet(folder, name, fields);
        let fleets: Vec<Document> = fleets.into_iter().zip(&["eu", "us"]).map(named).collect();
        let clusters = clusters.iter().zip(["orders", "logs", "events"]);
        let clusters: Vec<Document> =
            clusters.map(|(fields, name)| cluster(folder, name, &fleets, fields)).collect();
        [vec![organization(folder)], fleets, clusters].concat()
    })
}

fn documents() -> impl Strategy<Value = Vec<Document>> {
    let globex = prop::option::of(of_organization("globex"));
    (of_organization("acme"), globex).prop_map(|(acme, globex)| {
        let text = fs::read_to_string(examples().join(DOMAIN)).unwrap();
        let domain = Document { folder: "acme", kind: "BaseDomain", name: "kafka".to_owned(), text };
        [vec![domain], acme, globex.unwrap_or_default()].concat()
    })
}

/// Writes each document to a file of its own. Returns the paths.
fn lay_out(tree: &Tree, documents: &[Document]) -> Vec<String> {
    let write = |document: &Document| {
        let Document { folder, kind, name, text } = document;
        let path = format!("{folder}/{kind}-{name}.yaml").trim_start_matches('/').to_owned();
        tree.write(&path, text);
        path
    };
    documents.iter().map(write).collect()
}

/// Writes the same documents in another order into other files of the same folders, several to a file.
fn shuffle_files(tree: &Tree, documents: &[Document], places: &[(Index, Index)]) {
    for path in lay_out(tree, documents) {
        tree.remove(&path);
    }
    let mut files: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (document, (file, place)) in documents.iter().zip(places.iter().cycle()) {
        let path = format!("{}/{}.yaml", document.folder, file.index(3));
        let texts = files.entry(path.trim_start_matches('/').to_owned()).or_default();
        texts.insert(place.index(texts.len() + 1), &document.text);
    }
    for (path, texts) in files {
        tree.write(&path, texts.join("---\n"));
    }
}

/// The steps of a plan, without spec locations and tree digests.
fn comparable_steps(plan: &Plan) -> Vec<Value> {
    let deed = |change: &streamfleet::plan::Change| {
        json!([
            change.resource,
            change.verb,
            change.cause,
            change.verdict,
            change.effects,
            change.waiting,
            change.steps
        ])
    };
    plan.changes().map(deed).collect()
}

/// Files with a part that can't be read.
fn unreadable(tree: &Tree) -> BTreeSet<String> {
    let root = Utf8PathBuf::from_path_buf(tree.path().canonicalize().unwrap()).unwrap();
    let documents = spec::read(&directory::scan(&root).unwrap(), None);
    let unreadable = documents.files.iter().filter(|(_, file)| !file.unreadable.is_empty());
    unreadable.map(|(path, _)| path.to_string()).collect()
}

fn deleted(plan: &Plan) -> Vec<&ResourceKey> {
    let deleted = plan.changes().filter(|change| change.verb == Verb::Delete && change.waiting.is_empty());
    deleted.map(|change| &change.resource).collect()
}

/// Length of a piece of a secret that must never be shown, in characters: too short to be of use to anyone.
const PIECE: usize = 16;

/// Every piece of the base domain's private key that isn't in its certificate too.
static PIECES: LazyLock<Vec<String>> = LazyLock::new(|| {
    let text = fs::read_to_string(examples().join(DOMAIN)).unwrap();
    let (public, key) = text.split_once("tls_key: |").unwrap();
    let lines = key.lines().map(str::trim).filter(|line| line.len() >= PIECE && !line.starts_with("-----"));
    let pieces = lines.flat_map(|line| (0..=line.len() - PIECE).map(|at| &line[at..at + PIECE]));
    pieces.filter(|piece| !public.contains(piece)).map(str::to_owned).collect()
});

/// Searches everything known of a plan for pieces of the key, which may be damaged.
fn shows_no_secret(plan: &Plan) {
    let shown = [plan.to_json(), problem::render(&plan.problems, false), format!("{plan:?}")].concat();
    for piece in PIECES.iter() {
        assert!(!shown.contains(piece), "`{piece}` of a secret is shown");
    }
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(work)
}

fn config() -> ProptestConfig {
    // A failure prints its seed; no seed files are kept.
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(CASES);
    ProptestConfig { cases, failure_persistence: None, max_shrink_iters: 200, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn plans_are_repeatable_whatever_the_layout_and_empty_after_an_apply(
        documents in documents(),
        places in vec(any::<(Index, Index)>(), 1..12),
    ) {
        let (tree, around) = (Tree::empty(), Surroundings::default());
        lay_out(&tree, &documents);
        block_on(async {
            let first = plan_round(&tree, &around).await.plan;
            assert_eq!(plan_round(&tree, &around).await.plan, first);
            assert_eq!(Plan::from_json(&first.to_json()).unwrap(), first);
            shuffle_files(&tree, &documents, &places);
            assert_eq!(comparable_steps(&plan_round(&tree, &around).await.plan), comparable_steps(&first));

            let (_, last) = converge(&tree, &around).await;
            assert_eq!(last.plan.step_count(), 0);
            if first.changes().all(|change| change.waiting.is_empty()) {
                assert!(last.plan.is_empty(), "{:#?}", comparable_steps(&last.plan));
            }
            drop(last);
            let files = tree.output();
            // Another layout of the same documents changes nothing.
            for path in fs::read_dir(tree.path()).unwrap().map(|entry| entry.unwrap().path()) {
                if path.is_file() { fs::remove_file(path).unwrap() }
            }
            for folder in ["acme", "globex"] {
                let _ = fs::remove_dir_all(tree.path().join(folder));
            }
            lay_out(&tree, &documents);
            let (rounds, _) = converge(&tree, &around).await;
            assert_eq!(rounds, 0);
            assert_eq!(tree.output(), files);
        });
    }

    #[test]
    fn what_is_applied_in_two_halves_is_as_if_it_was_applied_whole(
        documents in documents(),
        early in vec(any::<bool>(), 16),
    ) {
        let (tree, around) = (Tree::empty(), Surroundings::default());
        let paths = lay_out(&tree, &documents);
        block_on(async {
            let whole = plan_round(&tree, &around).await.plan;
            if whole.changes().any(|change| !change.waiting.is_empty()) {
                // Limits are served first come, first served, so two halves that compete for one may end
                // differently.
                return;
            }
            let before = memory_folder();
            copy(&tree.path(), before.path());
            drop(converge(&tree, &around).await);
            let at_once = output(&tree);

            fs::remove_dir_all(tree.path()).unwrap();
            copy(before.path(), &tree.path());
            for (path, _) in paths.iter().zip(&early).filter(|(_, early)| !**early) {
                tree.remove(path);
            }
            drop(converge(&tree, &around).await);
            lay_out(&tree, &documents);
            drop(converge(&tree, &around).await);
            assert_eq!(output(&tree), at_once);
        });
    }

    #[test]
    fn damaged_files_delete_nothing(
        documents in documents(),
        damages in vec((any::<Index>(), Damage::any()), 1..4),
        together in any::<bool>(),
    ) {
        let (tree, around) = (Tree::empty(), Surroundings::default());
        let paths = lay_out(&tree, &documents);
        block_on(async {
            drop(converge(&tree, &around).await);
            for (file, damage) in damages {
                let path = file.get(&paths);
                if !tree.path().join(path).exists() || fs::read(tree.path().join(path)).unwrap().is_empty() {
                    continue;
                }
                let before = tree.read_bytes(path);
                let renamed = damage.inflict(&tree, path);
                let round = plan_round(&tree, &around).await;
                shows_no_secret(&round.plan);
                let broken = unreadable(&tree);
                for key in deleted(&round.plan) {
                    let place = round.recorded.resources[key].cached.last_good.as_ref().unwrap().origin.path.to_string();
                    let readable = !broken.contains(&place);
                    let organization = key.organization.as_str();
                    let in_doubt = broken.iter().any(|path| {
                        path.starts_with(&format!("{organization}/")) || !path.contains('/')
                    });
                    assert!(readable && !in_doubt, "{key} would be deleted though {broken:?} can't be read");
                    assert!(place == *path || together, "{key} would be deleted, whose file {place} is whole");
                }
                drop(round);
                if !together {
                    renamed.into_iter().for_each(|path| tree.remove(&path));
                    tree.write(path, before);
                }
            }
        });
    }
}
