//! `streamfleet get`: resources as the interface has them.

use clap::Args;
use serde_json::Value;

use crate::catalog::Resource;
use crate::cli::console::Console;
use crate::cli::exit;
use crate::cli::failure::Failure;
use crate::cli::format::Format;
use crate::cli::round::{self, Access, Look};
use crate::cli::settings::{Settings, TreeArgs};
use crate::interface::{self, Outputs};
use crate::names::Kind;

/// Print resources with every field of their records.
#[derive(Debug, Args)]
pub struct Get {
    /// What to print: `clusters` for all, `cluster/acme/orders` for one. Kinds are organizations, base-domains,
    /// identity-providers, cloud-accounts, fleets and clusters.
    #[arg(value_name = "KIND[/ORGANIZATION/NAME]")]
    what: String,
    #[command(flatten)]
    tree: TreeArgs,
    /// Print a table, JSON or YAML.
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
}

/// Runs the verb.
pub fn run(verb: &Get, console: &mut Console) -> Result<u8, Failure> {
    let (kind, path) = parse(&verb.what)?;
    let settings = Settings::settle(&verb.tree)?;
    let look = round::look(settings, Access::ReadOnly, round::time(None), console)?;
    let of_kind: Vec<&Resource> =
        look.round.checked.catalog.resources.values().filter(|resource| resource.key.kind == kind).collect();
    match path {
        None => print_all(&look, &of_kind, verb.format, console)?,
        Some(path) => {
            let Some(resource) = of_kind.iter().find(|resource| resource.key.path() == path) else {
                return Err(not_found(kind, path, &of_kind));
            };
            let record = record(&look, resource);
            let text = match verb.format.data(&record)? {
                Some(text) => text,
                None => crate::render::yaml::to_yaml(&record),
            };
            console.print(&text)?;
        }
    }
    Ok(exit::OK)
}

/// Splits `cluster/acme/orders` into its kind and its path; the kind may be singular or plural.
fn parse(what: &str) -> Result<(Kind, Option<&str>), Failure> {
    let (kind, path) = match what.split_once('/') {
        Some((kind, path)) => (kind, Some(path)),
        None => (what, None),
    };
    match Kind::meant_by(kind) {
        Some(kind) => Ok((kind, path)),
        None => {
            let kinds: Vec<&str> = Kind::ALL.iter().map(|kind| kind.plural()).collect();
            Err(Failure::usage(format!("`{kind}` is not a kind of resource"))
                .hint(format!("kinds are {}", kinds.join(", "))))
        }
    }
}

fn not_found(kind: Kind, path: &str, of_kind: &[&Resource]) -> Failure {
    let known: Vec<String> = of_kind.iter().map(|resource| resource.key.path()).collect();
    let failure = Failure::new(format!("there is no {} {path}", kind.noun()));
    match known.as_slice() {
        [] => failure.hint(format!("the tree has no {}", kind.noun())),
        _ => failure.hint(format!("there are: {}", known.join(", "))),
    }
}

fn record(look: &Look, resource: &Resource) -> Value {
    let key = &resource.key;
    let outputs = Outputs {
        manifests: look.manifests_of(key),
        cluster: look.round.applied_cluster(key),
        loadbalancer_dns: look.round.loadbalancer_dns(key),
        new_version: look.round.newer.get(key).copied(),
    };
    interface::record(resource, &look.round.standing(key), &look.round.checked.recorded, &outputs)
}

fn print_all(
    look: &Look,
    resources: &[&Resource],
    format: Format,
    console: &mut Console,
) -> Result<(), Failure> {
    let records: Vec<Value> = resources.iter().map(|resource| record(look, resource)).collect();
    match format.data(&records)? {
        Some(text) => console.print(&text),
        None => console.print(&table(look, resources)),
    }
}

/// A line for each resource: its name and, where it has one, its status.
fn table(look: &Look, resources: &[&Resource]) -> String {
    let width = resources.iter().map(|resource| resource.key.path().len()).max().unwrap_or(0);
    let line = |resource: &&Resource| match resource.key.kind {
        Kind::Fleet | Kind::Cluster => {
            format!("{:width$}  {}\n", resource.key.path(), look.round.standing(&resource.key).status)
        }
        _ => format!("{}\n", resource.key.path()),
    };
    resources.iter().map(line).collect()
}
