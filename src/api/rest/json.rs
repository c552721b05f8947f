//! Reads request bodies, and parses them like serde_json, but refuses duplicate keys, because parsers differ in
//! which one they use.

use std::fmt;

use axum::body::Body;
use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;
use http_body_util::BodyExt as _;
use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::error::Category;
use serde_json::{Map, Value};
use zeroize::{Zeroize as _, Zeroizing};

use crate::api::openapi::{JSON, MERGE_PATCH};
use crate::api::route::RequestBody;
use crate::http::problem::ProblemDocument;
use crate::writing::wipe;

/// A request body. Its strings are overwritten when it is dropped, since any of them may be a secret.
pub(super) struct Wiped(pub Value);

impl Wiped {
    /// Hands over the value to code that wipes it, or when it contains no secret.
    pub fn into_value(mut self) -> Value {
        std::mem::take(&mut self.0)
    }
}

impl Drop for Wiped {
    fn drop(&mut self) {
        wipe(&mut self.0);
    }
}

/// Reads a whole body with a JSON content type.
pub(super) async fn read_body(
    takes: &RequestBody,
    headers: &HeaderMap,
    mut body: Body,
) -> Result<Zeroizing<Vec<u8>>, ProblemDocument> {
    let sent = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let sent = sent.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let taken = if matches!(takes, RequestBody::Patch(_)) { MERGE_PATCH } else { JSON };
    if sent != JSON && sent != taken {
        return Err(ProblemDocument::unsupported(&sent, taken));
    }
    let mut whole = Zeroizing::new(Vec::new());
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| ProblemDocument::malformed("the body is incomplete"))?;
        if let Ok(part) = frame.into_data() {
            append(&mut whole, &part);
            // Wipes the chunk, which has no other owner but the connection's read buffer.
            if let Ok(mut part) = part.try_into_mut() {
                part.as_mut().zeroize();
            }
        }
    }
    Ok(whole)
}

/// Appends bytes that may contain a secret. A `Vec` that reallocates would leave a copy in freed memory.
fn append(whole: &mut Zeroizing<Vec<u8>>, part: &[u8]) {
    let needed = whole.len() + part.len();
    if needed > whole.capacity() {
        let mut larger = Zeroizing::new(Vec::with_capacity(needed.max(2 * whole.capacity())));
        larger.extend_from_slice(whole);
        *whole = larger;
    }
    whole.extend_from_slice(part);
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
            _ => "the body is not JSON".to_owned(),
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

macro_rules! scalars {
    ($($visit:ident: $type:ty),*) => {
        $(fn $visit<E: Error>(self, value: $type) -> Result<Value, E> {
            Ok(value.into())
        })*
    };
}

impl<'de> Visitor<'de> for Exactly {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    scalars! { visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_f64: f64, visit_str: &str }

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
    use axum::body::Bytes;
    use axum::http::HeaderValue;
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
            ("{\"secret\": \n\"s3cr3t", "the body is not JSON, at line 2, column 7"),
            ("{} {}", "the body is not JSON, at line 1, column 4"),
            ("\u{feff}{}", "the body is not JSON, at line 1, column 1"),
            ("{\"a\": NaN}", "the body is not JSON, at line 1, column 7"),
            ("{\"a\": 1e999}", "the body is not JSON, at line 1, column 11"),
        ] {
            assert_eq!(read(text.as_bytes()).unwrap_err(), why, "{text}");
        }
        let deep = "[".repeat(10_000) + &"]".repeat(10_000);
        assert!(read(deep.as_bytes()).is_err());
    }

    #[tokio::test]
    async fn a_body_is_taken_whole_however_large_it_is_and_in_however_many_parts_it_comes() {
        let headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(JSON))]);
        let takes = RequestBody::Schema(|| Value::Null);
        let parts: Vec<Vec<u8>> = (0..=50).map(|number| vec![number; 100_000]).collect();
        let sent = parts.concat();
        let parts = parts.into_iter().map(|part| Ok::<_, std::io::Error>(Bytes::from(part)));
        let body = Body::from_stream(futures_util::stream::iter(parts));
        let read = read_body(&takes, &headers, body).await.unwrap();
        assert!(*read == sent, "{} of {}", read.len(), sent.len());
    }
}
