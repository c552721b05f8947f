use crate::catalog::MadeFrom;
use crate::component::{self, dns_records};
use crate::names::{Digest, Kind, ResourceKey};
use crate::plan::Cause;
use crate::plan::compare::diff::ObjectDiff;
use crate::plan::world::PlanContext;
use crate::spec::Spec;

/// Returns why a resource changes.
///
/// A changed spec explains everything. Without one, a difference that only the target has is drift. If the
/// rendered manifest differs, one of its inputs changed.
pub(in crate::plan) fn change_cause(world: &PlanContext, key: &ResourceKey, found: &[ObjectDiff]) -> Cause {
    let edited = world.current(key).is_some_and(|current| !current.fields.is_empty());
    if edited || !world.is_made(key) || found.is_empty() {
        return Cause::Spec;
    }
    if found.iter().all(|found| found.drift.is_some()) {
        let by = found.iter().filter_map(|found| found.drift.as_ref()).find_map(|drift| drift.by.clone());
        return Cause::Drift { by };
    }
    let changed = |to: &ResourceKey| world.current(to).is_some_and(|current| !current.fields.is_empty());
    match references(world, key).into_iter().find(changed) {
        Some(to) => Cause::Reference { to },
        None if found.iter().all(|it| dns_records::is_record(&it.step.object)) => Cause::Addresses,
        None => unfinished_cause(world, key, found),
    }
}

/// Finds an input that changed in an earlier round that didn't finish: it was killed, it failed, or the
/// change had to wait. A difference that a new version of Streamfleet makes, or that nothing known explains,
/// is attributed to the software: such a change needs approval before it disrupts anything.
fn unfinished_cause(world: &PlanContext, key: &ResourceKey, found: &[ObjectDiff]) -> Cause {
    let software = Cause::Software { version: world.policy.software.clone() };
    let before = world.recorded(key).and_then(|record| record.cached.made_from.as_ref());
    let now = made_from(world, key);
    let (Some(before), Some(now)) = (before, now) else {
        // The inputs aren't remembered, as after a restore, and none of the objects exists any more.
        let all_gone = found.iter().all(|found| !found.there);
        return if all_gone { Cause::Drift { by: None } } else { software };
    };
    if before.software != now.software {
        return software;
    }
    let mut rendered = found.iter().filter(|found| found.drift.is_none());
    let of_clusters = rendered.all(|found| component::follows_clusters(&found.step.object));
    let changed = |to: &ResourceKey| before.references.get(to) != now.references.get(to);
    let mut topics =
        before.references.keys().chain(now.references.keys()).filter(|to| to.kind == Kind::Topic);
    let topic = || topics.find(|to| changed(to)).cloned();
    match references(world, key).into_iter().find(changed).or_else(topic) {
        Some(to) => Cause::Reference { to },
        None if before.settings != now.settings => Cause::Settings,
        None if of_clusters => Cause::Clusters,
        None => software,
    }
}

/// Returns what the objects of a resource are made from now, beside its own spec; `None` for resources without
/// objects.
pub(in crate::plan) fn made_from(world: &PlanContext, key: &ResourceKey) -> Option<MadeFrom> {
    if !key.kind.is_on_fleet() {
        return None;
    }
    let references = references(world, key).into_iter();
    let known = references.filter_map(|key| Some((world.origin(&key)?.clone(), key)));
    Some(MadeFrom {
        software: world.policy.software.clone(),
        settings: world.settings.clone(),
        references: known.map(|(digest, key)| (key, digest)).chain(first_topic(world, key)).collect(),
    })
}

/// Returns the first topic of a cluster. The cluster runs a topic operator as long as there is one.
fn first_topic(world: &PlanContext, key: &ResourceKey) -> Option<(ResourceKey, Digest)> {
    if key.kind != Kind::Cluster || !world.catalog.clusters.get(key)?.has_topics {
        return None;
    }
    let topic = world.first_topic(key)?;
    Some((topic.clone(), Digest::of("topic operator")))
}

/// Returns the resources that a resource refers to, directly or through its fleet, without its organization.
pub(in crate::plan) fn references(world: &PlanContext, key: &ResourceKey) -> Vec<ResourceKey> {
    let Some(spec) = world.spec(key) else {
        return Vec::new();
    };
    let mut all = direct_references(world, key, spec);
    let further: Vec<ResourceKey> = all
        .iter()
        .filter(|key| key.kind == Kind::Fleet)
        .filter_map(|fleet| Some(direct_references(world, fleet, world.spec(fleet)?)))
        .flatten()
        .collect();
    all.extend(further);
    all
}

pub(in crate::plan) fn direct_references(
    world: &PlanContext,
    key: &ResourceKey,
    spec: &Spec,
) -> Vec<ResourceKey> {
    let at = |kind, name: &str| ResourceKey::new(kind, &key.organization, name);
    match spec {
        Spec::Cluster(cluster) => {
            let advanced = &cluster.advanced_config;
            let provider = advanced.oauth.iter().map(|name| at(Kind::IdentityProvider, name.as_str()));
            let account = advanced.tiered_storage_provider.iter();
            let account = account.map(|provider| at(Kind::CloudAccount, provider.cloud_account.as_str()));
            let fleet = at(Kind::Fleet, cluster.infrastructure.as_str());
            provider.chain(account).chain([fleet]).collect()
        }
        Spec::Fleet(fleet) => {
            fleet.domain.iter().map(|domain| domain_key(world, key, domain.as_str())).collect()
        }
        Spec::BaseDomain(domain) => {
            domain.cloud_account.iter().map(|name| at(Kind::CloudAccount, name.as_str())).collect()
        }
        Spec::Topic(topic) => vec![at(Kind::Cluster, topic.cluster.as_str())],
        Spec::User(user) => vec![at(Kind::Cluster, user.cluster.as_str())],
        Spec::Organization(_) | Spec::IdentityProvider(_) | Spec::CloudAccount(_) => Vec::new(),
    }
}

/// Returns the base domain that a fleet names by its submitted or its derived name.
fn domain_key(world: &PlanContext, fleet: &ResourceKey, domain: &str) -> ResourceKey {
    let known = |key: &ResourceKey| {
        world.catalog.resources.contains_key(key) || world.recorded.resources.contains_key(key)
    };
    let submitted = ResourceKey::new(Kind::BaseDomain, &fleet.organization, domain);
    let derived =
        ResourceKey::new(Kind::BaseDomain, &fleet.organization, format!("{}.{domain}", fleet.organization));
    if !known(&submitted) && known(&derived) { derived } else { submitted }
}
