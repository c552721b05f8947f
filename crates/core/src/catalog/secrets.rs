//! The opened secrets of a tree, as the core sees them. Opening them is an effect that happens before.

use std::collections::BTreeMap;

use secrecy::SecretString;

use crate::catalog::SecretMark;
use crate::names::SecretRef;
use crate::problem::Problem;

#[derive(Debug, Clone, Default)]
pub struct Secrets {
    pub opened: BTreeMap<SecretRef, OpenedSecret>,
    /// Warnings about where secrets are kept, such as files that other users can read.
    pub warnings: Vec<Problem>,
}

#[derive(Debug, Clone)]
pub enum OpenedSecret {
    Value {
        /// For the checks that parse it.
        value: SecretString,
        mark: SecretMark,
    },
    /// The secret can't be opened here, for example in the check of a pull request: the file, variable or identity is
    /// missing. It is compared by the trace of its sealed form and can't be applied from here.
    Unavailable {
        mark: SecretMark,
        /// The reason, as the end of a sentence: `no identity here opens it`.
        reason: String,
    },
    /// The secret was opened and must not be used here: it was sealed for another field, or its link leaves the
    /// folder.
    Refused(Problem),
}
