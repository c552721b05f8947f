//! Every integration test, in one binary, because linking is what costs.

#![allow(clippy::disallowed_methods, reason = "the bans are for the core; a test needs the world")]

mod accepted_by_kubernetes;
mod architecture;
mod backup;
mod causes;
mod command_line;
mod control_plane;
mod damage;
mod data_loss;
mod examples;
mod explain;
mod faults;
mod field_changes;
mod gateway;
mod generated;
mod git;
mod interrupted;
mod invalid;
mod invariants;
mod kafka;
mod kill;
mod kubernetes;
mod kubernetes_races;
mod lifecycle;
mod missing_by_mistake;
mod mistaken_deletions;
mod mistakes;
mod operator;
mod pipeline;
mod preflight;
mod reference;
mod remembered;
mod replay;
mod restore;
mod schemas;
mod secrets;
mod service;
mod settings;
mod state_faults;
mod support;
mod targets;
mod tenants;
mod watch;
mod why;
