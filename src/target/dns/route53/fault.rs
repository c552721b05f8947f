//! Refusals of Route 53, and what to do about them.

use std::fmt;
use std::time::Duration;

use http::StatusCode;
use jiff::Timestamp;

use crate::names::one_line;
use crate::target::dns::DnsFault;

/// The most of its own words that is passed on, in characters.
const LONGEST: usize = 200;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Route53Fault {
    /// The fault of the credentials, as a clause.
    NoKeys(&'static str),
    Unreached {
        endpoint: String,
        why: String,
    },
    Unreadable,
    UnknownKey,
    WrongSecret,
    /// The keys were valid for some time, and that is over.
    Expired,
    Clock {
        ours: Timestamp,
        theirs: Timestamp,
    },
    /// In its own words.
    Forbidden(String),
    NoZone(String),
    /// The only zone of that name is private.
    Private(String),
    /// Several zones have that name.
    Ambiguous(String),
    /// The texts of that name are routed or lead elsewhere, so that none can be added.
    Routed(String),
    /// It was asked too often, each time that it was asked.
    Busy,
    /// It failed each time that it was asked.
    Failed(StatusCode),
    /// All names of a domain weren't told in time.
    Slow(Duration),
    /// Not all of its servers have a change.
    Pending(Duration),
    Refused {
        status: StatusCode,
        /// In its own words.
        why: String,
    },
}

impl Route53Fault {
    pub fn refused(status: StatusCode, code: &str, message: &str) -> Route53Fault {
        let code = if code.is_empty() { String::new() } else { format!("{code}: ") };
        Route53Fault::Refused { status, why: words(&format!("{code}{message}")) }
    }

    pub fn forbidden(message: &str) -> Route53Fault {
        Route53Fault::Forbidden(words(message))
    }

    pub fn hint(&self) -> &'static str {
        match self {
            Route53Fault::NoKeys(_) => {
                "correct `credentials` of the cloud account: a section `[default]` with `aws_access_key_id` and \
                 `aws_secret_access_key`"
            }
            Route53Fault::Unreached { .. } => {
                "check that this host reaches it by HTTPS and trusts its certificate, and that `AWS_ENDPOINT_URL_ROUTE_53` names no other place"
            }
            Route53Fault::Unreadable => {
                "check that nothing between this host and Route 53 changes its answers"
            }
            Route53Fault::UnknownKey => "correct `aws_access_key_id` in `credentials` of the cloud account",
            Route53Fault::WrongSecret => {
                "correct `aws_secret_access_key` in `credentials` of the cloud account"
            }
            Route53Fault::Expired => {
                "put other keys into `credentials` of the cloud account: of a user, without a session token"
            }
            Route53Fault::Clock { .. } => "set the clock of this host, for example with an NTP client",
            Route53Fault::Forbidden(_) => {
                "allow the keys `route53:ListHostedZonesByName`, `route53:ListResourceRecordSets`, \
                 `route53:ChangeResourceRecordSets` and `route53:GetChange`"
            }
            Route53Fault::NoZone(_) => {
                "name the hosted zone that has the domain in `dns_base_domain`, and an account that has it in `cloud_account`"
            }
            Route53Fault::Private(_) => "make a public hosted zone, or name another one in `dns_base_domain`",
            Route53Fault::Ambiguous(_) => {
                "keep one of them, or name a zone in `dns_base_domain` that there is once"
            }
            Route53Fault::Routed(_) => "make them a simple record, without a routing policy and an alias",
            Route53Fault::Busy
            | Route53Fault::Failed(_)
            | Route53Fault::Slow(_)
            | Route53Fault::Pending(_) => "plan again a little later; `serve` does so by itself",
            Route53Fault::Refused { .. } => "resolve what Route 53 reports",
        }
    }
}

impl fmt::Display for Route53Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Route53Fault::NoKeys(why) => {
                write!(f, "the credentials of the cloud account can't be used: {why}")
            }
            Route53Fault::Unreached { endpoint, why } => {
                write!(f, "Route 53 can't be reached at {endpoint}: {why}")
            }
            Route53Fault::Unreadable => f.write_str("the answer of Route 53 can't be read"),
            Route53Fault::UnknownKey => f.write_str("Route 53 doesn't know the access key"),
            Route53Fault::WrongSecret => f.write_str("the secret key isn't that of the access key"),
            Route53Fault::Expired => f.write_str("the access keys were valid for a time that is over"),
            Route53Fault::Clock { ours, theirs } => {
                write!(f, "it is {ours} on this host, and {theirs} at Route 53")
            }
            Route53Fault::Forbidden(why) => write!(f, "the access key may not do that: {why}"),
            Route53Fault::NoZone(name) => write!(f, "the account has no hosted zone `{name}`"),
            Route53Fault::Private(name) => {
                write!(f, "the hosted zone `{name}` is private: clients elsewhere don't find its names")
            }
            Route53Fault::Ambiguous(name) => write!(f, "the account has several hosted zones `{name}`"),
            Route53Fault::Failed(status) => write!(f, "Route 53 failed: {status}"),
            Route53Fault::Routed(name) => {
                write!(f, "the texts of `{name}` have a routing policy or an alias, so none can be added")
            }
            Route53Fault::Busy => f.write_str("Route 53 was asked too often"),
            Route53Fault::Slow(time) => {
                write!(f, "Route 53 didn't tell all names of the domain within {} s", time.as_secs())
            }
            Route53Fault::Pending(time) => {
                write!(f, "not all servers of Route 53 had the change within {} s", time.as_secs())
            }
            Route53Fault::Refused { status, why } if why.is_empty() => {
                write!(f, "Route 53 answers {status}")
            }
            Route53Fault::Refused { status, why } => write!(f, "Route 53 answers {status} ({why})"),
        }
    }
}

fn words(told: &str) -> String {
    one_line(told, LONGEST).into_owned()
}

impl From<Route53Fault> for DnsFault {
    fn from(fault: Route53Fault) -> DnsFault {
        DnsFault::Route53(fault)
    }
}
