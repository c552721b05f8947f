//! Reads the fields of a body that describes no resource. All mistakes in it are reported at once, in the wording of
//! mistakes in specs.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::http::problem::{FieldError, ProblemDocument, pointer};
use crate::names::Identifier;
use crate::problem::quote_untrusted;
use crate::spec::describe::nearest;
use crate::state::Access;

pub(super) struct BodyField {
    pub name: &'static str,
    expected: &'static str,
    fits: fn(&Value) -> bool,
}

pub(super) const fn field(name: &'static str, expected: &'static str, fits: fn(&Value) -> bool) -> BodyField {
    BodyField { name, expected, fits }
}

/// Parses a body. `usual` has the values of optional fields where the body has none.
///
/// # Errors
/// With all mistakes in the body.
pub(super) fn parse<T: DeserializeOwned>(
    body: &Value,
    fields: &[BodyField],
    usual: impl Fn(&str) -> Option<Value>,
) -> Result<T, ProblemDocument> {
    let Value::Object(given) = body else {
        return Err(ProblemDocument::no_object());
    };
    let (mut whole, mut errors) = (given.clone(), unknown(given, fields));
    for field in fields {
        match (given.get(field.name).filter(|value| !value.is_null()), usual(field.name)) {
            (Some(value), _) if (field.fits)(value) => {}
            (None, Some(usual)) => drop(whole.insert(field.name.to_owned(), usual)),
            _ => errors.push(field.refused(given.get(field.name))),
        }
    }
    if !errors.is_empty() {
        return Err(ProblemDocument::mistakes(errors));
    }
    // Can't fail: each field was checked.
    T::deserialize(Value::Object(whole)).map_err(|_| ProblemDocument::internal())
}

fn unknown(given: &Map<String, Value>, fields: &[BodyField]) -> Vec<FieldError> {
    let names = || fields.iter().map(|field| field.name);
    let unknown = given.keys().filter(|name| names().all(|known| known != name.as_str()));
    let refused = unknown.map(|name| {
        let hint = match nearest(name, names()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => {
                let names: Vec<String> = names().map(|name| format!("`{name}`")).collect();
                let (last, first) = names.split_last().map_or(("", &[][..]), |(last, first)| (last, first));
                format!("the fields are {} and {last}", first.join(", "))
            }
        };
        FieldError::at(pointer(&[name]), format!("unknown key `{}`", quote_untrusted(name)), hint)
    });
    refused.collect()
}

impl BodyField {
    /// The mistake in a field with this value, which doesn't fit.
    fn refused(&self, value: Option<&Value>) -> FieldError {
        let BodyField { name, expected, .. } = self;
        let (why, hint) = match value {
            None => (format!("missing key `{name}`"), format!("add `{name}`: {expected}")),
            Some(Value::Null) => (format!("`{name}` has no value"), format!("send {expected}")),
            Some(Value::String(text)) if *name == "organization" => {
                let why = format!("`{name}`: `{}` is not {}", quote_untrusted(text), Identifier::EXPECTED);
                (why, format!("use {expected}"))
            }
            Some(value) => {
                let access = value.as_str().filter(|_| *name == "access");
                let near = access.and_then(|text| nearest(text, Access::ALL.map(Access::as_str).into_iter()));
                let hint =
                    near.map_or_else(|| format!("send {expected}"), |near| format!("did you mean `{near}`?"));
                (format!("`{name}`: expected {expected}, found {}", found(value)), hint)
            }
        };
        FieldError::at(pointer(&[name]), why, hint)
    }
}

/// Whether a value is a string that a type takes.
pub(super) fn is<T: DeserializeOwned>(value: &Value) -> bool {
    value.is_string() && T::deserialize(value).is_ok()
}

fn found(value: &Value) -> String {
    match value {
        Value::Null => "nothing".to_owned(),
        Value::Bool(value) => format!("the boolean `{value}`"),
        Value::Number(number) => format!("the number `{}`", quote_untrusted(&number.to_string())),
        Value::String(text) if text.is_empty() => "an empty string".to_owned(),
        Value::String(text) => format!("the string `{}`", quote_untrusted(text)),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}
