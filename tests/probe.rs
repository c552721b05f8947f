//! The reachability probe against real brokers, and against servers that lie.

pub mod lies;
pub mod pki;
mod raw;
mod reached;
mod rights;
mod scaling;
pub mod stage;
