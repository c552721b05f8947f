//! The facts of a Kubernetes cluster, in words, before any fleet uses it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::checks::OLDEST;
use super::context::listed;
use super::facts::PreflightFacts;
use super::needs;
use super::operator::Operator;
use crate::component::{Extras, MONITORING_API};

/// One thing that a fleet needs of its Kubernetes cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClusterFact {
    /// The subject: `Kubernetes`.
    pub subject: String,
    /// The finding: `1.34`.
    pub found: String,
    /// The remedy without which the fleet doesn't work; null if none is needed.
    pub advice: Option<String>,
}

impl ClusterFact {
    fn fine(subject: &str, found: impl Into<String>) -> ClusterFact {
        ClusterFact { subject: subject.to_owned(), found: found.into(), advice: None }
    }

    fn lacks(subject: &str, found: impl Into<String>, advice: impl Into<String>) -> ClusterFact {
        ClusterFact { advice: Some(advice.into()), ..ClusterFact::fine(subject, found) }
    }
}

/// Says what was found. `extras` are the components that the fleet would have. What couldn't be read is said to be
/// unknown.
pub fn report(facts: &PreflightFacts, extras: Extras) -> Vec<ClusterFact> {
    let mut all =
        vec![kubernetes(facts), permissions(facts), nodes(facts), operator(facts, extras), storage(facts)];
    all.extend(extras.gateway.then(|| gateway(facts)));
    all.extend(extras.monitoring.then(|| monitoring(facts)));
    all
}

const UNKNOWN: &str = "could not be read";

fn kubernetes(facts: &PreflightFacts) -> ClusterFact {
    const SUBJECT: &str = "Kubernetes";
    match facts.version {
        None => ClusterFact::fine(SUBJECT, UNKNOWN),
        Some(version) if version < OLDEST => {
            let advice = format!("upgrade it: Strimzi needs {OLDEST} or newer");
            ClusterFact::lacks(SUBJECT, version.to_string(), advice)
        }
        Some(version) => ClusterFact::fine(SUBJECT, version.to_string()),
    }
}

fn permissions(facts: &PreflightFacts) -> ClusterFact {
    const SUBJECT: &str = "Permissions";
    let Some(denied) = &facts.denied else { return ClusterFact::fine(SUBJECT, UNKNOWN) };
    if denied.is_empty() {
        return ClusterFact::fine(SUBJECT, "all that are needed");
    }
    let names: Vec<String> = denied.iter().map(ToString::to_string).collect();
    let rules: Vec<String> = needs::rules(denied.iter()).iter().map(ToString::to_string).collect();
    let advice = format!(
        "add to the `rules` of its ClusterRole: {}; `streamfleet role` prints the whole role",
        rules.join(", ")
    );
    ClusterFact::lacks(SUBJECT, format!("the user of the `kubeconfig` may not {}", listed(&names)), advice)
}

fn nodes(facts: &PreflightFacts) -> ClusterFact {
    const SUBJECT: &str = "Nodes";
    let Some(room) = facts.room else { return ClusterFact::fine(SUBJECT, UNKNOWN) };
    if room.nodes == 0 {
        return ClusterFact::lacks(
            SUBJECT,
            "none accepts pods",
            "add nodes, unless the cluster does so by itself",
        );
    }
    let free = facts.room_beside(&Default::default()).unwrap_or(room).words(" and ");
    let nodes =
        if room.nodes == 1 { "1 accepts pods".to_owned() } else { format!("{} accept pods", room.nodes) };
    let free = free.trim_end_matches(" for them").replacen("its nodes have", "free are", 1);
    ClusterFact::fine(SUBJECT, format!("{nodes}; {free}"))
}

fn operator(facts: &PreflightFacts, extras: Extras) -> ClusterFact {
    const SUBJECT: &str = "Strimzi operator";
    let Some(operators) = &facts.operators else { return ClusterFact::fine(SUBJECT, UNKNOWN) };
    let found = |operator: &Operator| match operator.kafka_versions.iter().cloned().collect::<Vec<_>>() {
        versions if versions.is_empty() => operator.to_string(),
        versions => format!("{operator}, for Kafka {}", listed(&versions)),
    };
    let names: Vec<String> = operators.iter().map(found).collect();
    match (operators.is_empty(), extras.operator) {
        (true, true) => ClusterFact::fine(SUBJECT, "none: the fleet will have its own"),
        (true, false) => ClusterFact::lacks(
            SUBJECT,
            "none",
            "install it, or set a version to install in `advanced_config.components.strimzi` of the fleet",
        ),
        (false, true) => ClusterFact::lacks(
            SUBJECT,
            names.join("; "),
            "set `strimzi: existing` in `advanced_config.components` of the fleet: a second operator would conflict with \
             it, unless this one is the fleet's own",
        ),
        (false, false) => ClusterFact::fine(SUBJECT, names.join("; ")),
    }
}

