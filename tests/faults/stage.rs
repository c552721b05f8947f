//! A fleet behind a proxy, a directory fleet, and foreign objects beside them.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::objects::{self, NAMESPACES};
use crate::interrupted::output;
use crate::pipeline::{Surroundings, plan_round};
use crate::support::control_plane::{ControlPlane, Lease};
use crate::support::proxy::{Call, Proxy};
use crate::support::{Run, Tree, copy, memory_folder};

pub const APPLY: &str = "apply tree --yes --config config.toml";
const PLAN: &str = "plan tree --config config.toml";
const FLEET: &str = "acme/fleets/eu.yaml";
const CLUSTERS: [&str; 2] = ["acme/clusters/sandbox.yaml", "acme/clusters/logs.yaml"];

/// Foreign objects with names and labels like ours.
const FOREIGN: [(&str, &str); 4] = [
    (NAMESPACES, THEIRS),
    ("/api/v1/namespaces/kafka-acme--sandbox-eu/resourcequotas", "sandbox"),
    ("/api/v1/namespaces/kafka-acme--sandbox-eu/secrets", "sandbox-tls"),
    ("/api/v1/namespaces/kafka-acme--sandbox-eu/configmaps", "inventory"),
];

const THEIRS: &str = "kafka-acme--sandbox-eu";

/// Where intents are recorded.
const INTENTS: &str = "/namespaces/streamfleet-system/configmaps/intents-";

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    Create,
    Update,
    Delete,
}

/// The result of a run, without values that differ between runs.
#[derive(Debug, PartialEq)]
pub struct End {
    objects: BTreeMap<String, Value>,
    folder: Vec<(String, String)>,
}

pub struct Stage {
    pub proxy: Proxy,
    pub tree: Tree,
    _plane: Arc<Lease>,
    /// The installation before its first apply, with its id and keys.
    fresh: TempDir,
    specs: [String; 2],
    foreign: Vec<Value>,
}

impl Stage {
    /// A stage with a control plane of its own, before the first apply.
    pub fn new() -> Stage {
        let mut stage = Stage::on(Arc::new(ControlPlane::lease()));
        stage.make_foreign();
        stage
    }

    /// The same without foreign objects.
    pub fn on(plane: Arc<Lease>) -> Stage {
        let proxy = Proxy::before(&plane);
        let tree = Tree::example("quickstart");
        tree.remove("acme/clusters/orders.yaml");
        let config =
            "[targets]\nallow_addresses = [\"127.0.0.0/8\"]\n[policy]\ncluster_deletions_per_hour = 1000\n";
        fs::write(tree.beside("config.toml"), config).unwrap();
        let (fleet, cluster) = (tree.read(FLEET), tree.read(CLUSTERS[0]));
        let folder = fleet.replace("identifier: eu", "identifier: files");
        tree.write("acme/fleets/files.yaml", folder.replace("domain: kafka.acme.example.com\n", ""));
        let fleet = fleet.replace("infra_type: directory", "infra_type: byok");
        tree.write(FLEET, format!("{fleet}advanced_config:\n  kubeconfig: '{}'\n", proxy.kubeconfig()));
        // Only controllers would end the deletion of a namespace.
        let cluster = cluster.replace("on_delete: Delete", "on_delete: Retain");
        let logs = cluster.replace("infrastructure: eu", "infrastructure: files");
        let sandbox = cluster.replace("cluster_type", "cloud_provider: byok\ncluster_type");
        // A cluster that stays, so that a folder is never removed as a whole.
        tree.write("acme/clusters/kept.yaml", logs.replace("identifier: sandbox", "identifier: kept"));
        let specs = [sandbox, logs.replace("identifier: sandbox", "identifier: logs")];
        // Planning creates the installation; without settings it may not connect to this host.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        drop(runtime.block_on(plan_round(&tree, &Surroundings::default())));
        let fresh = memory_folder();
        copy(&tree.path().join(".streamfleet"), fresh.path());
        let stage = Stage { proxy, tree, _plane: plane, fresh, specs, foreign: Vec::new() };
        stage.write_specs();
        stage
    }

    pub fn plan(&self) -> Run {
        self.tree.run(PLAN)
    }

    pub fn apply(&self) -> Run {
        self.tree.run(APPLY)
    }

