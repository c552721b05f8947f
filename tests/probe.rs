//! The reachability probe against real brokers, and against servers that lie.

mod lies;
mod pki;
mod raw;
mod reached;
mod rights;
mod scaling;
mod stage;
