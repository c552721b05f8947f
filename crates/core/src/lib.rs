//! The pure half of Streamfleet: from the bytes of spec files to a plan. It has no disk, clock, network, environment
//! or async: its Cargo.toml and clippy.toml keep it so.

#![warn(unused, clippy::all)]
#![deny(unsafe_code)]

pub mod catalog;
pub mod component;
pub mod config;
pub mod health;
pub mod names;
pub mod parallel;
pub mod plan;
pub mod problem;
pub mod record;
pub mod render;
pub mod spec;
