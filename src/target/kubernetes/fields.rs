//! Ownership of fields. The server records which manager set each field, and removes a field from one manager
//! when another changes its value. While all of our fields are still ours, they have the values that we
//! applied. Nothing has to compare values, which also works for Secrets.

use serde_json::{Map, Value};

use super::api::MANAGER;
use super::untrusted::{self, Weigh as _};
use crate::names::{Digest, Json, ObjectKey};
use crate::target::mask::redact;

/// The annotation with the digest of the applied manifest. After a crash it tells whether the apply took
/// effect.
pub(super) const APPLIED: &str = "streamfleet.io/applied";

/// Manager names of interactive tools: the part of the user agent before the `/`. Their changes to our fields
/// are undone. All other managers count as controllers, which would change the field back. Lens sends changes
/// as `node-fetch`, and web consoles (Rancher, OpenShift, clouds) as `Mozilla`.
const PEOPLE: [&str; 9] =
    ["kubectl", "oc", "k9s", "Lens", "OpenLens", "node-fetch", "Headlamp", "headlamp", "Mozilla"];

pub(super) fn is_people(manager: &str) -> bool {
    // An ordinary update under our own name doesn't come from a controller either. kubectl appends its
    // command: `kubectl-edit`, `kubectl-client-side-apply`.
    manager == MANAGER || PEOPLE.contains(&manager) || manager.starts_with("kubectl-")
}

fn managed(object: &Value) -> impl Iterator<Item = &Value> {
    let entries = object.pointer("/metadata/managedFields").and_then(Value::as_array);
    // Entries of subresources (status, scale) don't concern us.
    entries.into_iter().flatten().filter(|entry| entry.get("subresource").is_none())
}

fn text<'a>(entry: &'a Value, field: &str) -> &'a str {
    entry.get(field).and_then(Value::as_str).unwrap_or_default()
}

fn is_ours(entry: &Value) -> bool {
    text(entry, "manager") == MANAGER && text(entry, "operation") == "Apply"
}

pub(super) fn digest(object: &Value) -> Option<Digest> {
    managed(object).find(|entry| is_ours(entry))?.get("fieldsV1").map(Digest::of_json)
}

/// The digest of the fields that others manage, without the times of their changes.
pub(super) fn others(object: &Value) -> Digest {
    let others = managed(object).filter(|entry| !is_ours(entry));
    Digest::of_json(&others.map(|it| serde_json::json!([text(it, "manager"), it.get("fieldsV1")])).collect())
}

/// The digest of the manifest that we applied last, from the object's annotation. None when the annotation
/// isn't ours any more.
pub(super) fn applied(object: &Value) -> Option<Digest> {
    let ours = managed(object).find(|entry| is_ours(entry))?;
    ours.get("fieldsV1")?.get("f:metadata")?.get("f:annotations")?.get(format!("f:{APPLIED}"))?;
    serde_json::from_value(object.pointer("/metadata/annotations")?.get(APPLIED)?.clone()).ok()
}

/// Whether we created an object: our fields are as old as it is. The server records both times in whole
/// seconds, so this can't exclude that another client created it in the second of our apply.
pub(super) fn is_made_by_us(object: &Value) -> bool {
    let ours = managed(object).find(|entry| is_ours(entry)).map(|entry| text(entry, "time"));
    let made = object.pointer("/metadata/creationTimestamp").and_then(Value::as_str);
    ours.is_some_and(|ours| made.is_some_and(|made| ours <= made))
}

/// The manager that changed the object last, beside us. None when there is no other.
pub(super) fn changed_by(object: &Value) -> Option<String> {
    let others = managed(object).filter(|entry| !is_ours(entry));
    let last = others.max_by_key(|entry| (text(entry, "time"), is_people(text(entry, "manager"))))?;
    Some(text(last, "manager").to_owned()).filter(|manager| !manager.is_empty())
}

/// The limit on an object or field of others that a plan shows, in bytes of memory. That is about 100
/// KiB of text.
const LONGEST_SHOWN: usize = 1024 * 1024;

/// An object as a plan shows it: only the fields that we desire, with secrets redacted. Without `desired`,
/// the whole object.
pub(super) fn shown(key: &ObjectKey, live: &Value, desired: Option<&Value>) -> Json {
    let mut object = match desired {
        Some(desired) => only(live, desired),
        None if live.weight() > LONGEST_SHOWN => untrusted::outline(live.clone()).unwrap_or_default(),
        None => told(live),
    };
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        for field in ["managedFields", "resourceVersion", "generation", "uid", "creationTimestamp"] {
            metadata.remove(field);
        }
    }
    match object {
        Value::Object(mut object) => {
            object.remove("status");
            let kind = |name: &str| Value::from(name);
            // The objects of a list don't include their kind.
            object.entry("kind").or_insert_with(|| kind(&key.kind));
            object.entry("apiVersion").or_insert_with(|| kind(&key.api_version));
            Value::Object(if key.kind == "Secret" { redact(object) } else { object }).into()
        }
        other => other.into(),
    }
}

pub(super) fn trimmed(mut object: Value) -> Value {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    object
}

/// The part of `live` that has a counterpart in `desired`.
fn only(live: &Value, desired: &Value) -> Value {
    match (live, desired) {
        (Value::Object(live), Value::Object(desired)) => {
            let kept =
                live.iter().filter_map(|(key, value)| Some((key.clone(), only(value, desired.get(key)?))));
            Value::Object(kept.collect::<Map<_, _>>())
        }
        (Value::Array(live), Value::Array(desired)) if live.len() == desired.len() => {
            live.iter().zip(desired).map(|(live, desired)| only(live, desired)).collect()
        }
        _ if live == desired => live.clone(),
        _ => told(live),
    }
}

