//! The reference in `docs/reference`, written from the types and the table of field effects.

mod api;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use streamfleet::config;
use streamfleet::names::Kind;
use streamfleet::plan::Verdict;
use streamfleet::plan::field_effects::{FieldEffect, field_effects};
use streamfleet::spec::HEADER;
use streamfleet::spec::describe::{self, Description};

use crate::support::files;

/// Environment variable that makes the test rewrite the files.
const UPDATE: &str = "UPDATE_DOCS";

pub const WRITTEN: &str =
    "<!-- Written from the source by `UPDATE_DOCS=1 cargo test --test all reference`; edits are lost. -->";

#[test]
fn the_reference_is_that_of_the_types() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/reference");
    let made = pages();
    if std::env::var_os(UPDATE).is_some() {
        files(&folder).iter().for_each(|(name, _)| fs::remove_file(folder.join(name)).unwrap());
        made.iter().for_each(|(name, text)| write(folder.join(name), text));
    }
    let kept: BTreeMap<String, String> =
        files(&folder).into_iter().map(|(name, bytes)| (name, String::from_utf8(bytes).unwrap())).collect();
    let stale: Vec<&String> =
        made.keys().chain(kept.keys()).filter(|name| made.get(*name) != kept.get(*name)).collect();
    assert!(
        stale.is_empty(),
        "docs/reference is stale: {stale:?}\nrewrite it: {UPDATE}=1 cargo test --test all reference"
    );
}

#[test]
fn every_field_has_its_place() {
    for kind in Kind::ALL {
        let page = kind_page(kind);
        for field in describe::leaves(kind) {
            let name = field.name_within();
            assert!(page.contains(&format!("\n## `{name}`\n")), "{kind:?} {name}");
            assert!(page.contains(&format!("\n| [`{name}`](#{}) |", anchor(&name))), "{kind:?} {name}");
        }
    }
}

