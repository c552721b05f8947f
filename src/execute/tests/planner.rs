//! A minimal planner without specs: each cluster is a namespace, a Secret and a ConfigMap with one line of
//! text.

use std::collections::{BTreeMap, BTreeSet};

use secrecy::SecretString;
use serde_json::{Value, json};

use super::{cluster, fleet, now};
use crate::catalog::{
    CachedRecord, DurableRecord, Gauge, LastGood, OpenedSecret, Recorded, RecordedResource, SecretMark,
    Secrets,
};
use crate::names::{Digest, FleetKey, ObjectKey, ResourceKey, SecretRef};
use crate::plan::{
    Cause, Change, FleetPlan, Guard, Inputs, Observed, ObservedFleet, Plan, Reach, Step, Summary, Verb,
    Verdict,
};
use crate::problem::Origin;
use crate::render::{Desired, Manifest, SecretEncoding, SecretSlot, Stage};
use crate::spec::{InfraType, SourceId};

#[derive(Clone, Default)]
pub struct TestSpecs {
    pub clusters: BTreeMap<&'static str, (&'static str, &'static str)>,
    pub source: &'static str,
}

impl TestSpecs {
    pub fn new(clusters: &[(&'static str, &'static str, &'static str)]) -> TestSpecs {
        let clusters = clusters.iter().map(|&(name, fleet, text)| (name, (fleet, text))).collect();
        TestSpecs { clusters, source: "/specs" }
    }

    pub fn desired(&self) -> Desired {
        let mut desired = Desired::default();
        for (name, (on, text)) in &self.clusters {
            let manifests = manifests(&cluster(name), text);
            let objects = desired.fleets.entry(fleet(on)).or_default();
            objects.extend(manifests.into_iter().map(|manifest| (manifest.key.clone(), manifest)));
        }
        desired
    }

    pub fn secrets(&self) -> Secrets {
        let secret = |name: &&str| {
            let value = SecretString::from(format!("secret of {name}"));
            (reference(&cluster(name)), OpenedSecret::Value { value, mark: mark() })
        };
        Secrets { opened: self.clusters.keys().map(secret).collect(), ..Secrets::default() }
    }
}

fn mark() -> SecretMark {
    SecretMark { fingerprint: Some("f".into()), sealed: None }
}

pub fn reference(owner: &ResourceKey) -> SecretRef {
    SecretRef { resource: owner.clone(), field: "tls_key".into() }
}

fn manifests(owner: &ResourceKey, text: &str) -> Vec<Manifest> {
    let namespace = format!("kafka-{}", owner.name);
    let slot =
        SecretSlot { reference: reference(owner), encoding: SecretEncoding::Raw, fingerprint: "f".into() };
    let object = |kind: &str, within: Option<&String>, name: &str, stage, mut body: Value| {
        body["kind"] = kind.into();
        body["metadata"] = json!({"name": name});
        let key = ObjectKey {
            namespace: within.cloned(),
            kind: kind.into(),
            name: name.into(),
            api_version: "v1".into(),
        };
        Manifest { key, owner: owner.clone(), stage, body: body.into() }
    };
    vec![
        object("Namespace", None, &namespace, Stage::Namespace, json!({})),
        object(
            "Secret",
            Some(&namespace),
            "tls",
            Stage::Configuration,
            json!({"data": {"key": slot.to_value()}}),
        ),
        object("ConfigMap", Some(&namespace), "main", Stage::Custom, json!({"data": {"text": text}})),
    ]
}

/// Plans from observations and records, as the real planner does.
pub fn plan(specs: &TestSpecs, recorded: &Recorded, observed: &Observed) -> Plan {
    let desired = specs.desired();
    let fleets = ["eu", "us"].map(fleet);
    let nothing = BTreeMap::new();
    let fleets = fleets.iter().map(|fleet| {
        let desired = desired.fleets.get(fleet).unwrap_or(&nothing);
        plan_fleet(fleet, desired, recorded, &observed.fleets[fleet])
    });
    Plan {
        format: crate::plan::FORMAT,
        id: "7c1e90".into(),
        created_at: now(),
        inputs: Inputs {
            source: SourceId(specs.source.into()),
            revision: "r".into(),
            commit: None,
            software: "0.1.0".into(),
            recorded: Digest::of("r"),
            settings: Digest::of("s"),
            observed: BTreeMap::new(),
        },
        organizations: vec![],
        fleets: fleets.collect(),
        remember: BTreeMap::new(),
        problems: vec![],
        summary: Summary::default(),
    }
}

fn plan_fleet(
    fleet: &FleetKey,
    desired: &BTreeMap<ObjectKey, Manifest>,
    recorded: &Recorded,
    observed: &ObservedFleet,
) -> FleetPlan {
    let here = |resource: &&ResourceKey| {
        recorded.resources[*resource].durable.immutable.get("/infrastructure")
            == Some(&fleet.fleet.as_str().into())
    };
    let owners = desired.values().map(|manifest| &manifest.owner);
    let owners = owners.chain(recorded.resources.keys().filter(here));
    let owners: BTreeSet<&ResourceKey> =
        owners.chain(observed.inventory.values().map(|it| &it.owner)).collect();
    let changes: Vec<Change> = owners
        .into_iter()
        .filter_map(|owner| plan_resource(fleet, owner, desired, recorded, observed))
        .collect();
    let deletes = changes.iter().any(|change| change.verb == Verb::Delete);
    let approved = recorded.approvals.iter().find(|approval| approval.id == "guard");
    FleetPlan {
        fleet: fleet.clone(),
        infra_type: Some(InfraType::Directory),
        reach: Reach::Reached,
        clusters: Gauge::default(),
        kafka_units: Gauge::default(),
        conditions: vec![],
        status: None,
        unwell: BTreeMap::new(),
        sizes: None,
        changes,
        guard: deletes.then(|| Guard {
            id: "guard".into(),
            approved_by: approved.map(|approval| approval.by.clone()),
            rest: None,
        }),
        void_approvals: vec![],
        foreign: vec![],
    }
}

fn plan_resource(
    fleet: &FleetKey,
    owner: &ResourceKey,
    desired: &BTreeMap<ObjectKey, Manifest>,
    recorded: &Recorded,
    observed: &ObservedFleet,
) -> Option<Change> {
    let wanted = desired.iter().filter(|(_, manifest)| manifest.owner == *owner);
    let mut steps: Vec<Step> =
        wanted.clone().filter_map(|(key, manifest)| write(key, manifest, observed)).collect();
    let known = observed.inventory.iter().filter(|(_, object)| object.owner == *owner);
    let gone = known.filter(|(key, _)| !desired.contains_key(*key));
    steps.extend(gone.map(|(key, object)| Step {
        verb: Verb::Delete,
        object: key.clone(),
        stage: if key.kind == "Namespace" { Stage::Namespace } else { Stage::Custom },
        uid: observed.objects.get(key).map(|it| it.uid.clone()).or(object.uid.clone()),
        before: None,
        after: None,
    }));
    let before = recorded.resources.get(owner);
    let text = wanted.clone().find_map(|(_, manifest)| manifest.body.value().pointer("/data/text").cloned());
    let origin = Origin { path: "acme/specs.yaml".parse().unwrap(), line: 1 };
    let record = text.map(|text| RecordedResource {
        durable: DurableRecord {
            protected: false,
            immutable: [("/infrastructure".to_owned(), fleet.fleet.as_str().into())].into(),
            ..DurableRecord::new(recorded.id_of(owner), now())
        },
        cached: CachedRecord {
            last_good: Some(LastGood::new(text.into(), origin)),
            ..CachedRecord::lost(now())
        },
    });
    let verb = match (before, &record) {
        (_, None) => Verb::Delete,
        (None, Some(_)) => Verb::Create,
        (Some(_), Some(_)) => Verb::Update,
    };
    let is_current = record.as_ref() == before;
    let change = Change {
        resource: owner.clone(),
        verb,
        origin: None,
        cause: Cause::Spec,
        fields: vec![],
        verdict: Verdict::InPlace,
        effects: vec![],
        waiting: vec![],
        guarded: verb == Verb::Delete,
        bucket: None,
        certificate: None,
        steps,
        remarks: vec![],
        record,
        repair: false,
    };
    (!is_current || !change.steps.is_empty()).then_some(change)
}

fn write(key: &ObjectKey, manifest: &Manifest, observed: &ObservedFleet) -> Option<Step> {
    let as_applied = observed.inventory.get(key).is_some_and(|it| it.applied == manifest.body.digest());
    let there = observed.objects.get(key);
    if as_applied && there.is_some_and(|there| there.unchanged) {
        return None;
    }
    Some(Step {
        verb: if there.is_some() { Verb::Update } else { Verb::Create },
        object: key.clone(),
        stage: manifest.stage,
        uid: there.map(|there| there.uid.clone()),
        before: None,
        after: Some(manifest.clone()),
    })
}
