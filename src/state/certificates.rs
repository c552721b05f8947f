//! The certificates of managed base domains, and the accounts at the authorities that issue them. Keys are sealed.
//!
//! Without this file, every managed base domain gets a new certificate, for which its clusters restart.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::kept::Content;
use crate::catalog::IssueFailure;
use crate::names::ResourceKey;

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct KeptCertificates {
    /// By the URL of the authority's directory.
    pub accounts: BTreeMap<String, KeptAccount>,
    /// By base domain.
    pub certificates: BTreeMap<ResourceKey, KeptCertificate>,
}

/// A secret that only this installation opens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sealed {
    /// The recipient that it is sealed to.
    pub recipient: String,
    pub sealed: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KeptAccount {
    /// The URL by which the authority knows it.
    pub url: String,
    pub credentials: Sealed,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct KeptCertificate {
    pub issued: Option<Issued>,
    /// The order that is under way.
    pub order: Option<KeptOrder>,
    /// The texts that may be in the zone, by which the authority sees whose the domain is.
    #[serde(default)]
    pub challenges: BTreeSet<String>,
    pub failure: Option<IssueFailure>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Issued {
    /// The URL of the directory of the authority that issued it.
    pub directory: String,
    /// The chain in PEM.
    pub chain: String,
    pub key: Sealed,
    pub renew_at: Timestamp,
    /// When the authority is asked again how long it should be used.
    pub look_at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptOrder {
    /// The URL of the authority's directory.
    pub directory: String,
    /// The URL of the order; `None` before the authority told it.
    pub url: Option<String>,
    /// The key of the certificate.
    pub key: Sealed,
}

impl KeptCertificates {
    /// Whether there are texts in zones that nobody looks for any more.
    pub fn has_leftovers(&self) -> bool {
        self.certificates.values().any(KeptCertificate::has_leftovers)
    }
}

impl KeptCertificate {
    pub fn has_leftovers(&self) -> bool {
        self.order.is_none() && !self.challenges.is_empty()
    }
}

impl Content for KeptCertificates {
    const FILE: &'static str = "certificates.json";
    const NAME: &'static str = "a list of certificates";
}
