//! How a verb prints data.

use clap::ValueEnum;
use serde::Serialize;

use crate::cli::failure::Failure;

/// How a verb prints data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// As people read it.
    Human,
    /// JSON.
    Json,
    /// YAML.
    Yaml,
}

impl Format {
    /// The data as text; none for people, for whom each verb has words of its own.
    ///
    /// # Errors
    /// When the data can't be written in this format.
    pub fn data(self, value: &impl Serialize) -> Result<Option<String>, Failure> {
        if self == Format::Human {
            return Ok(None);
        }
        let fail = |error: &dyn std::error::Error| Failure::during("could not write the data", error);
        let value = serde_json::to_value(value).map_err(|error| fail(&error))?;
        Ok(match self {
            Format::Human => None,
            Format::Json => Some(serde_json::to_string_pretty(&value).map_err(|error| fail(&error))? + "\n"),
            Format::Yaml => Some(crate::render::yaml::to_yaml(&value)),
        })
    }
}
