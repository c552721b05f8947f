//! Finds possible secrets in a text whose structure is unknown. It errs on the side of hiding too much.

use crate::spec::yaml::Span;

const WORDS: [&str; 14] = [
    "kubeconfig",
    "tls_key",
    "credential",
    "token",
    "password",
    "passwd",
    "passphrase",
    "secret",
    "private",
    "access_key",
    "api_key",
    "apikey",
    "encrypted",
    "-data",
];

/// The shortest run of base64 characters that is hidden anywhere.
const RUN: usize = 24;

pub fn suspects(text: &str) -> Vec<Span> {
    let mut spans = Vec::new();
    let mut inside = RedactionState::Nothing;
    let mut at = 0;
    for line in text.split_inclusive(['\n', '\r']) {
        inside = inside.before(line);
        let (hidden_from, next) = inside.judge(line);
        match hidden_from {
            Some(from) => {
                spans.push(Span { start: at + from, end: at + line.len() });
                // The word may be in a comment after the value.
                spans.extend(runs(&line[..from], at));
            }
            None => spans.extend(runs(line, at)),
        }
        inside = next;
        at += line.len();
    }
    spans
}

/// The context that earlier lines have opened.
#[derive(Clone, Copy)]
enum RedactionState {
    Nothing,
    /// Between `-----BEGIN` and `-----END`.
    Armour,
    /// Below a key whose value is hidden, at this indentation.
    Value(usize),
}

impl RedactionState {
    /// Ends a hidden value at a key that is not indented further, or at the end of the document.
    fn before(self, line: &str) -> RedactionState {
        match self {
            RedactionState::Value(indent)
                if line.starts_with("---") && !line.starts_with("-----") && indent == 0 =>
            {
                RedactionState::Nothing
            }
            RedactionState::Value(indent) if indentation(line) <= indent && starts_with_key(line) => {
                RedactionState::Nothing
            }
            other => other,
        }
    }

    /// Returns the first hidden byte of the line, and the context for the next line.
    fn judge(self, line: &str) -> (Option<usize>, RedactionState) {
        let ends = line.contains("-----END");
        match self {
            RedactionState::Armour => {
                (Some(0), if ends { RedactionState::Nothing } else { RedactionState::Armour })
            }
            RedactionState::Value(_) => (Some(0), self),
            RedactionState::Nothing => {
                if let Some(from) = after_word(line) {
                    (Some(from), RedactionState::Value(indentation(line)))
                } else if let Some(from) = line.find("-----BEGIN") {
                    (Some(from), if ends { RedactionState::Nothing } else { RedactionState::Armour })
                } else {
                    (None, RedactionState::Nothing)
                }
            }
        }
    }
}

/// Returns whether a value that is hidden may go on after a text: one that follows a colon or an equals sign, or
/// the part between `-----BEGIN` and `-----END`. A mere mention of a secret opens nothing.
pub fn is_open(text: &str) -> bool {
    let mut inside = RedactionState::Nothing;
    let mut is_given = false;
    for line in text.split_inclusive(['\n', '\r']) {
        let before = inside.before(line);
        if matches!(before, RedactionState::Nothing) {
            is_given = after_word(line).is_some_and(|from| line[..from].ends_with([':', '=']));
        }
        inside = before.judge(line).1;
    }
    match inside {
        RedactionState::Nothing => false,
        RedactionState::Armour => true,
        RedactionState::Value(_) => is_given,
    }
}

fn indentation(line: &str) -> usize {
    line.len() - line.trim_start_matches([' ', '\t', '-']).len()
}

fn starts_with_key(line: &str) -> bool {
    let content = line.trim_start_matches([' ', '\t', '-']);
    let word =
        content.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'));
    word.len() < content.len() && word.starts_with(':') && !line.trim_start().starts_with("-----")
}

/// Returns the byte after the colon or equals sign that follows a word of [`WORDS`], or after the word
/// itself.
fn after_word(line: &str) -> Option<usize> {
    let lower = line.to_ascii_lowercase();
    let end = WORDS.iter().filter_map(|word| lower.find(word).map(|start| start + word.len())).min()?;
    let separator = line[end..].find([':', '=']).map(|offset| end + offset + 1);
    Some(separator.unwrap_or(end))
}

