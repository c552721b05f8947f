//! Formats values as new text, in the usual style of specs.

use serde_json::{Map, Value};

use super::order::FieldOrder;
use super::scalar::{self, BlockLines};
use crate::spec::yaml::Style;

/// The indentation and line ends of a file.
#[derive(Debug, Clone, Copy)]
pub struct IndentStyle {
    /// By how many columns the fields of a field are indented.
    pub step: usize,
    /// By how many columns the items of a field are indented.
    pub list: usize,
    pub line_end: &'static str,
}

impl Default for IndentStyle {
    fn default() -> Self {
        Self { step: 2, list: 2, line_end: "\n" }
    }
}

impl IndentStyle {
    /// Formats the fields of an object, without a line end after the last.
    pub fn fields(&self, fields: &Map<String, Value>, column: usize, order: &FieldOrder) -> String {
        let mut names: Vec<&String> = fields.keys().collect();
        names.sort_by_key(|name| order.rank(name));
        let field = |name: &String| {
            let value = fields.get(name).unwrap_or(&Value::Null);
            self.field(name, value, column, order)
        };
        names.into_iter().map(field).collect::<Vec<_>>().join(self.line_end)
    }

    pub fn field(&self, name: &str, value: &Value, column: usize, order: &FieldOrder) -> String {
        let indentation = " ".repeat(column);
        let value = self.value(value, column, &order.within(name));
        format!("{indentation}{}:{value}", scalar::bare(name, false))
    }

    /// Formats a field's value, including the separator after the colon.
    pub fn value(&self, value: &Value, column: usize, order: &FieldOrder) -> String {
        match value {
            Value::Object(fields) if !fields.is_empty() => {
                self.line_end.to_owned() + &self.fields(fields, column + self.step, order)
            }
            Value::Array(items) if !items.is_empty() => {
                self.line_end.to_owned() + &self.items(items, column + self.list, order)
            }
            value => self.leaf(value, column),
        }
    }

    pub fn items(&self, items: &[Value], column: usize, order: &FieldOrder) -> String {
        let items: Vec<String> = items.iter().map(|item| self.item(item, column, order)).collect();
        items.join(self.line_end)
    }

    /// Formats one item. `order` is that within the list.
    pub fn item(&self, item: &Value, column: usize, order: &FieldOrder) -> String {
        let inner = match item {
            Value::Object(fields) if !fields.is_empty() => self.fields(fields, column + 2, order),
            Value::Array(items) if !items.is_empty() => self.items(items, column + 2, order),
            leaf => return format!("{}-{}", " ".repeat(column), self.leaf(leaf, column)),
        };
        format!("{}- {}", " ".repeat(column), inner.trim_start_matches(' '))
    }

    fn leaf(&self, value: &Value, column: usize) -> String {
        if let Value::String(text) = value
            && text.contains('\n')
            && let Some(lines) = BlockLines::of(text, false).filter(|lines| !lines.keeps())
        {
            let block = lines.block(column + self.step, self.line_end);
            return format!(" {}{block}", lines.header('|', self.step));
        }
        format!(" {}", scalar::inline(value, Style::Plain, false))
    }
}
