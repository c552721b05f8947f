//! The operators of a fleet: those that others installed, and ours.

use std::collections::BTreeSet;

use super::facts::PreflightFacts;
use super::operator::Operator;
use crate::plan::model::site::FleetInputs;

/// Returns the operators that others installed, and ours as it will be. `None` if the first are unknown.
pub(super) fn all(site: &FleetInputs, facts: &PreflightFacts) -> Option<(Vec<Operator>, Option<Operator>)> {
    let installed = ours(site);
    let mut others = facts.operators.clone()?;
    if let Some(ours) = &installed {
        others.retain(|other| (&other.namespace, &other.name) != (&ours.namespace, &ours.name));
    }
    Some((others, installed))
}

fn ours(site: &FleetInputs) -> Option<Operator> {
    let objects = site.desired.into_iter().flat_map(|objects| objects.values());
    let mut deployments = objects.filter(|object| object.key.kind == "Deployment");
    deployments.find_map(|it| Operator::of(&it.body.value()))
}

/// The versions and disks that a fleet has for its clusters; `None` if unknown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FleetSupport {
    /// The versions of Kafka that its operators run.
    pub kafka_versions: Option<BTreeSet<String>>,
    pub storage: Option<StorageSupport>,
}

/// The storage classes of a Kubernetes cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StorageSupport {
    pub classes: BTreeSet<String>,
    /// The class of disks that name none.
    pub default: Option<String>,
}

impl FleetSupport {
    /// Whether a version of Kafka is run there. If unknown, the answer is yes.
    pub fn runs(&self, version: &str) -> bool {
        self.kafka_versions.as_ref().is_none_or(|versions| versions.contains(version))
    }

    pub(in crate::plan) fn of(site: &FleetInputs, facts: Option<&PreflightFacts>) -> Self {
        let operators = match facts.and_then(|facts| all(site, facts)) {
            Some((_, Some(ours))) => vec![ours],
            Some((others, None)) => others,
            None => ours(site).into_iter().collect(),
        };
        // One that doesn't say its versions may run any.
        let is_known =
            !operators.is_empty() && operators.iter().all(|operator| !operator.kafka_versions.is_empty());
        let versions = operators.into_iter().flat_map(|operator| operator.kafka_versions);
        let classes = facts.and_then(|facts| facts.storage_classes.as_ref());
        let storage = classes.map(|classes| StorageSupport {
            classes: classes.keys().cloned().collect(),
            default: classes.iter().find(|(_, class)| class.default).map(|(name, _)| name.clone()),
        });
        Self { kafka_versions: is_known.then(|| versions.collect()), storage }
    }
}

/// The known operators of a fleet, with the Kafka versions that they support.
pub(in crate::plan) struct SupportedVersions(Vec<Operator>);

impl SupportedVersions {
    pub fn on(site: &FleetInputs, facts: Option<&PreflightFacts>) -> Self {
        let known = facts.and_then(|facts| all(site, facts));
        Self(known.map_or(Vec::new(), |(others, installed)| installed.map_or(others, |ours| vec![ours])))
    }

    /// Whether all operators of a namespace are known to support a version, and there is at least one.
    pub fn is_run(&self, namespace: &str, version: &str) -> bool {
        let mut acting = self.0.iter().filter(|operator| operator.watches(namespace)).peekable();
        acting.peek().is_some() && acting.all(|operator| operator.kafka_versions.contains(version))
    }
}
