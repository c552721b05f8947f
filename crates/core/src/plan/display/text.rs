//! Text from users, made safe for terminals.

use crate::names::is_deceptive;

/// Escapes characters that move the cursor, colour or hide text, or change the writing direction.
pub fn plain(text: &str) -> String {
    plain_but(text, |_| false)
}

/// Like [`plain`], but keeps line breaks and tabs.
pub fn plain_lines(text: &str) -> String {
    plain_but(text, |character| matches!(character, '\n' | '\t'))
}

fn plain_but(text: &str, stays: impl Fn(char) -> bool) -> String {
    let mut plain = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            character if stays(character) => plain.push(character),
            character if character.is_control() => plain.extend(character.escape_default()),
            character if is_deceptive(character) => plain.extend(character.escape_unicode()),
            character => plain.push(character),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_drives_a_terminal_passes() {
        for (text, expected) in [
            ("ü → ‹x›", "ü → ‹x›"),
            ("\u{1b}[2Jgone", "\\u{1b}[2Jgone"),
            ("a\r\nb\tc", "a\\r\\nb\\tc"),
            ("\u{9b}31m", "\\u{9b}31m"),
            ("a\u{202e}b\u{200b}", "a\\u{202e}b\\u{200b}"),
        ] {
            assert_eq!(plain(text), expected);
        }
        assert_eq!(plain_lines("a\r\nb\x1b[2J"), "a\\r\nb\\u{1b}[2J");
    }
}
