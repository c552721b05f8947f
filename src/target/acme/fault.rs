//! Why an authority issued no certificate, in words.

use std::fmt;

use instant_acme::Problem;

use crate::names::one_line;

/// The most of an authority's own words that is passed on, in characters.
const LONGEST: usize = 400;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AcmeFault {
    /// It can't be reached, or its answer can't be read.
    Unreached(String),
    /// Something went wrong there, in its own words.
    Busy(String),
    /// It was asked too often, in its own words.
    Limited(String),
    /// It doesn't know the account any more.
    UnknownAccount,
    /// It refuses, in its own words.
    Refused(String),
    /// It hasn't decided yet.
    Pending,
    /// It doesn't offer the challenge of the settings.
    NoChallenge(&'static str),
    /// The account's credentials can't be used.
    NoAccount,
    /// Its server isn't trusted.
    Untrusted,
    /// The file of the certificates that its server is trusted by can't be used, and why.
    NoRoots(&'static str),
}

impl AcmeFault {
    pub fn refused(problem: &Problem) -> AcmeFault {
        let said = said(problem);
        match kind(problem) {
            "badNonce" | "serverInternal" => AcmeFault::Busy(said),
            "rateLimited" => AcmeFault::Limited(said),
            "accountDoesNotExist" => AcmeFault::UnknownAccount,
            _ => AcmeFault::Refused(said),
        }
    }

    /// Whether the order has failed, so that another one has to be made.
    pub fn ends_order(&self) -> bool {
        matches!(self, AcmeFault::Refused(_) | AcmeFault::NoChallenge(_) | AcmeFault::UnknownAccount)
    }

    pub fn hint(&self) -> &'static str {
        match self {
            AcmeFault::Unreached(_) => {
                "check `acme.directory` and `acme.roots` in the settings, and the network"
            }
            AcmeFault::Refused(_) => "do what the authority says",
            AcmeFault::Limited(_) => "wait",
            AcmeFault::UnknownAccount => "nothing is to be done: the next attempt makes another account",
            AcmeFault::Busy(_) | AcmeFault::Pending => "nothing is to be done: the order goes on where it is",
            AcmeFault::NoChallenge(_) => "choose another `challenge` under `[acme]` in the settings",
            AcmeFault::NoAccount => "restore a backup of the state",
            AcmeFault::Untrusted => "name the file of its root certificate in the settings: `acme.roots`",
            AcmeFault::NoRoots(_) => "correct `acme.roots` in the settings",
        }
    }
}

impl From<instant_acme::Error> for AcmeFault {
    fn from(error: instant_acme::Error) -> AcmeFault {
        match error {
            instant_acme::Error::Api(problem) => AcmeFault::refused(&problem),
            instant_acme::Error::Timeout(_) => AcmeFault::Pending,
            instant_acme::Error::Json(_) => AcmeFault::Unreached("its answer can't be read".to_owned()),
            error => match error.to_string() {
                told if told.starts_with("invalid peer certificate") => AcmeFault::Untrusted,
                told => AcmeFault::Unreached(words(&told)),
            },
        }
    }
}

/// The last part of a problem's type: `malformed`.
pub(super) fn kind(problem: &Problem) -> &str {
    problem.r#type.as_deref().and_then(|kind| kind.rsplit(':').next()).unwrap_or_default()
}

/// The authority's words, in a line.
pub(super) fn said(problem: &Problem) -> String {
    let detail = problem.detail.as_deref().unwrap_or_default();
    let below = problem.subproblems.iter().filter_map(|sub| sub.detail.as_deref());
    let told: Vec<&str> = [detail].into_iter().chain(below).filter(|told| !told.is_empty()).collect();
    match told.is_empty() {
        true => words(kind(problem)),
        false => words(&format!("{} ({})", told.join("; "), kind(problem))),
    }
}

/// The words of a server, as a short line without control characters.
pub(super) fn words(told: &str) -> String {
    one_line(told, LONGEST).into_owned()
}

/// A clause.
impl fmt::Display for AcmeFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AcmeFault::Unreached(why) => write!(f, "the authority can't be reached: {why}"),
            AcmeFault::Busy(why) | AcmeFault::Limited(why) | AcmeFault::Refused(why) => {
                write!(f, "the authority says: {why}")
            }
            AcmeFault::UnknownAccount => f.write_str("the authority doesn't know the account any more"),
            AcmeFault::Pending => f.write_str("the authority hasn't decided yet"),
            AcmeFault::NoChallenge(name) => write!(f, "the authority doesn't offer the challenge {name}"),
            AcmeFault::NoAccount => {
                f.write_str("the credentials of the account at the authority can't be read")
            }
            AcmeFault::Untrusted => {
                f.write_str("the certificate of the authority's own server isn't trusted")
            }
            AcmeFault::NoRoots(why) => write!(f, "the file that `acme.roots` names {why}"),
        }
    }
}
