//! Every integration test, in one binary, because linking is what costs.

#![allow(clippy::disallowed_methods, reason = "the bans are for the core; a test needs the world")]

mod accepted_by_kubernetes;
mod architecture;
mod causes;
mod command_line;
mod control_plane;
mod examples;
mod explain;
mod interrupted;
mod invariants;
mod kill;
mod lifecycle;
mod mistaken_deletions;
mod mistakes;
mod pipeline;
mod schemas;
mod secrets;
mod support;
mod targets;
mod tenants;
