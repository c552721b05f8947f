//! Requests to services with the API of AWS: the signature by which a service knows the keys.

mod signature;

pub use signature::{AwsScope, sign};
