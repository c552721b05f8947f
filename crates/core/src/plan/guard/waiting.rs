//! The waits that don't depend on a guard, a pause or another change's turn.

use std::collections::BTreeSet;

use crate::catalog::{Hold, ResolvedSecret, Resource};
use crate::names::{FleetKey, Kind, ResourceKey, SecretRef};
use crate::plan::world::PlanContext;
use crate::plan::{Change, Reach, Step, Verb, Waiting};
use crate::render::SecretSlot;

/// Returns a wait for each secret that the steps would write and that can't be opened here.
pub(in crate::plan) fn for_secrets(world: &PlanContext, steps: &[Step]) -> Vec<Waiting> {
    let manifests = steps.iter().filter_map(|step| step.after.as_ref());
    let slots = manifests.flat_map(|manifest| SecretSlot::all_in(&manifest.body));
    let needed: BTreeSet<SecretRef> = slots.map(|slot| slot.reference).collect();
    let missing = |reference: &SecretRef| {
        let resource = world.catalog.resources.get(&reference.resource)?;
        resource.secrets.get(&reference.field)?.unavailable.clone()
    };
    needed.iter().filter_map(|reference| Some(unavailable(reference, &missing(reference)?))).collect()
}

/// Returns a wait for each own secret of the resource that is entirely unknown here. Applying without it
/// would record it as applied, and a later change of it would go unnoticed.
pub(in crate::plan) fn for_own_secrets(resource: &Resource) -> Vec<Waiting> {
    let unknown =
        |secret: &&ResolvedSecret| secret.mark.fingerprint.is_none() && secret.mark.sealed.is_none();
    let unknown = resource.secrets.values().filter(unknown);
    unknown.filter_map(|it| Some(unavailable(&it.reference, it.unavailable.as_ref()?))).collect()
}

fn unavailable(secret: &SecretRef, reason: &str) -> Waiting {
    let secret = format!("`{}` of {}", secret.field, secret.resource);
    Waiting::SecretUnavailable { secret, reason: reason.to_owned() }
}

/// Makes all changes wait if the target can't be reached.
pub(in crate::plan) fn for_target(reach: &Reach, changes: &mut [Change]) {
    for change in changes.iter_mut().filter(|change| change.verb != Verb::Keep) {
        change.waiting.extend(reach.waiting());
    }
}

/// Makes new topics and users wait while the creation of their cluster waits, which makes their namespace.
pub(in crate::plan) fn for_clusters(changes: &mut [Change]) {
    let waits = |change: &&Change| {
        change.resource.kind == Kind::Cluster && change.verb == Verb::Create && !change.waiting.is_empty()
    };
    let awaited: BTreeSet<ResourceKey> =
        changes.iter().filter(waits).map(|change| change.resource.clone()).collect();
    for change in changes.iter_mut().filter(|change| change.is_ready()) {
        let cluster = change.resource.within_cluster().map(|(cluster, _)| cluster);
        if let Some(on) = cluster.filter(|cluster| awaited.contains(cluster)) {
            change.waiting.push(Waiting::Held(Hold::Dependency { on }));
        }
    }
}

/// Makes all changes on a fleet wait while its own creation waits, which records its Kubernetes cluster.
pub(in crate::plan) fn for_fleet(fleet: &FleetKey, changes: &mut [Change]) {
    let on = fleet.resource();
    let waits =
        |change: &Change| change.resource == on && change.verb == Verb::Create && !change.waiting.is_empty();
    if !changes.iter().any(waits) {
        return;
    }
    let others = changes.iter_mut().filter(|change| change.is_ready());
    others.for_each(|change| change.waiting.push(Waiting::Held(Hold::Dependency { on: on.clone() })));
}