fn write(path: PathBuf, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn pages() -> BTreeMap<String, String> {
    let kinds = Kind::ALL.into_iter().map(|kind| (page_of(kind), kind_page(kind)));
    let more = [
        ("README.md".to_owned(), index()),
        ("config.md".to_owned(), config_page()),
        ("api.md".to_owned(), api::page()),
    ];
    kinds.chain(more).collect()
}

fn page_of(kind: Kind) -> String {
    format!("{}.md", kind.singular())
}

fn index() -> String {
    let mut page = format!(
        "{WRITTEN}\n\n# Reference\n\nEvery field of every kind of document: its meaning, its values, and the effect of changing it.\n\n"
    );
    for kind in Kind::ALL {
        let what = text(&describe::document(kind, kind.singular()).text());
        writeln!(page, "- [{}]({}): {what}", kind.as_str(), page_of(kind)).unwrap();
    }
    page += "- [The settings of an installation](config.md), a TOML file.\n";
    page += "- [The API](api.md), over HTTP.\n";
    page += "\n`streamfleet explain FIELD` prints the same on the command line, and editors can use the schemas in \
             [`schemas/`](../../schemas). [`examples/`](../../examples) has complete trees.\n";
    page += "\n## What a change does\n\n| word | meaning |\n|---|---|\n";
    for (verdict, meaning) in verdicts() {
        writeln!(page, "| {} | {} |", verdict.words(), text(&meaning)).unwrap();
    }
    page += "\nA refused change is not applied: the plan says why and what to do instead, and all other changes are applied. A \
             plan judges the objects that change, whichever field changed; tests compare these tables with plans.\n";
    page
}

fn verdicts() -> Vec<(Verdict, String)> {
    let schema = schemars::schema_for!(Verdict).to_value();
    let ways = schema["oneOf"].as_array().unwrap().clone();
    let verdict = |way: serde_json::Value| {
        let meaning = way["description"].as_str().unwrap().replace('\n', " ");
        (serde_json::from_value(way["const"].clone()).unwrap(), meaning)
    };
    ways.into_iter().map(verdict).collect()
}

fn kind_page(kind: Kind) -> String {
    let document = describe::document(kind, kind.singular());
    let head = format!(
        "{}\n\nA document begins with `{}: {}` and `{}: {}`.",
        text(&document.text()),
        HEADER[0],
        streamfleet::spec::API_VERSION,
        HEADER[1],
        kind.as_str()
    );
    let effects = |field: &Description| field_effects(kind, &field.name_within());
    page(kind.as_str(), &head, &document, &effects)
}

fn config_page() -> String {
    let document = config::describe("config");
    let head = "A TOML file, which `--config` names. Every key has a default.";
    page("The settings of an installation", head, &document, &|_| Vec::new())
}

fn page(title: &str, head: &str, document: &Description, effects: &Effects) -> String {
    let mut fields = Vec::new();
    collect(document, None, &mut fields);
    let mut page = format!("{WRITTEN}\n\n# {title}\n\n{head}\n\n{}", summary(&fields, effects));
    fields.iter().for_each(|field| page += &section(field, effects));
    page
}

type Effects<'a> = dyn Fn(&Description) -> Vec<&'static FieldEffect> + 'a;

/// A field with its optional parent, if any: it is required only where the parent is given.
struct Field {
    field: Description,
    within: Option<String>,
}

/// All fields, parents before their children. Items of a list and fields of a tagged value are part of their
/// own section.
fn collect(group: &Description, within: Option<&str>, fields: &mut Vec<Field>) {
    for field in group.fields().into_iter().filter(|field| !HEADER.contains(&field.name())) {
        fields.push(Field { field: field.clone(), within: within.map(str::to_owned) });
        if field.is_group() {
            let name = field.name_within();
            collect(&field, if field.required { within } else { Some(&name) }, fields);
        }
    }
}

impl Field {
    fn has_to_be_given(&self) -> String {
        match (self.field.required, &self.within) {
            (false, _) => "no".to_owned(),
            (true, None) => "yes".to_owned(),
            (true, Some(group)) => format!("with `{group}`"),
        }
    }

    fn default(&self) -> String {
        self.field.default().map(|default| format!("`{default}`")).unwrap_or_default()
    }
}

fn summary(fields: &[Field], effects: &Effects) -> String {
    // No sentence about changes where there is nothing to say.
    let judged = fields.iter().any(|entry| !effects(&entry.field).is_empty());
    let row = |cells: [String; 5]| format!("| {} |\n", cells[..if judged { 5 } else { 4 }].join(" | "));
    let head = ["field", "value", "default", "required", "a change"].map(str::to_owned);
    let mut table = row(head) + &row([(); 5].map(|()| "---".to_owned()));
    for entry in fields.iter().filter(|entry| !entry.field.is_group()) {
        let name = entry.field.name_within();
        let mut does: Vec<&str> = Vec::new();
        for row in effects(&entry.field) {
            if !does.contains(&row.verdict.words()) {
                does.push(row.verdict.words());
            }
        }
        let link = format!("[`{name}`](#{})", anchor(&name));
        let values = text(&entry.field.values());
        table += &row([link, values, entry.default(), entry.has_to_be_given(), does.join(", ")]);
    }
    table
}

/// The anchor of a heading, as GitHub and GitLab build it.
fn anchor(name: &str) -> String {
    name.replace('.', "")
}

fn section(entry: &Field, effects: &Effects) -> String {
    let field = &entry.field;
    let mut section = format!("\n## `{}`\n\n{}\n", field.name_within(), text(&field.text()));
    if field.is_group() {
        return section;
    }
    let rows = effects(field);
    section += "\n";
    facts(entry, &rows).iter().for_each(|(name, fact)| writeln!(section, "- {name}: {fact}").unwrap());
    for FieldEffect { when, verdict, why, .. } in rows {
        let (when, why) = (text(&when.words()), text(why));
        writeln!(section, "- when it is {when}: **{}**; {why}", verdict.words()).unwrap();
    }
    let mark = |field: &Description| if field.required { " (required)" } else { "" };
    let inner = |field: &Description| (field.name().to_owned(), format!("{}{}", field.text(), mark(field)));
    section
        + &list("Values", field.choices().into_iter())
        + &list("It holds", field.fields().iter().map(inner))
}

fn facts(entry: &Field, rows: &[&FieldEffect]) -> Vec<(&'static str, String)> {
    let field = &entry.field;
    let examples: Vec<String> = field.examples().iter().map(|example| format!("`{example}`")).collect();
    let can_change = match rows.iter().filter(|row| row.verdict == Verdict::Refused).count() {
        _ if rows.is_empty() => "",
        0 => "yes",
        refused if refused < rows.len() => "yes, but not in every way",
        _ => "no",
    };
    let facts = [
        ("value", text(&field.values())),
        ("required", entry.has_to_be_given()),
        ("default", entry.default()),
        ("example", examples.join(", ")),
        ("can change", can_change.to_owned()),
    ];
    facts.into_iter().filter(|(_, fact)| !fact.is_empty()).collect()
}

fn list(title: &str, items: impl Iterator<Item = (String, String)>) -> String {
    let items: Vec<String> = items.map(|(name, what)| format!("- `{name}`: {}\n", text(&what))).collect();
    if items.is_empty() { String::new() } else { format!("\n{title}:\n\n{}", items.concat()) }
}

/// Escapes text for Markdown. Text between backticks is code and stays as it is.
pub fn text(plain: &str) -> String {
    let part = |(index, part): (usize, &str)| match index % 2 {
        0 => part
            .replace('<', "\\<")
            .replace('*', "\\*")
            .replace('_', "\\_")
            .replace('|', "\\|")
            .replace('\n', "\n\n"),
        _ => format!("`{part}`"),
    };
    plain.split('`').enumerate().map(part).collect()
}
