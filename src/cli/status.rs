//! `streamfleet status`: how is everything?

use std::collections::{BTreeMap, BTreeSet};

use clap::Args;
use serde::Serialize;

use crate::catalog::{Gauge, Status as Word};
use crate::cli::console::Console;
use crate::cli::exit;
use crate::cli::failure::Failure;
use crate::cli::format::Format;
use crate::cli::round::{self, Access, Look};
use crate::cli::settings::{Settings, TreeArgs};
use crate::interface::{self, Standing};
use crate::names::{FleetKey, Kind, ResourceKey};
use crate::spec::Spec;

/// Show how every fleet and cluster stands, and what an interrupted apply left.
#[derive(Debug, Args)]
pub struct Status {
    #[command(flatten)]
    tree: TreeArgs,
    /// Print a table, JSON or YAML.
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
}

/// One fleet or cluster.
#[derive(Debug, Serialize)]
struct Line {
    resource: ResourceKey,
    status: Word,
    reason: Option<String>,
    since: Option<String>,
    kafka_units: Option<Gauge>,
    clusters: Option<Gauge>,
}

/// Runs the verb.
pub fn run(verb: &Status, console: &mut Console) -> Result<u8, Failure> {
    let settings = Settings::settle(&verb.tree)?;
    let look = round::look(settings, Access::ReadOnly, round::time(None), console)?;
    let lines = lines(&look);
    match verb.format.data(&lines)? {
        Some(text) => console.print(&text)?,
        None => console.print(&table(&lines, &look)?)?,
    }
    Ok(exit::OK)
}

/// Fleets in order, each followed by its clusters: those of the tree, and those that are there still.
fn lines(look: &Look) -> Vec<Line> {
    let catalog = &look.round.checked.catalog;
    let mut clusters = clusters(look);
    let mut lines = Vec::new();
    let planned = look.round.plan.fleets.iter().map(|plan| &plan.fleet);
    let fleets: BTreeSet<&FleetKey> = catalog.fleets.keys().chain(planned).collect();
    for key in fleets {
        let (units, of_clusters) =
            catalog.fleets.get(key).map(|fleet| (fleet.kafka_units, fleet.clusters)).unwrap_or_default();
        lines.push(line(look, key.resource(), Some(units), Some(of_clusters)));
        let clusters = clusters.remove(key).unwrap_or_default();
        lines.extend(clusters.into_iter().map(|cluster| line(look, cluster, None, None)));
    }
    lines
}

fn clusters(look: &Look) -> BTreeMap<FleetKey, BTreeSet<ResourceKey>> {
    let mut clusters: BTreeMap<FleetKey, BTreeSet<ResourceKey>> = BTreeMap::new();
    for resource in look.round.checked.catalog.resources.values() {
        if let Spec::Cluster(cluster) = &resource.spec {
            let fleet = FleetKey {
                organization: cluster.organization.clone(),
                fleet: cluster.infrastructure.clone(),
            };
            clusters.entry(fleet).or_default().insert(resource.key.clone());
        }
    }
    for plan in &look.round.plan.fleets {
        let changed = plan.changes.iter().map(|change| &change.resource);
        let changed = changed.filter(|resource| resource.kind == Kind::Cluster).cloned();
        clusters.entry(plan.fleet.clone()).or_default().extend(changed);
    }
    clusters
}

fn line(look: &Look, resource: ResourceKey, kafka_units: Option<Gauge>, clusters: Option<Gauge>) -> Line {
    let Standing { status, reason, since, .. } = look.round.standing(&resource);
    Line { resource, status, reason, since: since.map(interface::timestamp), kafka_units, clusters }
}

fn table(lines: &[Line], look: &Look) -> Result<String, Failure> {
    if lines.is_empty() {
        return Ok(format!("No fleet in {}.\n", look.settings.shown()));
    }
    let name = |line: &Line| {
        let indent = if line.kafka_units.is_some() { "" } else { "  " };
        format!("{indent}{}", line.resource)
    };
    let width = lines.iter().map(|line| name(line).chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for line in lines {
        let use_of = line
            .kafka_units
            .zip(line.clusters)
            .map(|(units, clusters)| format!("units {}, clusters {}", used(units), used(clusters)));
        let detail = line.reason.clone().or(use_of).unwrap_or_default();
        let row = format!("{:width$}  {:12}  {detail}", name(line), line.status.to_string());
        text.push_str(row.trim_end());
        text.push('\n');
    }
    if let Some(state) = &look.installation.state {
        let unfinished = state
            .journal_unfinished()
            .map_err(|error| Failure::of_state("could not read the journal", &error))?;
        for entry in unfinished {
            text.push_str(&format!(
                "An apply was interrupted on fleet {}: {}. The next one finishes it.\n",
                entry.fleet, entry.description
            ));
        }
    } else {
        text.push_str("Nothing was applied yet.\n");
    }
    Ok(text)
}

fn used(gauge: Gauge) -> String {
    match gauge.limit {
        Some(limit) => format!("{} of {limit}", gauge.before),
        None => gauge.before.to_string(),
    }
}
