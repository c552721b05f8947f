use crate::render::yaml::to_yaml;
use serde_json::{Map, Value};
use similar::{ChangeTag, TextDiff};

use super::remarks;
use super::terminal::{CHANGED, CREATED, DELETED, FAINT, NORMAL, PlanText, STEP_INDENT, WAITS};
use crate::plan::compare::fields::short_fingerprint;
use crate::plan::{Change, Remark, Step, Verb, take_out};
use crate::render::SecretSlot;

/// How many unchanged lines are shown around changed ones.
const CONTEXT: usize = 3;

impl PlanText<'_> {
    pub(super) fn step(&mut self, change: &Change, step: &Step) {
        let (mark, style) = match step.verb {
            Verb::Create => ("+", CREATED),
            Verb::Update | Verb::Adopt => ("~", CHANGED),
            Verb::Delete => ("-", DELETED),
            Verb::Recreate => ("±", DELETED),
            Verb::Keep => ("!", FAINT),
        };
        let how = match step.verb {
            Verb::Recreate => ": deleted and recreated, because it can't be changed",
            Verb::Adopt => ": adopted",
            Verb::Create | Verb::Update | Verb::Delete | Verb::Keep => "",
        };
        self.line(STEP_INDENT, style, &format!("{mark} {}{how}", step.object));
        let about = change.remarks.iter().filter(|remark| remark.object() == Some(&step.object));
        about.clone().for_each(|remark| self.line(10, WAITS, &remarks::remark(change, remark)));
        // A schema of thousands of lines isn't shown.
        let is_read = step.object.kind != "CustomResourceDefinition";
        if is_read && matches!(step.verb, Verb::Update | Verb::Recreate | Verb::Adopt) {
            let left = about.filter_map(Remark::left).map(|contest| contest.field.as_str());
            self.difference(step, &left.collect::<Vec<_>>());
        }
    }

    fn difference(&mut self, step: &Step, left: &[&str]) {
        let (Some(before), Some(after)) = (&step.before, &step.after) else {
            return self.line(10, FAINT, "current content unknown");
        };
        let [before, after] = [before, &after.body].map(|body| {
            let mut body = body.value();
            for field in left {
                take_out(&mut body, field);
            }
            body
        });
        let [before, after] = masked(&step.object.kind, &before, &after).map(|value| to_yaml(&value));
        let difference = TextDiff::from_lines(&before, &after);
        for (index, hunk) in difference.grouped_ops(CONTEXT).iter().enumerate() {
            if index > 0 {
                self.line(10, FAINT, "…");
            }
            for change in hunk.iter().flat_map(|operation| difference.iter_changes(operation)) {
                let line = change.value().trim_end();
                match change.tag() {
                    ChangeTag::Equal => self.line(10, NORMAL, line),
                    ChangeTag::Delete => self.line(8, DELETED, &format!("- {line}")),
                    ChangeTag::Insert => self.line(8, CREATED, &format!("+ {line}")),
                }
            }
        }
    }
}

/// Returns both forms of an object with every secret replaced by its fingerprint.
fn masked(kind: &str, before: &Value, after: &Value) -> [Value; 2] {
    let sides = [(before, after), (after, before)];
    let masked = sides.map(|(value, _)| slots(value));
    if kind != "Secret" {
        return masked;
    }
    let [mut was, mut is] = masked;
    for section in ["data", "stringData"] {
        hide(section, &mut was, before, after, "before");
        hide(section, &mut is, after, before, "changed");
    }
    [was, is]
}

fn slots(value: &Value) -> Value {
    if let Some(slot) = SecretSlot::from_value(value) {
        let fingerprint = short_fingerprint(&slot.fingerprint);
        let resource = String::from(slot.reference.resource);
        return Value::String(format!("‹secret {resource} {}, {fingerprint}›", slot.reference.field));
    }
    match value {
        Value::Object(object) if object.contains_key(SecretSlot::KEY) => Value::String("‹hidden›".to_owned()),
        Value::Object(object) => {
            Value::Object(object.iter().map(|(key, value)| (key.clone(), slots(value))).collect())
        }
        Value::Array(list) => Value::Array(list.iter().map(slots).collect()),
        other => other.clone(),
    }
}

/// Hides the contents of a Secret except for slots and fingerprints, which only show that a value changed.
fn hide(section: &str, shown: &mut Value, this: &Value, other: &Value, changed: &str) {
    let Some(content) = shown.get_mut(section) else {
        return;
    };
    let Some(entries) = content.as_object_mut() else {
        *content = Value::String("‹hidden›".to_owned());
        return;
    };
    let entry = |value: &Value, key: &str| value.get(section).and_then(|entries| entries.get(key)).cloned();
    let names: Vec<String> = entries.keys().cloned().collect();
    let mut hidden = Map::new();
    for name in names {
        let value = entry(this, &name);
        let text = match value.as_ref() {
            Some(slot) if SecretSlot::from_value(slot).is_some() => slots(slot),
            Some(Value::String(text)) if text.starts_with("hmac:") => {
                Value::String(format!("‹secret, {}›", short_fingerprint(text)))
            }
            _ if value == entry(other, &name) => Value::String("‹hidden›".to_owned()),
            _ => Value::String(format!("‹hidden, {changed}›")),
        };
        hidden.insert(name, text);
    }
    *entries = hidden;
}
