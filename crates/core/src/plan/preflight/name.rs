use serde_json::Value;

/// The longest name in Kubernetes. Longer ones are not genuine, and are kept out of messages.
const MAX_NAME: usize = 253;

/// Returns a name from a server's answer, unless it is empty or too long.
pub(super) fn name(text: &str) -> Option<String> {
    (1..=MAX_NAME).contains(&text.len()).then(|| text.to_owned())
}

pub fn name_of(object: &Value) -> Option<String> {
    name(object.pointer("/metadata/name")?.as_str()?)
}
