//! Text of users, made fit for a message.

use std::borrow::Cow;

use crate::names::is_deceptive;

/// The longest piece of a user's text in a message, in characters.
const MAX: usize = 60;

/// A piece of a user's text as a message quotes it: shortened, and without anything that a terminal obeys.
pub fn plain(text: &str) -> String {
    let open = without_user_info(text);
    let mut shown: String = open.chars().take(MAX).map(harmless).collect();
    if open.chars().nth(MAX).is_some() {
        shown.push('…');
    }
    shown
}

/// The text without the user name and password of a URL.
fn without_user_info(text: &str) -> Cow<'_, str> {
    let parts = text.split_once("://").and_then(|(scheme, rest)| {
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        rest[..end].rfind('@').map(|at| format!("{scheme}://…{}", &rest[at..]))
    });
    parts.map_or(Cow::Borrowed(text), Cow::Owned)
}

/// The character, or U+FFFD in place of one that would command a terminal or reorder what is read: controls and
/// Unicode's invisible direction marks.
pub(super) fn harmless(character: char) -> char {
    if is_deceptive(character) { '\u{fffd}' } else { character }
}
