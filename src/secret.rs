//! Opens secrets where a spec says they are, seals them so that they open for one field only, and fills them
//! into manifests just before these are applied.
//!
//! Values are kept byte for byte, with a final line break: it is harmless in the multi-line texts that all of
//! these secrets are, and cutting it would give a file and its sealed copy different fingerprints.

mod envelope;
mod file;
mod fill;
mod keyring;
mod lookup;
mod rotate;
mod store;

pub use envelope::{NotOpened, seal};
pub use file::{is_sealed, open_file, seal_file};
pub use fill::{fill, value_of};
pub use keyring::{EVENT_ID_LENGTH, Keyring};
pub use rotate::rotate_text;
pub use store::SecretStore;

use crate::names::SecretRef;
use crate::problem::Problem;

/// The longest secret, in bytes. Kubernetes accepts Secrets up to this size. The largest in practice, a
/// kubeconfig with several contexts, has some 100 KiB.
pub const MAX_LENGTH: usize = 1024 * 1024;

/// An error in handling secrets. It quotes no secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SecretError {
    /// Stable: `secret-changed`.
    pub code: &'static str,
    /// One sentence without a full stop: what was attempted and why it failed.
    pub message: String,
    pub hint: String,
}

impl SecretError {
    fn new(code: &'static str, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { code, message: message.into(), hint: hint.into() }
    }

    pub fn problem(self) -> Problem {
        Problem::error(self.code, self.message).hint(self.hint)
    }
}

/// A secret as a sentence names it: `` `tls_key` of base domain acme/k.example.com ``.
fn describe(reference: &SecretRef) -> String {
    format!("`{}` of {}", reference.field, reference.resource)
}
