//! A table of what a change of each field of a spec does, for questions about a field before there is a plan.
//!
//! The effect of a real plan is decided by the objects that change (`verdict/table.rs`), whichever field
//! caused it. These rows predict it, and a test that plans a change for each row keeps both consistent. Plans
//! also print what no object shows: changes only to records, and who gains or loses access
//! ([`FieldEffect::told`]).

mod table;

use serde_json::Value;

use crate::component::Difference;
use crate::component::consequence::Direction;
use crate::names::Kind;
use crate::plan::{FieldChange, Verdict};
use crate::spec::broker_option::{self, Effect};
use crate::spec::certificate::{is_of_another_authority, is_the_same};
pub use table::FIELD_EFFECTS;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FieldEffect {
    pub kind: Kind,
    /// Its path, such as `advanced_config.storage.size_gib`; for broker options the path that contains them.
    pub field: &'static str,
    pub when: FieldCondition,
    pub verdict: Verdict,
    /// The reason or the consequence without a full stop. For refused changes, what to do instead.
    pub why: &'static str,
    /// Whether plans print it, beside what the changed objects say.
    pub told: bool,
}

/// Which changes of a field a row covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldCondition {
    /// All that no earlier row covers.
    Changes,
    /// A number, size or version grows.
    Up,
    /// A number, size or version shrinks.
    Down,
    /// The field becomes true, or is added.
    On,
    /// The field becomes false, or is removed.
    Off,
    Becomes(&'static str),
    /// Only the chain above a certificate changes.
    OtherChain,
    /// A certificate is replaced by one that clients reject if they trust only the old one's authority.
    OtherAuthority,
    /// A broker option changes so that brokers keep less than before.
    KeepsLess,
    BrokerOption(Effect),
}

impl FieldCondition {
    /// Describes the change: `raised`, `turned off or removed`.
    pub fn words(self) -> String {
        match self {
            FieldCondition::Changes | FieldCondition::BrokerOption(_) => "changed".to_owned(),
            FieldCondition::Up => "raised".to_owned(),
            FieldCondition::Down => "lowered".to_owned(),
            FieldCondition::On => "turned on or added".to_owned(),
            FieldCondition::Off => "turned off or removed".to_owned(),
            FieldCondition::Becomes(value) => format!("set to `{value}`"),
            FieldCondition::KeepsLess => "changed so that less data is kept".to_owned(),
            FieldCondition::OtherChain => "given another chain".to_owned(),
            FieldCondition::OtherAuthority => "replaced by one of another authority".to_owned(),
        }
    }

    fn fits(self, FieldChange { field, before, after }: &FieldChange) -> bool {
        let direction = Difference { pointer: String::new(), before, after }.direction();
        match self {
            FieldCondition::Changes | FieldCondition::BrokerOption(_) => true,
            FieldCondition::Up => direction == Direction::Up,
            FieldCondition::Down => direction == Direction::Down,
            FieldCondition::On => is_off(before) && !is_off(after),
            FieldCondition::Off => !is_off(before) && is_off(after),
            FieldCondition::Becomes(value) => after == value,
            FieldCondition::KeepsLess => {
                option_of(field).is_some_and(|option| broker_option::deleted(option, before, after).is_some())
            }
            FieldCondition::OtherChain => {
                before.as_str().zip(after.as_str()).is_some_and(|(before, after)| is_the_same(before, after))
            }
            FieldCondition::OtherAuthority => {
                let certificates = before.as_str().zip(after.as_str());
                certificates.is_some_and(|(before, after)| is_of_another_authority(before, after))
            }
        }
    }
}

impl FieldEffect {
    /// Whether the row covers a field. Broker options are fields, too; their own table has their effects.
    fn is_of(&self, kind: Kind, field: &str) -> bool {
        let option = || option_of(field);
        let has =
            |effect| option().and_then(broker_option::find).is_some_and(|option| option.effect == effect);
        self.kind == kind
            && match self.when {
                FieldCondition::BrokerOption(effect) => has(effect),
                FieldCondition::KeepsLess => option().is_some_and(broker_option::keeps),
                _ => field == self.field,
            }
    }

    /// Whether the row covers a field or one of its parents.
    fn covers(&self, kind: Kind, field: &str) -> bool {
        let is_around = |(end, _): (usize, &str)| self.is_of(kind, &field[..end]);
        self.is_of(kind, field) || field.match_indices('.').any(is_around)
    }
}

fn option_of(field: &str) -> Option<&str> {
    field.strip_prefix("advanced_config.config.")
}

fn is_off(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Array(list) => list.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(true) | Value::Number(_) | Value::String(_) => false,
    }
}

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
pub(super) fn told(kind: Kind, changes: &[FieldChange], verdict: Verdict) -> Vec<&'static FieldEffect> {
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
    use serde_json::json;

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
                "{kind:?}: without a row in src/plan/field_effects/table.rs: {lacks:?}; without a field: {unknown:?}"
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
                    them \
                 from outside of the private network can try to log in; their addresses may change"
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
