//! The daemon as a service: what a service manager, probes and Prometheus see of the real binary.

mod beside;
mod credentials;
mod doors;
mod events;
mod guesses;
pub mod http;
mod limits;
mod notify;
mod reload;
mod socket;
mod tls;
mod unit;

use crate::support::Tree;

fn quiet() -> Tree {
    Tree::example("quickstart")
}
