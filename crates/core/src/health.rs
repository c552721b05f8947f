//! The health of a fleet: which objects it takes, and how the parts make a whole.
//!
//! Strimzi's `Ready` only says that the operator's last reconciliation succeeded. It stays true while every
//! pod is gone and the operator is down, while a broker crashes again and again, and while the controllers
//! have lost their quorum. So the component of a cluster judges it from pods, generations and time. Nothing
//! here reads a clock: [`judge_all`] takes the time and a memory of how long each sign has lasted, and returns
//! the next one.

mod collection;
mod fleet;
#[cfg(test)]
mod tests;

pub use crate::component::health::FleetObservation;
pub use collection::HealthCollection;
pub use fleet::{FleetHealth, FleetMemories, FleetMemory, judge, judge_all};
