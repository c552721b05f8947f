//! Generated documents in all styles, changed at random: the result has the wanted value, and no other lines
//! change.

use proptest::prelude::*;
use serde_json::{Map, json};

use super::*;

/// Strings that are difficult for a style, a reader or this editor.
const STRINGS: &[&str] = &[
    "x",
    "",
    "yes",
    "NO",
    "null",
    "~",
    "1.30",
    "0x1F",
    "012",
    "1_000",
    "12:30:45",
    "2001-01-01",
    "a: b",
    "a #b",
    "# a",
    "- a",
    "-",
    "?",
    "[a",
    "}",
    "a, b",
    "&a",
    "*a",
    "!a",
    "|",
    ">",
    "'a",
    "it's",
    "\"a\"",
    "a\\b",
    "%a",
    "@a",
    "---",
    "...",
    " a",
    "a ",
    "\ta",
    "a\tb",
    "ä日本",
    "\u{85}",
    "\u{2028}",
    "\u{feff}",
    "\u{7}",
    "a\nb",
    "a\nb\n",
    "a\n\n",
    "\na\n",
    "  a\n b\n",
    "a\n  b\n\nc\n",
    "a\r\nb\n",
    "\n",
    " \n",
    "# a\nb\n",
    "---\na\n",
    "-----BEGIN X-----\nMIIB\n-----END X-----\n",
    "a\n \n",
    "a \nb\n",
    "\ta\nb\n",
    "<<",
    "=",
    "on",
];

/// Characters that change the meaning of YAML.
const MARKS: &[&str] = &[
    "\"", "'", "[", "]", "{", "}", "---\n", "...\n", "\t", "&a ", "*a", "!t ", "|\n", ">-\n", "\n", "\n\n",
    ": ", "#", " #", "? ", "<<: ", "- ", ",", "  ", "\r\n", "%X\n", "", "\u{feff}", "ä",
];

const KEYS: &[&str] =
    &["a", "b", "kafka_units", "tags", "advanced_config", "version", "yes", "a b", "x: y", "1", ""];

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        3 => prop::sample::select(STRINGS).prop_map(Value::from),
        1 => "[ \\n:#'\"a|>-]{0,8}".prop_map(Value::from),
        1 => any::<i64>().prop_map(Value::from),
        1 => any::<bool>().prop_map(Value::from),
        1 => Just(Value::Null),
        1 => Just(json!(0.5)),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(prop::sample::select(KEYS), inner, 0..4).prop_map(object),
        ]
    })
}

fn object(fields: std::collections::BTreeMap<&str, Value>) -> Value {
    fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect::<Map<_, _>>().into()
}

fn fields() -> impl Strategy<Value = Value> {
    prop::collection::btree_map(prop::sample::select(KEYS), value(), 1..6).prop_map(object)
}

#[derive(Debug, Clone)]
struct Writing {
    step: usize,
    list: usize,
    windows: bool,
    /// Used in turn: what surrounds a field, and how its value is written.
    turns: Vec<u8>,
}

fn writing() -> impl Strategy<Value = Writing> {
    let turns = prop::collection::vec(any::<u8>(), 1..20);
    (1..5_usize, 0..4_usize, any::<bool>(), turns).prop_map(|(step, list, windows, turns)| Writing {
        step,
        list,
        windows,
        turns,
    })
}

struct Writer<'w> {
    writing: &'w Writing,
    turn: usize,
    text: String,
}

impl Writer<'_> {
    fn turn(&mut self) -> u8 {
        self.turn += 1;
        self.writing.turns[self.turn % self.writing.turns.len()]
    }

    fn fields(&mut self, fields: &Map<String, Value>, column: usize) {
        for (index, (name, value)) in fields.iter().enumerate() {
            let pad = " ".repeat(column);
            // The first field of an item follows its dash.
            if index > 0 || self.text.ends_with('\n') {
                match self.turn() % 6 {
                    0 => self.text.push_str(&format!("{pad}# above {name:?}\n")),
                    // Another empty line would be part of a block that keeps them.
                    1 if !self.text.ends_with("\n\n") => self.text.push('\n'),
                    _ => {}
                }
                self.text.push_str(&pad);
            }
            let name = scalar::bare(name, false);
            self.text.push_str(&name);
            self.text.push(':');
            self.value(value, column, false);
        }
    }

    fn value(&mut self, value: &Value, column: usize, is_item: bool) {
        let turn = self.turn();
        let comment = if turn.is_multiple_of(5) { "  # behind" } else { "" };
        let step = if is_item { 2 } else { self.writing.step };
        match value {
            Value::Object(fields) if !fields.is_empty() && !turn.is_multiple_of(7) => {
                if is_item {
                    self.text.push(' ');
                } else {
                    self.text.push_str(&format!("{comment}\n"));
                }
                self.fields(fields, column + step);
            }
            Value::Array(items) if !items.is_empty() && !turn.is_multiple_of(7) && !is_item => {
                self.text.push_str(&format!("{comment}\n"));
                let column = column + self.writing.list;
                for item in items {
                    if self.turn().is_multiple_of(6) {
                        self.text.push_str(&format!("{}# item\n", " ".repeat(column)));
                    }
                    self.text.push_str(&format!("{}-", " ".repeat(column)));
                    self.value(item, column, true);
                }
            }
            Value::String(text) => {
                let lines =
                    scalar::BlockLines::of(text, turn.is_multiple_of(2)).filter(|_| !turn.is_multiple_of(3));
                let text = match lines {
                    Some(lines) => {
                        let sign = if turn.is_multiple_of(2) { '>' } else { '|' };
                        let column = column + step;
                        format!(" {}{comment}{}", lines.header(sign, step), lines.block(column, "\n"))
                    }
                    None => {
                        let style = [Style::Plain, Style::Single, Style::Double][usize::from(turn % 3)];
                        format!(" {}{comment}", scalar::inline(value, style, false))
                    }
                };
                self.text.push_str(&text);
                self.text.push('\n');
            }
            Value::Null if turn.is_multiple_of(2) => self.text.push_str(&format!("{comment}\n")),
            other => self.text.push_str(&format!(" {}{comment}\n", json_as_yaml(other))),
        }
    }
}

