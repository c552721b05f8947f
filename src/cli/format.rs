//! Output formats of data.

use clap::ValueEnum;
use serde::Serialize;
use serde_json::Value;

use crate::cli::failure::Failure;
use crate::names::is_deceptive;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OutputFormat {
    /// Text for people.
    Human,
    /// JSON.
    Json,
    /// YAML.
    Yaml,
}

impl OutputFormat {
    /// Serializes data; none for `Format::Human`, since each verb has its own text.
    pub fn data(self, value: &impl Serialize) -> Result<Option<String>, Failure> {
        if self == OutputFormat::Human {
            return Ok(None);
        }
        let fail = |error: &dyn std::error::Error| Failure::during("cannot write the data", error);
        let value = serde_json::to_value(value).map_err(|error| fail(&error))?;
        Ok(match self {
            OutputFormat::Human => None,
            OutputFormat::Json => {
                let text = serde_json::to_string_pretty(&value).map_err(|error| fail(&error))?;
                Some(harmless_json(&text) + "\n")
            }
            OutputFormat::Yaml => Some(harmless_yaml(&value)),
        })
    }
}

/// Escapes control and other deceptive characters in JSON, which a terminal would obey: text from servers may
/// contain anything.
pub fn harmless_json(text: &str) -> String {
    let mut harmless = String::with_capacity(text.len());
    for character in text.chars() {
        // Outside of strings, the only such characters are line breaks.
        if character == '\n' || !is_deceptive(character) {
            harmless.push(character);
        } else {
            for unit in character.encode_utf16(&mut [0; 2]) {
                harmless.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    harmless
}

/// Writes YAML without characters that a terminal would obey. Where there are any, it writes JSON, which is
/// YAML too and can escape them all.
pub fn harmless_yaml(value: &Value) -> String {
    let text = crate::render::yaml::to_yaml(value);
    if !text.chars().any(|character| !matches!(character, '\n' | '\t') && is_deceptive(character)) {
        return text;
    }
    harmless_json(&format!("{value:#}")) + "\n"
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_server_says_commands_no_terminal_and_is_still_the_same() {
        let value = json!({"reason": "a\u{1b}[2J\r\n\u{202e}b\u{200b}\u{9b}31m", "list": ["ü"]});
        for format in [OutputFormat::Json, OutputFormat::Yaml] {
            let text = format.data(&value).unwrap().unwrap();
            assert!(!text.chars().any(|it| it != '\n' && is_deceptive(it)), "{text:?}");
            assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
            assert_eq!(serde_saphyr::from_str::<Value>(&text).unwrap(), value);
        }
        let fine = json!({"reason": "two\nlines"});
        assert_eq!(OutputFormat::Yaml.data(&fine).unwrap().unwrap(), "reason: |-\n  two\n  lines\n");
    }
}
