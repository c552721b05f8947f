//! Secrets: opened where a spec says that they are, sealed so that they open nowhere else, and put into manifests at
//! the last moment.
//!
//! Values are kept as they are, to the byte. A final line break is kept too: it means nothing in the texts of several
//! lines that all our secrets are, and cutting it would give a file and its sealed copy two fingerprints.

mod envelope;
mod file;
mod fill;
mod keyring;
mod lookup;
mod rotate;
mod store;

pub use envelope::{NotOpened, seal};
pub use file::{is_sealed, open_file, seal_file};
pub use fill::fill;
pub use keyring::{EVENT_ID_LENGTH, Keyring};
pub use rotate::rotate_text;
pub use store::SecretStore;

use crate::names::SecretRef;
use crate::problem::Problem;

/// The longest secret, in bytes. The largest, a kubeconfig of several contexts, has some 100 KiB, and Kubernetes takes
/// Secrets up to this size.
pub const MAX_LENGTH: usize = 1024 * 1024;

/// Why secrets could not be handled. It quotes no secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SecretError {
    /// A stable name for programs: `secret-changed`.
    pub code: &'static str,
    /// What was attempted and why it failed, in one sentence without a full stop.
    pub message: String,
    /// What to do next.
    pub hint: String,
}

impl SecretError {
    fn new(code: &'static str, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { code, message: message.into(), hint: hint.into() }
    }

    /// The error as a problem that is not yet placed.
    pub fn problem(self) -> Problem {
        Problem::error(self.code, self.message).hint(self.hint)
    }
}

/// A secret in a sentence: `` `tls_key` of base domain acme/k.example.com ``.
fn describe(reference: &SecretRef) -> String {
    format!("`{}` of {}", reference.field, reference.resource)
}
