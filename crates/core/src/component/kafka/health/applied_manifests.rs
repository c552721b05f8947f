//! The wanted state of clusters, read from the manifests that were last applied.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::view::PAUSE;
use crate::catalog::RecordedObject;
use crate::component;
use crate::component::gateway;
use crate::component::gateway::health::GatewayName;
use crate::component::health::reading::{annotated, at, count, items, name, number, text};
use crate::component::health::{AppliedClusters, ReadWhen};
use crate::component::http_workload::kinds::{COMPONENT_LABEL, DEPLOYMENT as WORKLOAD};
use crate::component::kafka::user;
use crate::names::{Digest, Json, Kind, ObjectKey, ResourceKey};
use crate::spec::certificate::read_ders;

/// A cluster as it was last applied. A change that still waits, for approval or for its turn, is left out:
/// otherwise the cluster would seem to be changing while nothing happens.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AppliedCluster {
    pub namespace: String,
    pub cluster: String,
    pub deleting: bool,
    /// Whether reconciliation is paused by annotation.
    pub paused: bool,
    pub version: Option<String>,
    pub metadata_version: Option<String>,
    pub pools: BTreeMap<String, WantedPool>,
    /// The digest of the leaf certificate (DER) that each listener should present, by listener name.
    /// Listeners without an entry aren't compared.
    pub certificates: BTreeMap<String, Digest>,
    /// The digest of everything whose change may restart pods; `None` if unknown. It excludes `deleteClaim`,
    /// which only decides what happens to disks when the cluster is deleted.
    pub restarts: Option<Digest>,
    /// Digests of all applied objects. They distinguish observations of this version from older ones.
    pub applied: Vec<Digest>,
    /// The Gateway that clients connect through, if there is one.
    pub gateway: Option<GatewayName>,
    /// How clients outside of Kubernetes connect; `None` if they can't.
    pub public: Option<PublicListener>,
    /// The kinds that were applied for it, or for its topics and users, of those that are read only then.
    pub kinds: BTreeSet<&'static str>,
    /// The names of the Deployments that were applied for it.
    pub deployments: BTreeSet<String>,
    /// Whether all manifests were recorded, so that their digests in `applied` stand for them.
    pub is_recorded: bool,
}

/// The listener for clients outside of Kubernetes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicListener {
    pub bootstrap: String,
    /// With `{nodeId}` in the place of the broker's id.
    pub broker: String,
    pub port: u16,
    /// The certificates that brokers present, in PEM.
    pub chain: Option<String>,
    /// The KafkaUser as which Streamfleet connects. `None` if there is none.
    pub user: Option<ProbeUser>,
}

/// The KafkaUser as which Streamfleet connects to a cluster. Its Secret has the same name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbeUser {
    pub name: String,
    /// Whether it logs in by a client certificate, instead of a password.
    pub has_certificate: bool,
}

impl PublicListener {
    pub fn of_broker(&self, id: u32) -> String {
        self.broker.replace("{nodeId}", &id.to_string())
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WantedPool {
    pub replicas: u32,
    /// Whether the nodes are controllers; they may be brokers, too.
    pub controller: bool,
}

impl AppliedCluster {
    /// Reads the manifests of one cluster; `None` if they contain no Kafka object.
    pub fn of<'a>(manifests: impl IntoIterator<Item = &'a Value> + Clone) -> Option<Self> {
        let of_kind = |kind: &'static str| {
            let is_it = move |manifest: &&Value| text(manifest, &["kind"]).as_deref() == Some(kind);
            manifests.clone().into_iter().filter(is_it)
        };
        let kafka = of_kind("Kafka").next()?;
        let pools = of_kind("KafkaNodePool").filter_map(|pool| Some((name(pool)?, WantedPool::read(pool))));
        let chains: BTreeMap<String, Digest> =
            of_kind("Secret").filter_map(|secret| Some((name(secret)?, certificate(secret)?))).collect();
        let certificate = |listener: &Value| {
            let secret = text(listener, &["configuration", "brokerCertChainAndKey", "secretName"])?;
            Some((text(listener, &["name"])?, chains.get(&secret)?.clone()))
        };
        let listeners = || items(kafka, &["spec", "kafka", "listeners"]);
        let user = name(kafka).map(|cluster| user::probe_name(&cluster)).and_then(|probe| {
            of_kind("KafkaUser").find(|user| name(user).as_ref() == Some(&probe)).map(|user| ProbeUser {
                has_certificate: text(user, &["spec", "authentication", "type"]).as_deref() == Some("tls"),
                name: probe,
            })
        });
        let chain =
            |secret: &str| of_kind("Secret").find(|it| name(it).as_deref() == Some(secret)).and_then(chain);
        Some(Self {
            namespace: text(kafka, &["metadata", "namespace"])?,
            cluster: name(kafka)?,
            deleting: false,
            paused: annotated(kafka, PAUSE).as_deref() == Some("true"),
            version: text(kafka, &["spec", "kafka", "version"]),
            metadata_version: text(kafka, &["spec", "kafka", "metadataVersion"]),
            pools: pools.collect(),
            certificates: listeners().filter_map(certificate).collect(),
            restarts: Some(restarts(manifests.clone())),
            applied: Vec::new(),
            gateway: listeners().find_map(gateway_of),
            public: listeners().find_map(|listener| public(listener, chain, user.clone())),
            kinds: BTreeSet::new(),
            deployments: BTreeSet::new(),
            is_recorded: false,
        })
    }
}

