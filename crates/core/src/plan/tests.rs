//! A small installation in memory, on which plans are made and carried out.

mod approval;
mod certificate;
mod decisions;
mod disruption;
mod dry_run;
mod gateway;
mod guarded;
mod index;
mod look;
mod maintenance;
mod memory;
mod modes;
mod monitoring;
mod preflight;
mod property;
mod records;
mod rendered;
mod repair;
mod repeated;
mod rules;
mod size;
mod unreadable;
mod unseen;
mod upgrade;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::catalog::{
    Absence, Approval, Catalog, Deletion, Gauge, Hold, Recorded, RecordedObject, ResolvedCluster,
    ResolvedDomain, ResolvedFleet, ResolvedSecret, Resource, ResourceStatus, SecretMark, Status, versions,
};
use crate::component::health::{Judgement, Outputs};
use crate::config::{CertificateRenewal, Mode};
use crate::health::FleetHealth;
use crate::names::{FleetKey, Json, Kind, ObjectKey, ResourceKey, SecretRef};
use crate::plan::{Change, Observed, ObservedFleet, ObservedObject, Pauses, Plan, Policy, Reach, Verb, plan};
use crate::problem::{Location, Origin};
use crate::render::{Desired, Manifest, SecretEncoding, SecretSlot, Stage};
use crate::spec::{Safeguards, SourceId, Spec};

/// An installation with one directory fleet, `acme/eu`.
struct Lab {
    resources: BTreeMap<ResourceKey, Resource>,
    /// Why resources without a spec are absent; by default they were removed.
    absences: BTreeMap<ResourceKey, Absence>,
    recorded: Recorded,
    observed: Observed,
    policy: Policy,
    revision: u32,
    /// Written by this version of the software into every Kafka's configuration.
    rendering: u32,
    /// The kind of the fleets with a base domain.
    infra_type: &'static str,
    /// The certificate of clusters with a base domain.
    chain: String,
    /// The domain in the host names of clusters behind the Gateway; `None` if they have no host names.
    hosts: Option<&'static str>,
}

fn key(text: &str) -> ResourceKey {
    text.to_owned().try_into().unwrap()
}

const GATEWAY: &str = "gateway.networking.k8s.io/v1|Gateway|streamfleet-gateway|kafka";

fn fleet_key() -> FleetKey {
    "acme/eu".to_owned().try_into().unwrap()
}

fn fleet_of(name: &str) -> FleetKey {
    format!("acme/{name}").try_into().unwrap()
}

fn object(kind: &str, cluster: &str, name: &str) -> ObjectKey {
    let namespace = format!("kafka-acme--{cluster}");
    let api_version = if kind.starts_with("Kafka") { "kafka.strimzi.io/v1" } else { "v1" };
    let (namespace, name) = match kind {
        "Namespace" => (None, namespace),
        _ => (Some(namespace), name.to_owned()),
    };
    ObjectKey { namespace, kind: kind.to_owned(), name, api_version: api_version.to_owned() }
}

impl Lab {
    fn new() -> Self {
        let reached = ObservedFleet::unknown(Reach::Reached);
        let mut lab = Self {
            resources: BTreeMap::new(),
            absences: BTreeMap::new(),
            recorded: Recorded::default(),
            observed: Observed { fleets: BTreeMap::from([(fleet_key(), reached)]) },
            policy: Policy {
                mode: Mode::Auto,
                now: "2026-11-21T12:00:00Z".parse().unwrap(),
                cluster_deletions_per_hour: 1,
                topic_deletions_per_hour: 0,
                approval_lifetime: SignedDuration::from_hours(24),
                maintenance: Vec::new(),
                certificate_renewal: CertificateRenewal::Auto,
                software: "0.1.0".into(),
                pauses: Pauses::default(),
                announced: BTreeMap::new(),
            },
            revision: 1,
            rendering: 1,
            infra_type: "directory",
            chain: "cert".into(),
            hosts: None,
        };
        lab.set("Organization/acme/acme", json!({"identifier": "acme"}));
        lab.set(
            "Fleet/acme/eu",
            json!({"organization": "acme", "identifier": "eu", "infra_type": "directory",
                "tenancy_mode": "Shared", "max_tenants": 10, "max_kafka_units": 40}),
        );
        lab
    }

    fn with(clusters: &[&str]) -> Self {
        let mut lab = Self::new();
        clusters.iter().for_each(|name| lab.cluster(name, json!({})));
        lab.settle();
        lab
    }

