//! DNS records that somebody else made.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::component::dns_records::{self, HostRecords};
use crate::names::{Json, ObjectKey};
use crate::problem::quote_untrusted;

/// A DNS record that we would make and that somebody else has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ForeignRecord {
    /// The record.
    pub object: ObjectKey,
    /// Where it leads: addresses or another name; empty if its name has records of other types only.
    pub leads_to: Vec<String>,
    /// What it says of its owner; null if nothing.
    pub owner: Option<String>,
}

impl ForeignRecord {
    /// `there` is the existing record.
    pub(in crate::plan) fn of(object: &ObjectKey, there: Option<&Json>) -> Option<ForeignRecord> {
        if !dns_records::is_record(object) {
            return None;
        }
        let body = there.map(Json::value).unwrap_or_default();
        let HostRecords { addresses, alias } = HostRecords::of_body(&body);
        let leads_to = addresses.iter().map(ToString::to_string).chain(alias).collect();
        let owner = body.get(dns_records::OWNER).and_then(Value::as_str).map(str::to_owned);
        Some(ForeignRecord { object: object.clone(), leads_to, owner })
    }
}

/// A sentence without a full stop.
impl fmt::Display for ForeignRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ForeignRecord { object, leads_to, owner } = self;
        let name = &object.name;
        match leads_to.as_slice() {
            [] => write!(f, "the DNS name {name} has records already")?,
            some => write!(f, "the DNS name {name} leads to {} already", some.join(", "))?,
        }
        match owner {
            Some(owner) => write!(f, "; it belongs to another: `{}`", quote_untrusted(owner)),
            None => f.write_str(", by a record that streamfleet didn't make"),
        }
    }
}