#[derive(Default)]
struct AppliedObjects<'a> {
    /// The objects that tell what is wanted, in order.
    manifests: Vec<(&'a ObjectKey, &'a RecordedObject)>,
    kinds: BTreeSet<&'static str>,
    deployments: BTreeSet<String>,
}

/// Reads the clusters of a fleet. `objects` are the recorded objects with their manifests as last applied.
/// `live` returns an object as it is on the target, for one whose record was lost. Clusters without a Kafka
/// object are left out. `before` is an earlier result, which spares reading the same manifests again.
pub fn of_fleet<'a>(
    objects: impl IntoIterator<Item = (&'a ObjectKey, &'a RecordedObject)>,
    live: impl Fn(&ObjectKey) -> Option<Json>,
    deleting: impl Fn(&ResourceKey) -> bool,
    before: Option<&AppliedClusters>,
) -> AppliedClusters {
    let is_read =
        |key: &ObjectKey| ["Kafka", "KafkaNodePool", "KafkaUser", "Secret"].contains(&key.kind.as_str());
    let read_where_applied: BTreeSet<&'static str> = component::kinds()
        .filter(|kind| kind.health.is_some_and(|source| source.when == ReadWhen::Applied))
        .map(|kind| kind.kind)
        .collect();
    let mut clusters: BTreeMap<ResourceKey, AppliedObjects> = BTreeMap::new();
    for (key, object) in objects {
        let kind = read_where_applied.get(key.kind.as_str());
        if object.owner.kind == Kind::Cluster {
            let applied = clusters.entry(object.owner.clone()).or_default();
            applied.kinds.extend(kind);
            applied.deployments.extend((key.kind == WORKLOAD.kind).then(|| key.name.clone()));
            applied.manifests.extend(is_read(key).then_some((key, object)));
        } else if let (Some(kind), Some((cluster, _))) = (kind, object.owner.within_cluster()) {
            clusters.entry(cluster).or_default().kinds.insert(kind);
        }
    }
    let wanted =
        clusters.into_iter().filter_map(|(owner, AppliedObjects { manifests, kinds, deployments })| {
            let is_recorded = manifests.iter().all(|(_, object)| object.manifest.is_some());
            let applied: Vec<Digest> = manifests.iter().map(|(_, object)| object.applied.clone()).collect();
            let is_same = |was: &&AppliedCluster| was.is_recorded && is_recorded && was.applied == applied;
            let wanted = match before.and_then(|before| before.get(&owner)).filter(is_same) {
                Some(was) => was.clone(),
                None => {
                    let manifest = |(key, object): &(&ObjectKey, &RecordedObject)| {
                        object.manifest.clone().or_else(|| live(key)).map(|manifest| manifest.value())
                    };
                    AppliedCluster::of(&manifests.iter().filter_map(manifest).collect::<Vec<_>>())?
                }
            };
            let deleting = deleting(&owner);
            Some((owner, AppliedCluster { deleting, applied, kinds, deployments, is_recorded, ..wanted }))
        });
    wanted.collect()
}