fn storage(facts: &PreflightFacts) -> ClusterFact {
    const SUBJECT: &str = "Storage classes";
    let Some(classes) = &facts.storage_classes else { return ClusterFact::fine(SUBJECT, UNKNOWN) };
    let words = |(name, class): (&String, &super::StorageClass)| match (class.default, class.expands) {
        (true, true) => format!("{name} (default)"),
        (true, false) => format!("{name} (default, disks can't grow)"),
        (false, true) => name.clone(),
        (false, false) => format!("{name} (disks can't grow)"),
    };
    let names: Vec<String> = classes.iter().map(words).collect();
    if names.is_empty() {
        return ClusterFact::lacks(SUBJECT, "none", "create one: brokers keep their data on disks");
    }
    match classes.values().any(|class| class.default) {
        true => ClusterFact::fine(SUBJECT, listed(&names)),
        false => ClusterFact::lacks(
            SUBJECT,
            listed(&names),
            "make one the default, or name one in each cluster's `advanced_config.storage.class`",
        ),
    }
}

fn gateway(facts: &PreflightFacts) -> ClusterFact {
    const SUBJECT: &str = "Gateway classes";
    let Some(classes) = &facts.gateway_classes else { return ClusterFact::fine(SUBJECT, UNKNOWN) };
    match classes.iter().cloned().collect::<Vec<_>>() {
        names if names.is_empty() => {
            ClusterFact::lacks(SUBJECT, "none", "install an implementation of the Gateway API")
        }
        names => ClusterFact::fine(SUBJECT, listed(&names)),
    }
}

fn monitoring(facts: &PreflightFacts) -> ClusterFact {
    const SUBJECT: &str = "Prometheus operator";
    match facts.kinds.get(MONITORING_API) {
        None => ClusterFact::fine(SUBJECT, UNKNOWN),
        Some(kinds) if kinds.is_empty() => {
            ClusterFact::lacks(SUBJECT, "none", "install it with its resource definitions")
        }
        Some(_) => ClusterFact::fine(SUBJECT, "its resource definitions are there"),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::super::{NodeCapacity, Permission, StorageClass, Version, Watches};
    use super::*;

    fn text(facts: &PreflightFacts, extras: Extras) -> String {
        let line = |ClusterFact { subject, found, advice }: &ClusterFact| {
            format!(
                "{subject}: {found}{}\n",
                advice.as_ref().map(|it| format!(" -> {it}")).unwrap_or_default()
            )
        };
        report(facts, extras).iter().map(line).collect()
    }

    #[test]
    fn what_is_there_and_what_is_missing_is_said_in_words() {
        let none = Extras::default();
        let unknown = text(&PreflightFacts::default(), none);
        assert_eq!(unknown.matches(UNKNOWN).count(), 5, "{unknown}");
        let operator = Operator {
            namespace: "strimzi".to_owned(),
            name: "operator".to_owned(),
            version: Some("1.2.0".to_owned()),
            kafka_versions: ["4.3.1".to_owned()].into(),
            watches: Watches::All,
        };
        let class = StorageClass { default: true, expands: true };
        let facts = PreflightFacts {
            version: Some(Version { major: 1, minor: 34 }),
            denied: Some(BTreeSet::new()),
            storage_classes: Some(BTreeMap::from([("fast".to_owned(), class)])),
            gateway_classes: Some(BTreeSet::new()),
            operators: Some(vec![operator]),
            room: Some(NodeCapacity { nodes: 3, cpu_millis: 12_000, memory_mib: 49_152 }),
            ..PreflightFacts::default()
        };
        assert_eq!(
            text(&facts, none),
            "Kubernetes: 1.34\nPermissions: all that are needed\nNodes: 3 accept pods; free are 12 CPUs and 48 GiB of \
             memory\nStrimzi operator: Strimzi 1.2.0 in strimzi/operator, for Kafka 4.3.1\nStorage classes: fast (default)\n"
        );
        let class = StorageClass { default: false, expands: false };
        let permission = Permission { group: "apps", resource: "deployments", verb: "create" };
        let facts = PreflightFacts {
            version: Some(Version { major: 1, minor: 29 }),
            denied: Some([permission].into()),
            storage_classes: Some(BTreeMap::from([("slow".to_owned(), class)])),
            kinds: BTreeMap::from([(MONITORING_API.to_owned(), BTreeSet::new())]),
            room: Some(NodeCapacity::default()),
            ..facts
        };
        let told =
            text(&facts, Extras { operator: true, gateway: true, monitoring: true, ..Extras::default() });
        for expected in [
            "Kubernetes: 1.29 -> upgrade it: Strimzi needs 1.30 or newer",
            "Permissions: the user of the `kubeconfig` may not create deployments",
            "Nodes: none accepts pods -> add nodes",
            "4.3.1 -> set `strimzi: existing`",
            "Storage classes: slow (disks can't grow) -> make one the default",
            "Gateway classes: none -> install an implementation",
            "Prometheus operator: none -> install it with its resource definitions",
        ] {
            assert!(told.contains(expected), "{expected}: {told}");
        }
    }
}
