//! The operators on a Kubernetes cluster, as far as they were read.

use serde_json::Value;

use super::health::OperatorState;
use super::kinds::DEPLOYMENT;
use crate::component::health::{AppliedClusters, ReadObjects};
use crate::names::Json;

/// How many operators of one Kubernetes cluster are read: one for each namespace of the largest fleet.
const MAX_OPERATORS: usize = 1_000;

/// The Deployments that may be an operator; `None` if they can't be read.
pub struct Operators(Option<Vec<Value>>);

impl Operators {
    pub fn of(read: &ReadObjects) -> Self {
        Self(read.of(&DEPLOYMENT).map(|operators| operators.take(MAX_OPERATORS).map(Json::value).collect()))
    }

    /// The operator of a fleet: that of any of its clusters.
    pub fn of_any(&self, wanted: &AppliedClusters) -> OperatorState {
        self.of_namespace(wanted.values().next().map_or("", |wanted| &wanted.namespace))
    }

    pub fn of_namespace(&self, namespace: &str) -> OperatorState {
        match &self.0 {
            Some(operators) => OperatorState::of_namespace(operators, namespace),
            None => OperatorState::Unknown,
        }
    }
}
