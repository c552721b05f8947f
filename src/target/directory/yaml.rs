use serde_json::Value;
use zeroize::Zeroizing;

use super::layout;
use crate::names::{Json, ObjectKey};
use crate::render::yaml::to_yaml;
use crate::target::mask::redact;
use crate::target::{ObjectWrite, TargetError};

/// The deepest nesting that is parsed: far deeper than any Kubernetes object, far too shallow to overflow a
/// stack.
const MAX_DEPTH: usize = 64;

pub(super) fn text(write: &ObjectWrite) -> Result<Zeroizing<String>, TargetError> {
    let failed = |reason: String| TargetError::Yaml { object: write.key.clone(), reason };
    // A line break in a name would end the comment.
    let owner = write.owner.to_string().replace(char::is_control, " ");
    let mut text = Zeroizing::new(format!(
        "# Written by streamfleet for {owner}. Edits count as drift and are undone.\n"
    ));
    if layout::is_secret(&write.key) {
        let mut random = [0_u8; 16];
        aws_lc_rs::rand::fill(&mut random)
            .map_err(|_| failed("the system provides no random numbers".to_owned()))?;
        text.push_str("# Random, so that this file's digest reveals nothing about its content: ");
        text.push_str(&hex::encode(random));
        text.push('\n');
    }
    let body = Zeroizing::new(to_yaml(&write.filled));
    text.push_str(&body);
    Ok(text)
}

/// Parses a file for a plan, with secret bytes redacted. None when it is no YAML object.
pub(super) fn parse(key: &ObjectKey, bytes: &[u8]) -> Option<Json> {
    let text = std::str::from_utf8(bytes).ok()?;
    let options = serde_saphyr::options! {
        strict_booleans: true,
        budget: serde_saphyr::budget! { max_depth: MAX_DEPTH },
    };
    let value: Value = serde_saphyr::from_str_with_options(text, options).ok()?;
    let Value::Object(object) = value else { return None };
    let is_secret = layout::is_secret(key) || object.get("kind").is_some_and(|kind| kind == "Secret");
    Some(Value::Object(if is_secret { redact(object) } else { object }).into())
}
