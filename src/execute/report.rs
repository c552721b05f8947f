//! What came of executing a plan.

use std::fmt;

use crate::names::{FleetKey, ObjectKey, ResourceKey};
use crate::plan::{UNREACHED, Verb};
use crate::problem::Origin;
use crate::secret::SecretError;
use crate::state::StateError;
use crate::target::TargetError;

/// What came of executing a plan.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The resources that are as their specs say now, or gone.
    pub done: Vec<Done>,
    /// What could not be done. What doesn't depend on it was done all the same.
    pub failed: Vec<Failure>,
    /// How many steps were taken on targets.
    pub steps: usize,
}

impl Report {
    /// Adds what came of another part of the plan.
    pub(super) fn add(&mut self, Report { done, failed, steps }: Report) {
        self.done.extend(done);
        self.failed.extend(failed);
        self.steps += steps;
    }
}

/// One resource that is done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Done {
    /// The fleet that it lives on; none where it lives on none.
    pub fleet: Option<FleetKey>,
    /// The resource.
    pub resource: ResourceKey,
    /// What was done to it.
    pub verb: Verb,
}

/// One thing that could not be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The fleet; none where it is no fleet's matter.
    pub fleet: Option<FleetKey>,
    /// The resource whose change it stops; none where everything that was to be changed is done.
    pub resource: Option<ResourceKey>,
    /// Where the spec stands that asks for it; none where no spec does.
    pub origin: Option<Origin>,
    /// The object at which it failed; none where it was no object's fault.
    pub object: Option<ObjectKey>,
    /// What was attempted and why it failed, in one sentence without a full stop.
    pub message: String,
    /// What to do next.
    pub hint: String,
    /// Whether `message` tells of the network, which is for those to know who run this.
    pub concealed: bool,
}

impl Failure {
    /// The same as tenants are told it.
    pub fn for_tenants(&self) -> Failure {
        Failure { message: for_tenants(&self.message, self.concealed), ..self.clone() }
    }
}

/// What tenants are told of a message.
pub(super) fn for_tenants(message: &str, concealed: bool) -> String {
    if concealed { UNREACHED.to_owned() } else { message.to_owned() }
}

/// `cluster acme/orders (acme/clusters/orders.yaml:8): cannot write …`.
impl fmt::Display for Failure {
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

/// What is happening, for who watches.
#[derive(Debug, Clone, Copy)]
pub enum Progress<'a> {
    /// A fleet's steps begin.
    Fleet {
        /// The fleet.
        fleet: &'a FleetKey,
        /// How many steps there are.
        steps: usize,
    },
    /// A step begins.
    Step {
        /// The fleet.
        fleet: &'a FleetKey,
        /// The resource that it is taken for.
        resource: &'a ResourceKey,
        /// What is done.
        verb: Verb,
        /// To what.
        object: &'a ObjectKey,
    },
    /// A step ended.
    StepEnded {
        /// What was to be done.
        verb: Verb,
        /// Whether it was.
        done: bool,
    },
    /// A resource is done.
    Done(&'a Done),
    /// Something failed.
    Failed(&'a Failure),
}

/// Why something could not be done, before it is known what it stops.
#[derive(Debug, Clone)]
pub(super) struct Fault {
    pub(super) message: String,
    pub(super) hint: String,
    /// Whether the message tells of the network.
    pub(super) concealed: bool,
}

impl Fault {
    pub(super) fn new(message: impl Into<String>, hint: impl Into<String>) -> Fault {
        Fault { message: message.into(), hint: hint.into(), concealed: false }
    }
}

impl From<StateError> for Fault {
    fn from(error: StateError) -> Fault {
        Fault::new(error.to_string(), error.hint())
    }
}

impl From<SecretError> for Fault {
    fn from(error: SecretError) -> Fault {
        Fault::new(error.message, error.hint)
    }
}

impl From<TargetError> for Fault {
    fn from(error: TargetError) -> Fault {
        Fault { concealed: error.is_unreached(), ..Fault::new(error.to_string(), error.hint()) }
    }
}
