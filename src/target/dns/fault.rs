//! Refusals of a DNS server, and what to do about them.

use std::fmt;
use std::time::Duration;

use hickory_proto::op::ResponseCode;
use jiff::Timestamp;

use super::Route53Fault;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DnsFault {
    /// A name that can't be one.
    NoName(String),
    /// The fault of the key, as a clause.
    NoKey(&'static str),
    /// Its address may not be connected to.
    Denied(String),
    Connection(String),
    Silent(Duration),
    Closed,
    /// Its answer is no DNS message, or that of another question.
    Unreadable,
    /// The server isn't the zone's own.
    NotAuthoritative,
    /// It answers without the signature that it has to have.
    Unsigned,
    /// The signature of its answer is wrong.
    Forged,
    /// Some servers say so of a key that may not change the name, too.
    BadKey,
    BadSignature,
    BadTime {
        ours: Timestamp,
        theirs: Option<Timestamp>,
    },
    NotZone,
    NotAuth,
    Refused,
    Failed,
    Other(String),
    Route53(Route53Fault),
    /// Somebody has the name.
    Taken,
    /// A text that was added to this name isn't there.
    Hidden(String),
    /// The name has other records, or another owner, than were seen.
    Changed,
}

impl DnsFault {
    pub fn of_code(code: ResponseCode) -> DnsFault {
        match code {
            ResponseCode::NotZone => DnsFault::NotZone,
            ResponseCode::NotAuth => DnsFault::NotAuth,
            ResponseCode::Refused => DnsFault::Refused,
            ResponseCode::ServFail => DnsFault::Failed,
            code => DnsFault::Other(code.to_string()),
        }
    }

    /// Whether the server wasn't reached, and asking it again right away would only take time.
    pub fn is_silence(&self) -> bool {
        matches!(
            self,
            DnsFault::Connection(_)
                | DnsFault::Silent(_)
                | DnsFault::Closed
                | DnsFault::Route53(
                    Route53Fault::Unreached { .. }
                        | Route53Fault::Failed(_)
                        | Route53Fault::Busy
                        | Route53Fault::Slow(_)
                )
        )
    }

    pub fn hint(&self) -> &'static str {
        match self {
            DnsFault::NoName(_) => "choose another name",
            DnsFault::NoKey(_) => "correct `credentials` of the cloud account",
            DnsFault::Denied(_) => {
                "use another server, or allow its address in the settings: `allow_addresses` under `[targets]`"
            }
            DnsFault::Connection(_) | DnsFault::Silent(_) | DnsFault::Closed => {
                "check `endpoint` of the cloud account, and that the server takes TCP from this host"
            }
            DnsFault::Unreadable => "check that `endpoint` of the cloud account leads to a DNS server",
            DnsFault::NotAuthoritative => {
                "name the zone's own server in `endpoint` of the cloud account, and the zone in `dns_base_domain`"
            }
            DnsFault::Unsigned | DnsFault::Forged => {
                "check that nothing between this host and the server changes DNS messages"
            }
            DnsFault::BadKey => {
                "check the key's name and algorithm in `credentials`, that the server has the key, and that it may change names below the base domain"
            }
            DnsFault::BadSignature => "check the key's secret in `credentials`",
            DnsFault::BadTime { .. } => "set the clocks of this host and of the server",
            DnsFault::NotZone => "name the zone that has the domain in `dns_base_domain`",
            DnsFault::NotAuth | DnsFault::Refused => {
                "let the key change names below the base domain, and name the zone in `dns_base_domain`"
            }
            DnsFault::Failed | DnsFault::Other(_) => "read the log of the DNS server",
            DnsFault::Route53(fault) => fault.hint(),
            DnsFault::Taken => "remove the records of the name, or choose another one",
            DnsFault::Hidden(_) => "remove the CNAME of that name",
            DnsFault::Changed => "plan again",
        }
    }
}

impl fmt::Display for DnsFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DnsFault::NoName(name) => write!(f, "`{name}` is no domain name"),
            DnsFault::NoKey(why) => write!(f, "the key can't be used: {why}"),
            DnsFault::Denied(why) => f.write_str(why),
            // Which of these it is would let a tenant scan a network.
            DnsFault::Connection(_) | DnsFault::Silent(_) | DnsFault::Closed => {
                f.write_str("its server can't be reached")
            }
            DnsFault::Unreadable => f.write_str("the answer can't be read"),
            DnsFault::NotAuthoritative => f.write_str("the server isn't authoritative for the zone"),
            DnsFault::Unsigned => f.write_str("the server's answer isn't signed"),
            DnsFault::Forged => f.write_str("the signature of the server's answer is wrong"),
            DnsFault::BadKey => {
                f.write_str("the server doesn't know the key, or doesn't let it change this (BADKEY)")
            }
            DnsFault::BadSignature => f.write_str("the key's secret isn't that of the server (BADSIG)"),
            DnsFault::BadTime { ours, theirs: Some(theirs) } => {
                write!(f, "it is {ours} on this host, and {theirs} on the server (BADTIME)")
            }
            DnsFault::BadTime { ours, theirs: None } => {
                write!(f, "it is {ours} on this host, and another time on the server (BADTIME)")
            }
            DnsFault::NotZone => f.write_str("the name isn't within the zone (NOTZONE)"),
            DnsFault::NotAuth => f.write_str("the server doesn't let the key change this (NOTAUTH)"),
            DnsFault::Refused => f.write_str("the server refuses it (REFUSED)"),
            DnsFault::Failed => f.write_str("the server failed (SERVFAIL)"),
            DnsFault::Other(code) => write!(f, "the server answers `{code}`"),
            DnsFault::Route53(fault) => fault.fmt(f),
            DnsFault::Taken => f.write_str("the name is taken"),
            DnsFault::Hidden(name) => {
                write!(f, "a text that was added to `{name}` isn't there, as where there is a CNAME")
            }
            DnsFault::Changed => f.write_str("the name's records changed since they were seen"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_says_by_its_code_is_told_apart() {
        for (code, expected) in [
            (ResponseCode::NotZone, "the name isn't within the zone (NOTZONE)"),
            (ResponseCode::NotAuth, "the server doesn't let the key change this (NOTAUTH)"),
            (ResponseCode::Refused, "the server refuses it (REFUSED)"),
            (ResponseCode::ServFail, "the server failed (SERVFAIL)"),
            (ResponseCode::NotImp, "the server answers `Not Implemented`"),
        ] {
            assert_eq!(DnsFault::of_code(code).to_string(), expected);
        }
    }
}
