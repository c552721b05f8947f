//! Facts about a fleet's Kubernetes cluster beside our own objects, parsed from the server's answers.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use jiff::Timestamp;
use serde_json::Value;

use super::name::name;
use super::needs::Permission;
use super::node::{NodeCapacity, NodeConstraints};
use super::operator::Operator;
use super::requests::Requests;
use crate::component::PrometheusSelectors;

/// Facts about a fleet's Kubernetes cluster, as plain data: while they are equal, planning again gives the
/// same result. What could not be read is `None`, and nothing is concluded from it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PreflightFacts {
    pub version: Option<Version>,
    /// Missing permissions, of those that were queried.
    pub denied: Option<BTreeSet<Permission>>,
    /// The API groups, each with its versions.
    pub groups: Option<BTreeMap<String, Vec<String>>>,
    /// The kinds of the queried API versions; empty for a version that isn't served.
    pub kinds: BTreeMap<String, BTreeSet<String>>,
    pub storage_classes: Option<BTreeMap<String, StorageClass>>,
    pub gateway_classes: Option<BTreeSet<String>>,
    pub operators: Option<Vec<Operator>>,
    /// The total capacity of the nodes for pods.
    pub room: Option<NodeCapacity>,
    /// The requests of the pods on those nodes.
    pub requests: Option<Requests>,
    /// The placement constraints of the nodes that accept our pods.
    pub places: Option<BTreeSet<NodeConstraints>>,
    pub load_balancers: Option<LoadBalancers>,
    /// The Prometheus objects; only of a fleet that has objects for them.
    pub prometheuses: Option<Vec<PrometheusSelectors>>,
    /// The labels of all namespaces, by name; only of such a fleet.
    pub namespaces: Option<BTreeMap<String, BTreeMap<String, String>>>,
}

impl PreflightFacts {
    /// Returns the capacity of the nodes less the requests of their pods, except those of Kafka clusters in
    /// the given namespaces. If the pods are unknown, nothing is subtracted.
    pub(in crate::plan) fn room_beside(&self, namespaces: &BTreeSet<&str>) -> Option<NodeCapacity> {
        let room = self.room?;
        let taken = self.requests.as_ref().map(|requests| requests.beside(namespaces)).unwrap_or_default();
        Some(NodeCapacity {
            cpu_millis: room.cpu_millis.saturating_sub(taken.cpu_millis),
            memory_mib: room.memory_mib.saturating_sub(taken.memory_mib),
            ..room
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    pub major: u32,
    pub minor: u32,
}

/// `1.34`.
impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

impl Version {
    /// Parses the answer of a server's `/version`. Some providers write the minor version as `34+`.
    pub fn of(answer: &Value) -> Option<Version> {
        let number = |field: &str| {
            let digits = answer.get(field)?.as_str()?.trim_end_matches(|it: char| !it.is_ascii_digit());
            digits.parse().ok()
        };
        Some(Version { major: number("major")?, minor: number("minor")? })
    }
}

/// The fields of a StorageClass that matter to Kafka's disks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StorageClass {
    /// Whether it is the default class.
    pub default: bool,
    pub expands: bool,
}

impl StorageClass {
    pub fn of(object: &Value) -> StorageClass {
        let annotations = object.pointer("/metadata/annotations");
        let mark = annotations
            .and_then(|annotations| annotations.get("storageclass.kubernetes.io/is-default-class"));
        StorageClass {
            default: mark.is_some_and(|mark| mark == "true"),
            expands: object.get("allowVolumeExpansion") == Some(&Value::Bool(true)),
        }
    }
}

/// The load balancers that Kafka clusters requested.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LoadBalancers {
    /// How many have an address.
    pub served: u32,
    /// The one that has waited longest for an address, as `namespace/name`, and since when.
    pub waiting: Option<(Timestamp, String)>,
}

impl LoadBalancers {
    pub fn of<'a>(services: impl IntoIterator<Item = &'a Value>) -> LoadBalancers {
        let mut found = LoadBalancers::default();
        for service in services {
            if service.pointer("/spec/type").is_none_or(|kind| kind != "LoadBalancer") {
                continue;
            }
            let addresses = service.pointer("/status/loadBalancer/ingress").and_then(Value::as_array);
            if addresses.is_some_and(|addresses| !addresses.is_empty()) {
                found.served += 1;
                continue;
            }
            let text = |field: &str| name(service.pointer("/metadata")?.get(field)?.as_str()?);
            let since = text("creationTimestamp").and_then(|time| time.parse().ok());
            let service = || Some(format!("{}/{}", text("namespace")?, text("name")?));
            if let Some(waiting) = since.zip(service())
                && found.waiting.as_ref().is_none_or(|before| waiting < *before)
            {
                found.waiting = Some(waiting);
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_version_is_read_as_servers_write_it() {
        for (minor, expected) in [("34", Some(34)), ("29+", Some(29)), ("", None), ("x", None)] {
            let version = Version::of(&json!({"major": "1", "minor": minor}));
            assert_eq!(version, expected.map(|minor| Version { major: 1, minor }), "{minor}");
        }
        assert_eq!(Version::of(&json!({"major": 1})), None);
        assert!(Version { major: 1, minor: 9 } < Version { major: 1, minor: 30 });
    }

    #[test]
    fn only_nodes_that_take_our_pods_count() {
        let node = |spec: Value| json!({"spec": spec, "status": {"allocatable": {"cpu": "3920m", "memory": "16Gi"}}});
        let taint =
            |key: &str, effect: &str| node(json!({"taints": [{"key": key, "value": "a", "effect": effect}]}));
        let nodes = [
            node(json!({})),
            node(json!({"unschedulable": true})),
            taint("node-role.kubernetes.io/control-plane", "NoSchedule"),
            taint("spot", "PreferNoSchedule"),
            taint("streamfleet.io/dedicated", "NoSchedule"),
            json!({"spec": {}, "status": {"allocatable": {"cpu": "many", "memory": "-1"}}}),
        ];
        assert_eq!(
            NodeCapacity::of(&nodes),
            NodeCapacity { nodes: 4, cpu_millis: 3 * 3920, memory_mib: 3 * 16_384 }
        );
    }

    #[test]
    fn a_load_balancer_waits_until_it_has_an_address() {
        let service = |name: &str, kind: &str, day: u32, ingress: Value| {
            json!({"metadata": {"name": name, "namespace": "n", "creationTimestamp": format!("2026-11-{day:02}T00:00:00Z")},
                "spec": {"type": kind}, "status": {"loadBalancer": ingress}})
        };
        let services = [
            service("late", "LoadBalancer", 9, json!({})),
            service("first", "LoadBalancer", 3, json!({"ingress": []})),
            service("inner", "ClusterIP", 1, json!({})),
            service("served", "LoadBalancer", 1, json!({"ingress": [{"ip": "192.0.2.1"}]})),
        ];
        let found = LoadBalancers::of(&services);
        assert_eq!(found.served, 1);
        assert_eq!(found.waiting, Some(("2026-11-03T00:00:00Z".parse().unwrap(), "n/first".to_owned())));
    }
}
