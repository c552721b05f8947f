//! The Kubernetes kinds that components use.

/// A kind of Kubernetes object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KubernetesKind {
    /// The API group; empty for the core group.
    pub group: &'static str,
    pub version: &'static str,
    pub kind: &'static str,
    /// The plural name, as in URLs and roles.
    pub plural: &'static str,
}

impl KubernetesKind {
    /// `kafka.strimzi.io/v1`, or `v1` for the core group.
    pub fn api_version(&self) -> String {
        match self.group {
            "" => self.version.to_owned(),
            group => format!("{group}/{}", self.version),
        }
    }
}
