//! The capacity of nodes, parsed from the server's answers.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::name::name;
use crate::component::labels::{DEDICATED, ZONE};
use crate::names::tenths;

/// The total capacity of the nodes for pods.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NodeCapacity {
    /// The number of nodes that accept pods.
    pub nodes: u32,
    /// Their processors, in millicores.
    pub cpu_millis: u64,
    /// Their memory, in MiB.
    pub memory_mib: u64,
}

impl NodeCapacity {
    /// Cordoned and tainted nodes don't count, except for the taint that reserves a node for a cluster.
    pub fn of<'a>(nodes: impl IntoIterator<Item = &'a Value>) -> NodeCapacity {
        let quantity = |node: &Value, name: &str| {
            let amount = crate::names::quantity(node.pointer("/status/allocatable")?.get(name)?.as_str()?);
            amount.filter(|amount| *amount >= 0.0)
        };
        let mut room = NodeCapacity::default();
        for node in nodes.into_iter().filter(|node| takes_pods(node)) {
            room.nodes += 1;
            // The values are whole millicores and MiB, far below the limits of exact floating-point integers.
            room.cpu_millis += (quantity(node, "cpu").unwrap_or_default() * 1000.0) as u64;
            room.memory_mib += (quantity(node, "memory").unwrap_or_default() / 1_048_576.0) as u64;
        }
        room
    }

    /// Describes the capacity of the nodes, rounded down, so that it really exists.
    pub(in crate::plan) fn words(&self, and: &str) -> String {
        let &NodeCapacity { nodes, cpu_millis, memory_mib } = self;
        if nodes == 0 {
            return "no node accepts pods".to_owned();
        }
        let whole = |amount: u64, unit: u64| tenths(amount.saturating_mul(10) / unit, 10);
        let (cpus, memory) = (whole(cpu_millis, 1000), whole(memory_mib, 1024));
        format!("its nodes have {cpus} CPUs{and}{memory} GiB of memory for them")
    }
}

/// Whether a node accepts our pods.
pub(super) fn takes_pods(node: &Value) -> bool {
    let taints = node.pointer("/spec/taints").and_then(Value::as_array).into_iter().flatten();
    let mut forbidding = taints
        .filter(|taint| taint["effect"] != "PreferNoSchedule" && taint["key"] != crate::component::DEDICATED);
    forbidding.next().is_none() && node.pointer("/spec/unschedulable") != Some(&Value::Bool(true))
}

/// The placement constraints that some nodes that accept pods share.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct NodeConstraints {
    pub zone: Option<String>,
    /// The cluster that they are labelled for.
    pub labelled: Option<String>,
    /// The cluster that they are tainted for.
    pub tainted: Option<String>,
}

impl NodeConstraints {
    pub fn all<'a>(nodes: impl IntoIterator<Item = &'a Value>) -> BTreeSet<NodeConstraints> {
        let label = |node: &Value, label: &str| name(node.pointer("/metadata/labels")?.get(label)?.as_str()?);
        let taint = |node: &Value| {
            let taints = node.pointer("/spec/taints")?.as_array()?;
            let reserved =
                |taint: &&Value| taint["key"] == DEDICATED && taint["effect"] != "PreferNoSchedule";
            name(taints.iter().find(reserved)?["value"].as_str()?)
        };
        let place = |node: &Value| NodeConstraints {
            zone: label(node, ZONE),
            labelled: label(node, DEDICATED),
            tainted: taint(node),
        };
        nodes.into_iter().filter(|node| takes_pods(node)).map(place).collect()
    }

    /// Whether pods may run there: those of a tenant with its own nodes, or any others.
    pub(super) fn takes(&self, tenant: Option<&str>) -> bool {
        match tenant {
            Some(tenant) => {
                self.labelled.as_deref() == Some(tenant)
                    && self.tainted.as_ref().is_none_or(|tainted| tainted == tenant)
            }
            None => self.tainted.is_none(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_place_is_where_nodes_take_pods() {
        let node = |labels: Value, spec: Value| json!({"metadata": {"labels": labels}, "spec": spec});
        let taint = |effect: &str| json!({"taints": [{"key": DEDICATED, "value": "t", "effect": effect}]});
        let nodes = [
            node(json!({ZONE: "a"}), json!({})),
            node(json!({ZONE: "a", "more": "x"}), json!({})),
            node(json!({ZONE: "b"}), json!({"unschedulable": true})),
            node(json!({ZONE: "c", DEDICATED: "t"}), taint("NoSchedule")),
            node(json!({DEDICATED: "t"}), taint("PreferNoSchedule")),
            json!({}),
        ];
        let place = |zone: &str, labelled: &str, tainted: &str| {
            let [zone, labelled, tainted] =
                [zone, labelled, tainted].map(|it| (!it.is_empty()).then(|| it.to_owned()));
            NodeConstraints { zone, labelled, tainted }
        };
        let found = NodeConstraints::all(&nodes);
        assert_eq!(
            found,
            [place("", "", ""), place("", "t", ""), place("a", "", ""), place("c", "t", "t")].into()
        );
        let takes = |tenant| found.iter().filter(move |place| place.takes(tenant)).count();
        assert_eq!((takes(None), takes(Some("t")), takes(Some("other"))), (3, 2, 0));
    }
}
