//! Sizes of clusters by the requests of all their pods, which nodes have to satisfy.

use std::collections::{BTreeMap, BTreeSet};

use crate::component;
use crate::component::Size;
use crate::config::{Amount, PriceTable};
use crate::names::{Json, Kind, ObjectKey, ResourceKey};
use crate::plan::cost::{CostChange, a_month};
use crate::plan::model::site::FleetInputs;
use crate::plan::model::{AddressChange, SizeChange, Sizes};
use crate::plan::preflight::PreflightFacts;
use crate::plan::{Change, Step, Verb, Waiting};

pub(super) fn of(
    site: &FleetInputs,
    changes: &[Change],
    facts: Option<&PreflightFacts>,
    prices: Option<&PriceTable>,
) -> Option<Sizes> {
    let size =
        |step: &Step, body: Option<&Json>| body.map(|body| (component::facts(&step.object.kind).size)(body));
    let of_clusters = changes.iter().filter(|it| it.resource.kind == Kind::Cluster);
    let (deletions, others): (Vec<_>, Vec<_>) = of_clusters.partition(|it| it.verb == Verb::Delete);
    // Nothing is deleted while a deletion waits. Of a waiting change and its repair, only the change counts.
    let (going, staying): (Vec<_>, Vec<_>) = deletions.into_iter().partition(|it| it.waiting.is_empty());
    let mut counted = BTreeSet::new();
    let once = going.iter().chain(&others).copied().filter(|change| counted.insert(&change.resource));
    // Load balancers are shown by their cost alone.
    let is_resized = |before: Size, after: Size| {
        before.of_pods() != after.of_pods() || prices.is_some() && before != after
    };
    let mut known = KnownSizes::new();
    let resized = once.filter_map(|change| {
        let steps = || change.steps.iter();
        let (hidden_before, hidden_after) = of_hidden(site, change);
        let before = steps().filter_map(|step| size(step, step.before.as_ref())).sum::<Size>();
        let before = before.plus(hidden_before);
        let after = steps().filter_map(|step| {
            let body = step.after.as_ref().map(|it| &it.body)?;
            let after = size(step, Some(body))?;
            known.insert(&step.object, (body, after));
            Some(after)
        });
        let after = after.sum::<Size>().plus(hidden_after);
        is_resized(before, after).then_some((change, SizeChange { before, after, cost: None }))
    });
    let resized: Vec<(&Change, SizeChange)> = resized.collect();
    if resized.is_empty() {
        return None;
    }
    let mut desired = by_owner(site, &known);
    // A deleted resource may still be rendered, and one that stays without a spec may not be.
    for change in staying {
        let there = || change.steps.iter().filter_map(|step| size(step, step.before.as_ref())).sum();
        desired.entry(&change.resource).or_insert_with(there);
    }
    for change in going {
        desired.remove(&change.resource);
    }
    // Objects without a step are already as they should be.
    let cluster = |(change, part): &(&Change, SizeChange)| {
        let wanted = desired.get(&change.resource).copied().unwrap_or_default();
        let before = wanted.less(part.after).plus(part.before);
        let cost = prices.map(|prices| CostChange {
            currency: prices.currency,
            before: a_month(prices, before),
            after: a_month(prices, wanted),
        });
        (change.resource.clone(), SizeChange { before, after: wanted, cost })
    };
    let all: Size = desired.values().copied().sum();
    let unchanged = SizeChange { before: all, after: all, cost: None };
    let mut fleet = resized.iter().fold(unchanged, |sum, (change, part)| {
        let back = |size: Size| size.less(part.after).plus(part.before);
        let after = if change.waiting.is_empty() { sum.after } else { back(sum.after) };
        SizeChange { before: back(sum.before), after, cost: None }
    });
    let clusters: BTreeMap<ResourceKey, SizeChange> = resized.iter().map(cluster).collect();
    fleet.cost = prices.map(|prices| {
        // Each cluster has load balancers of its own, so the cost of a sum of sizes would be another one.
        let all = desired.values().map(|size| a_month(prices, *size)).sum();
        let start = CostChange { currency: prices.currency, before: all, after: all };
        resized.iter().fold(start, |sum, (change, _)| {
            let Some(CostChange { before, after, .. }) =
                clusters.get(&change.resource).and_then(|it| it.cost)
            else {
                return sum;
            };
            let back = |all: Amount| all.plus(before).less(after);
            let after = if change.waiting.is_empty() { sum.after } else { back(sum.after) };
            CostChange { before: back(sum.before), after, ..sum }
        })
    });
    let addresses = facts.map(|_| {
        let all = desired.values().map(|size| size.addresses()).sum();
        let start = AddressChange { before: all, after: all };
        resized.iter().fold(start, |sum, (change, _)| {
            let SizeChange { before, after, .. } =
                clusters.get(&change.resource).copied().unwrap_or_default();
            let back = |all: u64| all.saturating_add(before.addresses()).saturating_sub(after.addresses());
            let after = if change.waiting.is_empty() { sum.after } else { back(sum.after) };
            AddressChange { before: back(sum.before), after }
        })
    });
    let room = facts.and_then(|facts| facts.room_beside(&site.namespaces()));
    Some(Sizes { fleet, clusters, addresses, room })
}

/// The sizes, as recorded and as wanted, of objects in whose place something else is. They have no step, though they
/// aren't as they should be.
fn of_hidden(site: &FleetInputs, change: &Change) -> (Size, Size) {
    let hidden = || {
        let waits = change.waiting.iter().filter(|_| change.verb != Verb::Delete);
        waits.filter_map(|waiting| match waiting {
            Waiting::ForeignObject { object } | Waiting::NotAFile { object, .. } => Some(object),
            _ => None,
        })
    };
    let size = |object: &ObjectKey, body: &Json| (component::facts(&object.kind).size)(body);
    let recorded = |object| site.recorded?.objects.get(object)?.manifest.as_ref();
    let wanted = |object| Some(&site.desired?.get(object)?.body);
    (
        hidden().filter_map(|object| Some(size(object, recorded(object)?))).sum(),
        hidden().filter_map(|object| Some(size(object, wanted(object)?))).sum(),
    )
}

/// The sizes of bodies, which have to be parsed for them.
type KnownSizes<'a> = BTreeMap<&'a ObjectKey, (&'a Json, Size)>;

fn by_owner<'a>(site: &FleetInputs<'a>, known: &KnownSizes) -> BTreeMap<&'a ResourceKey, Size> {
    let mut sizes: BTreeMap<&ResourceKey, Size> = BTreeMap::new();
    let objects = site.desired.into_iter().flat_map(|objects| objects.values());
    for object in objects.filter(|object| object.owner.kind == Kind::Cluster) {
        let known = known.get(&object.key).filter(|(body, _)| **body == object.body);
        let size = known.map_or_else(|| (object.facts().size)(&object.body), |(_, size)| *size);
        if size != Size::default() {
            let sum = sizes.entry(&object.owner).or_default();
            *sum = sum.plus(size);
        }
    }
    sizes
}
