//! `streamfleet schema`: prints the JSON Schemas, for editors.

use camino::{Utf8Path, Utf8PathBuf};
use clap::Args;
use serde_json::Value;

use crate::cli::console::Console;
use crate::cli::exit;
use crate::cli::failure::Failure;
use crate::names::Kind;
use crate::spec;

/// Print the JSON Schema of a kind of document, of the config file or of a plan, or the OpenAPI document of
/// the API. Without a name, list all names.
#[derive(Debug, Args)]
pub struct Schema {
    /// The schema to print: organization, base-domain, identity-provider, cloud-account, fleet, cluster,
    /// config, plan or openapi.
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// Write all schemas to a folder instead, replacing those of another version.
    #[arg(long, value_name = "DIR", conflicts_with = "name")]
    out: Option<Utf8PathBuf>,
}

pub const CONFIG: &str = "config";
const PLAN: &str = "plan";
const OPENAPI: &str = "openapi";

pub fn run(verb: &Schema, console: &mut Console) -> Result<u8, Failure> {
    match (&verb.name, &verb.out) {
        (Some(name), _) => console.print(&text(&find(name)?))?,
        (None, Some(folder)) => write_all(folder, console)?,
        (None, None) => console.print(&names().map(|name| format!("{name}\n")).collect::<String>())?,
    }
    Ok(exit::OK)
}

pub fn names() -> impl Iterator<Item = &'static str> {
    Kind::ALL.into_iter().map(Kind::singular).chain([CONFIG, PLAN, OPENAPI])
}

fn find(name: &str) -> Result<Value, Failure> {
    match (Kind::meant_by(name), name) {
        (Some(kind), _) => Ok(spec::schema::document(kind)),
        (None, CONFIG) => Ok(crate::config::schema()),
        (None, PLAN) => Ok(crate::plan::schema()),
        (None, OPENAPI) => Ok(crate::api::openapi::document("/")),
        _ => Err(unknown_name("there is no schema for", name, names())),
    }
}

/// Returns the error for an unknown name, with the nearest known one or a list.
pub fn unknown_name<'a>(looked_for: &str, name: &str, names: impl Iterator<Item = &'a str>) -> Failure {
    let names: Vec<&str> = names.collect();
    let hint = match spec::describe::nearest(name, names.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("known: {}", names.join(", ")),
    };
    Failure::usage(format!("{looked_for} `{name}`")).hint(hint)
}

pub fn document_text(kind: Kind) -> String {
    text(&spec::schema::document(kind))
}

fn text(schema: &Value) -> String {
    laid_out(schema, 0, 0) + "\n"
}

/// A value as JSON. What fits on a line of 120 columns is on one, from `column` on.
fn laid_out(value: &Value, indent: usize, column: usize) -> String {
    let line = on_one_line(value);
    if column + line.len() < 120 {
        return line;
    }
    let inside = indent + 2;
    let (open, rows, close) = match value {
        Value::Object(fields) => {
            let row = |(name, value): (&String, &Value)| {
                let name = Value::from(name.as_str()).to_string();
                let value = laid_out(value, inside, inside + name.len() + 2);
                format!("{:inside$}{name}: {value}", "")
            };
            ('{', fields.iter().map(row).collect::<Vec<_>>(), '}')
        }
        Value::Array(items) => {
            let row = |item: &Value| format!("{:inside$}{}", "", laid_out(item, inside, inside));
            ('[', items.iter().map(row).collect(), ']')
        }
        _ => return line,
    };
    format!("{open}\n{}\n{:indent$}{close}", rows.join(",\n"), "")
}

fn on_one_line(value: &Value) -> String {
    let joined = |rows: Vec<String>| rows.join(", ");
    match value {
        Value::Object(fields) => {
            let row = |(name, value): (&String, &Value)| {
                format!("{}: {}", Value::from(name.as_str()), on_one_line(value))
            };
            format!("{{{}}}", joined(fields.iter().map(row).collect()))
        }
        Value::Array(items) => format!("[{}]", joined(items.iter().map(on_one_line).collect())),
        value => value.to_string(),
    }
}

fn write_all(folder: &Utf8Path, console: &mut Console) -> Result<(), Failure> {
    let fail = |path: &Utf8Path, error| Failure::during(format!("cannot write `{path}`"), &error);
    std::fs::create_dir_all(folder).map_err(|error| fail(folder, error))?;
    for name in names() {
        let path = folder.join(format!("{name}.json"));
        std::fs::write(&path, text(&find(name)?)).map_err(|error| fail(&path, error))?;
        console.print(&format!("wrote {path}\n"))?;
    }
    Ok(())
}