/// The digest of the manifests without users, workloads beside the brokers and `deleteClaim`, which restart nothing.
fn restarts<'a>(manifests: impl IntoIterator<Item = &'a Value>) -> Digest {
    let is_beside = |manifest: &&Value| {
        text(manifest, &["kind"]).as_deref() == Some("KafkaUser")
            || at(manifest, &["metadata", "labels", COMPONENT_LABEL]).is_some()
    };
    let said = manifests.into_iter().filter(|manifest| !is_beside(manifest)).map(|manifest| {
        let mut manifest = manifest.clone();
        let volumes = manifest.pointer_mut("/spec/storage/volumes").and_then(Value::as_array_mut);
        for volume in volumes.into_iter().flatten().filter_map(Value::as_object_mut) {
            volume.remove("deleteClaim");
        }
        manifest.to_string()
    });
    Digest::of(said.collect::<Vec<_>>().join("\n"))
}

impl WantedPool {
    fn read(pool: &Value) -> Self {
        let controller = items(pool, &["spec", "roles"]).any(|role| role == "controller");
        Self { replicas: count(pool, &["spec", "replicas"]).unwrap_or_default(), controller }
    }
}

/// The digest of the first certificate in a listener's Secret.
fn certificate(secret: &Value) -> Option<Digest> {
    read_ders(&chain(secret)?).ok()?.into_iter().next().map(Digest::of)
}

/// The certificates of a listener's Secret, in PEM.
fn chain(secret: &Value) -> Option<String> {
    let chain = at(secret, &["data"])?.get("tls.crt")?.as_str()?;
    String::from_utf8(STANDARD.decode(chain).ok()?).ok()
}

/// Reads the listener for clients outside of Kubernetes; `None` if it is another one. Behind a Gateway, all brokers
/// have the Gateway's port.
fn public(
    listener: &Value,
    chain: impl Fn(&str) -> Option<String>,
    user: Option<ProbeUser>,
) -> Option<PublicListener> {
    let of = |path: &[&str]| text(at(listener, &["configuration"])?, path);
    let (bootstrap, broker, port) = match text(listener, &["type"])?.as_str() {
        "loadbalancer" => {
            let names = &mut items(listener, &["configuration", "bootstrap", "alternativeNames"]);
            let bootstrap = names.next()?.as_str()?.to_owned();
            (bootstrap, of(&["advertisedHostTemplate"])?, number(listener, &["port"])?)
        }
        "tlsroute" => (of(&["bootstrap", "host"])?, of(&["hostTemplate"])?, gateway::PORT),
        _ => return None,
    };
    let chain = of(&["brokerCertChainAndKey", "secretName"]).and_then(|secret| chain(&secret));
    Some(PublicListener { bootstrap, broker, port, chain, user })
}

