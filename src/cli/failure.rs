//! The error of a verb: what was attempted, why it failed, what to do next. Printed once, in `main`.

use crate::cli::exit;
use crate::secret::SecretError;
use crate::state::StateError;
use crate::views::NotFound;

#[derive(Debug)]
pub struct Failure {
    /// The failed attempt, then its causes, the innermost last. Each is printed on a line of its own.
    pub chain: Vec<String>,
    pub hint: Option<String>,
    pub code: u8,
}

impl Failure {
    /// An error of the environment: a file, a lock, a value.
    pub fn new(message: impl Into<String>) -> Self {
        Self { chain: vec![message.into()], hint: None, code: exit::PROBLEM }
    }

    pub fn usage(message: impl Into<String>) -> Self {
        Self { code: exit::USAGE, ..Self::new(message) }
    }

    /// A closed standard output: exits with 141 and prints nothing.
    pub fn broken_pipe() -> Self {
        Self { chain: Vec::new(), hint: None, code: exit::BROKEN_PIPE }
    }

    /// Takes message and hint from the state's error.
    pub fn of_state(attempt: impl Into<String>, error: &StateError) -> Self {
        Self::during(attempt, error).hint(error.hint())
    }

    /// Takes message and hint from the error of a secret.
    pub fn of_secret(attempt: impl Into<String>, error: &SecretError) -> Self {
        Self::during(attempt, error).hint(error.hint.clone())
    }

    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Describes what was attempted when `error` occurred. Causes whose text is already part of an earlier
    /// line are left out.
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

impl From<NotFound> for Failure {
    fn from(NotFound { message, hint, is_usage }: NotFound) -> Failure {
        let failure = if is_usage { Failure::usage(message) } else { Failure::new(message) };
        failure.hint(hint)
    }
}
