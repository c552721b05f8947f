//! Formats a log line for people, for terminals and the journal.

use std::fmt::{self, Debug, Write as _};

use tracing::field::{Field, Visit};
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::fmt::FormatFields;
use tracing_subscriber::fmt::format::Writer;

use crate::plan::plain;
use crate::problem::truncate_bytes;

/// Fields for searching by file. A line omits them if its message already contains the position.
const PLACE: [&str; 2] = ["file", "line"];

/// The longest text of a field, in bytes. Messages of servers may be longer than is useful.
const LONGEST: usize = 8 << 10;

/// Formats the fields of log lines for [`tracing_subscriber::fmt`].
pub struct LineFields;

impl<'w> FormatFields<'w> for LineFields {
    fn format_fields<R: RecordFields>(&self, mut writer: Writer<'w>, fields: R) -> fmt::Result {
        let mut entry = LogEntry::default();
        fields.record(&mut entry);
        let color = writer.has_ansi_escapes();
        writer.write_str(&entry.line(color))
    }
}

#[derive(Default)]
pub(super) struct LogEntry {
    pub(super) message: String,
    pub(super) fields: Vec<(&'static str, Value)>,
}

pub(super) enum Value {
    /// Quoted in a line.
    Text(String),
    Other(String),
}

impl Value {
    pub(super) fn as_str(&self) -> &str {
        match self {
            Value::Text(value) | Value::Other(value) => value,
        }
    }
}

impl Visit for LogEntry {
    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "message" => self.message = truncate_bytes(value, LONGEST).into_owned(),
            name => self.fields.push((name, Value::Text(truncate_bytes(value, LONGEST).into_owned()))),
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let value = truncate_bytes(&format!("{value:?}"), LONGEST).into_owned();
        match field.name() {
            "message" => self.message = value,
            name => self.fields.push((name, Value::Other(value))),
        }
    }
}

impl LogEntry {
    /// Formats the line. Control characters from outside can neither command the terminal nor start a new
    /// line.
    pub(super) fn line(&self, color: bool) -> String {
        let mut line = plain(&self.message);
        let (faint, end) = if color { ("\x1b[2m", "\x1b[0m") } else { ("", "") };
        let value =
            |name: &str| self.fields.iter().find(|(known, _)| *known == name).map(|(_, it)| it.as_str());
        let place = PLACE.map(|name| value(name).unwrap_or_default()).join(":");
        for (name, value) in &self.fields {
            let is_told = PLACE.contains(name) && self.message.contains(&place);
            // Writing to a string can't fail.
            let _ = match value {
                _ if is_told => Ok(()),
                Value::Text(value) => write!(line, " {faint}{name}={end}{value:?}"),
                Value::Other(value) if is_several_words(value) => {
                    write!(line, " {faint}{name}={end}{value:?}")
                }
                Value::Other(value) => write!(line, " {faint}{name}={end}{}", plain(value)),
            };
        }
        line
    }
}

/// Whether a value needs quotes to be read as one value. A value with quotes of its own needs none.
fn is_several_words(value: &str) -> bool {
    value.contains(char::is_whitespace) && !value.starts_with('"')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_words_say_is_not_repeated_and_nothing_commands_a_terminal() {
        let text = |text: &str| Value::Text(text.to_owned());
        let mut entry = LogEntry {
            message: "decided to update cluster acme/a: x 1 → 2 (acme/a.yaml:9)\x1b[2J".to_owned(),
            fields: vec![
                ("fleet", text("acme/eu")),
                ("resource", Value::Other("cluster acme/a".to_owned())),
                ("verb", Value::Other("update".to_owned())),
                ("file", text("acme/a.yaml")),
                ("line", Value::Other("9".to_owned())),
                ("author", text("\u{202e}Ada \"A\"\x07")),
            ],
        };
        let said = "decided to update cluster acme/a: x 1 → 2 (acme/a.yaml:9)\\u{1b}[2J fleet=\"acme/eu\" \
                    resource=\"cluster acme/a\" verb=update";
        let author = r#"author="\u{202e}Ada \"A\"\u{7}""#;
        assert_eq!(entry.line(false), format!("{said} {author}"));
        entry.message = "blocked: deletion protection is on".to_owned();
        entry.fields.truncate(5);
        let line = "blocked: deletion protection is on fleet=\"acme/eu\" resource=\"cluster acme/a\" verb=update \
                    file=\"acme/a.yaml\" line=9";
        assert_eq!(entry.line(false), line);
        entry.fields.truncate(1);
        assert_eq!(entry.line(true), "blocked: deletion protection is on \x1b[2mfleet=\x1b[0m\"acme/eu\"");
    }
}
