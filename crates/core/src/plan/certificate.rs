//! The certificate that a change of a base domain gets from an authority.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::catalog::{IssueFailure, ManagedCertificate, Resource};
use crate::names::Digest;
use crate::plan::world::PlanContext;
use crate::plan::{FieldChange, Waiting};

/// A certificate to get before a base domain is recorded. Clusters use it in the plans that follow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CertificateOrder {
    /// The name that it is for: `*.acme.kafka.example.com`.
    pub name: String,
    /// The host of the authority.
    pub authority: String,
    /// When the one ends that it replaces; null for the first one.
    pub ends: Option<Timestamp>,
    /// The digest of the chain that it replaces; null for the first one.
    pub replaces: Option<Digest>,
    /// The inputs of the attempt: the domain, its DNS account and the authority.
    pub basis: Digest,
}

impl CertificateOrder {
    /// The consequence of the change, as a sentence.
    pub(super) fn effect(&self) -> String {
        let CertificateOrder { name, authority, ends, .. } = self;
        match ends {
            None => format!(
                "gets a certificate for {name} from {authority}; clusters of the domain use it with the next plan"
            ),
            Some(ends) => format!(
                "renews the certificate for {name} at {authority}, since it ends on {}; brokers restart for it with the \
                 plans that follow",
                ends.strftime("%Y-%m-%d %H:%M UTC")
            ),
        }
    }
}

/// The consequence of a change that makes clusters use what an authority issued, as a sentence.
pub(super) fn told(world: &PlanContext, resource: &Resource, fields: &[FieldChange]) -> Option<String> {
    let ManagedCertificate { authority, ends, .. } = world.catalog.managed.get(&resource.key)?;
    let ends = (*ends).filter(|_| fields.iter().any(|change| change.field == "tls_cert"))?;
    Some(format!(
        "uses the certificate that {authority} issued, until {}",
        ends.strftime("%Y-%m-%d %H:%M UTC")
    ))
}

/// Returns the certificate that a base domain is due for, and why it has to wait.
pub(super) fn of(world: &PlanContext, resource: &Resource) -> Option<(CertificateOrder, Option<Waiting>)> {
    let managed = world.catalog.managed.get(&resource.key)?;
    let now = world.policy.now;
    let ManagedCertificate { name, authority, ends, chain, basis, failure, .. } =
        managed.is_due(now).then_some(managed)?;
    let order = CertificateOrder {
        name: name.clone(),
        authority: authority.clone(),
        ends: *ends,
        replaces: chain.clone(),
        basis: basis.clone(),
    };
    let failure = failure.as_ref().filter(|failure| failure.until > now);
    let waiting = failure.map(|IssueFailure { why, hint, until, .. }| {
        let failed = format!("cannot get a certificate for {name} from {authority}: {why}");
        Waiting::Retry { failed, hint: hint.clone(), until: *until }
    });
    Some((order, waiting))
}
