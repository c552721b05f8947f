//! Streamfleet keeps Kafka fleets on Kubernetes equal to a tree of YAML files.
//!
//! Data flows one way: a source gives a [`spec::Snapshot`], which is read into documents, resolved into a
//! catalog, rendered into manifests, compared with what is recorded and observed into a plan, and executed.
//! Everything between the snapshot and the plan is pure. `ARCHITECTURE.md` is the map.

#![warn(unused, clippy::all)]
#![deny(unsafe_code)]

// The pure core. clippy.toml bans disk, clock, environment and network here.
pub mod catalog;
pub mod config;
pub mod health;
pub mod interface;
pub mod names;
pub mod parallel;
pub mod plan;
pub mod problem;
pub mod render;
pub mod spec;

// Effects. They use the core but not each other, except for `execute`.
#[allow(clippy::disallowed_methods, reason = "walks a plan over targets and state, which touch the disk")]
pub mod execute;
#[allow(
    clippy::disallowed_methods,
    reason = "keys and secrets are files, and writing them is the module's task"
)]
pub mod secret;
#[allow(clippy::disallowed_methods, reason = "reading spec trees from the disk is what it is for")]
pub mod source;
#[allow(clippy::disallowed_methods, reason = "keeps records on disk")]
pub mod state;
#[allow(clippy::disallowed_methods, reason = "reads and writes what fleets consist of")]
pub mod target;

// The shell. It uses everything above; `daemon` uses the modules of the shell before it, and `cli` all of
// them.
#[allow(clippy::disallowed_methods, reason = "it has a socket, and callers have deadlines")]
pub mod api;
#[allow(clippy::disallowed_methods, reason = "it is where files, the environment and the clock come in")]
pub mod cli;
#[allow(clippy::disallowed_methods, reason = "it goes on with time")]
pub mod daemon;
#[allow(clippy::disallowed_methods, reason = "what it remembers lasts by the time that passes")]
pub mod round;
pub mod views;
#[allow(clippy::disallowed_methods, reason = "the environment names the service manager, and time passes")]
pub mod vitals;
