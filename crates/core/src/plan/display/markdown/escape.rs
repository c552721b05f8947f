//! Escapes text from users for Markdown.

use crate::plan::plain;

/// The longest piece of text, in characters.
const LONGEST: usize = 600;

/// Formats a sentence. Text between backticks becomes code; everything else is shown literally.
pub(super) fn text(sentence: &str) -> String {
    let sentence = clipped(sentence);
    let parts: Vec<&str> = sentence.split('`').collect();
    if parts.len().is_multiple_of(2) {
        return escaped(&sentence);
    }
    let part = |(index, part): (usize, &&str)| match (index % 2, part.is_empty()) {
        (0, _) => escaped(part),
        (_, true) => "\\`\\`".to_owned(),
        _ => code(part),
    };
    parts.iter().enumerate().map(part).collect()
}

/// Formats inline code, between more backticks than it contains in a row.
pub(super) fn code(text: &str) -> String {
    let text = clipped(text);
    if text.trim().is_empty() {
        return "` `".to_owned();
    }
    let fence = "`".repeat(longest_run(&text) + 1);
    match text.starts_with(['`', ' ']) || text.ends_with(['`', ' ']) {
        true => format!("{fence} {text} {fence}"),
        false => format!("{fence}{text}{fence}"),
    }
}

pub(super) fn fence(lines: &str) -> String {
    "`".repeat((longest_run(lines) + 1).max(3))
}

fn longest_run(text: &str) -> usize {
    text.split(|letter| letter != '`').map(str::len).max().unwrap_or(0)
}

/// Escapes what Markdown or HTML interprets, and what a server turns into a link or a mention: `@name` and
/// `#1` get a zero-width space, since servers search the rendered page for them and not its source.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len() * 2);
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        let next_is_space = letters.peek().is_none_or(|next| next.is_whitespace());
        if "\\`*_[]<>#|~&@$^".contains(letter) || (letter == ':' && !next_is_space) {
            escaped.push('\\');
        }
        escaped.push(letter);
        if "@#".contains(letter) {
            escaped.push_str("&#8203;");
        }
    }
    escaped.replace("www.", "www\\.")
}

fn clipped(text: &str) -> String {
    let text = plain(text);
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_people_write_is_markdown_or_html() {
        for (given, expected) in [
            ("adds 3 brokers; clients go on", "adds 3 brokers; clients go on"),
            ("raise `max_kafka_units` of acme", "raise `max_kafka_units` of acme"),
            ("<img src=x onerror=y>", "\\<img src=x onerror=y\\>"),
            ("</details> **bold** [a](https://b)", "\\</details\\> \\*\\*bold\\*\\* \\[a\\](https\\://b)"),
            ("see www.example.com", "see www\\.example.com"),
            ("@everyone #12 &lt;", "\\@&#8203;everyone \\#&#8203;12 \\&lt;"),
            ("one ` alone", "one \\` alone"),
            ("none `` there", "none \\`\\` there"),
            ("a\n# b\u{1b}", "a\\\\n\\#&#8203; b\\\\u{1b}"),
        ] {
            assert_eq!(text(given), expected);
        }
    }

    #[test]
    fn code_has_more_backticks_around_it_than_in_it() {
        for (given, expected) in [
            ("kafka_units 1 → 2", "`kafka_units 1 → 2`"),
            ("a`b``c", "```a`b``c```"),
            ("`a", "`` `a ``"),
            ("", "` `"),
            ("<b>|@x", "`<b>|@x`"),
        ] {
            assert_eq!(code(given), expected);
        }
        assert_eq!([fence("a `b`"), fence("```\n</details>")], ["```", "````"]);
        assert_eq!(code(&"x".repeat(700)).chars().count(), 603);
    }
}
