use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::catalog::Condition;
use crate::names::InvalidName;

/// The status of a fleet or a cluster, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Status {
    /// The document is known, and none of its objects was created yet; or nobody has observed yet how they are.
    Pending,
    /// The resource is being created.
    Provisioning,
    /// The manifests are written to a folder. Health can't be observed there.
    Written,
    /// The resource works.
    Healthy,
    /// The resource works and is being changed.
    Updating,
    /// The resource works and is changing to another version.
    Upgrading,
    /// The resource works in part, or needs attention.
    Degraded,
    /// The target can't be reached, so the resource's state is unknown.
    Unreachable,
    /// The resource is left unchanged because its document says `suspend: true`.
    Suspended,
    /// The resource doesn't work.
    Failed,
    /// The resource is being deleted.
    Deleting,
}

impl Status {
    /// Every status, in the order of a resource's life.
    pub const ALL: [Status; 11] = [
        Status::Pending,
        Status::Provisioning,
        Status::Written,
        Status::Healthy,
        Status::Updating,
        Status::Upgrading,
        Status::Degraded,
        Status::Unreachable,
        Status::Suspended,
        Status::Failed,
        Status::Deleting,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Status::Pending => "Pending",
            Status::Provisioning => "Provisioning",
            Status::Written => "Written",
            Status::Healthy => "Healthy",
            Status::Updating => "Updating",
            Status::Upgrading => "Upgrading",
            Status::Degraded => "Degraded",
            Status::Unreachable => "Unreachable",
            Status::Suspended => "Suspended",
            Status::Failed => "Failed",
            Status::Deleting => "Deleting",
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Status {
    type Err = InvalidName;
    fn from_str(text: &str) -> Result<Self, InvalidName> {
        Status::ALL
            .into_iter()
            .find(|status| status.as_str() == text)
            .ok_or_else(|| InvalidName { text: text.to_owned(), expected: "a status" })
    }
}

/// The status of a fleet or a cluster, with its reason and time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ResourceStatus {
    /// The status in one word.
    pub status: Status,
    /// The reason in one sentence; none if the word says it all.
    pub reason: Option<String>,
    /// Further conditions, such as warnings.
    pub conditions: Vec<Condition>,
    /// When it got this status.
    pub since: Timestamp,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_is_read_back_as_it_is_written() {
        for status in Status::ALL {
            assert_eq!(status.as_str().parse(), Ok(status));
            assert_eq!(serde_json::to_value(status).unwrap(), status.as_str());
        }
        assert_eq!("healthy".parse::<Status>().unwrap_err().to_string(), "`healthy` is not a status");
    }
}
