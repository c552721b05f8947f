use serde_json::Value;

use crate::component::health::reading::OperatorCondition;
use crate::component::health::reading::conditions;

/// A view of a KafkaUser.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct User {
    /// Whether its credentials exist.
    pub ready: bool,
    pub failure: Option<OperatorCondition>,
}

impl User {
    pub(super) fn read(object: &Value) -> Self {
        let said = |kind| conditions(object).into_iter().find(|c| c.kind == kind && c.holds);
        Self { ready: said("Ready").is_some(), failure: said("NotReady") }
    }
}
