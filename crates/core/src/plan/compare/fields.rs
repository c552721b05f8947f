//! The fields of a spec that changed since it was last applied.

use serde_json::Value;

use crate::catalog::{RecordedResource, Resource, SecretMark};
use crate::names::Json;
use crate::plan::FieldChange;
use crate::spec::{Spec, secret_pointer};

/// Returns the fields that differ from the record. Without one, as after losing the cache, none is known.
pub(in crate::plan) fn changes(
    before: &RecordedResource,
    now: &Json,
    resource: &Resource,
) -> Vec<FieldChange> {
    let Some(last_good) = &before.cached.last_good else {
        return Vec::new();
    };
    let mut changes = Vec::new();
    if last_good.spec() != now {
        // A record of an older version lacks fields that were added since. Parsing it as a spec fills in
        // their defaults, so that a new version of Streamfleet isn't mistaken for an edit.
        let was = last_good.typed(resource.key.kind).map_or_else(|| last_good.spec().value(), Spec::redacted);
        compare(&mut String::new(), &was, &now.value(), &mut changes);
    }
    compare_secrets(before, resource, &mut changes);
    changes.sort_by(|a, b| a.field.cmp(&b.field));
    changes
}

/// Compares two specs recursively. Null and absent are equal; lists are compared as a whole.
fn compare(path: &mut String, before: &Value, after: &Value, changes: &mut Vec<FieldChange>) {
    let (Value::Object(was), Value::Object(is)) = (before, after) else {
        if before != after {
            changes.push(FieldChange { field: path.clone(), before: before.clone(), after: after.clone() });
        }
        return;
    };
    let added = is.keys().filter(|key| !was.contains_key(*key));
    for key in was.keys().chain(added) {
        let length = path.len();
        if !path.is_empty() {
            path.push('.');
        }
        path.push_str(key);
        let [before, after] = [was, is].map(|object| object.get(key).unwrap_or(&Value::Null));
        compare(path, before, after, changes);
        path.truncate(length);
    }
}

fn compare_secrets(before: &RecordedResource, resource: &Resource, changes: &mut Vec<FieldChange>) {
    let gone = before.cached.secrets.keys().filter(|field| !resource.secrets.contains_key(*field));
    for field in resource.secrets.keys().chain(gone) {
        let was = before.cached.secrets.get(field);
        let is = resource.secrets.get(field).map(|secret| &secret.mark);
        if !same_secret(was, is) {
            let field = secret_path(field);
            changes.retain(|change| change.field != field && !change.field.starts_with(&format!("{field}.")));
            changes.push(FieldChange { field, before: trace(was), after: trace(is) });
        }
    }
}

/// Whether two marks belong to the same value, as far as is known. Sealing a value again changes its sealed
/// form, so the sealed forms decide only if a value is unknown. Two entirely unknown values count as equal:
/// otherwise the difference would be applied again and again without effect.
fn same_secret(before: Option<&SecretMark>, after: Option<&SecretMark>) -> bool {
    match (before, after) {
        (Some(before), Some(after)) => match (&before.fingerprint, &after.fingerprint) {
            (Some(was), Some(is)) => was == is,
            (None, None) => before.sealed == after.sealed,
            _ => before.sealed == after.sealed && before.sealed.is_some(),
        },
        (None, None) => true,
        _ => false,
    }
}

pub(in crate::plan) fn secret_path(field: &str) -> String {
    secret_pointer(field).trim_start_matches('/').replace('/', ".")
}

fn trace(mark: Option<&SecretMark>) -> Value {
    let Some(mark) = mark else {
        return Value::Null;
    };
    match (&mark.fingerprint, &mark.sealed) {
        (Some(fingerprint), _) => Value::String(short_fingerprint(fingerprint)),
        (None, Some(sealed)) => Value::String(format!("sealed:{}…", sealed.short())),
        (None, None) => Value::String("unknown".to_owned()),
    }
}

/// `hmac:ab12cd34…`: the first eight characters of a fingerprint.
pub(in crate::plan) fn short_fingerprint(fingerprint: &str) -> String {
    let hash = fingerprint.strip_prefix("hmac:").unwrap_or(fingerprint);
    let short: String = hash.chars().take(8).collect();
    let more = if short.len() < hash.len() { "…" } else { "" };
    format!("hmac:{short}{more}")
}
