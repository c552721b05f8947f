//! Puts the secrets' bytes into a manifest.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use secrecy::ExposeSecret as _;
use serde_json::Value;

use super::Fault;
use crate::catalog::{OpenedSecret, Secrets};
use crate::render::{Manifest, SecretEncoding, SecretSlot};

/// A manifest's body with every slot replaced by the secret that it stands for, base64 as Kubernetes has it.
pub(super) fn fill(manifest: &Manifest, secrets: &Secrets) -> Result<Value, Fault> {
    let mut body = manifest.body.clone();
    fill_value(&mut body, secrets)?;
    Ok(body)
}

fn fill_value(value: &mut Value, secrets: &Secrets) -> Result<(), Fault> {
    if let Some(slot) = SecretSlot::from_value(value) {
        *value = Value::String(bytes(&slot, secrets)?);
        return Ok(());
    }
    match value {
        Value::Object(fields) => fields.values_mut().try_for_each(|value| fill_value(value, secrets)),
        Value::Array(items) => items.iter_mut().try_for_each(|value| fill_value(value, secrets)),
        _ => Ok(()),
    }
}

fn bytes(slot: &SecretSlot, secrets: &Secrets) -> Result<String, Fault> {
    let secret = &slot.reference;
    let (field, resource) = (&secret.field, &secret.resource);
    let (value, mark) = match secrets.opened.get(secret) {
        Some(OpenedSecret::Value { value, mark }) => (value.expose_secret(), mark),
        Some(OpenedSecret::Opaque { reason, .. }) => {
            return Err(Fault::new(
                format!("cannot use `{field}` of {resource}: {reason}"),
                "apply where the secret can be opened",
            ));
        }
        Some(OpenedSecret::Refused(problem)) => {
            return Err(Fault::new(
                format!("cannot use `{field}` of {resource}: {}", problem.message),
                problem.hint.clone().unwrap_or_else(|| "mend it and plan again".to_owned()),
            ));
        }
        None => {
            return Err(Fault::new(
                format!("cannot use `{field}` of {resource}: it is no longer there"),
                "plan again",
            ));
        }
    };
    if mark.fingerprint.as_ref() != Some(&slot.fingerprint) {
        return Err(Fault::new(
            format!("cannot use `{field}` of {resource}: it changed since the plan was made"),
            "plan again",
        ));
    }
    if slot.encoding == SecretEncoding::Pkcs8
        && !value.trim_start().starts_with("-----BEGIN PRIVATE KEY-----")
    {
        return Err(Fault::new(
            format!("cannot use `{field}` of {resource}: it is not an unencrypted PKCS#8 key in PEM"),
            "convert it with `openssl pkcs8 -topk8 -nocrypt`",
        ));
    }
    Ok(STANDARD.encode(value))
}
