//! Every integration test, in one binary, because linking is what costs.

#![allow(clippy::disallowed_methods, reason = "the bans are for the core; a test needs the world")]

mod architecture;
mod command_line;
mod examples;
mod lifecycle;
mod mistakes;
mod secrets;
mod support;
mod tenants;
