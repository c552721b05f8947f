//! The cause of a change as one sentence, for logs and records.

use super::words;
use crate::plan::{Cause, Change, FieldChange, Verb};

/// How many fields of a spec are named; the plan has all of them.
const MOST: usize = 3;

/// Returns why a change is made, with its position: `kafka_units 1 → 2 (acme/clusters/orders.yaml:9)`.
pub fn reason(change: &Change) -> String {
    match &change.cause {
        Cause::Spec => match words::place(change) {
            place if place.is_empty() => of_spec(change),
            place => format!("{} ({place})", of_spec(change)),
        },
        Cause::Reference { to } => format!("{to}, which it refers to, changed"),
        Cause::Settings => "the settings of the installation changed".to_owned(),
        Cause::Upgrade { version, .. } => format!("the upgrade to Kafka {version} continues"),
        Cause::Drift { by: Some(by) } => format!("{by} changed it on the target"),
        Cause::Drift { by: None } => "it was changed on the target".to_owned(),
        Cause::Certificate => "its certificate is due".to_owned(),
        Cause::Clusters => "its clusters changed".to_owned(),
        Cause::Addresses => "its load balancers have other addresses".to_owned(),
        Cause::Software { version } => format!("streamfleet {version} renders it differently"),
    }
}

fn of_spec(change: &Change) -> String {
    match (change.verb, change.fields.as_slice()) {
        (Verb::Create, _) => "new spec".to_owned(),
        (Verb::Delete, _) => "spec removed".to_owned(),
        (_, []) => "spec changed".to_owned(),
        (_, fields) => {
            let named: Vec<String> = fields.iter().take(MOST).map(FieldChange::to_string).collect();
            let more = match fields.len() - named.len() {
                0 => String::new(),
                1 => " and 1 more field".to_owned(),
                more => format!(" and {more} more fields"),
            };
            named.join(", ") + &more
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::plan::change::kept_resource;
    use crate::problem::Origin;

    #[test]
    fn a_reason_says_what_changed_and_where() {
        let key = "Cluster/acme/orders".to_owned().try_into().unwrap();
        let origin = Origin { path: "acme/orders.yaml".parse().unwrap(), line: 9 };
        let plain = |verb| Change { verb, ..kept_resource(&key, Some(origin.clone())) };
        let field = |name: &str, before, after| FieldChange { field: name.to_owned(), before, after };
        let edited = |number: usize| {
            let fields = (0..number).map(|it| field(&format!("field_{it}"), json!(it), json!(it + 1)));
            Change { fields: fields.collect(), ..plain(Verb::Update) }
        };
        let caused = |cause| Change { cause, ..edited(1) };
        for (change, expected) in [
            (plain(Verb::Create), "new spec (acme/orders.yaml:9)"),
            (plain(Verb::Delete), "spec removed (was acme/orders.yaml:9)"),
            (Change { origin: None, ..plain(Verb::Delete) }, "spec removed"),
            (edited(0), "spec changed (acme/orders.yaml:9)"),
            (edited(1), "field_0 0 → 1 (acme/orders.yaml:9)"),
            (edited(4), "field_0 0 → 1, field_1 1 → 2, field_2 2 → 3 and 1 more field (acme/orders.yaml:9)"),
            (edited(5), "field_0 0 → 1, field_1 1 → 2, field_2 2 → 3 and 2 more fields (acme/orders.yaml:9)"),
            (caused(Cause::Settings), "the settings of the installation changed"),
            (
                caused(Cause::Drift { by: Some("kubectl-edit".into()) }),
                "kubectl-edit changed it on the target",
            ),
            (caused(Cause::Drift { by: None }), "it was changed on the target"),
            (caused(Cause::Software { version: "0.2.0".into() }), "streamfleet 0.2.0 renders it differently"),
            (
                caused(Cause::Upgrade { version: "4.3.1".into(), unseen: false }),
                "the upgrade to Kafka 4.3.1 continues",
            ),
            (
                caused(Cause::Reference { to: "Fleet/acme/eu".to_owned().try_into().unwrap() }),
                "fleet acme/eu, which it refers to, changed",
            ),
        ] {
            assert_eq!(reason(&change), expected);
        }
    }
}
