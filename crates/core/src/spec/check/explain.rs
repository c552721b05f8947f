//! Hints at where to read more about a field.

use crate::names::Kind;
use crate::spec::shape::{self, Rule, Shape};
use crate::spec::{broker_option, topic_option};

const BROKER_CONFIG: &str = "/advanced_config/config";
const TOPIC_CONFIG: &str = "/config";
const LOGIN: &str =
    "users log in as their cluster says: see `streamfleet explain cluster.advanced_config.authentication`";
const QUOTA: &str = "limits follow from the cluster's `kafka_units`: its brokers share them among all users, and ignore \
                     limits of single users";

/// Returns the command that explains a field, for problems without a better hint.
pub(super) fn hint(kind: Kind, pointer: &str) -> String {
    let names = named(shape::of(kind), pointer.split('/').skip(1));
    format!("see `streamfleet explain {}`", [&[kind.singular()], names.as_slice()].concat().join("."))
}

/// Returns why a mapping can't have a key, if a more specific reason than "unknown field" is known.
pub(super) fn reason(kind: Kind, pointer: &str, key: &str) -> Option<&'static str> {
    match (kind, pointer) {
        (Kind::Cluster, BROKER_CONFIG) => broker_option::follows_from(key),
        (Kind::Topic, TOPIC_CONFIG) => topic_option::refused(key),
        (Kind::User, "") if key == "authentication" => Some(LOGIN),
        (Kind::User, "") if matches!(key, "quota" | "quotas") => Some(QUOTA),
        _ => None,
    }
}

/// Returns the steps of a path that are names of fields. Indexes of lists and freely chosen keys are not.
fn named<'p>(root: &Shape, way: impl Iterator<Item = &'p str>) -> Vec<&'p str> {
    let (mut shape, mut names) = (root, Vec::new());
    for step in way {
        shape = match &shape.rule {
            Rule::List { item, .. } => item,
            Rule::Object(fields) => match fields.iter().find(|field| field.name == step) {
                Some(field) => {
                    names.push(step);
                    &field.shape
                }
                None => break,
            },
            _ => break,
        };
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_names_the_field_that_holds_the_value() {
        for (kind, pointer, field) in [
            (Kind::Cluster, "/kafka_units", "cluster.kafka_units"),
            (Kind::Cluster, "/advanced_config/storage/class", "cluster.advanced_config.storage.class"),
            (Kind::Cluster, "/tags/3/key", "cluster.tags.key"),
            (Kind::Fleet, "/placement_config/a/b", "fleet.placement_config"),
            (Kind::BaseDomain, "", "base-domain"),
        ] {
            assert_eq!(hint(kind, pointer), format!("see `streamfleet explain {field}`"));
        }
    }
}
