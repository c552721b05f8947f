//! Text of users, made fit for a message.

/// The longest piece of a user's text in a message, in characters.
const MAX: usize = 60;

/// A piece of a user's text as a message quotes it: shortened, and without anything that a terminal obeys.
pub fn plain(text: &str) -> String {
    let mut shown: String = text.chars().take(MAX).map(harmless).collect();
    if shown.len() < text.len() && text.chars().nth(MAX).is_some() {
        shown.push('…');
    }
    shown
}

/// The character, or U+FFFD in place of one that would command a terminal or reorder what is read: controls and
/// Unicode's invisible direction marks.
pub(super) fn harmless(character: char) -> char {
    match character {
        c if c.is_control() => '\u{fffd}',
        '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}' => {
            '\u{fffd}'
        }
        c => c,
    }
}
