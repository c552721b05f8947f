//! Quotes untrusted text in messages.

use std::borrow::Cow;

use crate::names::is_deceptive;

/// The most characters of untrusted text in a message.
const MAX: usize = 60;

/// Quotes untrusted text in a message: shortened, and without anything that a terminal would interpret.
pub fn quote_untrusted(text: &str) -> String {
    let open = without_user_info(text);
    let mut shown: String = open.chars().take(MAX).map(harmless).collect();
    if open.chars().nth(MAX).is_some() {
        shown.push('…');
    }
    shown
}

/// Removes the user name and password of a URL.
fn without_user_info(text: &str) -> Cow<'_, str> {
    let parts = text.split_once("://").and_then(|(scheme, rest)| {
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        rest[..end].rfind('@').map(|at| format!("{scheme}://…{}", &rest[at..]))
    });
    parts.map_or(Cow::Borrowed(text), Cow::Owned)
}

/// Replaces a character that [`is_deceptive`] with U+FFFD.
pub(super) fn harmless(character: char) -> char {
    if is_deceptive(character) { '\u{fffd}' } else { character }
}

/// Cuts a text to this many bytes and says how much is missing.
pub fn truncate_bytes(text: &str, most: usize) -> Cow<'_, str> {
    if text.len() <= most {
        return Cow::Borrowed(text);
    }
    let kept = text.floor_char_boundary(most);
    Cow::Owned(format!("{}… ({} bytes more)", &text[..kept], text.len() - kept))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_between_characters_and_says_so() {
        assert_eq!(truncate_bytes("größe", 7), "größe");
        assert_eq!(truncate_bytes("größe", 3), "gr… (5 bytes more)");
        assert_eq!(truncate_bytes("größe", 4), "grö… (3 bytes more)");
    }
}
