//! `streamfleet get`: prints the records of resources.

use camino::Utf8Path;
use clap::Args;
use serde_json::Value;

use crate::api::route;
use crate::cli::console::Console;
use crate::cli::daemon_client::{DaemonRequest, RunningDaemon};
use crate::cli::exit;
use crate::cli::failure::Failure;
use crate::cli::format::{self, OutputFormat};
use crate::cli::round::{self, StateAccess};
use crate::cli::settings::{Settings, TreeArgs};
use crate::http::problem::code;
use crate::http::query::encoded;
use crate::names::{Kind, ResourceKey};
use crate::views::records::{self, ResourceView};

/// Print resources with every field of their records.
#[derive(Debug, Args)]
pub struct Get {
    /// The resources to print: `clusters` for all, `cluster/acme/orders` for one. Kinds are organizations,
    /// base-domains, identity-providers, cloud-accounts, fleets, clusters, topics and users. A topic is
    /// `topic/acme/orders/payments`: organization, cluster, name.
    #[arg(value_name = "KIND[/ORGANIZATION/NAME]")]
    what: String,
    #[command(flatten)]
    tree: TreeArgs,
    /// Print a table, JSON or YAML.
    #[arg(long, value_enum, default_value_t = OutputFormat::Human)]
    format: OutputFormat,
}

pub fn run(verb: &Get, console: &mut Console) -> Result<u8, Failure> {
    let (kind, path) = parse(&verb.what)?;
    let settings = Settings::settle(&verb.tree)?;
    let mut found: Vec<ResourceView> = match RunningDaemon::of(&settings)? {
        Some(mut daemon) => match path {
            Some(path) => vec![one(&mut daemon, kind, path, console)?],
            None => all(&mut daemon, kind, console)?,
        },
        None => {
            let look = round::plan_tree(settings.clone(), StateAccess::ReadOnly, round::time(None), console)?;
            records::of_kind(&look.round, kind, path)?
        }
    };
    found.iter_mut().for_each(|found| shorten(&mut found.record, &settings));
    let text = match (path, found.as_slice()) {
        (Some(_), [one]) => match verb.format.data(&one.record)? {
            Some(text) => text,
            None => format::harmless_yaml(&one.record),
        },
        _ => match verb.format.data(&found.iter().map(|found| &found.record).collect::<Vec<_>>())? {
            Some(text) => text,
            None => table(&found),
        },
    };
    console.print(&text)?;
    Ok(exit::OK)
}

/// Asks for all resources of a kind.
fn all(daemon: &mut RunningDaemon, kind: Kind, console: &mut Console) -> Result<Vec<ResourceView>, Failure> {
    let path = route::list_path(kind);
    let organizations = match kind {
        Kind::Organization | Kind::Cluster => vec![String::new()],
        _ => all(daemon, Kind::Organization, console)?.into_iter().map(|found| found.path).collect(),
    };
    let mut views = Vec::new();
    for organization in organizations {
        let path = path.replace("{organization}", &encoded(&organization));
        let records: Vec<Value> = daemon.list(&path, console)?;
        views.extend(records.into_iter().map(|record| view(kind, record)));
    }
    Ok(views)
}

/// Asks for the resource with a path, and names those that there are if there is none.
fn one(
    daemon: &mut RunningDaemon,
    kind: Kind,
    path: &str,
    console: &mut Console,
) -> Result<ResourceView, Failure> {
    if let Some(key) = ResourceKey::at(kind, path) {
        let (organization, name) = (encoded(key.organization.as_str()), encoded(&key.name));
        let below = route::list_path(kind).replace("{organization}", &organization);
        // The path of a cluster has no organization.
        let within = (kind == Kind::Cluster).then_some(&key.organization);
        let request = DaemonRequest::get(format!("{below}/{name}")).with("organization", within);
        match daemon.ask(request, console) {
            Ok(record) => return Ok(view(kind, record)),
            Err(error) if error.is(&code::NOT_FOUND) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let known = all(daemon, kind, console)?;
    let known: Vec<String> = known.into_iter().map(|found| found.path).collect();
    Err(records::not_found(kind, path, &known).into())
}

fn view(kind: Kind, record: Value) -> ResourceView {
    let text = |field: &str| record[field].as_str().unwrap_or_default();
    let path = match kind {
        Kind::Organization => text("identifier").to_owned(),
        Kind::BaseDomain => format!("{}/{}", text("organization"), text("domain")),
        kind if kind.is_on_cluster() => {
            format!("{}/{}/{}", text("organization"), text("cluster"), text(kind.name_field()))
        }
        _ => format!("{}/{}", text("organization"), text("identifier")),
    };
    let status = serde_json::from_value(record["status"].clone()).ok();
    ResourceView { path, status, record }
}

/// Splits `cluster/acme/orders` into kind and path. The kind may be singular or plural.
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
                .hint(format!("the kinds are {}", kinds.join(", "))))
        }
    }
}

/// Shortens the path of the manifests to the tree as the user named it.
fn shorten(record: &mut Value, settings: &Settings) {
    if let Some(Value::String(path)) = record.get_mut("storage_manifests_file_path") {
        *path = settings.shorten(Utf8Path::new(path));
    }
}

/// A line for each resource: its name, then its status if it has one.
fn table(found: &[ResourceView]) -> String {
    let width = found.iter().map(|found| found.path.len()).max().unwrap_or(0);
    let line = |ResourceView { path, status, .. }: &ResourceView| match status {
        Some(status) => format!("{path:width$}  {status}\n"),
        None => format!("{path}\n"),
    };
    found.iter().map(line).collect()
}
