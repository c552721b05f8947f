//! Describes fields for people, from the same schema that checks them.

use serde_json::{Map, Value};

use crate::names::Kind;
use crate::spec::HEADER;
pub use crate::spec::check::nearest;
use crate::spec::schema::document_fields;
use crate::spec::shape::{self, Rule};

#[derive(Debug, Clone)]
pub struct Description {
    /// The names on the path to it, the document's first.
    pub path: Vec<String>,
    /// Whether its parent requires it.
    pub required: bool,
    schema: Value,
}

/// The way in which a form asks for a field without inner fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum InputKind {
    #[default]
    Line,
    /// A text of several lines, such as a certificate.
    Lines,
    Integer {
        min: i64,
        max: i64,
    },
    Boolean,
    /// One of the values of the choice.
    Choice,
    /// A text that is never shown.
    Secret,
    /// A list or a mapping.
    Yaml,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownField {
    /// The part of the path that exists.
    pub within: Vec<String>,
    /// The first name that doesn't exist.
    pub name: String,
    /// The path that was probably meant.
    pub meant: Option<Vec<String>>,
    pub known: Vec<String>,
}

pub fn document(kind: Kind, name: &str) -> Description {
    described(name, document_fields(kind))
}

/// Returns the fields of a kind's documents that have no inner fields, without the header. A list, and a
/// value that has several forms, counts as one field.
pub fn leaves(kind: Kind) -> Vec<Description> {
    let fields = document(kind, kind.singular()).fields();
    let own = fields.into_iter().filter(|field| !HEADER.contains(&field.name()));
    own.flat_map(Description::into_leaves).collect()
}

pub(crate) fn described(name: &str, schema: Value) -> Description {
    Description { path: vec![name.to_owned()], required: true, schema }
}

impl Description {
    /// Returns a field at or below this one. A broker option is found by its Kafka name alone.
    ///
    /// # Errors
    /// At the first name that doesn't exist, with the one that was probably meant.
    pub fn find(&self, names: &[&str]) -> Result<Description, UnknownField> {
        let Some(name) = names.first() else { return Ok(self.clone()) };
        let fields = self.fields();
        // The name of a broker option contains dots.
        let whole = |end: usize| fields.iter().find(|field| field.name() == names[..end].join("."));
        match (1..=names.len()).find_map(|end| Some((whole(end)?, end))) {
            Some((field, end)) => field.find(&names[end..]),
            None => {
                let option = Some(names.join(".")).filter(|whole| whole.contains('.'));
                option.and_then(|whole| self.below(&whole)).ok_or_else(|| self.unknown(name, &fields))
            }
        }
    }

    /// The field that was probably meant if its name is exact and only the fields around it were left out.
    pub fn meant_by(&self, names: &[&str]) -> Option<Description> {
        let (first, rest) = names.split_first()?;
        self.below(first)?.find(rest).ok()
    }

    fn unknown(&self, name: &str, fields: &[Description]) -> UnknownField {
        let near = || {
            let near = nearest(name, fields.iter().map(Description::name))?;
            fields.iter().find(|field| field.name() == near).cloned()
        };
        // An exact name in another place is preferred to a similar one here: `version` is not a misspelt
        // `apiVersion`.
        let meant = fields.iter().find_map(|field| field.below(name)).or_else(near);
        UnknownField {
            within: self.path.clone(),
            name: name.to_owned(),
            meant: meant.map(|field| field.path),
            known: fields.iter().map(|field| field.name().to_owned()).collect(),
        }
    }

    fn below(&self, name: &str) -> Option<Description> {
        let fields = self.fields();
        let here = fields.iter().find(|field| field.name() == name).cloned();
        here.or_else(|| fields.iter().find_map(|field| field.below(name)))
    }

    pub fn name(&self) -> &str {
        self.path.last().map_or("", String::as_str)
    }

    pub fn pointer(&self) -> String {
        self.path.iter().skip(1).map(|name| format!("/{name}")).collect()
    }

    /// Returns the path within the document: `advanced_config.storage.size_gib`.
    pub fn name_within(&self) -> String {
        self.path.get(1..).unwrap_or_default().join(".")
    }

    /// Whether it only contains other fields and has no value of its own.
    pub fn is_group(&self) -> bool {
        self.schema["properties"].is_object()
    }

    fn into_leaves(self) -> Vec<Description> {
        if self.is_group() {
            return self.fields().into_iter().flat_map(Description::into_leaves).collect();
        }
        vec![self]
    }

    /// Returns the meaning: the doc comment, one line a paragraph.
    pub fn text(&self) -> String {
        text(&self.schema)
    }

