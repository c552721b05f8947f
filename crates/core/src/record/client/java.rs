use std::fmt::Write as _;

use super::ClientProperties;

/// The file. `java.util.Properties` parses it into the same properties.
pub(super) fn file(properties: &ClientProperties) -> String {
    let mut text = String::new();
    for note in &properties.notes {
        text += &comment(note);
    }
    for (property, value) in &properties.properties {
        let _ = writeln!(text, "{property}={}", escaped(value));
    }
    for (property, source) in &properties.to_add {
        text += &comment(&format!("To add: {property}, {source}"));
    }
    text
}

/// A comment on one line: line breaks in the text become spaces.
fn comment(text: &str) -> String {
    let one_line = text.split(|c: char| c.is_control() || "\u{2028}\u{2029}".contains(c));
    format!("# {}\n", one_line.collect::<Vec<_>>().join(" "))
}

/// Escapes a value. Each of its lines goes on a line of its own, so that certificates stay readable.
fn escaped(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    let mut starts_line = true;
    let mut rest = value.chars().peekable();
    while let Some(character) = rest.next() {
        // Writing into a String can't fail.
        let _ = match character {
            '\n' if rest.peek().is_some() => writeln!(text, "\\n\\"),
            '\n' => write!(text, "\\n"),
            '\\' => write!(text, "\\\\"),
            // Java strips leading spaces from the value and from continued lines.
            ' ' if starts_line => write!(text, "\\ "),
            ' '..='~' => write!(text, "{character}"),
            _ => {
                character.encode_utf16(&mut [0; 2]).iter().try_for_each(|unit| write!(text, "\\u{unit:04x}"))
            }
        };
        starts_line = character == '\n';
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Reads what follows the `=` as `java.util.Properties` does, to the end of the logical line.
    fn read(text: &str) -> String {
        let mut units = Vec::new();
        let mut chars = text.trim_start_matches([' ', '\t', '\u{c}']).chars();
        while let Some(c) = chars.next() {
            match c {
                '\n' | '\r' => panic!("{text:?} ends early"),
                '\\' => match chars.next().unwrap() {
                    'u' => {
                        let digits: String = chars.by_ref().take(4).collect();
                        units.push(u16::from_str_radix(&digits, 16).unwrap());
                    }
                    'n' => units.push(u16::from(b'\n')),
                    '\n' => {
                        let rest = chars.as_str().trim_start_matches([' ', '\t', '\u{c}']);
                        chars = rest.chars();
                    }
                    other => units.push(u16::try_from(u32::from(other)).unwrap()),
                },
                c => units.push(u16::try_from(u32::from(c)).unwrap()),
            }
        }
        String::from_utf16(&units).unwrap()
    }

    proptest! {
        #[test]
        fn every_value_is_read_back(value in any::<String>()) {
            prop_assert_eq!(read(&escaped(&value)), value);
        }

        #[test]
        fn lines_and_spaces_are_read_back(value in "[ \\\\\n\r\ta#!=:é😀]{0,12}") {
            prop_assert_eq!(read(&escaped(&value)), value);
        }
    }

    #[test]
    fn a_certificate_keeps_its_lines() {
        assert_eq!(escaped("-----BEGIN\nAA=\n"), "-----BEGIN\\n\\\nAA=\\n");
    }

    #[test]
    fn a_comment_is_one_line() {
        assert_eq!(comment("a\nsasl.mechanism=PLAIN\r\u{85}b"), "# a sasl.mechanism=PLAIN  b\n");
    }
}
