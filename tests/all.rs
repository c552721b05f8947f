//! Every integration test, in one binary, because linking is what costs.

#![allow(clippy::disallowed_methods, reason = "the tests work with real folders, processes and clocks")]

mod architecture;
mod causes;
mod command_line;
mod examples;
mod interrupted;
mod invariants;
mod kill;
mod lifecycle;
mod mistakes;
mod pipeline;
mod secrets;
mod support;
mod tenants;
