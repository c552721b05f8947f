//! A Pod.

use serde_json::Value;

use super::reading::{conditions, deleting, holds, items, labelled, number, text};
use super::{CLUSTER, POOL};

/// What a pod says.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Pod {
    /// Which object it is: one that replaces it has the same name.
    pub uid: Option<String>,
    /// The node pool that it belongs to; none for what isn't Kafka itself.
    pub pool: Option<String>,
    /// Whether it is the cluster's entity operator.
    pub entity_operator: bool,
    /// Whether it runs what looks after the cluster beside Kafka: entity operator, Cruise Control, Kafka Exporter.
    pub helper: bool,
    /// Whether it is ready, and not about to end.
    pub ready: bool,
    /// Whether its deletion was asked for.
    pub deleting: bool,
    /// When it was made, as it is written: RFC 3339 to the second, which sorts as text.
    pub created: Option<String>,
    /// Why no node takes it, in the scheduler's words.
    pub unschedulable: Option<String>,
    /// Its containers, those that prepare it first.
    pub containers: Vec<Container>,
}

/// A container of a pod.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Container {
    /// Its name.
    pub name: String,
    /// Whether it has done what it is for: it is ready, or has ended well.
    pub fine: bool,
    /// How often it was restarted.
    pub restarts: u32,
    /// Why it doesn't run yet, as one word.
    pub waiting: Option<String>,
    /// The same in Kubernetes' words.
    pub waiting_message: Option<String>,
    /// How it ended, or ended last.
    pub ended: Option<Exit>,
}

/// How a container ended.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Exit {
    /// Its exit code.
    pub code: u32,
    /// Why, as one word: `Error`, `OOMKilled`.
    pub reason: Option<String>,
}

/// What Strimzi runs beside Kafka, by the end of the label that names it.
const HELPERS: [&str; 3] = ["-entity-operator", "-cruise-control", "-kafka-exporter"];

impl Pod {
    pub(super) fn read(object: &Value) -> Self {
        let unscheduled = |c: &super::OperatorCondition| c.kind == "PodScheduled" && !c.holds;
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
            Some(Exit { code, reason: text(value, &[state, "terminated", "reason"]) })
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
