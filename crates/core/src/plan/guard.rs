//! The reasons that keep a change from being made now.

pub(super) mod approval;
pub(super) mod awaited;
pub(super) mod disruption;
pub(super) mod in_use;
pub(super) mod maintenance;
pub(super) mod on_target;
pub(super) mod pause;
pub(super) mod refusal;
pub(super) mod same_cluster;
pub(super) mod unreached;
pub(super) mod waiting;
pub(super) mod withdrawn_secrets;
