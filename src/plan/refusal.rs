//! Changes that are never made, as problems with the place in the spec and the way out.

use crate::names::ResourceKey;
use crate::plan::FieldChange;
use crate::plan::verdict::Refusal;
use crate::plan::world::World;
use crate::problem::{Location, Problem};

/// The problem that a refused change of a resource is.
pub(super) fn problem(world: &World, key: &ResourceKey, refusal: &Refusal) -> Problem {
    let fields = world.current.get(key).map(|current| current.fields.as_slice()).unwrap_or_default();
    let problem = Problem::error(refusal.code, format!("{key} can't be changed so: {}", refusal.why))
        .hint(refusal.hint);
    let resource = world.catalog.resources.get(key);
    let location = resource.map(|resource| match fields.iter().find_map(|field| locate(world, key, field)) {
        Some(location) => location,
        None => {
            let document = resource.fields.get("").cloned();
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
    let pointer = format!("/{}", field.field.replace('.', "/"));
    world.catalog.resources.get(key)?.fields.get(&pointer).cloned()
}
