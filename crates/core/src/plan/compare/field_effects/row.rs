use serde_json::Value;

use crate::component::Difference;
use crate::component::consequence::Direction;
use crate::names::Kind;
use crate::plan::model::{FieldChange, Verdict};
use crate::spec::broker_option::{self, Effect};
use crate::spec::certificate::{is_of_another_authority, is_the_same};
use crate::spec::topic_option;

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
    /// All changes that no earlier row covers.
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
    /// A broker or topic option changes so that brokers keep less than before.
    KeepsLess,
    BrokerOption(Effect),
    /// A topic option changes.
    TopicOption,
}

impl FieldCondition {
    /// Describes the change: `raised`, `turned off or removed`.
    pub fn words(self) -> String {
        match self {
            FieldCondition::Changes | FieldCondition::BrokerOption(_) | FieldCondition::TopicOption => {
                "changed".to_owned()
            }
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

    pub(super) fn fits(self, FieldChange { field, before, after }: &FieldChange) -> bool {
        let direction = Difference { pointer: String::new(), before, after }.direction();
        match self {
            FieldCondition::Changes | FieldCondition::BrokerOption(_) | FieldCondition::TopicOption => true,
            FieldCondition::Up => direction == Direction::Up,
            FieldCondition::Down => direction == Direction::Down,
            FieldCondition::On => is_off(before) && !is_off(after),
            FieldCondition::Off => !is_off(before) && is_off(after),
            FieldCondition::Becomes(value) => after == value,
            FieldCondition::KeepsLess => match (option_of(field), topic_option_of(field)) {
                (Some(option), _) => broker_option::deleted(option, before, after).is_some(),
                (None, Some(option)) => topic_option::deleted(option, before, after).is_some(),
                (None, None) => false,
            },
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
    pub(super) fn is_of(&self, kind: Kind, field: &str) -> bool {
        let option = || option_of(field);
        let has =
            |effect| option().and_then(broker_option::find).is_some_and(|option| option.effect == effect);
        self.kind == kind
            && match self.when {
                FieldCondition::BrokerOption(effect) => has(effect),
                FieldCondition::KeepsLess if kind == Kind::Topic => {
                    topic_option_of(field).is_some_and(topic_option::keeps)
                }
                FieldCondition::KeepsLess => option().is_some_and(broker_option::keeps),
                FieldCondition::TopicOption => topic_option_of(field).is_some(),
                _ => field == self.field,
            }
    }

    /// Whether the row covers a field or one of its parents.
    pub(super) fn covers(&self, kind: Kind, field: &str) -> bool {
        let is_around = |(end, _): (usize, &str)| self.is_of(kind, &field[..end]);
        self.is_of(kind, field) || field.match_indices('.').any(is_around)
    }
}

fn option_of(field: &str) -> Option<&str> {
    field.strip_prefix("advanced_config.config.")
}

fn topic_option_of(field: &str) -> Option<&str> {
    field.strip_prefix("config.")
}

fn is_off(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Array(list) => list.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(true) | Value::Number(_) | Value::String(_) => false,
    }
}
