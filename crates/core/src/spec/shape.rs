//! The permitted content of a document of each kind, compiled from the JSON Schemas of the spec types, so
//! that each field is declared exactly once.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use crate::names::Kind;
use crate::spec::schema::fields_of;

/// The accepted values of a field, and how messages describe them.
#[derive(Debug)]
pub struct Shape {
    pub rule: Rule,
    /// The words for it in `expected …`, with their article.
    pub expected: String,
    /// Whether it is a secret, whose value is never shown.
    pub secret: bool,
}

#[derive(Debug)]
pub enum Rule {
    /// A string, with its length in characters.
    Text {
        min: usize,
        max: usize,
        /// The form. It is searched for, not anchored.
        pattern: Option<Regex>,
        /// Whether it may have several lines. Other texts may have no control character at all.
        lines: bool,
    },
    /// An integer within inclusive bounds.
    Integer {
        min: i64,
        max: i64,
    },
    Boolean,
    Choice {
        values: Vec<String>,
        /// Whether upper and lower case are equal.
        any_case: bool,
        /// The kind of driver that a further value would need.
        driver: Option<String>,
    },
    Object(Vec<Field>),
    Map(Box<Shape>),
    List {
        item: Box<Shape>,
        max: usize,
    },
    AnyOf(Vec<Shape>),
    /// Anything: the schema has nothing to check here, so deserializing decides.
    Anything,
}

impl Shape {
    pub fn holds_secret(&self) -> bool {
        self.secret
            || match &self.rule {
                Rule::Object(fields) => fields.iter().any(|field| field.shape.holds_secret()),
                Rule::Map(shape) | Rule::List { item: shape, .. } => shape.holds_secret(),
                Rule::AnyOf(shapes) => shapes.iter().any(Shape::holds_secret),
                _ => false,
            }
    }
}

#[derive(Debug)]
pub struct Field {
    pub name: String,
    pub shape: Shape,
    pub required: bool,
}

/// Returns the shape of a kind's documents, without `apiVersion` and `kind`.
pub fn of(kind: Kind) -> &'static Shape {
    static SHAPES: LazyLock<Vec<(Kind, Shape)>> =
        LazyLock::new(|| Kind::ALL.into_iter().map(|kind| (kind, compile(&fields_of(kind)))).collect());
    static ANYTHING: LazyLock<Shape> = LazyLock::new(|| compile(&Value::Bool(true)));
    SHAPES.iter().find(|(known, _)| *known == kind).map_or(&ANYTHING, |(_, shape)| shape)
}

pub fn compile(schema: &Value) -> Shape {
    // An optional field is "this or null"; the checker treats null as absent before it reads the shape.
    let schema = without_null(schema);
    let rule = rule(&schema);
    let expected = schema["x-expected"].as_str().map_or_else(|| words(&rule), str::to_owned);
    Shape { rule, expected, secret: schema["x-secret"] == true }
}

/// Returns the schema of an optional field without null, with the annotations of the field itself.
pub fn without_null(schema: &Value) -> Value {
    let mut schema = schema.clone();
    let is_null = |schema: &Value| schema["type"] == "null";
    let one = schema["anyOf"].as_array().and_then(|any| any.iter().find(|s| !is_null(s))).cloned();
    if let (Some(Value::Object(mut one)), Value::Object(mut outer)) = (one, schema.clone()) {
        outer.remove("anyOf");
        one.append(&mut outer);
        return Value::Object(one);
    }
    if let Some(kind) = schema["type"].as_array().and_then(|any| any.iter().find(|t| **t != "null")).cloned()
    {
        schema["type"] = kind;
    }
    if let Some(values) = schema.get_mut("enum").and_then(Value::as_array_mut) {
        values.retain(|value| !value.is_null());
    }
    schema
}

