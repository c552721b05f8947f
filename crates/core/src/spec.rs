//! Spec documents as Rust types. Reading reports every problem of every file at once.

pub mod aws_keys;
mod base_domain;
pub mod broker_option;
pub mod certificate;
mod check;
mod choices;
mod cloud_account;
mod cluster;
pub mod describe;
mod document;
pub mod edit;
mod fields;
mod fleet;
mod identity;
mod identity_provider;
pub mod kubeconfig;
mod maintenance;
pub mod material;
mod organization;
mod private_key;
mod read;
mod redact;
mod remnants;
mod rules;
pub mod schema;
mod schema_registry;
mod secret_value;
mod shape;
mod snapshot;
mod text;
mod topic;
pub mod topic_option;
pub mod tsig_key;
mod user;
mod yaml;

pub use base_domain::{BaseDomain, DnsProvider};
pub use broker_option::BrokerConfig;
pub use choices::{Choice, choices};
pub use cloud_account::{CloudAccount, CloudProvider};
pub use cluster::{
    Authentication, Cluster, ClusterAccess, ClusterAdvancedConfig, ClusterType, OnDelete, Operations,
    Profile, Storage, Tag, TieredStorageProvider, ZoneCount,
};
pub use document::{
    Document, Documents, InvalidDocument, ParsedFile, SECRET_FIELDS, Safeguards, Spec, Unreadable,
    secret_pointer,
};
pub use fields::Fields;
pub use fleet::{
    Components, Exposure, Fleet, FleetAdvancedConfig, GatewayConfig, InfraType, Monitoring, OwnPrometheus,
    Prometheus, Reachability, TargetCapabilities, TenancyMode,
};
pub use identity::identity_fields;
pub use identity_provider::IdentityProvider;
pub use maintenance::{Day, MaintenanceWindow};
pub use organization::{Member, Organization, Quotas, Role};
pub use read::read;
pub use remnants::Remnants;
pub use schema_registry::{Compatibility, SchemaRegistry};
pub use secret_value::{SecretValue, one_line};
pub use snapshot::{Commit, Snapshot, SnapshotEntry, SourceId};
pub use text::{DocumentPlace, DocumentText};
pub use topic::{RESERVED_TOPICS, Topic, TopicOnDelete};
pub use topic_option::TopicConfig;
pub use user::{AccessEffect, AccessOperation, AccessResource, AccessRule, Consumption, RESERVED_ENDS, User};

pub const API_VERSION: &str = "streamfleet/v1";

/// The keys that identify every document.
pub const HEADER: [&str; 2] = ["apiVersion", "kind"];

pub const MAX_FILE_BYTES: usize = yaml::MAX_BYTES;

fn protected_by_default() -> bool {
    true
}
