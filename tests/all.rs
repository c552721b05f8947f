//! Every integration test, in one binary, because linking is what costs.

mod architecture;
mod command_line;
mod examples;
mod lifecycle;
mod mistakes;
mod secrets;
mod support;
mod tenants;
