use std::fmt;

use crate::names::{FleetKey, ObjectKey, ResourceKey};
use crate::plan::{UNREACHED, Verb};
use crate::problem::Origin;
use crate::secret::SecretError;
use crate::state::StateError;
use crate::target::{BucketError, TargetError};

#[derive(Debug, Default, PartialEq, Eq)]
pub struct ExecutionReport {
    /// Resources that are now as their specs say, or deleted.
    pub done: Vec<CompletedChange>,
    pub failed: Vec<ExecutionFailure>,
    /// The number of steps executed on targets.
    pub steps: usize,
}

impl ExecutionReport {
    pub(super) fn add(&mut self, ExecutionReport { done, failed, steps }: ExecutionReport) {
        self.done.extend(done);
        self.failed.extend(failed);
        self.steps += steps;
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompletedChange {
    pub fleet: Option<FleetKey>,
    pub resource: ResourceKey,
    pub verb: Verb,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutionFailure {
    /// `None` if it concerns no fleet.
    pub fleet: Option<FleetKey>,
    /// The resource whose change failed; `None` if all changes were made.
    pub resource: Option<ResourceKey>,
    pub origin: Option<Origin>,
    /// The object that failed, if any.
    pub object: Option<ObjectKey>,
    /// The attempt and why it failed, in one sentence without a full stop.
    pub message: String,
    pub hint: String,
    /// Whether `message` contains network details that only operators may see.
    pub concealed: bool,
    /// Whether only this resource waits for the next attempt, and not its fleet.
    pub alone: bool,
}

impl ExecutionFailure {
    /// The resource that is tried again by itself; `None` if all of its fleet is.
    pub fn retried(&self) -> Option<&ResourceKey> {
        self.resource.as_ref().filter(|_| self.alone)
    }

    /// The failure as tenants may see it.
    pub fn for_tenants(&self) -> ExecutionFailure {
        ExecutionFailure { message: for_tenants(&self.message, self.concealed), ..self.clone() }
    }
}

pub(super) fn for_tenants(message: &str, concealed: bool) -> String {
    if concealed { UNREACHED.to_owned() } else { message.to_owned() }
}

/// `cluster acme/orders (acme/clusters/orders.yaml:8): cannot write …`.
impl fmt::Display for ExecutionFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.resource, &self.fleet) {
            (Some(resource), _) => write!(f, "{resource}")?,
            (None, Some(fleet)) => write!(f, "fleet {fleet}")?,
            (None, None) => return f.write_str(&self.message),
        }
        if let Some(origin) = &self.origin {
            write!(f, " ({origin})")?;
        }
        write!(f, ": {}", self.message)
    }
}

#[derive(Debug, Clone, Copy)]
pub enum ExecutionProgress<'a> {
    Fleet { fleet: &'a FleetKey, steps: usize },
    Step { fleet: &'a FleetKey, resource: &'a ResourceKey, verb: Verb, object: &'a ObjectKey },
    StepEnded { verb: Verb, done: bool },
    Done(&'a CompletedChange),
    Failed(&'a ExecutionFailure),
}

/// An error of a step, before it is known which changes it stops.
#[derive(Debug, Clone)]
pub(super) struct StepFault {
    pub(super) message: String,
    pub(super) hint: String,
    pub(super) concealed: bool,
    pub(super) alone: bool,
}

impl StepFault {
    pub(super) fn new(message: impl Into<String>, hint: impl Into<String>) -> StepFault {
        StepFault { message: message.into(), hint: hint.into(), concealed: false, alone: false }
    }
}

impl From<StateError> for StepFault {
    fn from(error: StateError) -> StepFault {
        StepFault::new(error.to_string(), error.hint())
    }
}

impl From<SecretError> for StepFault {
    fn from(error: SecretError) -> StepFault {
        StepFault::new(error.message, error.hint)
    }
}

impl From<BucketError> for StepFault {
    fn from(error: BucketError) -> StepFault {
        StepFault { concealed: error.is_unreached(), ..StepFault::new(error.to_string(), error.hint()) }
    }
}

impl From<TargetError> for StepFault {
    fn from(error: TargetError) -> StepFault {
        let (concealed, alone) = (error.is_unreached(), error.is_of_record());
        StepFault { concealed, alone, ..StepFault::new(error.to_string(), error.hint()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenant_hears_nothing_of_an_address_that_is_not_reached() {
        let message = "cannot apply Kafka ns/a: 10.0.0.1:6443: connection refused (os error 111)";
        for (concealed, told) in [(true, UNREACHED), (false, message)] {
            let failed = ExecutionFailure {
                fleet: Some("acme/eu".to_owned().try_into().unwrap()),
                resource: None,
                origin: None,
                object: None,
                message: message.to_owned(),
                hint: "check it".to_owned(),
                concealed,
                alone: false,
            };
            assert_eq!(failed.for_tenants(), ExecutionFailure { message: told.to_owned(), ..failed });
        }
    }
}
