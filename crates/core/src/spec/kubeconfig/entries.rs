//! A kubeconfig as it is in the file, unchecked.

use std::collections::BTreeMap;
use std::fmt;

use secrecy::SecretString;
use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// The whole file. Entries that the current context doesn't select are ignored.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct File {
    pub current_context: Option<String>,
    pub contexts: Option<Vec<NamedEntry>>,
    pub clusters: Option<Vec<NamedEntry>>,
    pub users: Option<Vec<NamedEntry>>,
}

/// One entry of a list: a name, and the fields under the key `context`, `cluster` or `user`.
#[derive(Deserialize)]
pub(super) struct NamedEntry {
    pub name: String,
    #[serde(alias = "context", alias = "cluster", alias = "user")]
    pub fields: Option<Fields>,
}

/// The fields of a context, a cluster or a user, by name.
pub(super) type Fields = BTreeMap<String, Field>;

/// The value of a field. Only strings are ever used.
pub(super) enum Field {
    /// Null, `""`, `false`, `{}` or `[]`, which are treated as missing.
    Absent,
    /// A string, which may be a secret.
    Text(SecretString),
    Other,
}

impl<'de> Deserialize<'de> for Field {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(FieldVisitor)
    }
}

struct FieldVisitor;

impl FieldVisitor {
    fn present_unless(absent: bool) -> Field {
        if absent { Field::Absent } else { Field::Other }
    }
}

impl<'de> Visitor<'de> for FieldVisitor {
    type Value = Field;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Field, E> {
        Ok(Field::Absent)
    }

    fn visit_none<E>(self) -> Result<Field, E> {
        Ok(Field::Absent)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Field, D::Error> {
        Field::deserialize(deserializer)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Field, E> {
        Ok(Self::present_unless(!value))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Field, E> {
        Ok(Field::Other)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Field, E> {
        Ok(Field::Other)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Field, E> {
        Ok(Field::Other)
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Field, E> {
        self.visit_string(text.to_owned())
    }

    fn visit_string<E>(self, text: String) -> Result<Field, E> {
        Ok(if text.is_empty() { Field::Absent } else { Field::Text(SecretString::from(text)) })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Field, A::Error> {
        let mut empty = true;
        while sequence.next_element::<IgnoredAny>()?.is_some() {
            empty = false;
        }
        Ok(Self::present_unless(empty))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Field, A::Error> {
        let mut empty = true;
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {
            empty = false;
        }
        Ok(Self::present_unless(empty))
    }
}
