//! The table of the chart's values in its README, which is made of `values.yaml`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

const HEAD: &str = "# The Helm chart of Streamfleet

It runs `streamfleet serve` as a StatefulSet of one replica. [Install](../../../docs/guide/install.md#on-kubernetes-with-the-chart)
says how, and what was tested. A wrong value is refused with its path.

## Values

This table is made of `values.yaml`: `UPDATE_DOCS=1 cargo test --test all packages::values`.

| value | default | |
|---|---|---|
";

fn chart() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("packaging/helm/streamfleet")
}

struct Row {
    path: String,
    /// `None` for a group of values.
    default: Option<String>,
    meaning: String,
}

/// The rows of a file of values in which every comment is above its key.
fn rows(values: &str) -> Vec<Row> {
    let (mut rows, mut path, mut comment) = (Vec::new(), Vec::<&str>::new(), Vec::new());
    for line in values.lines().filter(|line| !line.is_empty()) {
        let text = line.trim_start();
        if let Some(words) = text.strip_prefix('#') {
            comment.push(words.trim_start_matches(" --").trim());
            continue;
        }
        let (key, default) = text.split_once(':').expect("a value has a key");
        path.truncate((line.len() - text.len()) / 2);
        path.push(key);
        let default = Some(default.trim().to_owned()).filter(|default| !default.is_empty());
        rows.push(Row { path: path.join("."), default, meaning: comment.join(" ").replace('|', "\\|") });
        comment.clear();
    }
    rows
}

fn table(rows: &[Row]) -> String {
    let line = |row: &Row| {
        let Row { path, default, meaning } = row;
        let default = default.as_ref().map(|default| format!("`{default}`")).unwrap_or_default();
        format!("| `{path}` | {default} | {meaning} |\n")
    };
    let told = rows.iter().filter(|row| row.default.is_some() || !row.meaning.is_empty());
    told.map(line).collect()
}

/// The paths of the schema below which every value is free.
fn leaves(schema: &Value, at: &str, found: &mut BTreeSet<String>) {
    match schema["properties"].as_object() {
        Some(properties) if at != "settings" => properties.iter().for_each(|(name, inner)| {
            let path = if at.is_empty() { name.clone() } else { format!("{at}.{name}") };
            leaves(inner, &path, found);
        }),
        _ => drop(found.insert(at.to_owned())),
    }
}

#[test]
fn the_readme_has_every_value_with_its_default_and_its_meaning() {
    let rows = rows(&fs::read_to_string(chart().join("values.yaml")).unwrap());
    let text = format!("{HEAD}{}", table(&rows));
    let path = chart().join("README.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, &text).unwrap();
    }
    assert_eq!(
        fs::read_to_string(&path).unwrap_or_default(),
        text,
        "rewrite it: UPDATE_DOCS=1 cargo test --test all packages::values"
    );
}

#[test]
fn the_schema_knows_the_values_of_the_chart_and_no_others() {
    let schema = fs::read_to_string(chart().join("values.schema.json")).unwrap();
    let mut known = BTreeSet::new();
    leaves(&serde_json::from_str(&schema).unwrap(), "", &mut known);
    let rows = rows(&fs::read_to_string(chart().join("values.yaml")).unwrap());
    let within = |inner: &str, outer: &str| {
        inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    for row in rows.iter().filter(|row| row.default.is_some()) {
        assert!(known.iter().any(|path| within(&row.path, path)), "{} is not in the schema", row.path);
    }
    // Helm sets `global`; Kubernetes has `claims`.
    for path in known.iter().filter(|path| !["global", "resources.claims"].contains(&path.as_str())) {
        assert!(rows.iter().any(|row| within(&row.path, path)), "{path} is not in values.yaml");
    }
}

/// `settings` takes what the program's settings take, but for what the chart itself sets.
#[test]
fn the_schema_of_settings_is_that_of_the_program() {
    let path = chart().join("values.schema.json");
    let read = |path: &Path| -> Value { serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap() };
    let mut schema = read(&path);
    let mut settings = read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas/config.json"));
    let properties = settings["properties"].as_object_mut().unwrap();
    for own in ["source", "state_dir", "output_dir", "secrets_dir"] {
        properties.remove(own).unwrap();
    }
    let mut api = properties["api"]["allOf"].take();
    api.as_array_mut().unwrap().push(json!({"properties": {"listen": false, "socket": false}}));
    properties["api"] = json!({"allOf": api});
    let expected = (
        json!({"type": "object", "additionalProperties": false, "properties": properties}),
        settings["definitions"].take(),
    );
    if std::env::var_os("UPDATE_DOCS").is_some() {
        (schema["properties"]["settings"], schema["definitions"]) = expected.clone();
        fs::write(&path, format!("{schema:#}\n")).unwrap();
    }
    assert!(
        (&schema["properties"]["settings"], &schema["definitions"]) == (&expected.0, &expected.1),
        "rewrite it: UPDATE_DOCS=1 cargo test --test all packages::values"
    );
}