    /// Prepares the state in which a run has exactly this work.
    pub fn begin(&self, phase: Phase) {
        self.proxy.reset();
        self.clear();
        self.write_specs();
        if phase != Phase::Create {
            self.apply().expect(0);
        }
        for (file, spec) in CLUSTERS.iter().zip(&self.specs) {
            match phase {
                Phase::Create => {}
                Phase::Update => self.tree.write(file, format!("{spec}    size_gib: 40\n")),
                Phase::Delete => self.tree.remove(file),
            }
        }
        self.proxy.reset();
    }

    /// The result and the calls of an undisturbed run.
    pub fn undisturbed(&self, phase: Phase) -> (End, Vec<Call>) {
        self.begin(phase);
        self.apply().expect(0);
        let calls = self.proxy.reset();
        self.plan().expect(0);
        (self.end(), calls)
    }

    /// Without faults, one run reaches the result of an undisturbed one, and nothing was lost or touched
    /// before.
    pub fn recover(&self, expected: &End, phase: Phase, when: &str) {
        self.proxy.reset();
        self.proxy.wait_until_quiet();
        let run = self.apply();
        assert_eq!(run.code, 0, "{when}\n{}{}", run.out, run.err);
        let calls = self.proxy.reset();
        // Intents are removed once their outcome is known.
        let deletes = |call: &Call| call.text.starts_with("DELETE") && !call.text.contains(INTENTS);
        assert!(phase == Phase::Delete || !calls.iter().any(deletes), "{when}: {calls:#?}");
        let plan = self.plan();
        assert_eq!(plan.code, 0, "{when}\n{}{}", plan.out, plan.err);
        let end = self.end();
        assert_eq!(
            end.objects.keys().collect::<Vec<_>>(),
            expected.objects.keys().collect::<Vec<_>>(),
            "{when}"
        );
        for (path, object) in &end.objects {
            assert_eq!(object, &expected.objects[path], "{path}, {when}");
        }
        assert_eq!(end.folder, expected.folder, "{when}");
    }

    /// Strings that must not be printed: the kubeconfig's token and the domain's key.
    pub fn secrets(&self) -> [String; 2] {
        let kubeconfig: Value = serde_json::from_str(&self.proxy.kubeconfig()).unwrap();
        let token = kubeconfig["users"][0]["user"]["token"].as_str().unwrap().to_owned();
        [token, "PRIVATE KEY".to_owned()]
    }

    pub fn folder(&self) -> Vec<(String, String)> {
        output(&self.tree)
    }

    pub fn assert_folder(&self, expected: &End, when: &str) {
        assert_eq!(self.folder(), expected.folder, "the fleet of files, {when}");
    }

    /// The current result. Asserts that the inventory lists every object, and that no foreign object changed.
    fn end(&self) -> End {
        let all = self.objects();
        let (foreign, ours): (BTreeMap<_, _>, BTreeMap<_, _>) =
            all.into_iter().partition(|(path, _)| path.contains(THEIRS));
        for object in &self.foreign {
            assert!(foreign.values().any(|found| found == object), "{object:#}\n{foreign:#?}");
        }
        let uids = objects::assert_owned(&ours);
        let objects = ours.into_iter().map(|(path, object)| (path, objects::comparable(object, &uids)));
        End { objects: objects.collect(), folder: self.folder() }
    }

    fn objects(&self) -> BTreeMap<String, Value> {
        objects::of(&self.proxy)
    }

    /// Removes all objects of ours, and resets the installation to before its first apply.
    fn clear(&self) {
        objects::remove(&self.proxy, self.objects().into_keys().filter(|path| !path.contains(THEIRS)));
        let state = self.tree.path().join(".streamfleet");
        fs::remove_dir_all(&state).unwrap();
        copy(self.fresh.path(), &state);
    }

    fn write_specs(&self) {
        for (file, spec) in CLUSTERS.iter().zip(&self.specs) {
            self.tree.write(file, spec);
        }
    }

    fn make_foreign(&mut self) {
        let labels =
            json!({"app.kubernetes.io/managed-by": "streamfleet", "streamfleet.io/inventory": "true"});
        for (collection, name) in FOREIGN {
            let body = json!({"apiVersion": "v1", "metadata": {"name": name, "labels": labels}});
            let (code, object) = self.proxy.ask("POST", collection, &body);
            assert_eq!(code, 201, "{object}");
        }
        let theirs = self.objects().into_iter().filter(|(path, _)| path.contains(THEIRS));
        self.foreign = theirs.map(|(_, object)| object).collect();
        assert_eq!(self.foreign.len(), FOREIGN.len());
    }
}