fn gateway_of(listener: &Value) -> Option<GatewayName> {
    let parent = items(listener, &["configuration", "parentRefs"]).next()?;
    Some(GatewayName { namespace: text(parent, &["namespace"])?, name: text(parent, &["name"])? })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::component::fixtures::{cluster, with_domain};
    use crate::spec::{DnsProvider, Exposure};

    #[test]
    fn the_public_names_are_read_from_what_was_rendered() {
        let public = |exposure: Exposure, overlay: Value| {
            let mut cluster = with_domain(cluster(overlay), DnsProvider::None);
            let fleet = Arc::make_mut(&mut cluster.fleet_spec);
            fleet.advanced_config.exposure = exposure;
            let config = crate::config::Config::default();
            let part = (crate::component::kafka::COMPONENT.in_cluster)(&cluster, &config).unwrap();
            let manifests: Vec<Value> = part.objects.iter().map(|object| object.body.value()).collect();
            AppliedCluster::of(&manifests).unwrap().public
        };
        let external = |authentication: &str| json!({"advanced_config": {"cluster_access": "External", "authentication": authentication}});
        let listener = public(Exposure::LoadBalancer, external("scram-sha-512")).unwrap();
        assert_eq!((listener.bootstrap.as_str(), listener.port), ("orders.k.example.com", 9094));
        assert_eq!(listener.of_broker(2), "broker-2--orders.k.example.com");
        assert!(listener.chain.unwrap().starts_with("-----BEGIN CERTIFICATE-----"));
        let user = |has_certificate| Some(ProbeUser { name: "orders-probe".to_owned(), has_certificate });
        assert_eq!(listener.user, user(false));
        let routed = public(Exposure::TlsRoute, external("mtls")).unwrap();
        assert_eq!((routed.bootstrap.as_str(), routed.port), ("orders.k.example.com", 443));
        assert_eq!(
            (routed.of_broker(0), routed.user),
            (listener.broker.replace("{nodeId}", "0"), user(true))
        );
        assert_eq!(
            public(Exposure::LoadBalancer, json!({"advanced_config": {"cluster_access": "Internal"}})),
            None
        );
    }

    #[test]
    fn manifests_are_read_again_only_if_others_were_applied() {
        let key =
            |name: &str| -> ObjectKey { format!("kafka.strimzi.io/v1|Kafka|n|{name}").try_into().unwrap() };
        let object = |applied: &str, version: Option<&str>| RecordedObject {
            owner: "Cluster/acme/orders".to_owned().try_into().unwrap(),
            uid: Some("u".to_owned()),
            applied: Digest::of(applied),
            manifest: version.map(|version| kafka(version).into()),
        };
        fn kafka(version: &str) -> Value {
            json!({"kind": "Kafka", "metadata": {"name": "orders", "namespace": "n"}, "spec": {"kafka": {"version": version}}})
        }
        let read = |object: RecordedObject, before: Option<&AppliedClusters>| {
            let objects = [(key("orders"), object)];
            let objects = objects.iter().map(|(key, object)| (key, object));
            of_fleet(objects, |_| Some(kafka("live").into()), |_| false, before)
        };
        let version = |clusters: &AppliedClusters| clusters.values().next().unwrap().version.clone().unwrap();
        let first = read(object("one", Some("4.2.0")), None);
        assert_eq!(version(&first), "4.2.0");
        // A digest stands for its manifest, so another manifest under it isn't even looked at.
        assert_eq!(read(object("one", Some("unread")), Some(&first)), first);
        assert_eq!(version(&read(object("two", Some("4.3.0")), Some(&first))), "4.3.0");
        // The object on the target may change without its digest.
        let unrecorded = read(object("one", None), Some(&first));
        assert_eq!(version(&unrecorded), "live");
        assert_eq!(version(&read(object("one", Some("4.2.0")), Some(&unrecorded))), "4.2.0");
    }

    #[test]
    fn what_is_wanted_is_read_from_manifests() {
        let pem = rcgen::generate_simple_self_signed(["orders.example.com".to_owned()]).unwrap().cert.pem();
        let kafka = json!({"kind": "Kafka", "metadata": {"name": "orders", "namespace": "n"}, "spec": {"kafka": {
            "version": "4.3.1", "metadataVersion": "4.3-IV0", "listeners": [{"name": "tls"}, {"name": "external",
                "configuration": {"brokerCertChainAndKey": {"secretName": "orders-tls"},
                    "parentRefs": [{"namespace": "streamfleet", "name": "kafka"}]}}]}}});
        let pool = |name: &str, role: &str| json!({"kind": "KafkaNodePool", "metadata": {"name": name}, "spec": {"replicas": 3, "roles": [role]}});
        let secret = json!({"kind": "Secret", "metadata": {"name": "orders-tls"},
            "data": {"tls.crt": STANDARD.encode(&pem), "tls.key": {"$secret": {}}}});
        let manifests = [kafka, pool("broker", "broker"), pool("controller", "controller"), secret];
        let der = read_ders(&pem).unwrap().remove(0);
        let of = |controller| WantedPool { replicas: 3, controller };
        assert_eq!(
            AppliedCluster::of(&manifests),
            Some(AppliedCluster {
                namespace: "n".into(),
                cluster: "orders".into(),
                version: Some("4.3.1".into()),
                metadata_version: Some("4.3-IV0".into()),
                pools: [("broker".into(), of(false)), ("controller".into(), of(true))].into(),
                certificates: [("external".into(), Digest::of(der))].into(),
                gateway: Some(GatewayName { namespace: "streamfleet".into(), name: "kafka".into() }),
                restarts: Some(restarts(&manifests)),
                ..AppliedCluster::default()
            })
        );
        assert_eq!(AppliedCluster::of(&manifests[1..]), None);
        assert_eq!(restarts(&manifests), restarts(manifests.iter().chain([&json!({"kind": "KafkaUser"})])));
        let stored = |claim: bool, size: &str| {
            let mut manifests = manifests.clone();
            manifests[1]["spec"]["storage"] = json!({"volumes": [{"deleteClaim": claim, "size": size}]});
            AppliedCluster::of(&manifests).unwrap().restarts
        };
        assert_eq!(stored(true, "1Gi"), stored(false, "1Gi"));
        assert_ne!(stored(true, "1Gi"), stored(true, "2Gi"));
    }
}
