//! Connections, TLS, limits and authentication, whatever is served.

pub mod authenticate;
pub mod client;
pub mod connection;
pub mod connection_pool;
pub mod limited_body;
pub mod limiter;
pub mod peer;
pub mod problem;
pub mod query;
pub mod rate_limits;
pub mod socket;
pub mod tags;
pub mod tls;
