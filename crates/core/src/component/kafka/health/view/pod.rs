use serde_json::Value;

use super::labels::{CLUSTER, POOL};
use crate::component::health::reading::{
    OperatorCondition, conditions, deleting, holds, items, labelled, number, text,
};

/// A view of a Pod.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Pod {
    /// Distinguishes it from a replacement of the same name.
    pub uid: Option<String>,
    /// `None` for pods that aren't Kafka itself.
    pub pool: Option<String>,
    pub entity_operator: bool,
    /// Whether it is the entity operator, Cruise Control or Kafka Exporter.
    pub helper: bool,
    /// Whether it is ready and not terminating.
    pub ready: bool,
    pub deleting: bool,
    /// As written: RFC 3339 to the second, which sorts as text.
    pub created: Option<String>,
    /// Why it fits no node, in the scheduler's words.
    pub unschedulable: Option<String>,
    /// Init containers first.
    pub containers: Vec<Container>,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Container {
    pub name: String,
    /// Whether it is ready or has exited with 0.
    pub fine: bool,
    pub restarts: u32,
    /// Why it doesn't run yet, one word.
    pub waiting: Option<String>,
    pub waiting_message: Option<String>,
    /// Its current exit, or else its last one.
    pub ended: Option<ContainerExit>,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct ContainerExit {
    pub code: u32,
    /// One word: `Error`, `OOMKilled`.
    pub reason: Option<String>,
}

/// The pods that Strimzi runs beside Kafka, by the suffix of the `strimzi.io/name` label.
const HELPERS: [&str; 3] = ["-entity-operator", "-cruise-control", "-kafka-exporter"];

impl Pod {
    pub(super) fn read(object: &Value) -> Self {
        let unscheduled = |c: &OperatorCondition| c.kind == "PodScheduled" && !c.holds;
        let leaving = deleting(object);
        let cluster = labelled(object, CLUSTER).unwrap_or_default();
        let name = labelled(object, "strimzi.io/name").unwrap_or_default();
        let is = |helper: &str| name.strip_prefix(&cluster) == Some(helper);
        let containers = ["initContainerStatuses", "containerStatuses"];
        Self {
            uid: text(object, &["metadata", "uid"]),
            pool: labelled(object, POOL),
            entity_operator: is("-entity-operator"),
            helper: HELPERS.into_iter().any(is),
            ready: holds(object, "Ready") && !leaving,
            deleting: leaving,
            created: text(object, &["metadata", "creationTimestamp"]),
            unschedulable: conditions(object).into_iter().find(unscheduled).map(|c| c.message),
            containers: containers
                .iter()
                .flat_map(|list| items(object, &["status", list]))
                .map(Container::read)
                .collect(),
        }
    }
}

impl Container {
    fn read(value: &Value) -> Self {
        let exit = |state: &str| {
            let code = number(value, &[state, "terminated", "exitCode"])?;
            Some(ContainerExit { code, reason: text(value, &[state, "terminated", "reason"]) })
        };
        let ready = value.get("ready").and_then(Value::as_bool).unwrap_or_default();
        Self {
            name: text(value, &["name"]).unwrap_or_default(),
            fine: ready || exit("state").is_some_and(|exit| exit.code == 0),
            restarts: number(value, &["restartCount"]).unwrap_or_default(),
            waiting: text(value, &["state", "waiting", "reason"]),
            waiting_message: text(value, &["state", "waiting", "message"]),
            ended: exit("state").or_else(|| exit("lastState")),
        }
    }
}
