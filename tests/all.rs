//! Every integration test, in one binary, because linking is what costs.

#![allow(clippy::disallowed_methods, reason = "tests make trees and run the binary on them")]

mod architecture;
mod command_line;
mod examples;
mod explain;
mod lifecycle;
mod mistakes;
mod schemas;
mod secrets;
mod support;
mod tenants;
