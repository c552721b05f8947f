//! The operators of a fleet: those that others installed, and ours.

use super::facts::PreflightFacts;
use super::operator::Operator;
use crate::plan::model::site::FleetInputs;

/// Returns the operators that others installed, and ours as it will be. `None` if the first are unknown.
pub(super) fn all(site: &FleetInputs, facts: &PreflightFacts) -> Option<(Vec<Operator>, Option<Operator>)> {
    let objects = site.desired.into_iter().flat_map(|objects| objects.values());
    let mut deployments = objects.filter(|object| object.key.kind == "Deployment");
    let installed = deployments.find_map(|it| Operator::of(&it.body.value()));
    let mut others = facts.operators.clone()?;
    if let Some(ours) = &installed {
        others.retain(|other| (&other.namespace, &other.name) != (&ours.namespace, &ours.name));
    }
    Some((others, installed))
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