/// Formats JSON for a file, with escapes for characters that are not allowed.
fn json_as_yaml(value: &Value) -> String {
    match value {
        Value::String(_) => scalar::inline(value, Style::Double, true),
        Value::Array(items) => format!("[{}]", items.iter().map(json_as_yaml).collect::<Vec<_>>().join(", ")),
        Value::Object(fields) => {
            let field = |(name, value): (&String, &Value)| {
                format!("{}: {}", json_as_yaml(&Value::from(name.clone())), json_as_yaml(value))
            };
            format!("{{{}}}", fields.iter().map(field).collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}

fn file(fields: &Value, writing: &Writing) -> String {
    let mut writer =
        Writer { writing, turn: 0, text: format!("# all\n---\nother: &x 'y'\n--- # ours\n{HEADER}") };
    writer.fields(fields.as_object().unwrap(), 0);
    writer.text.push_str("---\n# the end\nlast: *y\n".replace("*y", "y").as_str());
    if writing.windows { writer.text.replace('\n', "\r\n") } else { writer.text }
}

fn wanted(fields: &Value) -> Value {
    let mut wanted = json!({"kind": "Cluster", "organization": "acme", "identifier": "orders"});
    wanted.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    wanted
}

use crate::spec::yaml::Style;

proptest! {
    // Each case reads and writes a file several times.
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn what_is_wanted_is_said_and_the_rest_stays(before in fields(), after in fields(), writing in writing()) {
        let text = file(&before, &writing);
        prop_assert_eq!(read(&text, &orders()), Ok(wanted(&before)), "{}", text);
        let after = wanted(&after);
        match set(&text, &orders(), &after) {
            Ok(changed) => {
                prop_assert_eq!(read(&changed, &orders()), Ok(after));
                let around = |text: &str| {
                    let (start, end) = (text.find("--- # ours").unwrap(), text.rfind("---").unwrap());
                    (text[..start].to_owned(), text[end..].to_owned())
                };
                prop_assert_eq!(around(&text), around(&changed));
                prop_assert_eq!(changed.contains('\r'), text.contains('\r'));
            }
            Err(refusal) => prop_assert!(false, "{}\n{}\n{}", refusal, text, after),
        }
    }

    #[test]
    fn a_field_that_changes_changes_its_own_lines(before in fields(), new in value(), writing in writing(), turn in any::<usize>()) {
        let text = file(&before, &writing);
        let mut after = wanted(&before);
        let names: Vec<String> = before.as_object().unwrap().keys().cloned().collect();
        let name = &names[turn % names.len()];
        after[name] = new;
        let changed = set(&text, &orders(), &after).unwrap();
        // Every other field keeps its text, and so do the comments above it.
        let others = |text: &str| -> Vec<String> {
            let mut parts = vec![String::new()];
            for line in text.lines() {
                if !line.starts_with([' ', '-', '#', '}', ']']) && !line.is_empty() {
                    parts.push(String::new());
                }
                parts.last_mut().unwrap().push_str(line);
            }
            let key = format!("{}:", scalar::bare(name, false));
            parts.retain(|part| !part.starts_with(&key));
            parts
        };
        prop_assert_eq!(others(&text), others(&changed), "{}", changed);
    }

    #[test]
    fn one_changed_number_is_one_changed_line(before in fields(), old in any::<i64>(), new in any::<i64>(), writing in writing()) {
        let mut before = before;
        before["kafka_units"] = old.into();
        let text = file(&before, &writing);
        let changed = patched(&text, &orders(), &json!({"kafka_units": new})).unwrap();
        prop_assert_eq!(text.lines().count(), changed.lines().count());
        let other = text.lines().zip(changed.lines()).filter(|(old, new)| old != new).count();
        prop_assert_eq!(other, usize::from(old != new));
    }

    #[test]
    fn a_mangled_file_is_edited_rightly_or_refused(
        before in fields(),
        writing in writing(),
        marks in prop::collection::vec((any::<usize>(), 0..6_usize, prop::sample::select(MARKS)), 1..4),
        patch in fields(),
    ) {
        let mut text = file(&before, &writing);
        for (at, length, mark) in marks {
            let start = text.floor_char_boundary(at % text.len());
            let end = text.floor_char_boundary((start + length).min(text.len()));
            text.replace_range(start..end.max(start), mark);
        }
        // `patched` asserts that the result has the wanted value and that a second edit changes nothing.
        if let Ok(changed) = patched(&text, &orders(), &patch) {
            let comments = |text: &str| text.matches("# all").count() + text.matches("# the end").count();
            prop_assert_eq!(comments(&text), comments(&changed));
        }
        if let Ok(Some(without)) = remove(&text, &orders()) {
            prop_assert!(read(&without, &orders()).is_err());
        }
        if let Ok(with) = append(&text, &json!({"a": 1})) {
            prop_assert!(with.starts_with(&text));
        }
    }

    #[test]
    fn what_is_written_is_read(fields in fields()) {
        let wanted = wanted(&fields);
        let text = write(&wanted).unwrap();
        prop_assert_eq!(read(&text, &orders()), Ok(wanted.clone()));
        let two = append("a: 1", &wanted).unwrap();
        prop_assert_eq!(remove(&two, &orders()), Ok(Some("a: 1\n".to_owned())));
    }
}
