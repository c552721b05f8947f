//! `streamfleet explain`: describes a field, from the schema that checks it.

use clap::Args;

use crate::catalog::immutable_pointers;
use crate::cli::console::Console;
use crate::cli::failure::Failure;
use crate::cli::{exit, schema};
use crate::names::Kind;
use crate::plan::field_effects::field_effects;
use crate::record;
use crate::spec::describe::{self, Description, UnknownField};
use crate::spec::{HEADER, identity_fields};

/// Explain a field of a document, of a record or of the config file: its meaning, its values, and whether it can
/// change.
#[derive(Debug, Args)]
pub struct Explain {
    /// The path of a field: `cluster.advanced_config.storage`, `config.policy`. A kind lists its fields.
    #[arg(value_name = "FIELD")]
    field: String,
}

pub fn run(verb: &Explain, console: &mut Console) -> Result<u8, Failure> {
    let mut names = verb.field.split('.');
    let first = names.next().unwrap_or_default();
    let kind = Kind::meant_by(first);
    let root = match kind {
        Some(kind) => describe::document(kind, kind.singular()),
        None if first == schema::CONFIG => crate::config::describe(schema::CONFIG),
        None => return Err(unknown_root(&verb.field)),
    };
    let names: Vec<&str> = names.collect();
    let page = match root.find(&names) {
        Ok(field) => page(&field, kind),
        Err(unknown) => output(kind, &names).ok_or_else(|| unknown_field(&unknown))?,
    };
    console.print(&page)?;
    Ok(exit::OK)
}

/// The page of a field that only records have: what `get` and the API answer, and no document sets.
fn output(kind: Option<Kind>, names: &[&str]) -> Option<String> {
    let (kind, (first, inner)) = (kind?, names.split_first()?);
    let first = record::output_fields(kind).iter().find(|field| field == first)?;
    let field = record::describe(kind).find(&[&[first.as_str()], inner].concat()).ok()?;
    let facts =
        [("value", field.values()), ("set by", "Streamfleet: `get` and the API answer it".to_owned())];
    let facts = facts.map(|(name, fact)| (name.to_owned(), fact));
    Some(format!("{}\n\n{}\n\n{}", field.path.join("."), field.text(), table(&facts)))
}

/// Plans are generated, not written by people, so their fields are only in their schema.
fn unknown_root(asked: &str) -> Failure {
    let names: Vec<&str> = asked.split('.').collect();
    let name = asked.split('.').next().unwrap_or_default();
    let documents = Kind::ALL.map(|kind| describe::document(kind, kind.singular()));
    let described = documents.into_iter().chain([crate::config::describe(schema::CONFIG)]);
    let meant: Vec<Description> = described.filter_map(|root| root.meant_by(&names)).collect();
    // Deeper fields of the same name belong to another object, such as a quota.
    let nearest = meant.iter().map(|field| field.path.len()).min();
    let meant: Vec<String> = meant
        .iter()
        .filter(|field| Some(field.path.len()) == nearest)
        .map(|field| format!("`{}`", field.path.join(".")))
        .collect();
    if !meant.is_empty() {
        let failure = Failure::usage(format!("`{asked}` doesn't say of which kind it is a field"));
        return failure.hint(format!("did you mean {}?", meant.join(" or ")));
    }
    let roots = Kind::ALL.into_iter().map(Kind::singular).chain([schema::CONFIG]);
    schema::unknown_name("there is no kind, field or setting", name, roots)
}

fn unknown_field(unknown: &UnknownField) -> Failure {
    let within = unknown.within.join(".");
    let hint = match &unknown.meant {
        Some(path) => format!("did you mean `{}`?", path.join(".")),
        None if unknown.known.is_empty() => format!("it has no fields: streamfleet explain {within}"),
        None => format!("its fields are {}", unknown.known.join(", ")),
    };
    Failure::usage(format!("`{within}` has no field `{}`", unknown.name)).hint(hint)
}

fn page(field: &Description, kind: Option<Kind>) -> String {
    let mut page = format!("{}\n\n{}\n", field.path.join("."), field.text());
    let facts = facts(field, kind);
    if !facts.is_empty() {
        page += &format!("\n{}", table(&facts));
    }
    let effects = effects(field, kind);
    if !effects.is_empty() {
        page += &format!("\nWhen it is changed:\n{}", table(&effects));
    }
    let choices = field.choices();
    if !choices.is_empty() {
        page += &format!("\nValues:\n{}", table(&choices));
    }
    let fields = field.fields();
    if !fields.is_empty() {
        let mark = |field: &Description| if field.required { "*" } else { "" };
        let row = |field: &Description| (format!("{}{}", field.name(), mark(field)), field.text());
        let rows: Vec<(String, String)> = fields.iter().map(row).collect();
        let note = if fields.iter().any(|field| field.required) { " (* required)" } else { "" };
        page += &format!("\nFields{note}:\n{}", table(&rows));
    }
    if let (Some(kind), 1) = (kind, field.path.len()) {
        let outputs = record::output_fields(kind).iter();
        let described = record::describe(kind);
        let rows =
            outputs.filter_map(|name| Some((name.clone(), described.find(&[name.as_str()]).ok()?.text())));
        page +=
            &format!("\nFields of its record, which no document sets:\n{}", table(&rows.collect::<Vec<_>>()));
    }
    page
}

fn facts(field: &Description, kind: Option<Kind>) -> Vec<(String, String)> {
    // A whole document is neither required nor changed.
    if field.path.len() < 2 {
        return Vec::new();
    }
    let required = if field.required { "yes" } else { "no" };
    let examples = field.examples().join(", ");
    let facts = [
        ("value", Some(field.values())),
        ("required", Some(required.to_owned())),
        ("default", field.default()),
        ("example", Some(examples).filter(|examples| !examples.is_empty())),
        ("can change", kind.and_then(|kind| change(field, kind))),
    ];
    facts.into_iter().filter_map(|(name, fact)| Some((name.to_owned(), fact?))).collect()
}

/// Whether a field can change once it is applied; none for the header fields that every document has.
fn change(field: &Description, kind: Kind) -> Option<String> {
    let pointer = field.pointer();
    if HEADER.contains(&field.name()) && field.path.len() == 2 {
        return None;
    }
    if identity_fields(kind).contains(&field.name()) && field.path.len() == 2 {
        return Some(format!("no: another value would make it another {}", kind.noun()));
    }
    if immutable_pointers(kind).contains(&pointer.as_str()) {
        return Some("no, once it is applied".to_owned());
    }
    let inside = format!("{pointer}/");
    let fixed = immutable_pointers(kind).iter().filter_map(|pointer| pointer.strip_prefix(&inside));
    let fixed: Vec<String> = fixed.map(|field| field.replace('/', ".")).collect();
    Some(match fixed.as_slice() {
        [] => "yes".to_owned(),
        fixed => format!("yes, but not {}", fixed.join(", ")),
    })
}

/// The effects of changing a field, from the same table that plans are tested against.
fn effects(field: &Description, kind: Option<Kind>) -> Vec<(String, String)> {
    let rows = kind.into_iter().flat_map(|kind| field_effects(kind, &field.name_within()));
    rows.map(|row| (row.when.words(), format!("{}: {}", row.verdict.words(), row.why))).collect()
}

fn table(rows: &[(String, String)]) -> String {
    let width = rows.iter().map(|(left, _)| left.chars().count()).max().unwrap_or(0);
    rows.iter().map(|(left, right)| format!("  {left:width$}  {right}\n")).collect()
}
