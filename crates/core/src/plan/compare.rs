//! The differences from the specs, their causes, and the effects of the changes.

pub(super) mod cause;
pub(super) mod diff;
pub(super) mod effects;
pub mod field_effects;
pub(super) mod fields;
pub(super) mod members;
pub(super) mod origins;
pub(super) mod upgrade;
pub(super) mod verdict;
