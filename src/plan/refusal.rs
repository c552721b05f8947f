//! Changes that are never made, as problems with the place in the spec and the way out.

use crate::names::ResourceKey;
use crate::plan::verdict::Refusal;
use crate::plan::world::World;
use crate::plan::{Cause, Change, FieldChange};
use crate::problem::{Location, Problem};

/// The way out where the spec is as it was and somebody changed the target.
pub const UNDO_BY_HAND: &str =
    "the target was changed by hand: change it back there, or make the spec say the same";

/// The way out where the installation's settings would have it otherwise.
const UNDO_SETTINGS: &str = "the settings of the installation changed what a Kafka unit is, and clusters that are there \
                             can't follow: put `units` back";

/// The problem that a refused change of a resource is.
pub(super) fn problem(world: &World, change: &Change, refusal: &Refusal) -> Problem {
    let key = &change.resource;
    let fields = world.current.get(key).map(|current| current.fields.as_slice()).unwrap_or_default();
    let hint = match change.cause {
        Cause::Drift { .. } => UNDO_BY_HAND,
        Cause::Settings => UNDO_SETTINGS,
        _ => refusal.hint,
    };
    let message = format!("{key} can't be changed so: {}", refusal.why);
    let problem = Problem::error(refusal.code, message).hint(hint);
    let resource = world.catalog.resources.get(key);
    let location = resource.map(|resource| match fields.iter().find_map(|field| locate(world, key, field)) {
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

/// Where a changed field stands; none where the document leaves it out.
pub(super) fn locate(world: &World, key: &ResourceKey, field: &FieldChange) -> Option<Location> {
    // The names of brokers' options have dots of their own.
    let pointer = match field.field.strip_prefix("advanced_config.config.") {
        Some(option) => format!("/advanced_config/config/{option}"),
        None => format!("/{}", field.field.replace('.', "/")),
    };
    world.catalog.resources.get(key)?.fields.get(&pointer)
}
