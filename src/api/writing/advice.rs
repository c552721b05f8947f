//! Rewords problems for API callers: hints are written for people who edit files.

use crate::problem::Problem;

pub const HOW_SECRETS: &str = "give the value itself as a string, which is kept encrypted, or leave the field out to keep what is there";

pub const HOW_NEW_SECRETS: &str = "give the value itself as a string, which is kept encrypted";

/// Phrases about files, each with its replacement for JSON.
const WORDS: [(&str, &str); 9] = [
    (
        "describe it in an Organization document in an administrator's file, or",
        "have the administrators of this installation make it, or",
    ),
    (
        ", and mind the `|` before a text of several lines",
        ", and send it as one string, with `\\n` for each end of a line",
    ),
    ("YAML 1.2 has only true and false; ", ""),
    ("describe the new one beside it", "make the new one beside it"),
    ("describe a new", "make a new"),
    ("describe `", "make `"),
    ("remove `", "send null for `"),
    ("` and apply, which", "`, and wait until that is applied, which"),
    ("` and apply", "`, and wait until that is applied"),
];

/// Terms of YAML, and those of JSON.
const NAMES: [(&str, &str); 2] =
    [("a mapping of keys and values", "an object"), ("found a mapping", "found an object")];

/// The message in terms of JSON. Text that quotes the caller's input is kept.
pub fn detail(problem: &Problem) -> String {
    replaced(&problem.message, &NAMES)
}

pub fn hint(problem: &Problem, field: Option<&str>) -> Option<String> {
    let hint = problem.hint.as_deref()?;
    let name = field.and_then(|pointer| pointer.rsplit('/').next()).unwrap_or("the field");
    Some(match problem.code.as_ref() {
        "plain-secret" => format!(
            "send `{name}` with the change, be it the same, which writes it encrypted; replace the secret itself if others \
             can read the repository"
        ),
        "empty-secret" => HOW_SECRETS.to_owned(),
        "swallowed-document" => "leave out of the text what looks like a document of its own".to_owned(),
        _ if hint.starts_with("`streamfleet explain ") => "`/openapi.json` says what it takes".to_owned(),
        _ => in_json(hint),
    })
}

fn in_json(text: &str) -> String {
    let text = replaced(&replaced(text, &WORDS), &NAMES);
    let parts = text.split('`').enumerate();
    let quoted = parts.map(|(at, part)| if at % 2 == 1 { pair(part) } else { part.to_owned() });
    quoted.collect::<Vec<_>>().join("`")
}

fn replaced(text: &str, words: &[(&str, &str)]) -> String {
    words.iter().fold(text.to_owned(), |text, (of_files, ours)| text.replace(of_files, ours))
}

/// Rewrites `name: value`, the form in a file, as JSON. Any other text stays the same.
fn pair(quoted: &str) -> String {
    let Some((name, value)) = quoted.split_once(": ") else { return quoted.to_owned() };
    if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_') {
        return quoted.to_owned();
    }
    let value = match value {
        "true" | "false" => value.to_owned(),
        number if number.bytes().all(|byte| byte.is_ascii_digit()) => number.to_owned(),
        list if let Some(item) = list.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) => {
            format!("[\"{item}\"]")
        }
        text => format!("\"{text}\""),
    };
    format!("\"{name}\": {value}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(code: &'static str, message: &str, advice: &str) -> (String, String) {
        let problem = Problem::error(code, message).hint(advice);
        (detail(&problem), hint(&problem, Some("/advanced_config/kubeconfig")).unwrap())
    }

    #[test]
    fn what_is_for_files_is_said_for_who_sends_json() {
        for (advice, ours) in [
            (
                "set `tenancy_mode: Shared`, or choose a fleet that is Isolated",
                "set `\"tenancy_mode\": \"Shared\"`, or choose a fleet that is Isolated",
            ),
            (
                "set `max_tenants: 1`, or use Shared or Isolated",
                "set `\"max_tenants\": 1`, or use Shared or Isolated",
            ),
            ("put `private: true` back", "put `\"private\": true` back"),
            (
                "add `domains: [k.example.com]` to organization `acme`",
                "add `\"domains\": [\"k.example.com\"]` to organization `acme`",
            ),
            ("there is `eu`; or describe `us` first", "there is `eu`; or make `us` first"),
            (
                "remove `advanced_config.storage.class`; to have it otherwise, describe a new cluster beside it",
                "send null for `advanced_config.storage.class`; to have it otherwise, make a new cluster beside it",
            ),
            (
                "`streamfleet explain cluster.kafka_units` says what it takes",
                "`/openapi.json` says what it takes",
            ),
            ("YAML 1.2 has only true and false; write true without quotes", "write true without quotes"),
            ("did you mean `kafka_units`?", "did you mean `kafka_units`?"),
            ("use one for `*.k.example.com`", "use one for `*.k.example.com`"),
        ] {
            assert_eq!(said("any", "any", advice).1, ours);
        }
        let (detail, _) =
            said("wrong-type", "`storage`: expected a mapping of keys and values, found the string `a`", "-");
        assert_eq!(detail, "`storage`: expected an object, found the string `a`");
        assert_eq!(said("unknown-key", "unknown key `remove: it`", "-").0, "unknown key `remove: it`");
    }

    #[test]
    fn some_mistakes_are_mended_otherwise_by_who_calls() {
        let plain = "send `kubeconfig` with the change, be it the same, which writes it encrypted; replace the secret itself if others can \
                     read the repository";
        for (code, ours) in [
            ("plain-secret", plain),
            ("empty-secret", HOW_SECRETS),
            ("swallowed-document", "leave out of the text what looks like a document of its own"),
        ] {
            assert_eq!(said(code, "any", "for files").1, ours);
        }
    }
}
