//! Streamfleet keeps Kafka fleets on Kubernetes equal to a tree of YAML files.
//!
//! Data flows one way: a source gives a [`spec::Snapshot`], which is read into documents, resolved into a
//! catalog, rendered into manifests, compared with what is recorded and observed into a plan, and executed.
//! Everything between the snapshot and the plan is pure. `ARCHITECTURE.md` is the map.

#![warn(unused, clippy::all)]
#![deny(unsafe_code)]

// The pure core is a package of its own.
pub use streamfleet_core::{
    catalog, component, config, health, names, parallel, plan, problem, record, render, spec,
};

// Effects. They use the core but not each other, except for `execute`.
pub mod execute;
pub mod probe;
pub mod secret;
pub mod source;
pub mod state;
pub mod target;

// The shell. It uses everything above; `daemon` uses the modules of the shell before it, and `cli` all of
// them.
pub mod api;
pub mod cli;
pub mod daemon;
pub mod http;
pub mod round;
pub mod ui;
pub mod views;
pub mod vitals;
pub mod writing;
