//! `byok` fleets on a real API server, with faults injected between the two.

mod aside;
mod kills;
pub mod objects;
mod replaced;
mod silence;
mod stage;
mod table;
