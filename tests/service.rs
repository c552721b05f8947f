//! The daemon as a service: what a service manager, probes and Prometheus see of the real binary.

mod beside;
mod credentials;
mod events;
pub mod http;
mod limits;
mod malformed_requests;
mod notify;
mod records;
mod reload;
mod socket;
mod tls;
mod token_guessing;
mod unit;

use crate::support::Tree;

fn quiet() -> Tree {
    Tree::example("quickstart")
}
