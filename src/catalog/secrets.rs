//! Secrets as the core knows them: what each is and whether it is at hand, with its value only where a check needs
//! it. Opening them is an effect that happens before.

use std::collections::BTreeMap;

use secrecy::SecretString;

use crate::catalog::SecretMark;
use crate::names::SecretRef;
use crate::problem::Problem;

/// The secrets of a tree, opened where that was possible.
#[derive(Debug, Clone, Default)]
pub struct Secrets {
    /// By the field that each is the value of.
    pub opened: BTreeMap<SecretRef, OpenedSecret>,
    /// Warnings of where they are kept: of files that other users can read.
    pub warnings: Vec<Problem>,
}

/// What came of opening one secret.
#[derive(Debug, Clone)]
pub enum OpenedSecret {
    /// It is at hand.
    Value {
        /// The value, for the checks that parse it.
        value: SecretString,
        /// Its trace.
        mark: SecretMark,
    },
    /// It can't be opened here, as in a pull request's check: no file, variable or identity. It is compared by the
    /// trace of its sealed form and can't be applied from here.
    Opaque {
        /// Its trace.
        mark: SecretMark,
        /// Why, as the end of a sentence: `no identity here opens it`.
        reason: String,
    },
    /// It was opened and must not be used here: sealed for another field, a link that leads out of the folder.
    Refused(Problem),
}
