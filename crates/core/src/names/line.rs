//! Untrusted text, made safe for one line of a log, a message or a terminal.

use std::borrow::Cow;

/// Whether a character can deceive a reader or command a terminal: it is a control character, invisible, or
/// changes the direction of text (Unicode's categories Cc, Cf, Zl and Zp).
pub fn is_deceptive(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Fits a text on one line: cut after `longest` characters, each run of white space replaced with one space,
/// each deceptive character with its visible escape. A text of at most `longest` bytes without deceptive
/// characters is returned unchanged.
pub fn one_line(text: &str, longest: usize) -> Cow<'_, str> {
    if text.len() <= longest && !text.chars().any(is_deceptive) {
        return Cow::Borrowed(text);
    }
    let (mut line, mut length, mut words) = (String::new(), 0, 0);
    for word in text.split_whitespace() {
        let space = (words > 0).then_some(' ');
        words += 1;
        for character in space.into_iter().chain(word.chars()) {
            let before = line.len();
            match is_deceptive(character) {
                true => line.extend(character.escape_unicode()),
                false => line.push(character),
            }
            length += line[before..].chars().count();
            if length > longest {
                line.truncate(before);
                line.push('…');
                return Cow::Owned(line);
            }
        }
    }
    Cow::Owned(line)
}

/// Fits a line of a log on one line: cut after `longest` characters, each tab replaced with spaces, each other deceptive
/// character with its visible escape. Indentation stays, as stack traces have it.
pub fn log_line(text: &str, longest: usize) -> String {
    let (mut line, mut length) = (String::with_capacity(text.len().min(longest)), 0);
    for character in text.chars() {
        let before = line.len();
        match character {
            '\t' => line.push_str("    "),
            character if is_deceptive(character) => line.extend(character.escape_unicode()),
            character => line.push(character),
        }
        length += line[before..].chars().count();
        if length > longest {
            line.truncate(before);
            line.push('…');
            break;
        }
    }
    line
}

/// Formats an amount in a larger unit, rounded up to a tenth.
pub fn tenths(amount: u64, unit: u64) -> String {
    let tenths = amount.saturating_mul(10).div_ceil(unit);
    match tenths % 10 {
        0 => format!("{}", tenths / 10),
        rest => format!("{}.{rest}", tenths / 10),
    }
}

/// `1 broker`, `3 brokers`.
pub fn count(number: u64, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_deceives_is_escaped_or_folded_and_what_is_long_is_cut() {
        for (text, expected) in [
            ("ü → ‹x›  y", "ü → ‹x›  y"),
            ("a\r\n\tb\u{2028}c \n", "a b c"),
            ("\u{1b}[2Jgone", "\\u{1b}[2Jgone"),
            ("a\u{202e}b\u{200b}c\u{feff}", "a\\u{202e}b\\u{200b}c\\u{feff}"),
            ("\u{9b}31m\u{e0041}", "\\u{9b}31m\\u{e0041}"),
            ("0123456789012345678901234567890", "012345678901234567890123456789…"),
            ("01234567890123456789012345\u{1b}", "01234567890123456789012345…"),
        ] {
            assert_eq!(one_line(text, 30), expected);
        }
    }

    #[test]
    fn a_text_stays_within_its_bound_however_much_is_escaped() {
        let text = "\u{202e}".repeat(1_000_000);
        assert!(one_line(&text, 400).chars().count() <= 401);
    }
}
