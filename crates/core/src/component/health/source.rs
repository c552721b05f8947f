//! How health reads the objects of a kind.

use serde_json::Value;

/// A path of keys; `*` matches each item of a list.
pub type FieldPath = &'static [&'static str];

/// When the objects of a kind are read. Earlier ones are read first, since they decide about later ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReadWhen {
    Always,
    /// If nothing of the kind has its selector.
    Unselected,
    /// If the fleet has clusters.
    Clusters,
    /// If objects of the kind were applied for clusters, and while a cluster is being deleted, which they may outlive.
    Applied,
    /// While a cluster is being deleted. Only their existence matters, so they are never watched.
    Deleting,
    /// If clients connect through a Gateway.
    Routed,
    /// To explain trouble.
    Trouble,
}

#[derive(Debug, Clone, Copy)]
pub struct HealthSource {
    pub when: ReadWhen,
    /// The selector, as a part of the URL's query. Empty for all objects.
    pub selector: &'static str,
    /// Whether all objects are read if nothing has the selector.
    pub else_all: bool,
    /// Whether objects outside of the clusters' namespaces matter.
    pub anywhere: bool,
    /// The fields that are kept of an object, beside those that are kept of every object.
    pub fields: &'static [&'static [FieldPath]],
    /// Whether an object matters.
    pub includes: fn(&Value) -> bool,
}

impl HealthSource {
    /// Reads all objects in the clusters' namespaces.
    pub const fn new(when: ReadWhen, fields: &'static [&'static [FieldPath]]) -> Self {
        Self { when, selector: "", else_all: false, anywhere: false, fields, includes: |_| true }
    }

    pub const fn selecting(self, selector: &'static str) -> Self {
        Self { selector, ..self }
    }

    /// Whether the daemon watches the objects, instead of reading them when they are due.
    pub fn is_watched(&self) -> bool {
        self.when != ReadWhen::Deleting
    }

    pub const fn anywhere(self) -> Self {
        Self { anywhere: true, ..self }
    }
}
