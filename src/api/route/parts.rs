//! The parts of a route.

use serde_json::Value;

use crate::names::Kind;

/// `HEAD` works wherever `GET` does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Method {
    Get,
    Post,
    Put,
    /// A merge patch (RFC 7396).
    Patch,
    Delete,
}

/// The permission that a caller needs, in the organization concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RequiredAccess {
    /// No token at all.
    Nobody,
    Read,
    /// Change fleets, clusters and what they refer to.
    Write,
    /// Approve, and change the organization itself.
    Admin,
    Super,
}

/// The queue of a request. The queues don't wait for each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum QueueKind {
    /// No queue: the answer is the same for all callers and is ready.
    Open,
    /// Quick reads.
    Light,
    /// Reads that need planning or a search, which may take a minute.
    Heavy,
    /// Reads that ask the fleet's own API server, which may be silent. Organizations take turns.
    Observation,
    /// Approvals, which wait for a plan. Organizations take turns.
    Approval,
    Tokens,
    /// Revoking tokens, which is urgent.
    Revoking,
    /// Writes of specs, one at a time. With `dry_run`, as with `at`, a request goes to the queue of proposals.
    Turn,
    /// Plans of proposed trees, one at a time.
    Proposal,
}

#[derive(Debug)]
pub struct Query {
    pub name: &'static str,
    pub schema: fn() -> Value,
    /// The effect of the route, as a sentence.
    pub text: &'static str,
}

#[derive(Debug, Clone, Copy)]
pub enum RequestBody {
    Create(Kind),
    Replace(Kind),
    /// A merge patch (RFC 7396).
    Patch(Kind),
    Schema(fn() -> Value),
}

#[derive(Debug, Clone, Copy)]
pub enum ResponseContent {
    Record(Kind),
    List(Kind),
    /// Something else about a resource of a kind.
    Of(Kind, fn() -> Value),
    Schema(fn() -> Value),
    /// Lines of plain text about a resource of a kind.
    Text(Kind),
    /// Metrics of a resource of a kind, in Prometheus' text format.
    Metrics(Kind),
    /// A stream of such items, as server-sent events.
    Stream(fn() -> Value),
    Nothing,
}

impl Method {
    pub fn as_str(self) -> &'static str {
        match self {
            Method::Get => "GET",
            Method::Post => "POST",
            Method::Put => "PUT",
            Method::Patch => "PATCH",
            Method::Delete => "DELETE",
        }
    }
}
