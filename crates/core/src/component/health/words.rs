//! Names and foreign messages inside of sentences.

/// The most characters quoted from a message of Kubernetes or Strimzi.
const LONGEST: usize = 240;
/// The most items of a list that are named.
pub const NAMED: usize = 3;

/// Fits a message of Kubernetes or Strimzi into a sentence: one line, no full stop, not too long.
pub fn brief(message: &str) -> String {
    let line = message.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = line.trim_end_matches(['.', ':', ' ']);
    match line.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", line[..end].trim_end()),
        None => line.to_owned(),
    }
}

pub fn quoted(name: &str) -> String {
    format!("`{name}`")
}

/// Lists names, a few of them at most: `a, b, c and 2 more`.
pub fn named(names: &[&str]) -> String {
    let first: Vec<String> = names.iter().take(NAMED).map(|name| quoted(name)).collect();
    let more = match names.len() - first.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    first.join(", ") + &more
}
