//! Verifies every edit: the new text is parsed again and must have exactly the expected content.

use serde_json::Value;

use super::refusal::{EditRefusal, RefusalReason};
use super::source::Source;
use crate::spec::yaml::{self, Node, YamlContent, YamlDocument};

/// Checks each document of the new text: it must be either unchanged or equal to the wanted value.
///
/// Unchanged documents are compared by their style as well, not only by their values.
pub fn prove(after: &str, before: &[YamlDocument<'_>], expected: &[Expected<'_>]) -> Result<(), EditRefusal> {
    if after.len() > yaml::MAX_BYTES {
        return Err(EditRefusal::of_file(RefusalReason::TooLong));
    }
    let source = Source { text: after };
    let unproven = || EditRefusal::of_file(RefusalReason::Unproven);
    let documents = source.documents().map_err(|_| unproven())?;
    let holds = |(document, expected): (&YamlDocument<'_>, &Expected<'_>)| match (root(document), expected) {
        (new, Expected::AsBefore(index)) => match (new, before.get(*index).and_then(root)) {
            (Some(new), Some(old)) => same(new, old),
            (None, None) => true,
            _ => false,
        },
        (Some(new), Expected::Wanted(wanted)) => source.value(new).is_ok_and(|value| value == **wanted),
        (None, Expected::Wanted(_)) => false,
    };
    let all = documents.len() == expected.len() && documents.iter().zip(expected).all(holds);
    if all { Ok(()) } else { Err(unproven()) }
}

pub enum Expected<'a> {
    /// The document that had this index, unchanged.
    AsBefore(usize),
    Wanted(&'a Value),
}

fn root<'d, 'a>(document: &'d YamlDocument<'a>) -> Option<&'d Node<'a>> {
    document.root.as_ref().ok().and_then(Option::as_ref)
}

/// Whether two values are written with the same text in the same style.
fn same(one: &Node<'_>, other: &Node<'_>) -> bool {
    let alike = one.style == other.style
        && one.anchored == other.anchored
        && one.target.is_some() == other.target.is_some();
    alike
        && match (&one.content, &other.content) {
            (YamlContent::Tagged, YamlContent::Tagged) => true,
            (YamlContent::Scalar { text: one, .. }, YamlContent::Scalar { text: other, .. }) => one == other,
            (YamlContent::Sequence(one), YamlContent::Sequence(other)) => {
                one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
            }
            (YamlContent::Mapping(one), YamlContent::Mapping(other)) => {
                let mut pairs = one.iter().zip(other);
                one.len() == other.len()
                    && pairs.all(|(one, other)| same(&one.key, &other.key) && same(&one.value, &other.value))
            }
            _ => false,
        }
}
