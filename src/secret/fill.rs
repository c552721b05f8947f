use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::Value;
use sha2::Digest as _;

use super::{SecretError, describe};
use crate::catalog::{OpenedSecret, Secrets};
use crate::component::web_configuration;
use crate::names::{Identifier, ObjectKey};
use crate::render::{Manifest, SecretEncoding, SecretSlot};
use crate::spec::certificate::to_pkcs8_pem;
use crate::spec::one_line;

/// Returns the object with its secrets, in base64 as Kubernetes expects. Send it to the target only.
///
/// # Errors
/// If a secret is unavailable, is not the one that was planned, or is a key that can't be converted. Then
/// nothing of the manifest may be applied.
pub fn fill(manifest: &Manifest, secrets: &Secrets) -> Result<Value, SecretError> {
    fill_value(&manifest.body.value(), manifest, secrets)
}

/// Returns a planned secret of an organization.
///
/// # Errors
/// If it is unavailable, is not the one that was planned, or is another organization's.
pub fn value_of<'s>(
    slot: &SecretSlot,
    owner: &Identifier,
    secrets: &'s Secrets,
) -> Result<&'s SecretString, SecretError> {
    // The planner never asks for this; a manipulated plan must not get it.
    if slot.reference.resource.organization != *owner {
        return Err(foreign_slot());
    }
    planned_value(slot, secrets)
}

fn fill_value(value: &Value, of: &Manifest, secrets: &Secrets) -> Result<Value, SecretError> {
    match value {
        Value::Object(object) if object.contains_key(SecretSlot::KEY) => {
            let slot = SecretSlot::from_value(value).ok_or_else(unreadable_slot)?;
            // The planner never asks for this; a manipulated plan must not get it.
            if slot.reference.resource.organization != of.owner.organization {
                return Err(foreign_slot());
            }
            fill_slot(&slot, &of.key, secrets).map(Value::String)
        }
        Value::Object(object) => {
            let filled = object.iter().map(|(key, value)| Ok((key.clone(), fill_value(value, of, secrets)?)));
            filled.collect::<Result<_, _>>().map(Value::Object)
        }
        Value::Array(items) => {
            items.iter().map(|item| fill_value(item, of, secrets)).collect::<Result<_, _>>().map(Value::Array)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(value.clone()),
    }
}

fn fill_slot(slot: &SecretSlot, object: &ObjectKey, secrets: &Secrets) -> Result<String, SecretError> {
    let value = planned_value(slot, secrets)?.expose_secret();
    match slot.encoding {
        SecretEncoding::Raw => Ok(STANDARD.encode(value)),
        SecretEncoding::PrometheusLogin => {
            let hash = bcrypt::hash_with_salt(one_line(value), BCRYPT_COST, salt(&slot.fingerprint))
                .map_err(|_| {
                    SecretError::new(
                        "bad-password",
                        format!("{} can't be used as a password of Prometheus", describe(&slot.reference)),
                        "use one line of 12 to 72 bytes",
                    )
                })?;
            Ok(STANDARD.encode(web_configuration(&hash.format_for_version(bcrypt::Version::TwoY))))
        }
        SecretEncoding::SessionKey => {
            let namespace = object.namespace.as_deref().unwrap_or_default();
            let key = hmac::Key::new(hmac::HMAC_SHA256, value.as_bytes());
            let own = hmac::sign(&key, format!("the session key of {namespace}/{}", object.name).as_bytes());
            Ok(STANDARD.encode(hex::encode(own)))
        }
        SecretEncoding::Pkcs8 => {
            let pem = to_pkcs8_pem(value).map_err(|fault| {
                SecretError::new(
                    fault.code,
                    format!("{} can't be used as a key: {}", describe(&slot.reference), fault.message),
                    fault.hint,
                )
            })?;
            Ok(STANDARD.encode(pem.as_bytes()))
        }
    }
}

/// 2^10 rounds, as `htpasswd -B` and Prometheus' documentation have them. Prometheus remembers whom it let in.
const BCRYPT_COST: u32 = 10;

/// The salt of a hash. It follows from the keyed fingerprint of the password, so that the same password gives the same
/// object, and is another one in another installation.
fn salt(fingerprint: &str) -> [u8; 16] {
    let digest = sha2::Sha256::digest(fingerprint.as_bytes());
    std::array::from_fn(|index| digest.get(index).copied().unwrap_or_default())
}

fn planned_value<'a>(slot: &SecretSlot, secrets: &'a Secrets) -> Result<&'a SecretString, SecretError> {
    let unavailable = |why: &str| {
        SecretError::new(
            "secret-unavailable",
            format!("{} is not available: {why}", describe(&slot.reference)),
            "apply on a host that can open the secret",
        )
    };
    match secrets.opened.get(&slot.reference) {
        Some(OpenedSecret::Value { value, mark }) if mark.fingerprint.as_ref() == Some(&slot.fingerprint) => {
            Ok(value)
        }
        Some(OpenedSecret::Value { .. }) => Err(SecretError::new(
            "secret-changed",
            format!("{} changed since the plan was made", describe(&slot.reference)),
            "plan again",
        )),
        Some(OpenedSecret::Unavailable { reason, .. }) => Err(unavailable(reason)),
        Some(OpenedSecret::Refused(problem)) => Err(unavailable(&problem.message)),
        None => Err(unavailable("no spec contains it any more")),
    }
}

