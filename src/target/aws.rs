//! Requests to services with the API of AWS: the keys, and the signature by which a service knows them.

mod login;
mod signature;

pub use login::AwsLogin;
pub use signature::{AwsScope, sign};
