//! The YAML as typed: six kinds of document, read with every problem of every file at once.

mod base_domain;
pub mod certificate;
mod cloud_account;
mod cluster;
mod document;
mod fleet;
mod identity_provider;
pub mod kubeconfig;
pub mod material;
mod organization;
mod private_key;
mod secret_value;
mod snapshot;

pub use base_domain::{BaseDomain, DnsProvider};
pub use cloud_account::{CloudAccount, CloudProvider};
pub use cluster::{
    Cluster, ClusterAccess, ClusterAdvancedConfig, ClusterType, OnDelete, Profile, Storage, Tag,
    TieredStorageProvider, ZoneCount,
};
pub use document::{Document, Documents, InvalidDocument, ParsedFile, Scope, Spec, Unreadable};
pub use fleet::{Components, Exposure, Fleet, FleetAdvancedConfig, InfraType, TenancyMode};
pub use identity_provider::IdentityProvider;
pub use organization::{Member, Organization, Quotas, Role};
pub use secret_value::SecretValue;
pub use snapshot::{Entry, Snapshot, SourceId};

/// The only value of `apiVersion` in a spec document.
pub const API_VERSION: &str = "streamfleet/v1";

/// The default of `deletion_protection`: what nobody spoke about is protected.
fn protected_by_default() -> bool {
    true
}
