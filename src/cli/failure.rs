//! Why a verb could not do its work: what was attempted, why it failed, what to do next. Rendered once, at the edge.

use crate::cli::exit;
use crate::secret::SecretError;
use crate::state::StateError;
use crate::views::Unshown;

/// Why a verb stopped.
#[derive(Debug)]
pub struct Failure {
    /// What was attempted and why it failed, from the outside in, one line a cause.
    pub chain: Vec<String>,
    /// What to do next.
    pub hint: Option<String>,
    /// The process's exit code.
    pub code: u8,
}

impl Failure {
    /// A problem of the world: a file, a lock, a value.
    pub fn new(message: impl Into<String>) -> Self {
        Self { chain: vec![message.into()], hint: None, code: exit::PROBLEM }
    }

    /// A command that can't be understood or carried out as it was given.
    pub fn usage(message: impl Into<String>) -> Self {
        Self { code: exit::USAGE, ..Self::new(message) }
    }

    /// The reader of our output went away, which is no failure of ours.
    pub fn broken_pipe() -> Self {
        Self { chain: Vec::new(), hint: None, code: exit::BROKEN_PIPE }
    }

    /// The state's own word on what went wrong and what to do.
    pub fn of_state(attempt: impl Into<String>, error: &StateError) -> Self {
        Self::during(attempt, error).hint(error.hint())
    }

    /// The same of a secret.
    pub fn of_secret(attempt: impl Into<String>, error: &SecretError) -> Self {
        Self::during(attempt, error).hint(error.hint.clone())
    }

    /// Adds what to do next.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Says what was attempted when `error` came up. Causes that only repeat the one before are left out.
    pub fn during(attempt: impl Into<String>, error: &dyn std::error::Error) -> Self {
        let mut failure = Self::new(attempt);
        let mut cause = Some(error);
        while let Some(error) = cause {
            let text = error.to_string();
            if !failure.chain.iter().any(|line| line.contains(&text)) {
                failure.chain.push(text);
            }
            cause = error.source();
        }
        failure
    }
}

impl From<Unshown> for Failure {
    fn from(Unshown { message, hint, is_usage }: Unshown) -> Failure {
        let failure = if is_usage { Failure::usage(message) } else { Failure::new(message) };
        failure.hint(hint)
    }
}
