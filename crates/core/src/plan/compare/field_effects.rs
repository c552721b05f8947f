//! A table of what a change of each field of a spec does, for questions about a field before there is a plan.
//!
//! The effect of a real plan is decided by the objects that change (`verdict/table.rs`), whichever field
//! caused it. These rows predict it, and a test that plans a change for each row keeps both consistent. Plans
//! also print what no object shows: changes only to records, and who gains or loses access
//! ([`FieldEffect::told`]).

mod row;
mod table;

use crate::names::Kind;
use crate::plan::{FieldChange, Verdict};
pub use row::{FieldCondition, FieldEffect};
pub use table::FIELD_EFFECTS;

/// Returns the rows of a field. Empty for unknown fields, and for fields that contain other fields.
pub fn field_effects(kind: Kind, field: &str) -> Vec<&'static FieldEffect> {
    FIELD_EFFECTS.iter().filter(|row| row.is_of(kind, field)).collect()
}

pub fn effect_of(kind: Kind, change: &FieldChange) -> Option<&'static FieldEffect> {
    let mut rows = FIELD_EFFECTS.iter().filter(|row| row.covers(kind, &change.field));
    rows.find(|row| row.when.fits(change))
}

/// Returns the effects of changed fields that no object shows. If a cluster's objects come to less
/// (`verdict`) than a row, the field doesn't affect this cluster, such as load balancers where it has none.
pub(in crate::plan) fn told(
    kind: Kind,
    changes: &[FieldChange],
    verdict: Verdict,
) -> Vec<&'static FieldEffect> {
    let mut told: Vec<&FieldEffect> = Vec::new();
    // A cluster that becomes internal has no load balancers that could become private or public.
    let is_inside =
        changes.iter().any(|it| it.field == "advanced_config.cluster_access" && it.after == "Internal");
    let changes = changes.iter().filter(|it| !(is_inside && it.field == "advanced_config.private_access"));
    let rows = changes.filter_map(|change| effect_of(kind, change));
    for row in rows.filter(|row| row.told && (kind != Kind::Cluster || row.verdict <= verdict)) {
        if !told.iter().any(|earlier| earlier.why == row.why) {
            told.push(row);
        }
    }
    told
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::spec::broker_option::Effect;

    use super::*;
    use crate::spec::describe;

    #[test]
    fn the_table_and_the_types_name_the_same_fields() {
        for kind in Kind::ALL {
            let types: Vec<String> =
                describe::leaves(kind).iter().map(describe::Description::name_within).collect();
            let lacks: Vec<_> = types.iter().filter(|field| field_effects(kind, field).is_empty()).collect();
            let rows = FIELD_EFFECTS.iter().filter(|row| row.kind == kind);
            let unknown: Vec<_> =
                rows.filter(|row| !types.iter().any(|field| row.is_of(kind, field))).collect();
            assert!(
                lacks.is_empty() && unknown.is_empty(),
                "{kind:?}: without a row in plan/compare/field_effects/table.rs: {lacks:?}; without a field: {unknown:?}"
            );
        }
    }

    #[test]
    fn every_row_is_a_sentence_and_none_hides_another() {
        for (index, row) in FIELD_EFFECTS.iter().enumerate() {
            assert!(!row.why.is_empty() && !row.why.ends_with('.'), "{row:?}");
            let earlier =
                FIELD_EFFECTS[..index].iter().filter(|it| (it.kind, it.field) == (row.kind, row.field));
            for it in earlier {
                assert!(
                    it.when != FieldCondition::Changes && it.when != row.when,
                    "{row:?} is never reached"
                );
            }
        }
    }

    #[test]
    fn the_first_row_that_fits_is_that_of_a_change() {
        let when = |field: &str, before: Value, after: Value| {
            let change = FieldChange { field: field.to_owned(), before, after };
            effect_of(Kind::Cluster, &change).map(|row| row.when)
        };
        assert_eq!(when("kafka_units", json!(9), json!(10)), Some(FieldCondition::Up));
        assert_eq!(when("kafka_units", json!(10), json!(9)), Some(FieldCondition::Down));
        assert_eq!(
            when("advanced_config.version", json!("4.10.0"), json!("4.9.0")),
            Some(FieldCondition::Down)
        );
        assert_eq!(when("suspend", json!(false), json!(true)), Some(FieldCondition::On));
        assert_eq!(when("suspend", json!(true), Value::Null), Some(FieldCondition::Off));
        let bucket = "advanced_config.tiered_storage_bucket_name";
        assert_eq!(when(bucket, Value::Null, json!("log")), Some(FieldCondition::On));
        assert_eq!(when(bucket, json!("log"), json!("other")), Some(FieldCondition::Changes));
        assert_eq!(when(bucket, json!("log"), Value::Null), Some(FieldCondition::Off));
        let access = "advanced_config.cluster_access";
        assert_eq!(
            when(access, json!("External"), json!("Internal")),
            Some(FieldCondition::Becomes("Internal"))
        );
        assert_eq!(when("advanced_config", Value::Null, json!({})), None);
        for (option, effect) in [
            ("log.segment.bytes", Effect::Live),
            ("min.insync.replicas", Effect::Live),
            ("group.max.size", Effect::Brokers),
            ("num.partitions", Effect::Restart),
        ] {
            let field = format!("advanced_config.config.{option}");
            assert_eq!(
                when(&field, Value::Null, json!(2)),
                Some(FieldCondition::BrokerOption(effect)),
                "{option}"
            );
        }
        let retention = "advanced_config.config.log.retention.ms";
        assert_eq!(when(retention, Value::Null, json!(2)), Some(FieldCondition::KeepsLess));
        assert_eq!(when(retention, json!(2), Value::Null), Some(FieldCondition::BrokerOption(Effect::Live)));
    }

    #[test]
    fn a_plan_is_told_what_no_object_says() {
        let change =
            |field: &str, before: Value, after: Value| FieldChange { field: field.to_owned(), before, after };
        let changes = [
            change("region", json!("eu"), json!("us")),
            change("tags", json!([]), json!([{"key": "a", "value": "b"}])),
            change("kafka_units", json!(1), json!(2)),
            change("advanced_config.private_access", json!(true), json!(false)),
        ];
        let told = |verdict| -> Vec<_> {
            self::told(Kind::Cluster, &changes, verdict).into_iter().map(|row| row.why).collect()
        };
        let recorded = "only recorded; nothing else changes";
        assert_eq!(told(Verdict::InPlace), [recorded], "it has no load balancers that could become public");
        assert_eq!(
            told(Verdict::ClientsReconnect),
            [
                recorded,
                "load balancers become public if the cloud's controller changes existing ones: anyone who can reach \
                 them from outside of the private network can try to log in; their addresses may change"
            ]
        );
        let inside = change("advanced_config.cluster_access", json!("External"), json!("Internal"));
        let changes = [changes.to_vec(), vec![inside]].concat();
        let told: Vec<_> =
            self::told(Kind::Cluster, &changes, Verdict::ClientsReconnect).into_iter().collect();
        assert!(
            told.iter().all(|row| row.field != "advanced_config.private_access"),
            "no load balancers are left"
        );
    }

    #[test]
    fn whoever_is_cut_off_is_told() {
        let rows = || FIELD_EFFECTS.iter().filter(|row| row.verdict == Verdict::ClientsReconnect);
        assert!(rows().count() > 10 && rows().all(|row| row.told));
    }
}
