use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use secrecy::{ExposeSecret as _, SecretString};
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A secret in one of the four forms of a spec file, or the placeholder for it in a record. It is never
/// printed or stored.
#[derive(Clone)]
pub enum SecretValue {
    /// The value itself, as in the interface specification.
    Plain(SecretString),
    /// `{from_file: NAME}`: a file in the organization's folder of the configured secrets folder.
    FromFile(String),
    /// `{from_env: NAME}`: the variable `STREAMFLEET_SECRET_<ORGANIZATION>__<NAME>`.
    FromEnv(String),
    /// `{encrypted: <age armour>}`: sealed to the installation's identity and bound to this field.
    Encrypted(String),
    /// The placeholder for any of them in a record. No spec file can contain it.
    Redacted,
}

impl SecretValue {
    /// The keys of the object forms, in the order in which messages list them.
    pub const FORMS: [&'static str; 3] = ["from_file", "from_env", "encrypted"];
}

/// Says whether a document changed. Guessing doesn't get closer to a value by timing this: both sides are of the same author.
impl PartialEq for SecretValue {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (SecretValue::Plain(one), SecretValue::Plain(other)) => {
                one.expose_secret() == other.expose_secret()
            }
            (SecretValue::FromFile(one), SecretValue::FromFile(other))
            | (SecretValue::FromEnv(one), SecretValue::FromEnv(other))
            | (SecretValue::Encrypted(one), SecretValue::Encrypted(other)) => one == other,
            (SecretValue::Redacted, SecretValue::Redacted) => true,
            _ => false,
        }
    }
}

/// Prints the form and never the value.
impl fmt::Debug for SecretValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SecretValue::Plain(_) => "Plain(…)",
            SecretValue::FromFile(_) => "FromFile(…)",
            SecretValue::FromEnv(_) => "FromEnv(…)",
            SecretValue::Encrypted(_) => "Encrypted(…)",
            SecretValue::Redacted => "Redacted",
        })
    }
}

/// Serializes every form as `{"redacted": true}`, so that no record, plan or answer can contain a secret.
impl Serialize for SecretValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map([("redacted", true)])
    }
}

impl<'de> Deserialize<'de> for SecretValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Forms;
        impl<'de> Visitor<'de> for Forms {
            type Value = SecretValue;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a secret: a string, or an object with from_file, from_env or encrypted")
            }
            fn visit_str<E>(self, text: &str) -> Result<SecretValue, E> {
                Ok(SecretValue::Plain(SecretString::from(text)))
            }
            fn visit_string<E>(self, text: String) -> Result<SecretValue, E> {
                Ok(SecretValue::Plain(SecretString::from(text)))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<SecretValue, A::Error> {
                let Some(form) = map.next_key::<String>()? else {
                    return Err(serde::de::Error::custom("an empty object is not a secret"));
                };
                let value = match form.as_str() {
                    "from_file" => SecretValue::FromFile(map.next_value()?),
                    "from_env" => SecretValue::FromEnv(map.next_value()?),
                    "encrypted" => SecretValue::Encrypted(map.next_value()?),
                    "redacted" => map.next_value::<bool>().map(|_| SecretValue::Redacted)?,
                    _ => return Err(serde::de::Error::custom("an unknown form of secret")),
                };
                if map.next_key::<String>()?.is_some() {
                    return Err(serde::de::Error::custom("a secret has only one form"));
                }
                Ok(value)
            }
        }
        deserializer.deserialize_any(Forms)
    }
}

impl JsonSchema for SecretValue {
    fn schema_name() -> Cow<'static, str> {
        "Secret".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let form = |key: &str, pattern: &str, expected: &str, description: &str| {
            serde_json::json!({
                "type": "object",
                "properties": {key: {"type": "string", "pattern": pattern, "x-expected": expected, "x-lines": key == "encrypted", "description": description}},
                "required": [key],
                "additionalProperties": false,
            })
        };
        json_schema!({
            "description": "A secret: the value itself, or where to find it.",
            "x-secret": true,
            "x-expected": "a secret: a string, {from_file: NAME}, {from_env: NAME} or {encrypted: AGE ARMOUR}",
            "oneOf": [
                {"type": "string", "minLength": 1, "x-lines": true, "description": "The value itself."},
                form("from_file", "^[A-Za-z0-9_][-A-Za-z0-9_.]*$", "the name of a file in the secrets folder, without `/`",
                     "A file in the organization's folder of the configured secrets folder."),
                form("from_env", "^[A-Z][A-Z0-9_]*$", "the end of a variable's name, in upper case",
                     "The rest of the name of the variable STREAMFLEET_SECRET_<ORGANIZATION>__<NAME>."),
                form("encrypted", "^\\s*-----BEGIN AGE ENCRYPTED FILE-----", "age armour",
                     "The output of `streamfleet secret encrypt`."),
            ],
        })
    }
}

/// A secret of one line without the line break that editors and `echo` put at its end.
pub fn one_line(secret: &str) -> &str {
    let line = secret.strip_suffix('\n').unwrap_or(secret);
    line.strip_suffix('\r').unwrap_or(line)
}