    fn cluster(&mut self, name: &str, changes: Value) {
        let mut spec = json!({"organization": "acme", "infrastructure": "eu", "identifier": name,
            "cluster_type": "kafka", "tenancy_mode": "Shared", "kafka_units": 1,
            "advanced_config": {"version": "4.3.1"}});
        for (pointer, value) in changes.as_object().unwrap() {
            match pointer.strip_prefix("advanced_config.") {
                Some(field) => spec["advanced_config"][field] = value.clone(),
                None => spec[pointer] = value.clone(),
            }
        }
        self.set(&format!("Cluster/acme/{name}"), spec);
    }

    fn fleet(&mut self, fleet: &str, clusters: &[&str]) {
        let spec = json!({"organization": "acme", "identifier": fleet, "infra_type": self.infra_type,
            "domain": "k.example.com", "tenancy_mode": "Shared", "max_tenants": 10, "max_kafka_units": 40,
            "advanced_config": {"kubeconfig": self.kubeconfig()}});
        self.set(&format!("Fleet/acme/{fleet}"), spec);
        self.observed.fleets.insert(fleet_of(fleet), ObservedFleet::unknown(Reach::Reached));
        clusters.iter().for_each(|name| self.cluster(name, json!({"infrastructure": fleet})));
    }

    fn set(&mut self, text: &str, spec: Value) {
        let key = key(text);
        let spec = Spec::read(key.kind, &spec).unwrap();
        let path = format!("acme/{}/{}.yaml", key.kind.plural(), key.name).parse().unwrap();
        let origin = Origin { path, line: 1 };
        let line = |field: &str, line: u32| {
            let text = format!("{field}: …");
            let location = Location { path: origin.path.clone(), line, column: 1, width: 5, text };
            (format!("/{field}"), location)
        };
        let fields = BTreeMap::from([line("kafka_units", 8), line("deletion_protection", 9)]);
        let secrets = spec.secrets().into_iter().map(|(field, _)| {
            let mark = SecretMark { fingerprint: Some("hmac:0011223344556677".into()), sealed: None };
            let reference = SecretRef { resource: key.clone(), field: field.to_owned() };
            (field.to_owned(), ResolvedSecret { reference, mark, unavailable: None })
        });
        let safeguards = Safeguards::of(&spec);
        let resource = Resource {
            id: self.recorded.id_of(&key),
            key: key.clone(),
            origin: origin.clone(),
            secrets: secrets.collect(),
            spec,
            fields: fields.into(),
            hold: None,
            safeguards,
            current_file: Some(origin.path.clone()),
            cluster_fleet: None,
        };
        self.revision += 1;
        self.resources.insert(key, resource);
    }

    fn domain(&mut self, fingerprint: &str) {
        let spec = json!({"organization": "acme", "domain": "k.example.com", "tls_cert": "…",
            "tls_key": {"redacted": true}});
        self.set("BaseDomain/acme/k.example.com", spec);
        let domain = self.resources.get_mut(&key("BaseDomain/acme/k.example.com")).unwrap();
        domain.secrets.get_mut("tls_key").unwrap().mark.fingerprint = Some(fingerprint.to_owned());
        let fleet = json!({"organization": "acme", "identifier": "eu", "infra_type": self.infra_type,
            "domain": "k.example.com", "tenancy_mode": "Shared", "max_tenants": 10, "max_kafka_units": 40,
            "advanced_config": {"kubeconfig": self.kubeconfig()}});
        self.set("Fleet/acme/eu", fleet);
    }

    fn kubeconfig(&self) -> Value {
        (self.infra_type == "byok").then(|| json!({"redacted": true})).into()
    }

    fn exposed(&mut self, exposure: Value, gateway: Value) {
        let fleet = json!({"organization": "acme", "identifier": "eu", "infra_type": "directory",
            "advanced_config": {"exposure": exposure, "gateway": gateway}, "domain": "k.example.com",
            "tenancy_mode": "Shared", "max_tenants": 10, "max_kafka_units": 40});
        self.set("Fleet/acme/eu", fleet);
    }

    fn gateway(&self) -> Option<Manifest> {
        let fleet = self.resources.get(&key("Fleet/acme/eu"))?;
        let Spec::Fleet(spec) = &fleet.spec else { return None };
        let class = &spec.advanced_config.gateway.as_ref()?.class;
        let key = GATEWAY.to_owned().try_into().unwrap();
        let mut body = json!({"spec": {"gatewayClassName": class}});
        if let Some(domain) = self.hosts {
            body["spec"]["listeners"] = json!([{"name": "kafka", "hostname": format!("*.{domain}")}]);
        }
        Some(Manifest { key, owner: fleet.key.clone(), stage: Stage::Configuration, body: body.into() })
    }

