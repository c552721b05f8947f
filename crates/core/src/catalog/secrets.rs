//! The opened secrets of a tree, as the core sees them. Opening them is an effect that happens before.

use std::collections::BTreeMap;

use jiff::Timestamp;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};

use crate::catalog::SecretMark;
use crate::names::{Digest, ResourceKey, SecretRef};
use crate::problem::Problem;

#[derive(Debug, Clone, Default)]
pub struct Secrets {
    pub opened: BTreeMap<SecretRef, OpenedSecret>,
    /// The certificates that Streamfleet got, by base domain. Their keys are among the opened secrets.
    pub certificates: BTreeMap<ResourceKey, IssuedCertificate>,
    /// Warnings about where secrets are kept, such as files that other users can read.
    pub warnings: Vec<Problem>,
}

/// The certificate that an authority issued for a base domain, or why it issued none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IssuedCertificate {
    /// The chain in PEM; `None` before the first one is issued.
    pub chain: Option<String>,
    /// When it is due for renewal.
    pub renew_at: Option<Timestamp>,
    /// When the authority is asked again how long it should be used.
    pub look_at: Option<Timestamp>,
    pub failure: Option<IssueFailure>,
}

/// Why the last attempt to get a certificate failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IssueFailure {
    /// As a clause.
    pub why: String,
    /// The way out.
    #[serde(default)]
    pub hint: String,
    /// What the attempt was made with. With anything else, the next attempt needn't wait.
    pub basis: Digest,
    /// How many attempts in a row failed.
    pub times: u32,
    /// When the next attempt may be made.
    pub until: Timestamp,
}

#[derive(Debug, Clone)]
pub enum OpenedSecret {
    Value {
        /// For the checks that parse it.
        value: SecretString,
        mark: SecretMark,
    },
    /// The secret can't be opened here, for example in the check of a pull request: the file, variable or identity is
    /// missing. It is compared by the trace of its sealed form and can't be applied from here.
    Unavailable {
        mark: SecretMark,
        /// The reason, as the end of a sentence: `no identity here opens it`.
        reason: String,
    },
    /// The secret was opened and must not be used here: it was sealed for another field, or its link leaves the
    /// folder.
    Refused(Problem),
}