fn unreadable_slot() -> SecretError {
    SecretError::new(
        "secret-slot-unreadable",
        "the plan refers to a secret in a form that this version can't read",
        "plan again with this version",
    )
}

fn foreign_slot() -> SecretError {
    SecretError::new(
        "secret-of-another-organization",
        "the plan puts a secret of another organization into this one's object",
        "plan again",
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::catalog::SecretMark;
    use crate::names::{ObjectKey, SecretRef};
    use crate::problem::Problem;
    use crate::render::Stage;

    const EC_KEY: &str = include_str!("../../crates/core/src/spec/private_key/samples/p384-sec1.pem");

    fn reference() -> SecretRef {
        SecretRef::try_from("BaseDomain/acme/k.example.com#tls_key".to_owned()).unwrap()
    }

    fn manifest(body: Value) -> Manifest {
        Manifest {
            key: ObjectKey::try_from("v1|Secret|n|s".to_owned()).unwrap(),
            owner: reference().resource,
            stage: Stage::Configuration,
            body: body.into(),
        }
    }

    fn slot(encoding: SecretEncoding, fingerprint: &str) -> Manifest {
        let slot = SecretSlot { reference: reference(), encoding, fingerprint: fingerprint.to_owned() };
        manifest(json!({"kind": "Secret", "data": {"a": slot.to_value()}, "list": [1, slot.to_value()]}))
    }

    fn secrets(opened: OpenedSecret) -> Secrets {
        Secrets { opened: [(reference(), opened)].into(), ..Secrets::default() }
    }

    fn value(text: &str) -> Secrets {
        let mark = SecretMark { fingerprint: Some("hmac:1".to_owned()), sealed: None };
        secrets(OpenedSecret::Value { value: text.into(), mark })
    }

    #[test]
    fn slots_become_base64_wherever_they_are() {
        let filled = fill(&slot(SecretEncoding::Raw, "hmac:1"), &value("hunter2")).unwrap();
        assert_eq!(
            filled,
            json!({"kind": "Secret", "data": {"a": "aHVudGVyMg=="}, "list": [1, "aHVudGVyMg=="]})
        );
    }

    #[test]
    fn keys_become_pkcs8() {
        let filled = fill(&slot(SecretEncoding::Pkcs8, "hmac:1"), &value(EC_KEY)).unwrap();
        let bytes = STANDARD.decode(filled["data"]["a"].as_str().unwrap()).unwrap();
        assert_eq!(String::from_utf8(bytes).unwrap(), *to_pkcs8_pem(EC_KEY).unwrap());
    }

    #[test]
    fn a_password_becomes_the_same_hash_each_time_and_another_one_elsewhere() {
        let web = |fingerprint: &str| {
            let mark = SecretMark { fingerprint: Some(fingerprint.to_owned()), sealed: None };
            let secrets = secrets(OpenedSecret::Value { value: "hunter2\n".into(), mark });
            let filled = fill(&slot(SecretEncoding::PrometheusLogin, fingerprint), &secrets).unwrap();
            let bytes = STANDARD.decode(filled["data"]["a"].as_str().unwrap()).unwrap();
            serde_json::from_slice::<Value>(&bytes).unwrap()
        };
        let hash = web("hmac:1")["basic_auth_users"]["prometheus"].as_str().unwrap().to_owned();
        assert!(hash.starts_with("$2y$10$") && bcrypt::verify("hunter2", &hash).unwrap(), "{hash}");
        assert_eq!(web("hmac:1")["basic_auth_users"]["prometheus"], hash.as_str());
        assert_ne!(web("hmac:2")["basic_auth_users"]["prometheus"], hash.as_str());
    }

    #[test]
    fn a_key_for_sessions_belongs_to_one_object_and_does_not_tell_the_key_that_it_is_made_of() {
        let made = |object: &str| {
            let mut manifest = slot(SecretEncoding::SessionKey, "hmac:1");
            let (namespace, name) = object.split_once('/').unwrap();
            manifest.key.namespace = Some(namespace.to_owned());
            manifest.key.name = name.to_owned();
            let filled = fill(&manifest, &value(EC_KEY)).unwrap();
            let bytes = STANDARD.decode(filled["data"]["a"].as_str().unwrap()).unwrap();
            String::from_utf8(bytes).unwrap()
        };
        let one = made("kafka-a/console");
        assert!(one.len() == 64 && one.bytes().all(|byte| byte.is_ascii_hexdigit()), "{one}");
        assert_eq!(made("kafka-a/console"), one);
        assert_ne!(made("kafka-a/other"), one);
        assert_ne!(made("kafka-b/console"), one);
    }

    #[test]
    fn a_secret_of_another_organization_is_not_lent() {
        let mut lent = slot(SecretEncoding::Raw, "hmac:1");
        lent.owner.organization = "rival".parse().unwrap();
        let error = fill(&lent, &value("hunter2")).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the plan puts a secret of another organization into this one's object"
        );
    }

    #[test]
    fn a_secret_that_is_not_the_planned_one_is_refused() {
        let told = |manifest: &Manifest, secrets: &Secrets| {
            let error = fill(manifest, secrets).unwrap_err();
            let told = format!("{}: {error} ({})", error.code, error.hint);
            assert!(!told.contains("hunter2") && !format!("{error:?}").contains("hunter2"), "{told}");
            told
        };
        let name = "`tls_key` of base domain acme/k.example.com";
        let elsewhere = "(apply on a host that can open the secret)";
        let planned = slot(SecretEncoding::Raw, "hmac:1");
        let mark = SecretMark { fingerprint: None, sealed: None };
        assert_eq!(
            told(&slot(SecretEncoding::Raw, "hmac:2"), &value("hunter2")),
            format!("secret-changed: {name} changed since the plan was made (plan again)")
        );
        assert_eq!(
            told(
                &planned,
                &secrets(OpenedSecret::Unavailable { mark, reason: "no identity here opens it".into() })
            ),
            format!("secret-unavailable: {name} is not available: no identity here opens it {elsewhere}")
        );
        assert_eq!(
            told(&planned, &secrets(OpenedSecret::Refused(Problem::error("x", "it leads out")))),
            format!("secret-unavailable: {name} is not available: it leads out {elsewhere}")
        );
        assert_eq!(
            told(&planned, &Secrets::default()),
            format!("secret-unavailable: {name} is not available: no spec contains it any more {elsewhere}")
        );
        assert_eq!(
            told(&slot(SecretEncoding::Pkcs8, "hmac:1"), &value("hunter2")),
            format!(
                "key-not-pem: {name} can't be used as a key: the private key is not PEM: it has no `-----BEGIN PRIVATE \
                 KEY-----` line (convert it with `openssl pkey -inform DER -in KEY`; in YAML, put `|` before a text of \
                 several lines)"
            )
        );
        assert_eq!(
            told(&manifest(json!({"data": {"$secret": {"reference": "newer"}}})), &value("hunter2")),
            "secret-slot-unreadable: the plan refers to a secret in a form that this version can't read (plan again with \
             this version)"
        );
    }
}