    pub fn values(&self) -> String {
        let shape = shape::compile(&self.schema);
        match &shape.rule {
            Rule::Text { max, pattern: None, .. } if *max < usize::MAX => {
                format!("{} of at most {max} characters", shape.expected)
            }
            Rule::List { item, max } if *max < usize::MAX => {
                format!("{} of at most {max}, each {}", shape.expected, item.expected)
            }
            Rule::Choice { any_case: true, .. } => format!("{}, in upper or lower case", shape.expected),
            _ => shape.expected,
        }
    }

    pub fn input(&self) -> InputKind {
        let shape = shape::compile(&self.schema);
        match shape.rule {
            _ if shape.holds_secret() => InputKind::Secret,
            Rule::Text { lines: true, .. } => InputKind::Lines,
            // One of its forms is a text.
            Rule::Text { .. } | Rule::AnyOf(_) => InputKind::Line,
            Rule::Integer { min, max } => InputKind::Integer { min, max },
            Rule::Boolean => InputKind::Boolean,
            Rule::Choice { .. } => InputKind::Choice,
            Rule::Object(_) | Rule::Map(_) | Rule::List { .. } | Rule::Anything => InputKind::Yaml,
        }
    }

    /// The values of a choice, each with its description, which may be empty.
    pub fn options(&self) -> Vec<(String, String)> {
        let ways = || self.schema["oneOf"].as_array().into_iter().flatten();
        let option = |value: String| {
            let mut own =
                ways().filter(|way| shape::choices(way).is_some_and(|values| values.contains(&value)));
            (own.next().map(text).unwrap_or_default(), value)
        };
        let values = shape::choices(&self.schema).into_iter().flatten();
        values.map(option).map(|(text, value)| (value, text)).collect()
    }

    /// Returns the default; `None` if there is none, or if it follows from the defaults of inner fields.
    pub fn default(&self) -> Option<String> {
        scalar(self.schema.get("default")?)
    }

    pub fn examples(&self) -> Vec<String> {
        self.schema["examples"].as_array().into_iter().flatten().filter_map(scalar).collect()
    }

    /// Returns the values of a choice that have a description, with it.
    pub fn choices(&self) -> Vec<(String, String)> {
        let ways = self.schema["oneOf"].as_array().into_iter().flatten();
        ways.filter_map(|way| Some((way["const"].as_str()?.to_owned(), text(way)))).collect()
    }

    /// Returns the inner fields in the order of their names: for a list, those of each entry; for a value
    /// that has several forms, those of all forms.
    pub fn fields(&self) -> Vec<Description> {
        self.fields_in(&self.schema)
    }

    fn fields_in(&self, schema: &Value) -> Vec<Description> {
        if let Some(properties) = schema["properties"].as_object() {
            return self.properties(properties, schema);
        }
        let inner = schema.get("items").into_iter().chain(schema["oneOf"].as_array().into_iter().flatten());
        let of_each =
            inner.flat_map(|inner| self.fields_in(inner).into_iter().map(move |field| (inner, field)));
        // A field of one form isn't required, since another form may be used.
        of_each
            .map(|(inner, field)| Description {
                required: field.required && schema["items"] == *inner,
                ..field
            })
            .collect()
    }

    fn properties(&self, properties: &Map<String, Value>, within: &Value) -> Vec<Description> {
        let names = within["required"].as_array();
        let field = |(name, schema): (&String, &Value)| Description {
            path: self.path.iter().chain([name]).cloned().collect(),
            required: names.is_some_and(|names| names.iter().any(|required| required == name)),
            schema: with_default(shape::without_null(schema), &within["default"][name]),
        };
        properties.iter().map(field).collect()
    }
}

/// Gives a field without a default of its own the default from the object around it.
fn with_default(mut schema: Value, within: &Value) -> Value {
    if let (Value::Object(fields), false) = (&mut schema, within.is_null()) {
        fields.entry("default").or_insert_with(|| within.clone());
    }
    schema
}

fn text(schema: &Value) -> String {
    schema["description"]
        .as_str()
        .unwrap_or_default()
        .replace("\n\n", "\0")
        .replace('\n', " ")
        .replace('\0', "\n")
}

fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::broker_option;

    #[test]
    fn an_option_of_brokers_is_found_by_its_name_wherever_it_is_looked_for() {
        let cluster = document(Kind::Cluster, "cluster");
        for within in ["", "advanced_config.", "advanced_config.config."] {
            for option in broker_option::names() {
                let path = format!("{within}{option}");
                let found = cluster.find(&path.split('.').collect::<Vec<_>>()).unwrap();
                assert_eq!(found.name_within(), format!("advanced_config.config.{option}"));
            }
        }
        let unknown = cluster.find(&["message", "max", "bites"]).unwrap_err();
        assert_eq!((unknown.name.as_str(), unknown.meant), ("message", None));
        let elsewhere = document(Kind::Fleet, "fleet").find(&["message", "max", "bytes"]);
        assert_eq!(elsewhere.unwrap_err().name, "message");
    }
}
