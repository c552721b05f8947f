//! Writes strings, numbers and booleans as YAML that every reader understands alike.

use serde_json::Value;

use crate::spec::yaml::Style;

/// Writes a scalar on one line, in this style unless that would change its value.
pub fn inline(value: &Value, style: Style, in_brackets: bool) -> String {
    let Value::String(text) = value else { return value.to_string() };
    match style {
        Style::Double => double(text),
        Style::Single if fits_single(text) => single(text),
        Style::Single => double(text),
        _ => bare(text, in_brackets),
    }
}

/// Writes a string without quotes if it is read as the same string without them.
pub fn bare(text: &str, in_brackets: bool) -> String {
    if is_plain(text, in_brackets) {
        text.to_owned()
    } else if text.contains(['"', '\\']) && fits_single(text) {
        single(text)
    } else {
        double(text)
    }
}

/// Whether readers of YAML 1.1 and of 1.2 read the text as this string without quotes.
fn is_plain(text: &str, in_brackets: bool) -> bool {
    let options = serde_saphyr::ser_options! { folded_wrap_chars: usize::MAX };
    let broken = text.contains(['\n', '\r', '\t']) || text.chars().any(needs_escape);
    let brackets = in_brackets && text.contains([',', '[', ']', '{', '}', ':']);
    let unquoted = || {
        let written = serde_saphyr::to_string_with_options(&text, options);
        written.is_ok_and(|written| written.strip_suffix('\n').unwrap_or(&written) == text)
    };
    !broken && !brackets && (is_version(text) || unquoted())
}

/// Whether it is a version of three parts or more, such as `4.3.1`. The YAML writer quotes it like a number,
/// but no reader takes it for one.
fn is_version(text: &str) -> bool {
    let is_part = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    text.split('.').count() > 2 && text.split('.').all(is_part)
}

fn fits_single(text: &str) -> bool {
    !text.chars().any(|c| needs_escape(c) || matches!(c, '\n' | '\r' | '\t'))
}

fn single(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

fn double(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            c if needs_escape(c) && u32::from(c) <= 0xFFFF => {
                quoted.push_str(&format!("\\u{:04X}", u32::from(c)));
            }
            c if needs_escape(c) => quoted.push_str(&format!("\\U{:08X}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// Characters that are not allowed in a file, that are line breaks to some readers, or that are
/// noncharacters.
fn needs_escape(c: char) -> bool {
    let control = c.is_control() && !matches!(c, '\n' | '\r' | '\t');
    control || matches!(c, '\u{2028}' | '\u{2029}' | '\u{FEFF}') || u32::from(c) & 0xFFFE == 0xFFFE
}

pub struct BlockLines {
    /// The indicator for the line breaks at the end.
    pub chomping: &'static str,
    /// Whether the first line begins with a space, so that an explicit indentation indicator is needed.
    pub indicator: bool,
    /// The lines, without indentation; including trailing empty lines if they are kept.
    pub lines: Vec<String>,
}

impl BlockLines {
    /// Splits a string into lines with exactly its value; `None` if block lines can't express it.
    pub fn of(text: &str, folded: bool) -> Option<Self> {
        let body = text.trim_end_matches('\n');
        let breaks = text.len() - body.len();
        let first = body.lines().find(|line| !line.is_empty())?;
        let last = body.rsplit('\n').next()?;
        let unfit = |c: char| c == '\r' || (c != '\n' && needs_escape(c));
        if text.chars().any(unfit) || first.starts_with('\t') || last.trim().is_empty() {
            return None;
        }
        let mut lines: Vec<String> = Vec::new();
        for line in body.split('\n') {
            if folded && line.starts_with([' ', '\t']) {
                return None;
            }
            // A single break would be folded to a space.
            if folded && !line.is_empty() && lines.iter().any(|line| !line.is_empty()) {
                lines.push(String::new());
            }
            lines.push(line.to_owned());
        }
        lines.extend(std::iter::repeat_n(String::new(), breaks.saturating_sub(1)));
        let chomping = match breaks {
            0 => "-",
            1 => "",
            _ => "+",
        };
        Some(Self { chomping, indicator: first.starts_with(' '), lines })
    }

    pub fn keeps(&self) -> bool {
        self.chomping == "+"
    }

    /// Returns the lines with indentation, each with the line end before it.
    pub fn block(&self, column: usize, line_end: &str) -> String {
        let indentation = " ".repeat(column);
        let line = |line: &String| match line.is_empty() {
            true => line_end.to_owned(),
            false => format!("{line_end}{indentation}{line}"),
        };
        self.lines.iter().map(line).collect()
    }

    /// Returns the block header: `|`, `>-`, `|2+`.
    pub fn header(&self, sign: char, columns: usize) -> String {
        let indicator = if self.indicator { columns.to_string() } else { String::new() };
        format!("{sign}{indicator}{}", self.chomping)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_come_only_where_they_are_needed() {
        for text in [
            "orders",
            "Internal & External",
            "4.3.1",
            "10.0.0.1",
            "https://id.example.com/realms/kafka",
            "$.groups",
            "a@example.com",
            "scram-sha-512",
            "eu-central-1",
            "1.2.3-rc",
            "it's",
            "3 brokers",
            "日本",
            "delete,compact",
            "1a",
        ] {
            assert_eq!(bare(text, false), text);
        }
        for text in [
            "",
            "~",
            "null",
            "yes",
            "No",
            "on",
            "y",
            "N",
            "true",
            "1",
            "-1",
            "1.30",
            "1.",
            ".5",
            "1e3",
            "012",
            "0x1F",
            "1_000",
            "12:30:45",
            "2001-01-01",
            "=",
            "<<",
            ".inf",
            "-.INF",
            ".NaN",
            "*.example.com",
            "a: b",
            "a #b",
            " a",
            "a:",
            "---",
        ] {
            assert_eq!(bare(text, false), format!("\"{text}\""));
        }
        assert_eq!(bare("a,b", true), "\"a,b\"");
        assert_eq!(bare("\"a\"", false), "'\"a\"'");
        assert_eq!(bare("\"it's\"", false), "'\"it''s\"'");
        assert_eq!(bare("\u{7}\u{feff}\u{1ffff}\u{85}\"", false), r#""\u0007\uFEFF\U0001FFFF\u0085\"""#);
    }
}