    fn hold(&mut self, text: &str, hold: Hold) {
        self.resources.get_mut(&key(text)).unwrap().hold = Some(hold);
    }

    fn remove(&mut self, text: &str) {
        self.revision += 1;
        self.resources.remove(&key(text)).unwrap();
    }

    fn unprotected(&mut self, name: &str) {
        self.cluster(name, json!({"deletion_protection": false}));
    }

    fn catalog(&self) -> Catalog {
        let gauge = |limit| Gauge { before: 1, after: 2, limit: Some(limit) };
        let fleets = self.resources.values().filter_map(|resource| match &resource.spec {
            Spec::Fleet(spec) => Some(ResolvedFleet {
                own_prometheus: None,
                key: fleet_of(spec.identifier.as_str()),
                spec: Arc::new(spec.clone()),
                domain: None,
                clusters: gauge(spec.max_tenants),
                kafka_units: gauge(spec.max_kafka_units),
                conditions: Vec::new(),
            }),
            _ => None,
        });
        // A resource that may be missing by mistake is kept as held, and is absent, too.
        let is_named =
            |resource: &Resource| !matches!(resource.hold, Some(Hold::Absent | Hold::Unreadable { .. }));
        let recorded = self.recorded.resources.keys();
        let absent = recorded.filter(|key| !self.resources.get(key).is_some_and(is_named));
        let why = |key: &ResourceKey| self.absences.get(key).cloned().unwrap_or(Absence::Removed);
        let copy = |resource: &Resource| Resource {
            key: resource.key.clone(),
            id: resource.id,
            origin: resource.origin.clone(),
            spec: resource.spec.clone(),
            fields: resource.fields.clone(),
            hold: resource.hold.clone(),
            safeguards: resource.safeguards,
            current_file: resource.current_file.clone(),
            secrets: resource.secrets.clone(),
            cluster_fleet: resource.cluster_fleet.clone(),
        };
        Catalog {
            source: SourceId("/specs".into()),
            revision: self.revision.to_string(),
            commit: None,
            config: Arc::default(),
            resources: self
                .resources
                .iter()
                .map(|(key, resource)| (key.clone(), copy(resource).into()))
                .collect(),
            fleets: fleets.map(|fleet| (fleet.key.clone(), fleet.into())).collect(),
            clusters: self.resolved_clusters().into_iter().map(|(key, it)| (key, it.into())).collect(),
            absent: absent.map(|key| (key.clone(), why(key))).collect(),
            capacity: BTreeMap::new(),
            managed: BTreeMap::new(),
            certificates_end: BTreeMap::new(),
            granted: Default::default(),
            problems: Vec::new(),
            steady_from: Timestamp::MIN,
            steady_until: Timestamp::MAX,
        }
    }

    fn plan(&self) -> Plan {
        plan(&self.catalog(), &self.desired(), &self.recorded, &self.observed, &self.policy)
    }

    fn target(&mut self) -> &mut ObservedFleet {
        self.observed.fleets.get_mut(&fleet_key()).unwrap()
    }

    fn approve(&mut self, id: &str) {
        let at = self.policy.now;
        self.recorded.approvals.push(Approval { fleet: fleet_key(), id: id.into(), by: "ada".into(), at });
    }

    fn later(&mut self, hours: i64) {
        self.policy.now += SignedDuration::from_hours(hours);
    }

    fn execute(&mut self, plan: &Plan) {
        for fleet in &plan.fleets {
            for (change, step) in fleet.ordered_steps() {
                let target = self.observed.fleets.get_mut(&fleet.fleet).unwrap();
                let remembered = self.recorded.fleets.entry(fleet.fleet.clone()).or_default();
                let Some(manifest) = &step.after else {
                    assert_eq!(step.verb, Verb::Delete);
                    target.inventory.remove(&step.object);
                    target.objects.remove(&step.object);
                    remembered.objects.remove(&step.object);
                    continue;
                };
                let applied = manifest.digest();
                let uid = applied.short().to_owned();
                let known = RecordedObject {
                    owner: change.resource.clone(),
                    uid: Some(uid.clone()),
                    applied,
                    manifest: Some(manifest.body.clone()),
                };
                target.inventory.insert(step.object.clone(), known.clone());
                target.objects.insert(step.object.clone(), there(uid, manifest.body.clone()));
                remembered.objects.insert(step.object.clone(), known);
            }
            if let Some(guard) = fleet.guard.as_ref().filter(|guard| guard.approved_by.is_some()) {
                let used = self.recorded.approvals.extract_if(.., |approval| approval.id == guard.id);
                let used: Vec<Approval> = used.collect();
                let rest = guard
                    .rest
                    .iter()
                    .flat_map(|id| used.iter().map(|it| Approval { id: id.clone(), ..it.clone() }));
                self.recorded.approvals.extend(rest);
            }
        }
        for change in plan.changes().filter(|change| change.waiting.is_empty()) {
            self.remember(change);
        }
        for (key, record) in plan.remember.clone() {
            self.recorded.resources.insert(key, record);
        }
    }

