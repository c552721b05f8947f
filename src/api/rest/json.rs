//! Parses request bodies like serde_json, but refuses duplicate keys, of which two parsers may pick different
//! ones.

use std::fmt;
use std::ops::{Deref, DerefMut};

use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::error::Category;
use serde_json::{Map, Number, Value};

use crate::writing::wipe;

/// A request body. Its strings are overwritten when it is dropped, since any of them may be a secret.
pub(super) struct Wiped(pub Value);

impl Wiped {
    /// Hands over the value to code that wipes it, or when it contains no secret.
    pub fn into_value(mut self) -> Value {
        std::mem::take(&mut self.0)
    }
}

impl Deref for Wiped {
    type Target = Value;
    fn deref(&self) -> &Value {
        &self.0
    }
}

impl DerefMut for Wiped {
    fn deref_mut(&mut self) -> &mut Value {
        &mut self.0
    }
}

impl Drop for Wiped {
    fn drop(&mut self) {
        wipe(&mut self.0);
    }
}

/// Parses a body.
///
/// # Errors
/// When it isn't JSON, nests deeper than 128 levels, or has a duplicate key. The error quotes nothing of the
/// body but that key.
pub fn read(body: &[u8]) -> Result<Value, String> {
    if body.trim_ascii().is_empty() {
        return Err("it is empty".to_owned());
    }
    let mut reader = serde_json::Deserializer::from_slice(body);
    let told = |error: serde_json::Error| {
        let what = match error.classify() {
            // Our own error about a duplicate key, which quotes no value.
            Category::Data => error.to_string().split(" at line ").next().unwrap_or_default().to_owned(),
            _ => "it is not JSON".to_owned(),
        };
        format!("{what}, at line {}, column {}", error.line(), error.column())
    };
    let Exact(value) = Exact::deserialize(&mut reader).map_err(told)?;
    reader.end().map_err(told)?;
    Ok(value)
}

struct Exact(Value);

impl<'de> Deserialize<'de> for Exact {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Exactly).map(Exact)
    }
}

struct Exactly;

impl<'de> Visitor<'de> for Exactly {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E: Error>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(Exact(item)) = items.next_element()? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut fields = Map::new();
        while let Some(name) = entries.next_key::<String>()? {
            if fields.contains_key(&name) {
                let name = crate::problem::quote_untrusted(&name);
                return Err(A::Error::custom(format!("`{name}` is repeated")));
            }
            let Exact(value) = entries.next_value()?;
            fields.insert(name, value);
        }
        Ok(Value::Object(fields))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_any_reader_takes_alike_is_taken() {
        let text = r#"{"a": [1, -2, 2.5, true, null, "x"], "b": {"a": 18446744073709551615}}"#;
        let value = json!({"a": [1, -2, 2.5, true, null, "x"], "b": {"a": u64::MAX}});
        assert_eq!(read(text.as_bytes()), Ok(value));
    }

    #[test]
    fn what_readers_take_differently_or_not_is_refused_without_being_quoted() {
        for (text, why) in [
            (r#"{"a": 1, "a": 2}"#, "`a` is repeated, at line 1, column 12"),
            (r#"{"x": {"a": 1, "a": 2}}"#, "`a` is repeated, at line 1, column 18"),
            ("", "it is empty"),
            (" \n", "it is empty"),
            ("{\"secret\": \n\"s3cr3t", "it is not JSON, at line 2, column 7"),
            ("{} {}", "it is not JSON, at line 1, column 4"),
            ("\u{feff}{}", "it is not JSON, at line 1, column 1"),
            ("{\"a\": NaN}", "it is not JSON, at line 1, column 7"),
            ("{\"a\": 1e999}", "it is not JSON, at line 1, column 11"),
        ] {
            assert_eq!(read(text.as_bytes()).unwrap_err(), why, "{text}");
        }
        let deep = "[".repeat(10_000) + &"]".repeat(10_000);
        assert!(read(deep.as_bytes()).is_err());
    }
}
