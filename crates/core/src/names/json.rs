use std::borrow::Cow;
use std::fmt;
use std::iter::Skip;
use std::str::Split;
use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{DeserializeOwned, DeserializeSeed, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::Digest;

/// A JSON value as its compact text, objects sorted by key.
///
/// A manifest takes a kibibyte as text and about ten as a tree of values, and a large plan contains a hundred
/// thousand of them. Equal values have equal texts. Clones share the text.
#[derive(Clone, PartialEq, Eq)]
pub struct Json(Arc<str>);

impl Json {
    pub fn value(&self) -> Value {
        // The text was written from a value, so there is no error to pass on.
        serde_json::from_str(&self.0).unwrap_or_default()
    }

    /// The value at a JSON pointer, as [`Value::pointer`] finds it, but by keys alone and without escapes. The rest is
    /// skipped, which takes a fraction of the time.
    pub fn at(&self, pointer: &str) -> Option<Value> {
        if !pointer.is_empty() && !pointer.starts_with('/') {
            return None;
        }
        let mut deserializer = serde_json::Deserializer::from_str(&self.0);
        Way(pointer.split('/').skip(1)).deserialize(&mut deserializer).ok().flatten()
    }

    pub fn read<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_str(&self.0)
    }

    /// Takes a text that [`Json::as_str`] returned; `None` if it is not JSON.
    pub fn from_text(text: String) -> Option<Self> {
        serde_json::from_str::<IgnoredAny>(&text).ok().map(|_| Self(text.into()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Equal to the digest of [`Digest::of_json`].
    pub fn digest(&self) -> Digest {
        Digest::of(&*self.0)
    }

    /// Changes the value, as an edit by others would.
    #[cfg(test)]
    pub fn edit(&mut self, edit: impl FnOnce(&mut Value)) {
        let mut value = self.value();
        edit(&mut value);
        *self = value.into();
    }

    /// Whether an object anywhere in the value may have this key. There are false positives, but no false
    /// negatives.
    pub fn may_have(&self, key: &str) -> bool {
        self.0.contains(&format!("\"{key}\":"))
    }
}

/// The keys of a pointer that are left. What isn't an object ends in an error.
struct Way<'p>(Skip<Split<'p, char>>);

impl<'de> DeserializeSeed<'de> for Way<'_> {
    type Value = Option<Value>;

    fn deserialize<D: Deserializer<'de>>(mut self, deserializer: D) -> Result<Self::Value, D::Error> {
        match self.0.next() {
            Some(key) => deserializer.deserialize_map(Step { key, rest: self }),
            None => Value::deserialize(deserializer).map(Some),
        }
    }
}

struct Step<'p> {
    key: &'p str,
    rest: Way<'p>,
}

impl<'de> Visitor<'de> for Step<'_> {
    type Value = Option<Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Self::Value, A::Error> {
        let Self { key, rest } = self;
        while let Some(its) = object.next_key::<Cow<'_, str>>()? {
            if its == key {
                let found = object.next_value_seed(rest)?;
                while object.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                return Ok(found);
            }
            object.next_value::<IgnoredAny>()?;
        }
        Ok(None)
    }
}

impl From<&Value> for Json {
    fn from(value: &Value) -> Self {
        // The same text as the value's `Display`, but without the overhead of a formatter. All keys are
        // strings, so serialization can't fail.
        Self(serde_json::to_string(value).unwrap_or_default().into())
    }
}

impl From<Value> for Json {
    fn from(value: Value) -> Self {
        Self::from(&value)
    }
}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl PartialEq<Value> for Json {
    fn eq(&self, other: &Value) -> bool {
        self.value() == *other
    }
}

/// Serializes as the value itself, not as a string.
impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.value().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(Self::from)
    }
}

impl JsonSchema for Json {
    fn schema_name() -> Cow<'static, str> {
        Value::schema_name()
    }
    fn inline_schema() -> bool {
        Value::inline_schema()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Value::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_pointer_finds_the_same_as_in_the_value() {
        let value = json!({"a": {"b": {"c": [1, {"d": 2}], "\"q": null}, "e": "text"}, "aa": 3, "b": {"c": 4}, "0": {"1": 5}});
        let json = Json::from(&value);
        for pointer in [
            "", "/a", "/a/b", "/a/b/c", "/a/b/\"q", "/a/e", "/a/e/f", "/aa", "/b/c", "/b/c/d", "/c",
            "/a/b/x", "/", "a", "/0/1",
        ] {
            assert_eq!(json.at(pointer).as_ref(), value.pointer(pointer), "{pointer}");
        }
    }

    #[test]
    fn a_value_comes_back_as_it_was_and_looks_like_one() {
        let value = json!({"b": [1, null, 0.5], "a": {"$secret": "x\n"}});
        let json = Json::from(&value);
        assert_eq!(json.as_str(), r#"{"a":{"$secret":"x\n"},"b":[1,null,0.5]}"#);
        assert_eq!(json, value);
        assert_eq!(json.digest(), Digest::of_json(&value));
        assert_eq!(Json::from_text(json.as_str().to_owned()), Some(json.clone()));
        assert_eq!(Json::from_text("{".to_owned()), None);
        assert_eq!(
            serde_json::to_string_pretty(&json).unwrap(),
            serde_json::to_string_pretty(&value).unwrap()
        );
        assert_eq!(
            serde_json::from_str::<Json>(r#"{ "b": [1, null, 0.5], "a": {"$secret":"x\u000a"} }"#).unwrap(),
            json
        );
        assert_eq!([json.may_have("$secret"), json.may_have("b"), json.may_have("x")], [true, true, false]);
    }
}
