//! The values that a field may have, as documents are checked by.

use crate::names::Kind;
use crate::spec::describe;

/// One of a field's values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// As specs spell it.
    pub value: String,
    /// The meaning, in sentences.
    pub description: String,
    /// Whether it applies where the field is left out.
    pub is_default: bool,
}

/// Returns the values of a field, which a JSON pointer names; none if it isn't a field with a fixed set of them.
pub fn choices(kind: Kind, pointer: &str) -> Vec<Choice> {
    let names: Vec<&str> = pointer.split('/').skip(1).collect();
    let Ok(field) = describe::document(kind, kind.singular()).find(&names) else { return Vec::new() };
    let usual = field.default();
    let choice = |(value, text): (String, String)| Choice {
        description: one_line(&text),
        is_default: usual.as_ref() == Some(&value),
        value,
    };
    field.options().into_iter().map(choice).collect()
}

/// A description may have several paragraphs.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_values_of_a_field_are_those_that_documents_are_checked_by() {
        let values = |kind, pointer| {
            let all = choices(kind, pointer).into_iter();
            all.map(|it| if it.is_default { format!("{}*", it.value) } else { it.value }).collect::<Vec<_>>()
        };
        assert_eq!(values(Kind::Fleet, "/infra_type"), ["byok", "directory"]);
        assert_eq!(values(Kind::Cluster, "/cluster_type"), ["kafka"]);
        assert_eq!(values(Kind::Cluster, "/tenancy_mode"), ["Shared", "Isolated", "Dedicated"]);
        assert_eq!(
            values(Kind::Cluster, "/advanced_config/cluster_access"),
            ["Internal*", "External", "Internal & External"]
        );
        assert_eq!(
            values(Kind::BaseDomain, "/dns_provider"),
            ["None*", "external-dns", "rfc2136", "route53"]
        );
        assert_eq!(values(Kind::Cluster, "/advanced_config/storage/on_delete"), ["Retain*", "Delete"]);
        assert_eq!(values(Kind::Cluster, "/identifier"), [""; 0]);
        assert_eq!(values(Kind::Cluster, "/none/at/all"), [""; 0]);
        let types = choices(Kind::Cluster, "/cluster_type");
        assert_eq!(types[0].description, "Apache Kafka, run by the Strimzi operator.");
    }
}