/// A value that differs from what is desired, made safe to show.
fn told(live: &Value) -> Value {
    let weight = live.weight();
    if weight > LONGEST_SHOWN {
        return format!("(about {} KiB, too long to show)", weight / 1024).into();
    }
    let mut live = live.clone();
    untrusted::words(&mut live);
    live
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn entry(manager: &str, operation: &str, time: &str) -> Value {
        json!({"manager": manager, "operation": operation, "time": time, "fieldsV1": {"f:spec": {}}})
    }

    fn object(entries: &[Value]) -> Value {
        json!({"kind": "Kafka", "metadata": {"managedFields": entries, "uid": "u", "name": "n"},
            "spec": {"replicas": 1, "defaulted": true, "list": [{"a": 1, "b": 2}]}, "status": {}})
    }

    #[test]
    fn the_last_to_change_an_object_is_named() {
        let ours = entry("streamfleet", "Apply", "2026-01-02T00:00:00Z");
        let edit = entry("kubectl-edit", "Update", "2026-01-04T00:00:00Z");
        let older = entry("argocd", "Update", "2026-01-03T00:00:00Z");
        let mut status = entry("strimzi", "Update", "2026-01-05T00:00:00Z");
        status["subresource"] = "status".into();
        assert_eq!(changed_by(&object(&[ours.clone(), status.clone()])), None);
        assert_eq!(changed_by(&object(&[ours, edit, older, status])), Some("kubectl-edit".to_owned()));
    }

    #[test]
    fn only_an_apply_of_ours_makes_fields_ours() {
        assert_eq!(digest(&object(&[entry("streamfleet", "Update", "")])), None);
        assert!(digest(&object(&[entry("streamfleet", "Apply", "")])).is_some());
    }

    #[test]
    fn an_object_says_what_was_applied_only_as_long_as_that_is_ours() {
        let mut ours = entry("streamfleet", "Apply", "");
        let mut object = object(&[ours.clone()]);
        object["metadata"]["annotations"] = json!({APPLIED: "d"});
        assert_eq!(applied(&object), None);
        ours["fieldsV1"] = json!({"f:metadata": {"f:annotations": {"f:streamfleet.io/applied": {}}}});
        object["metadata"]["managedFields"] = json!([ours]);
        assert_eq!(applied(&object).as_ref().map(Digest::as_str), Some("d"));
    }

    #[test]
    fn what_is_older_than_our_fields_was_made_by_others() {
        for (ours, made, expected) in [
            ("2026-01-02T00:00:00Z", "2026-01-02T00:00:00Z", true),
            ("2026-01-02T00:00:00Z", "2026-01-02T00:00:01Z", true),
            ("2026-01-02T00:00:01Z", "2026-01-02T00:00:00Z", false),
        ] {
            let mut object = object(&[entry("streamfleet", "Apply", ours)]);
            object["metadata"]["creationTimestamp"] = made.into();
            assert_eq!(is_made_by_us(&object), expected, "{ours} {made}");
        }
    }

    #[test]
    fn what_nobody_asked_for_is_not_shown() {
        let key = ObjectKey {
            namespace: None,
            kind: "Kafka".to_owned(),
            name: "n".to_owned(),
            api_version: "kafka.strimzi.io/v1".to_owned(),
        };
        let desired = json!({"kind": "Kafka", "apiVersion": "kafka.strimzi.io/v1", "metadata": {"name": "n"},
            "spec": {"replicas": 3, "list": [{"a": 1}], "gone": 1}});
        let shown = shown(&key, &object(&[]), Some(&desired));
        assert_eq!(
            shown,
            json!({"kind": "Kafka", "apiVersion": "kafka.strimzi.io/v1", "metadata": {"name": "n"},
                "spec": {"replicas": 1, "list": [{"a": 1}]}})
        );
    }

    #[test]
    fn what_others_wrote_is_shown_within_bounds_and_what_is_as_it_should_be_as_it_is() {
        let key: ObjectKey = "v1|ConfigMap|n|a".to_owned().try_into().unwrap();
        let live = json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "a"}, "data": {
            "same": "a\nb", "other": "\u{202e}a\nb", "long": "x".repeat(3_000), "list": vec![0; 100_000],
        }});
        let desired = json!({"data": {"same": "a\nb", "other": "a\nb", "long": "", "list": []}});
        let shown = |desired| shown(&key, &live, desired).value()["data"].clone();
        let list = "(about 3125 KiB, too long to show)";
        let expected =
            json!({"same": "a\nb", "other": "\\u{202e}a b", "long": "x".repeat(2_048) + "…", "list": list});
        assert_eq!(shown(Some(&desired)), expected);
        assert_eq!(shown(None), Value::Null, "of what should not be there, only what it is");
    }

    #[test]
    fn people_are_told_from_controllers() {
        for (manager, people) in [
            ("kubectl-edit", true),
            ("kubectl", true),
            ("kubectl-client-side-apply", true),
            ("oc", true),
            ("k9s", true),
            ("node-fetch", true),
            ("Mozilla", true),
            ("streamfleet", true),
            ("ocm-agent", false),
            ("k9s-operator", false),
            ("rancher", false),
            ("helm", false),
            ("kube-controller-manager", false),
            ("argocd-controller", false),
            ("", false),
        ] {
            assert_eq!(is_people(manager), people, "{manager}");
        }
    }
}
