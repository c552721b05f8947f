//! Every integration test, in one binary, because linking is what costs.

#![allow(clippy::disallowed_methods, reason = "the bans are for the core; a test needs the world")]

mod architecture;
mod causes;
mod command_line;
mod examples;
mod explain;
mod interrupted;
mod invariants;
mod kill;
mod lifecycle;
mod mistaken_deletions;
mod mistakes;
mod pipeline;
mod replay;
mod schemas;
mod secrets;
mod support;
mod targets;
mod tenants;
