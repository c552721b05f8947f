//! Which targets there are: those of the tree's fleets, and those of recorded fleets that may have to go.

use camino::Utf8Path;

use super::Checked;
use crate::catalog::RecordedResource;
use crate::names::{FleetKey, Kind, ResourceKey};
use crate::spec::{InfraType, Spec};
use crate::target::Targets;

/// The targets of a tree and of what was applied before it.
pub(super) fn of(output_dir: &Utf8Path, checked: &Checked) -> Targets {
    let recorded = checked.recorded.resources.iter().filter_map(recorded_directory);
    let planned = checked.catalog.fleets.values().map(|fleet| &fleet.spec);
    let planned = planned.filter(|fleet| fleet.infra_type == InfraType::Directory).map(|fleet| {
        let key = FleetKey { organization: fleet.organization.clone(), fleet: fleet.identifier.clone() };
        (key, fleet.advanced_config.path.clone())
    });
    Targets::for_fleets(output_dir, checked.recorded.installation, recorded.chain(planned))
}

/// A recorded fleet that is a folder, with its path where that is known. Its kind can't change, so that it outlives a lost
/// cache; its path doesn't, and what the folder holds is found without it.
fn recorded_directory(
    (key, record): (&ResourceKey, &RecordedResource),
) -> Option<(FleetKey, Option<String>)> {
    let last_good = record.last_good.as_ref();
    let applied = match last_good.and_then(|good| Spec::from_record(key.kind, &good.spec).ok()) {
        Some(Spec::Fleet(fleet)) => Some(fleet),
        _ => None,
    };
    let kind = || serde_json::from_value(record.immutable.get("/infra_type")?.clone()).ok();
    let infra_type: Option<InfraType> = applied.as_ref().map(|fleet| fleet.infra_type).or_else(kind);
    if key.kind != Kind::Fleet || infra_type != Some(InfraType::Directory) {
        return None;
    }
    let fleet = FleetKey { organization: key.organization.clone(), fleet: key.name.parse().ok()? };
    Some((fleet, applied.and_then(|fleet| fleet.advanced_config.path)))
}
