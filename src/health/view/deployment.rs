//! The operator's Deployment.

use serde_json::Value;

use super::reading::{count, name, text};

/// The operator that looks after the clusters of a fleet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Operator {
    /// Nothing is known of it.
    #[default]
    Unknown,
    /// Its Deployment doesn't exist.
    Missing,
    /// Its Deployment exists.
    Found {
        /// `namespace/name`.
        name: String,
        /// How many pods it asks for.
        wanted: u32,
        /// How many of them are ready.
        ready: u32,
    },
}

impl Operator {
    /// What a Deployment says; one that isn't there is missing.
    pub fn of(deployment: Option<&Value>) -> Self {
        let Some(object) = deployment else { return Self::Missing };
        let namespace = text(object, &["metadata", "namespace"]).unwrap_or_default();
        Self::Found {
            name: format!("{namespace}/{}", name(object).unwrap_or_default()),
            // Kubernetes' default.
            wanted: count(object, &["spec", "replicas"]).unwrap_or(1),
            ready: count(object, &["status", "readyReplicas"]).unwrap_or_default(),
        }
    }

    /// Whether it is known to do nothing at present.
    pub fn is_down(&self) -> bool {
        matches!(self, Self::Missing | Self::Found { ready: 0, .. })
    }
}
