//! How components report health: the objects that they read, and the types of their results.

mod observation;
pub mod read_objects;
pub mod reading;
pub mod source;
pub mod timing;
pub mod words;

pub use super::gateway::health::{GatewayName, GatewayWithoutAddress};
pub use super::kafka::health::{
    AppliedCluster, ClusterObservation, HealthMemory, HealthProgress, Judgement, Outputs, PendingDestruction,
    ProbeUser, PublicListener, PublicSide, SCALE_DOWN_PREVENTION, WantedPool, applied_manifests, is_leaving,
    is_troubled, judge, judge_unobserved, objects,
};
pub use super::strimzi::health::{OperatorState, lacks_operator};
pub use observation::{AppliedClusters, FleetObservation, observation};
pub use read_objects::{HealthQuery, ReadObjects};
pub use source::{FieldPath, HealthSource, ReadWhen};
