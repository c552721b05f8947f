//! The sample settings file: it documents every key and sets none.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::Config;

/// The width of a comment, in bytes.
const WIDTH: usize = 100;

/// Stands in for the name of an entry in a table whose keys the administrator chooses.
const ANY: &str = "1.2.0";

const HEAD: &str = "The settings of a Streamfleet installation. Every key is optional, but a profile needs all of its \
                    sizes or none; each key is shown with its default, or with an example if it has none. Use this file \
                    with `--config FILE` or STREAMFLEET_CONFIG, and print the active settings with `streamfleet config \
                    show`.";

/// Returns a file with every key, its meaning, and its default or an example, all commented out.
pub fn sample() -> String {
    let mut text = String::new();
    comment(&mut text, HEAD);
    let default = serde_json::to_value(Config::default()).unwrap_or_default();
    table(&mut text, "", &crate::spec::schema::inlined::<Config>(), &default);
    text
}

/// Writes the keys of a table, then its subtables.
fn table(text: &mut String, path: &str, schema: &Value, default: &Value) {
    let nothing = Map::new();
    let fields = schema["properties"].as_object().unwrap_or(&nothing);
    let (tables, keys): (Vec<_>, Vec<_>) = fields.iter().partition(|(_, field)| is_table(field));
    for (name, field) in keys {
        let Some(value) = value(field, &default[name]) else { continue };
        text.push('\n');
        comment(text, described(field));
        // Writing into a String can't fail.
        let _ = writeln!(text, "#{name} = {value}");
    }
    for (name, field) in tables {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        match &field["additionalProperties"] {
            entry @ Value::Object(_) => {
                headed(text, &format!("{path}.\"{ANY}\""), described(field), entry, &Value::Null)
            }
            _ => headed(text, &path, described(field), field, &default[name]),
        }
    }
}

fn headed(text: &mut String, path: &str, description: &str, schema: &Value, default: &Value) {
    text.push('\n');
    comment(text, description);
    let has_keys = schema["properties"].as_object().is_some_and(|fields| !fields.values().all(is_table));
    if has_keys {
        let _ = writeln!(text, "#[{path}]");
    }
    table(text, path, schema, default);
}

fn is_table(field: &Value) -> bool {
    field["properties"].is_object() || field["additionalProperties"].is_object()
}

/// Returns the default, or else an example, as TOML.
fn value(field: &Value, default: &Value) -> Option<String> {
    let shown = if default.is_null() { &field["examples"][0] } else { default };
    toml::Value::try_from(shown).ok().map(|value| value.to_string())
}

fn described(field: &Value) -> &str {
    field["description"].as_str().unwrap_or_default()
}

fn comment(text: &mut String, prose: &str) {
    let mut line = String::from("#");
    for word in prose.split_whitespace() {
        if line.len() > 1 && line.len() + 1 + word.len() > WIDTH {
            let _ = writeln!(text, "{line}");
            line = String::from("#");
        }
        line.push(' ');
        line.push_str(word);
    }
    let _ = writeln!(text, "{line}");
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the keys that are commented out. Unlike keys, prose has a space after its `#`.
    fn uncommented(sample: &str) -> String {
        let keys = sample.lines().filter_map(|line| line.strip_prefix('#'));
        keys.filter(|line| !line.starts_with(' ')).map(|line| format!("{line}\n")).collect()
    }

    #[test]
    fn it_sets_nothing_and_every_line_of_it_could_stand() {
        let sample = sample();
        assert_eq!(Config::parse(&sample).unwrap(), Config::default());
        let all = Config::parse(&uncommented(&sample)).unwrap();
        let Config {
            state_dir,
            output_dir,
            secrets_dir,
            operators,
            source,
            api,
            tiered_storage,
            prices,
            images,
            ..
        } = &all;
        assert!(prices.table().is_some() && all.console_url_template.is_some());
        assert!([state_dir, output_dir, secrets_dir].iter().all(|folder| folder.is_some()));
        assert!(source.git.is_some() && source.known_hosts.is_some());
        assert!(api.listen.is_some() && api.tls_key_file.is_some());
        assert!(tiered_storage.plugin_image.is_some() && all.acme.is_some());
        assert!(images.schema_registry.is_some() && images.console.is_some() && images.prometheus.is_some());
        assert_eq!(operators.strimzi.keys().collect::<Vec<_>>(), [ANY]);
        let rest = Config {
            state_dir: None,
            output_dir: None,
            secrets_dir: None,
            operators: Config::default().operators,
            source: Config::default().source,
            api: Config::default().api,
            tiered_storage: Config::default().tiered_storage,
            prices: Config::default().prices,
            images: Config::default().images,
            console_url_template: None,
            acme: None,
            ..all
        };
        assert_eq!(rest, Config::default());
    }
}
