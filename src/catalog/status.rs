//! What a person is told about a fleet or a cluster, in one word and the reasons for it.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::catalog::Condition;
use crate::names::InvalidName;

/// How a fleet or a cluster is, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Status {
    /// It is known and nothing of it was made yet.
    Pending,
    /// It is being made.
    Provisioning,
    /// Its manifests are written to a folder. How it runs isn't seen from here.
    Written,
    /// It works.
    Healthy,
    /// It works and is being changed.
    Updating,
    /// It works and is being moved to another version.
    Upgrading,
    /// It works in part, or something about it needs a person.
    Degraded,
    /// Its target can't be reached, so how it is isn't known.
    Unreachable,
    /// It is left as it is because somebody asked for that.
    Suspended,
    /// It doesn't work.
    Failed,
    /// It is being deleted.
    Deleting,
}

impl Status {
    /// Every status, in the order of a life.
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

    /// The status as answers and records spell it.
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

/// How a fleet or a cluster is, why, and since when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ResourceStatus {
    /// The one word.
    pub status: Status,
    /// Why, in one sentence; none where the word says it all.
    pub reason: Option<String>,
    /// What else a person should know.
    pub conditions: Vec<Condition>,
    /// When it came to have this status.
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