/// Returns secrets outside of values, which are hidden even if the structure is known: a tag or anchor after
/// the key of a secret, which may be the unquoted secret itself, and user names and passwords in URLs.
pub fn hidden_anywhere(text: &str) -> Vec<Span> {
    let mut spans = user_info(text);
    let mut at = 0;
    for line in text.split_inclusive(['\n', '\r']) {
        let from = after_word(line).filter(|from| line[*from..].contains(['!', '&', '*']));
        spans.extend(from.map(|from| Span { start: at + from, end: at + line.len() }));
        at += line.len();
    }
    spans
}

/// Returns the user names and passwords in URLs: the text between `://` and `@`.
fn user_info(text: &str) -> Vec<Span> {
    let mut spans = Vec::new();
    let mut at = 0;
    while let Some(found) = text[at..].find("://") {
        let start = at + found + "://".len();
        let authority = text[start..].find(|c: char| c.is_whitespace() || "/?#\"'".contains(c));
        let end = authority.map_or(text.len(), |length| start + length);
        spans.extend(text[start..end].rfind('@').map(|length| Span { start, end: start + length }));
        at = start;
    }
    spans
}

pub fn is_suspect(key: &str) -> bool {
    after_word(key).is_some()
}

fn runs(line: &str, at: usize) -> impl Iterator<Item = Span> {
    let coded = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '=' | '_' | '-');
    let mut start = 0;
    line.split(move |c| !coded(c)).filter_map(move |run| {
        let from = start;
        // Runs are separated by one character, which may have several bytes.
        let after = from + run.len();
        start = after + line[after..].chars().next().map_or(0, char::len_utf8);
        (run.len() >= RUN).then_some(Span { start: at + from, end: at + after })
    })
}

#[cfg(test)]
mod tests {
    use crate::spec::text::MaskedText;

    use super::*;

    fn redacted(text: &str) -> String {
        let masked = MaskedText::new("a.yaml".parse().unwrap(), text, suspects(text));
        let mut at = 0;
        let mut lines = Vec::new();
        for line in text.split_inclusive('\n') {
            lines.push(masked.locate(Span { start: at, end: at }).text);
            at += line.len();
        }
        lines.join("\n")
    }

    #[test]
    fn user_info_is_found_in_every_url() {
        let found = |text: &'static str| -> Vec<&str> {
            user_info(text).into_iter().map(|span| &text[span.start..span.end]).collect()
        };
        assert_eq!(found("a: https://u:PW@h/x@y, http://h2/@ 'https://v@h'"), ["u:PW", "v"]);
        assert_eq!(found("https://u:P@W@h"), ["u:P@W"]);
        assert_eq!(found("u:PW@h https://h ://"), [""; 0]);
    }

    #[test]
    fn what_may_be_a_secret_is_hidden_and_the_rest_is_shown() {
        for (text, expected) in [
            ("tls_key: hunter2", "tls_key: …"),
            ("a: {tls_key: hunter2, b: c}", "a: {tls_key: …"),
            ("\"token\": \"hunter2\"", "\"token\": …"),
            ("    client-key-data: aHVudGVyMg==", "    client-key-data: …"),
            ("Password = hunter2", "Password = …"),
            ("kubeconfig: |\n  hunter: 2\n  x\nregion: eu", "kubeconfig: …\n  …\n  …\nregion: eu"),
            ("- token: x\n  more\n- name: y", "- token: …\n  …\n- name: y"),
            ("credentials: 'hun\nter2\nregion: eu", "credentials: …\n…\nregion: eu"),
            ("a: |\n  -----BEGIN X-----\n  MIIB\n  -----END X-----\nb: c", "a: |\n  …\n  …\n  …\nb: c"),
            ("x: AAAAAAAAAAAAAAAAAAAAAAAA", "x: …"),
            ("x: ä AAAAAAAAAAAAAAAAAAAAAAAA y", "x: ä ************************ y"),
            ("kafka_units: two", "kafka_units: two"),
            ("x: AAAAAAAAAAAAAAAAAAAAAAAA # the token", "x: ************************ # the token"),
        ] {
            assert_eq!(redacted(text), expected, "{text}");
        }
    }
}
