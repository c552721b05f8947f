//! Manifests as YAML files that every parser reads alike.

use serde_json::Value;
use serde_saphyr::SerializerOptions;

/// Writes a value as a YAML document in block style that ends in a line break.
///
/// kubectl, Flux and Argo CD read YAML 1.1, others YAML 1.2, and the two differ in which plain words are
/// numbers, booleans or dates. Strings that either would misread are quoted. Multi-line strings are literal
/// blocks if that keeps every character. Lines are never folded, since a fold hides whether a line break is
/// part of the text.
pub fn to_yaml(value: &Value) -> String {
    // JSON is YAML too, so if the writer ever fails on a value, nothing is lost.
    serde_saphyr::to_string_with_options(value, options()).unwrap_or_else(|_| format!("{value}\n"))
}

fn options() -> SerializerOptions {
    serde_saphyr::ser_options! { folded_wrap_chars: usize::MAX }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn read(text: &str) -> Value {
        serde_saphyr::from_str(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
    }

    /// Strings that YAML 1.1, YAML 1.2 or one of their parsers misreads when unquoted.
    const AMBIGUOUS: &[&str] = &[
        "yes",
        "Yes",
        "NO",
        "on",
        "Off",
        "y",
        "N",
        "true",
        "False",
        "null",
        "Null",
        "~",
        "",
        "012",
        "0o7",
        "0x1F",
        "0b11",
        "1_000",
        "12:30:45",
        "190:20:30.15",
        "1e3",
        "1.",
        ".5",
        "-1",
        "+1",
        ".inf",
        "-.INF",
        ".NaN",
        "2001-01-01",
        "2001-12-14t21:59:43.10-05:00",
        "2001-12-14 21:59:43.10 -5",
        "=",
        "<<",
        " x",
        "x ",
        "a: b",
        "a #b",
        "- a",
        "-",
        "? a",
        "?",
        ":",
        "a:",
        "[a",
        "{a",
        "]",
        "}",
        ",",
        "#a",
        "&a",
        "*a",
        "!a",
        "|",
        ">",
        "'a",
        "\"a",
        "%a",
        "@a",
        "`a",
        "---",
        "...",
        "--- a",
        "\ta",
        "a\t",
    ];

    #[test]
    fn what_a_reader_could_misunderstand_is_quoted() {
        for text in AMBIGUOUS {
            for (value, line) in [(json!({"k": text}), "k: "), (json!([text]), "- ")] {
                let yaml = to_yaml(&value);
                let rest = yaml.strip_prefix(line).unwrap_or_default();
                assert!(rest.starts_with(['"', '\'']), "{text:?} stands unquoted: {yaml}");
                assert_eq!(read(&yaml), value);
            }
            let key = json!({*text: 1});
            assert!(to_yaml(&key).starts_with(['"', '\'']), "{text:?} stands unquoted: {}", to_yaml(&key));
        }
    }

    #[test]
    fn objects_read_as_people_write_them() {
        let value = json!({
            "spec": {"list": [{"a": 1, "b": [true, null, 0.5]}], "host": "broker-{nodeId}--c.example.com:9094"},
            "kind": "Kafka",
            "empty": {"list": [], "map": {}},
            "text": "first\n  second\n\nlast\n",
            "long": "word ".repeat(24).trim_end(),
        });
        insta::assert_snapshot!(to_yaml(&value), @r"
        empty:
          list: []
          map: {}
        kind: Kafka
        long: word word word word word word word word word word word word word word word word word word word word word word word word
        spec:
          host: broker-{nodeId}--c.example.com:9094
          list:
          - a: 1
            b:
            - true
            - null
            - 0.5
        text: |
          first
            second

          last
        ");
        assert_eq!(read(&to_yaml(&value)), value);
    }

    fn any_value() -> impl Strategy<Value = Value> {
        let text = prop_oneof![
            any::<String>(),
            "[ \t\n:#'\"\\-a0]{0,12}",
            proptest::sample::select(AMBIGUOUS).prop_map(str::to_owned),
        ];
        let scalar = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            (-1.0e15..1.0e15).prop_map(|number: f64| json!(number)),
            text.clone().prop_map(Value::from),
        ];
        scalar.prop_recursive(4, 32, 5, move |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                proptest::collection::btree_map(text.clone(), inner, 0..5)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn every_value_survives(value in any_value()) {
            prop_assert_eq!(read(&to_yaml(&value)), value);
        }
    }
}