    fn remember(&mut self, change: &Change) {
        let key = change.resource.clone();
        match &change.record {
            Some(record) => self.recorded.resources.insert(key, record.clone()),
            None => {
                self.recorded.resources.remove(&key);
                *self.recorded.generations.entry(key.clone()).or_default() += 1;
                if key.kind == Kind::Cluster {
                    let at = self.policy.now;
                    self.recorded.deletions.push(Deletion { fleet: fleet_key(), cluster: key, at });
                }
            }
        }
    }

    /// Plans and executes until nothing is left. Each round ends one disruption and one level of parents.
    fn settle(&mut self) {
        for _ in 0..12 {
            let plan = self.plan();
            if plan.is_empty() {
                return;
            }
            self.execute(&plan);
            self.later(2);
        }
        panic!(
            "it never settles: {}",
            crate::plan::display(
                &self.plan(),
                crate::plan::Audience { color: false, width: 100, tree: "specs" }
            )
        );
    }

    /// Formats the plan without its id, which changes with the form of every record.
    fn look(&self) -> String {
        self.shown(false)
    }

    fn shown(&self, color: bool) -> String {
        let plan = self.plan();
        let reader = crate::plan::Audience { color, width: 100, tree: "specs" };
        crate::plan::display(&plan, reader).replace(&plan.id, "…")
    }
}

impl Lab {
    /// Says whether a probe has reached a healthy cluster of the first fleet since it was changed.
    fn reached(&mut self, name: &str, is_reached: bool) {
        self.judged(name, Status::Healthy);
        let cluster = key(&format!("Cluster/acme/{name}"));
        let unconfirmed = &mut self.target().health.as_mut().unwrap().unconfirmed;
        match is_reached {
            true => _ = unconfirmed.remove(&cluster),
            false => _ = unconfirmed.insert(cluster),
        }
    }

    fn judged(&mut self, name: &str, status: Status) {
        let since = self.policy.now;
        let is = |status| ResourceStatus { status, reason: None, conditions: vec![], since };
        let judgement = Judgement {
            status: is(status),
            in_progress: vec![],
            outputs: Outputs::default(),
            unschedulable: None,
            clear_certificates: Some(false),
        };
        let cluster = key(&format!("Cluster/acme/{name}"));
        let fleet = self.resources.get(&cluster).and_then(Resource::fleet).unwrap_or_else(fleet_key);
        let target = self.observed.fleets.get_mut(&fleet).unwrap();
        let health = target.health.get_or_insert_with(|| FleetHealth {
            status: is(Status::Healthy),
            clusters: BTreeMap::new(),
            on_clusters: BTreeMap::new(),
            unconfirmed: BTreeSet::new(),
        });
        health.clusters.insert(cluster, judgement);
    }
}

fn there(uid: String, manifest: Json) -> ObservedObject {
    let manifest = Some(manifest);
    ObservedObject {
        uid,
        ours: true,
        unchanged: true,
        manifest,
        changed_by: None,
        contested: Vec::new(),
        obstacle: None,
    }
}

/// Three clusters that were applied without protection, and whose specs are gone.
fn three_removed() -> Lab {
    let mut lab = Lab::with(&["a", "b", "c"]);
    ["a", "b", "c"].iter().for_each(|name| lab.unprotected(name));
    lab.settle();
    ["a", "b", "c"].iter().for_each(|name| lab.remove(&format!("Cluster/acme/{name}")));
    lab
}

fn change<'a>(plan: &'a Plan, text: &str) -> &'a Change {
    plan.changes()
        .find(|change| change.resource == key(text))
        .unwrap_or_else(|| panic!("{text} in {plan:#?}"))
}

fn resources(changes: impl Iterator<Item = Change>) -> Vec<String> {
    changes.map(|change| change.resource.path()).collect()
}

fn running(plan: &Plan) -> Vec<String> {
    resources(plan.changes().filter(|change| change.waiting.is_empty()).cloned())
}

fn waiting(plan: &Plan) -> Vec<String> {
    resources(plan.changes().filter(|change| !change.waiting.is_empty()).cloned())
}

fn at(hour: u32) -> Timestamp {
    format!("2026-11-21T{hour:02}:00:00Z").parse().unwrap()
}
