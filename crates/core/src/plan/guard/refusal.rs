//! Refused changes as problems with their position in the spec and a hint.

use crate::names::{Kind, ResourceKey};
use crate::plan::compare::field_effects::effect_of;
use crate::plan::compare::verdict::RefusedChange;
use crate::plan::world::PlanContext;
use crate::plan::{Cause, Change, FieldChange, Verdict};
use crate::problem::{Location, Problem};
use crate::spec::Spec;

/// The hint if the spec is unchanged and somebody changed the target.
pub const UNDO_BY_HAND: &str =
    "the target was changed by hand: change it back there, or set the same in the spec";

/// The hint if the installation's settings cause the change.
const UNDO_SETTINGS: &str = "the settings of the installation changed the size of a Kafka unit, and existing clusters \
                             can't follow: restore `units`";

pub(in crate::plan) fn problem(world: &PlanContext, change: &Change, refusal: &RefusedChange) -> Problem {
    let key = &change.resource;
    let fields = world.current(key).map(|current| current.fields.as_slice()).unwrap_or_default();
    let hint = match change.cause {
        Cause::Drift { .. } => UNDO_BY_HAND,
        Cause::Settings => UNDO_SETTINGS,
        _ => refusal.hint,
    };
    let message = format!("{key} can't be changed this way: {}", refusal.why);
    let is_spec = !matches!(change.cause, Cause::Drift { .. } | Cause::Settings);
    if let Some(inherited) = inherited(world, change).filter(|_| is_spec && refusal.code == "storage-changed")
    {
        let problem = Problem::error(refusal.code, message).hint(inherited.hint(key));
        let named = world.catalog.resources.get(&inherited.fleet);
        let location = named.and_then(|fleet| fleet.fields.get("/advanced_config/storage_class"));
        return match location {
            Some(location) => problem.at(location, "refused"),
            None => problem,
        };
    }
    let problem = Problem::error(refusal.code, message).hint(hint);
    let resource = world.catalog.resources.get(key);
    let suspects = suspects(key.kind, fields, refusal);
    let location =
        resource.map(|resource| match suspects.iter().find_map(|field| locate(world, key, field)) {
            Some(location) => location,
            None => {
                let document = resource.fields.get("");
                document.unwrap_or_else(|| Location::file(resource.origin.path.clone()))
            }
        });
    match location {
        Some(location) => problem.at(location, "refused"),
        None => problem,
    }
}

/// Returns the changed fields that a refusal is about; those that its hint names come first. All changed fields
/// if no change of them alone would be refused.
fn suspects<'a>(kind: Kind, fields: &'a [FieldChange], refusal: &RefusedChange) -> Vec<&'a FieldChange> {
    let is_refused = |field: &&FieldChange| {
        let verdict = effect_of(kind, field).map(|row| row.verdict);
        matches!(verdict, Some(Verdict::Refused | Verdict::BrokerRemoval))
    };
    let mut refused: Vec<&FieldChange> = fields.iter().filter(is_refused).collect();
    if refused.is_empty() {
        return fields.iter().collect();
    }
    refused.sort_by_key(|field| !refusal.hint.contains(&format!("`{}`", field.field)));
    refused
}

/// The class of a cluster's disks that comes from its fleet.
struct Inherited {
    fleet: ResourceKey,
    /// The class of the existing disks; `None` if it is the default of their Kubernetes cluster.
    class: Option<String>,
}

/// Returns the present class if the disks of a cluster that names no class would get another one. It is read
/// from the existing pools, since the fleet's spec at their creation may be forgotten.
fn inherited(world: &PlanContext, change: &Change) -> Option<Inherited> {
    let Spec::Cluster(cluster) = &world.catalog.resources.get(&change.resource)?.spec else { return None };
    if cluster.advanced_config.storage.class.is_some() {
        return None;
    }
    let class = change.steps.iter().find_map(|step| {
        let both = step.before.as_ref().zip(step.after.as_ref());
        both.and_then(|(was, is)| (is.facts().former_disk_class)(was, &is.body))
    })?;
    let fleet = ResourceKey::new(Kind::Fleet, &change.resource.organization, cluster.infrastructure.as_str());
    Some(Inherited { fleet, class })
}

impl Inherited {
    fn hint(&self, cluster: &ResourceKey) -> String {
        let Self { fleet, class } = self;
        let (has, put_back) = match class {
            Some(class) => (format!("class `{class}`"), format!("restore `{class}` in")),
            None => ("the Kubernetes cluster's default class".to_owned(), "remove".to_owned()),
        };
        format!(
            "{cluster} has no class of its own, and its disks have {has}: {put_back} `advanced_config.storage_class` \
             of {fleet}, and set another class in new clusters"
        )
    }
}

/// Returns the position of a changed field; `None` if the document leaves it out.
pub(in crate::plan) fn locate(
    world: &PlanContext,
    key: &ResourceKey,
    field: &FieldChange,
) -> Option<Location> {
    // The names of options contain dots.
    let option = |prefix: &str| Some((prefix.replace('.', "/"), field.field.strip_prefix(prefix)?));
    let pointer = match option("advanced_config.config.").or_else(|| option("config.")) {
        Some((around, option)) => format!("/{around}{option}"),
        None => format!("/{}", field.field.replace('.', "/")),
    };
    world.catalog.resources.get(key)?.fields.get(&pointer)
}
