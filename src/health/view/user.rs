//! A KafkaUser.

use serde_json::Value;

use super::OperatorCondition;
use super::reading::conditions;

/// What a user says.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct User {
    /// Whether its credentials are there.
    pub ready: bool,
    /// Why the operator failed to make them.
    pub failure: Option<OperatorCondition>,
}

impl User {
    pub(super) fn read(object: &Value) -> Self {
        let said = |kind| conditions(object).into_iter().find(|c| c.kind == kind && c.holds);
        Self { ready: said("Ready").is_some(), failure: said("NotReady") }
    }
}
