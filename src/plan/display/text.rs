//! Text that people wrote, made harmless for a terminal.

/// Replaces what moves the cursor, colours, or turns the direction of writing by a visible form.
pub fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}' => {
                plain.extend(character.escape_unicode());
            }
            character if character.is_control() => plain.extend(character.escape_default()),
            character => plain.push(character),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn nothing_that_drives_a_terminal_passes() {
        for (text, expected) in [
            ("ü → ‹x›", "ü → ‹x›"),
            ("\u{1b}[2Jgone", "\\u{1b}[2Jgone"),
            ("a\r\nb\tc", "a\\r\\nb\\tc"),
            ("\u{9b}31m", "\\u{9b}31m"),
            ("a\u{202e}b", "a\\u{202e}b"),
        ] {
            assert_eq!(plain(text), expected);
        }
    }
}