fn rule(schema: &Value) -> Rule {
    if let Some(values) = choices(schema) {
        return Rule::Choice {
            values,
            any_case: schema["x-case-insensitive"] == true,
            driver: schema["x-driver"].as_str().map(str::to_owned),
        };
    }
    if let Some(any) = schema["oneOf"].as_array() {
        return Rule::AnyOf(any.iter().map(compile).collect());
    }
    let size = |key: &str| schema[key].as_u64().and_then(|n| usize::try_from(n).ok());
    match schema["type"].as_str() {
        Some("string") => Rule::Text {
            min: size("minLength").unwrap_or(0),
            max: size("maxLength").unwrap_or(usize::MAX),
            pattern: schema["pattern"].as_str().and_then(|pattern| Regex::new(pattern).ok()),
            lines: schema["x-lines"] == true,
        },
        Some("integer") => Rule::Integer {
            min: schema["minimum"].as_i64().unwrap_or(i64::MIN),
            max: schema["maximum"].as_i64().unwrap_or(i64::MAX),
        },
        Some("boolean") => Rule::Boolean,
        Some("array") => Rule::List {
            item: Box::new(compile(&schema["items"])),
            max: size("maxItems").unwrap_or(usize::MAX),
        },
        Some("object") => match schema["properties"].as_object() {
            Some(properties) => Rule::Object(fields(properties, &schema["required"])),
            None => Rule::Map(Box::new(compile(&schema["additionalProperties"]))),
        },
        _ => Rule::Anything,
    }
}

pub fn choices(schema: &Value) -> Option<Vec<String>> {
    let texts = |values: Vec<&Value>| -> Option<Vec<String>> {
        values.into_iter().map(|value| value.as_str().map(str::to_owned)).collect()
    };
    if let Some(values) = schema["enum"].as_array() {
        return texts(values.iter().collect());
    }
    if schema["const"].is_string() {
        return texts(vec![&schema["const"]]);
    }
    let mut values = Vec::new();
    for one in schema["oneOf"].as_array()? {
        values.extend(choices(one)?);
    }
    Some(values)
}

fn fields(properties: &serde_json::Map<String, Value>, required: &Value) -> Vec<Field> {
    let required = |name: &str| required.as_array().is_some_and(|names| names.iter().any(|n| n == name));
    let field = |(name, schema): (&String, &Value)| Field {
        name: name.clone(),
        shape: compile(schema),
        required: required(name),
    };
    properties.iter().map(field).collect()
}

/// Returns the words for a rule without `x-expected`.
fn words(rule: &Rule) -> String {
    match rule {
        Rule::Text { .. } => "a string".to_owned(),
        Rule::Integer { min, max } => match (*min, *max) {
            (i64::MIN, i64::MAX) => "an integer".to_owned(),
            (min, i64::MAX) => format!("an integer of at least {min}"),
            (min, max) => format!("an integer from {min} to {max}"),
        },
        Rule::Boolean => "true or false".to_owned(),
        Rule::Choice { values, .. } => list(values.iter().map(String::as_str), "or"),
        Rule::Object(_) | Rule::Map(_) => "a mapping of keys and values".to_owned(),
        Rule::List { .. } => "a list".to_owned(),
        Rule::AnyOf(shapes) => list(shapes.iter().map(|shape| shape.expected.as_str()), "or"),
        Rule::Anything => "a value".to_owned(),
    }
}

/// Formats a list: `` `a`, `b` or `c` ``.
pub fn list<'a>(items: impl IntoIterator<Item = &'a str>, last: &str) -> String {
    let mut items: Vec<String> = items.into_iter().map(|item| format!("`{item}`")).collect();
    match items.pop() {
        Some(end) if items.is_empty() => end,
        Some(end) => format!("{} {last} {end}", items.join(", ")),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every keyword of a schema must be supported here, or a field would not be checked.
    fn complete(shape: &Shape, schema: &Value, at: &str) {
        match &shape.rule {
            Rule::Anything => panic!("{at} is not checked"),
            Rule::Text { pattern, .. } => {
                let schema = without_null(schema);
                assert_eq!(pattern.is_some(), schema.get("pattern").is_some(), "{at}");
            }
            Rule::Object(fields) => {
                for field in fields {
                    let schema = &without_null(schema)["properties"][&field.name];
                    complete(&field.shape, schema, &format!("{at}/{}", field.name));
                }
            }
            Rule::Map(shape) => complete(shape, &schema["additionalProperties"], at),
            Rule::List { item, .. } => complete(item, &without_null(schema)["items"], at),
            Rule::AnyOf(shapes) => {
                for (index, shape) in shapes.iter().enumerate() {
                    complete(shape, &without_null(schema)["oneOf"][index], at);
                }
            }
            Rule::Integer { .. } | Rule::Boolean | Rule::Choice { .. } => {}
        }
    }

    #[test]
    fn every_field_of_every_kind_is_understood() {
        for kind in Kind::ALL {
            assert!(matches!(&of(kind).rule, Rule::Object(fields) if !fields.is_empty()), "{kind}");
            complete(of(kind), &fields_of(kind), kind.as_str());
        }
    }
}
