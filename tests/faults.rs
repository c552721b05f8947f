//! `byok` fleets on a real API server, with everything between the two that can go wrong.

mod aside;
mod kills;
pub mod objects;
mod replaced;
mod silence;
mod stage;
mod table;
