//! The values that a field may have, as documents are checked by.

use crate::names::Kind;
use crate::spec::schema::fields_of;
use crate::spec::shape;

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
    let mut schema = fields_of(kind);
    for name in pointer.split('/').skip(1) {
        schema = shape::without_null(&schema["properties"][name]);
    }
    let usual = schema["default"].as_str();
    let described = |value: String| {
        let own = schema["oneOf"].as_array().into_iter().flatten();
        let own = own.filter(|one| shape::choices(one).is_some_and(|values| values.contains(&value)));
        let text = own.filter_map(|one| one["description"].as_str()).next().unwrap_or_default();
        let is_default = usual == Some(&*value);
        Choice { description: one_line(text), is_default, value }
    };
    shape::choices(&schema).into_iter().flatten().map(described).collect()
}

/// Doc comments are wrapped.
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
        assert_eq!(values(Kind::BaseDomain, "/dns_provider"), ["None*", "external-dns"]);
        assert_eq!(values(Kind::Cluster, "/advanced_config/storage/on_delete"), ["Retain*", "Delete"]);
        assert_eq!(values(Kind::Cluster, "/identifier"), [""; 0]);
        assert_eq!(values(Kind::Cluster, "/none/at/all"), [""; 0]);
        let types = choices(Kind::Cluster, "/cluster_type");
        assert_eq!(types[0].description, "Apache Kafka, run by the Strimzi operator.");
    }
}
