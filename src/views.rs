//! Views of a round as data: the same whether a running process sends them or a command made the round
//! itself.

pub mod clients;
pub mod cost;
pub mod logs;
pub mod metrics;
pub mod pods;
pub mod records;
pub mod status;
pub mod why;

use std::collections::BTreeSet;

use crate::names::{Kind, ResourceKey};

/// Why a resource can't be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotFound {
    /// A sentence without a full stop.
    pub message: String,
    pub hint: String,
    /// Whether the command is at fault, and not the specs.
    pub is_usage: bool,
}

/// Splits a cluster's name as users write it into its organization, if it has one, and its identifier.
pub fn split_cluster(named: &str) -> (Option<&str>, &str) {
    let path = cluster_path(named);
    match path.split_once('/') {
        Some((organization, name)) => (Some(organization), name),
        None => (None, path),
    }
}

fn cluster_path(named: &str) -> &str {
    match named.split_once('/') {
        Some((kind, path)) if path.contains('/') && Kind::meant_by(kind) == Some(Kind::Cluster) => path,
        _ => named,
    }
}

/// Finds a cluster by its name or path among those known.
///
/// # Errors
/// When there is none, or the name exists in several organizations.
pub fn find_cluster(known: &BTreeSet<&ResourceKey>, named: &str) -> Result<ResourceKey, NotFound> {
    let path = cluster_path(named);
    let meant: Vec<&ResourceKey> =
        known.iter().copied().filter(|key| key.path() == path || key.name == path).collect();
    let names = |keys: &mut dyn Iterator<Item = &ResourceKey>| {
        keys.map(ResourceKey::path).collect::<Vec<_>>().join(", ")
    };
    let (message, hint) = match meant.as_slice() {
        [one] => return Ok((*one).clone()),
        [] if known.is_empty() => {
            (format!("there is no cluster {path}"), "the tree has no cluster".to_owned())
        }
        [] => {
            (format!("there is no cluster {path}"), format!("known: {}", names(&mut known.iter().copied())))
        }
        several => (
            format!("several organizations have a cluster {path}"),
            format!("use one of: {}", names(&mut several.iter().copied())),
        ),
    };
    Err(NotFound { message, hint, is_usage: meant.len() > 1 })
}
