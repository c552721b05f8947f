//! Rewords problems for API callers: hints are written for people who edit files.

use crate::problem::Problem;

pub const HOW_SECRETS: &str = "send the value as a string, which is stored encrypted, or leave out the field to keep the \
                               current value";

pub const HOW_NEW_SECRETS: &str = "send the value as a string, which is stored encrypted";

/// Phrases about files, each with its replacement for JSON.
const WORDS: [(&str, &str); 9] = [
    (
        "describe it in an Organization document in an administrator's file, or",
        "have the administrators of this installation create it, or",
    ),
    (
        "; in YAML, put `|` before a text of several lines",
        "; send it as one string, with `\\n` for each end of a line",
    ),
    ("YAML 1.2 has only true and false; ", ""),
    ("describe the new one beside it", "create the new one beside it"),
    ("describe a new", "create a new"),
    ("describe `", "create `"),
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
            "send `{name}` with the change, even if unchanged, to store it encrypted; replace the secret itself if others \
             can read the repository"
        ),
        "empty-secret" => HOW_SECRETS.to_owned(),
        "swallowed-document" => "remove the text that looks like another document".to_owned(),
        _ if hint.starts_with("see `streamfleet explain ") => "see `/openapi.json` for its format".to_owned(),
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
            ("restore `private: true`", "restore `\"private\": true`"),
            (
                "add `domains: [k.example.com]` to organization `acme`",
                "add `\"domains\": [\"k.example.com\"]` to organization `acme`",
            ),
            ("known: `eu`; or describe `us` first", "known: `eu`; or create `us` first"),
            (
                "remove `advanced_config.storage.class`; to change it, describe a new cluster beside it",
                "send null for `advanced_config.storage.class`; to change it, create a new cluster beside it",
            ),
            ("see `streamfleet explain cluster.kafka_units`", "see `/openapi.json` for its format"),
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
        let plain = "send `kubeconfig` with the change, even if unchanged, to store it encrypted; replace the secret \
                     itself if others can read the repository";
        for (code, ours) in [
            ("plain-secret", plain),
            ("empty-secret", HOW_SECRETS),
            ("swallowed-document", "remove the text that looks like another document"),
        ] {
            assert_eq!(said(code, "any", "for files").1, ours);
        }
    }
}
