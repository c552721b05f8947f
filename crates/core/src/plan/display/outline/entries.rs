//! The changes of a plan one by one, those first that a person has to read before the others.

use std::fmt;
use std::str::FromStr;

use super::super::parts::has_news;
use super::{OutlineSection, OutlineText, approval, section};
use crate::names::{Identifier, Kind, ResourceKey};
use crate::plan::{Change, FleetPlan, OrganizationPlan, Plan, Verb, Verdict};

/// A fleet or an organization of a plan.
#[derive(Clone, Copy)]
pub enum PlanPart<'p> {
    Organization(&'p OrganizationPlan),
    Fleet(&'p FleetPlan),
}

/// A change of a plan, or a part without changes that has news.
#[derive(Clone)]
pub struct PlanEntry<'p> {
    pub place: EntryPlace,
    pub part: PlanPart<'p>,
    pub change: Option<&'p Change>,
}

/// The place of an entry among all of a plan. It stays valid while others come and go.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct EntryPlace {
    /// The gravest have the lowest.
    gravity: u8,
    part: String,
    /// The fleet itself comes before its clusters.
    resource: (u8, String),
    /// Among the changes of the part: a resource may have a change that waits, and a repair.
    index: usize,
}

impl<'p> PlanPart<'p> {
    pub fn changes(self) -> &'p [Change] {
        match self {
            PlanPart::Organization(of) => &of.changes,
            PlanPart::Fleet(of) => &of.changes,
        }
    }

    pub fn organization(self) -> &'p Identifier {
        match self {
            PlanPart::Organization(of) => &of.organization,
            PlanPart::Fleet(of) => &of.fleet.organization,
        }
    }

    /// The identifier of a fleet.
    pub fn fleet(self) -> Option<&'p str> {
        match self {
            PlanPart::Organization(_) => None,
            PlanPart::Fleet(of) => Some(of.fleet.fleet.as_str()),
        }
    }

    fn name(self) -> String {
        match self {
            PlanPart::Organization(of) => of.organization.to_string(),
            PlanPart::Fleet(of) => of.fleet.to_string(),
        }
    }

    fn is_same(self, other: PlanPart<'_>) -> bool {
        (self.organization(), self.fleet()) == (other.organization(), other.fleet())
    }
}

impl PlanEntry<'_> {
    pub fn resource(&self) -> Option<&ResourceKey> {
        self.change.map(|change| &change.resource)
    }

    pub fn waits_for_approval(&self) -> bool {
        self.change.is_some_and(|change| approval(change).is_some())
    }
}

/// Organizations with changes, then fleets with changes or news.
pub(super) fn parts(plan: &Plan) -> impl Iterator<Item = PlanPart<'_>> {
    let organizations = plan.organizations.iter().filter(|of| !of.changes.is_empty());
    let fleets = plan.fleets.iter().filter(|of| has_news(of));
    organizations.map(PlanPart::Organization).chain(fleets.map(PlanPart::Fleet))
}

/// The changes of a plan: those that wait for an approval, those that destroy something, those that wait otherwise, and
/// then the rest, the gravest first.
pub fn entries(plan: &Plan) -> Vec<PlanEntry<'_>> {
    let mut entries: Vec<PlanEntry<'_>> = parts(plan).flat_map(of_part).collect();
    entries.sort_by(|one, other| one.place.cmp(&other.place));
    entries
}

fn of_part(part: PlanPart<'_>) -> impl Iterator<Item = PlanEntry<'_>> {
    let entry = move |index: usize, change: Option<&'_ Change>| EntryPlace {
        gravity: change.map_or(TROUBLE, gravity),
        part: part.name(),
        index,
        resource: change.map(|change| resource(&change.resource)).unwrap_or_default(),
    };
    let changes = part.changes();
    let of_changes = changes.iter().enumerate().map(|(index, change)| (index, Some(change)));
    let alone = changes.is_empty().then_some((0, None));
    let all = of_changes.chain(alone);
    all.map(move |(index, change)| PlanEntry { place: entry(index, change), part, change })
}

fn resource(key: &ResourceKey) -> (u8, String) {
    let rank = match key.kind {
        Kind::Cluster => 1,
        Kind::Topic | Kind::User => 2,
        _ => 0,
    };
    (rank, key.to_string())
}

/// The gravity of a part that has news and no changes.
const TROUBLE: u8 = 3;

fn gravity(change: &Change) -> u8 {
    match (change.verb, change.verdict) {
        _ if approval(change).is_some() => 0,
        (Verb::Delete | Verb::Recreate, _) | (_, Verdict::ServiceLoss | Verdict::DataLoss) => 1,
        _ if !change.waiting.is_empty() => 2,
        (Verb::Create, _) => 6,
        (_, Verdict::RollingRestart | Verdict::BrokerRemoval | Verdict::ClientsReconnect) => 4,
        _ => 5,
    }
}

/// What a plan says of some of its entries, below the parts that these belong to. `tree` is what commands in the text name.
pub fn sections(plan: &Plan, entries: &[PlanEntry<'_>], tree: &str) -> Vec<OutlineSection> {
    let text = OutlineText { plan, tree, objects: true };
    let mut of_parts: Vec<(PlanPart<'_>, Vec<&Change>)> = Vec::new();
    for entry in entries {
        let known = of_parts.iter_mut().find(|(part, _)| part.is_same(entry.part));
        match known {
            Some((_, changes)) => changes.extend(entry.change),
            None => of_parts.push((entry.part, entry.change.into_iter().collect())),
        }
    }
    of_parts.into_iter().map(|(part, changes)| section(part, changes, text)).collect()
}

impl fmt::Display for EntryPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let EntryPlace { gravity, part, resource: (rank, resource), index } = self;
        write!(f, "{gravity} {part} {index} {rank} {resource}")
    }
}

/// A text that is no place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoPlace;

impl FromStr for EntryPlace {
    type Err = NoPlace;
    fn from_str(text: &str) -> Result<EntryPlace, NoPlace> {
        let mut parts = text.splitn(5, ' ');
        let mut next = || parts.next().ok_or(NoPlace);
        let gravity = next()?.parse().map_err(|_| NoPlace)?;
        let part = next()?.to_owned();
        let index = next()?.parse().map_err(|_| NoPlace)?;
        let rank = next()?.parse().map_err(|_| NoPlace)?;
        Ok(EntryPlace { gravity, part, resource: (rank, next()?.to_owned()), index })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_read_as_it_is_written() {
        for resource in ["", "cluster acme/orders"] {
            let resource = (1, resource.to_owned());
            let place = EntryPlace { gravity: 2, part: "acme/eu".to_owned(), resource, index: 7 };
            assert_eq!(place.to_string().parse(), Ok(place));
        }
        for none in ["", "1", "1 acme/eu", "1 acme/eu 2 1", "x acme/eu 2 1 cluster acme/orders"] {
            assert_eq!(none.parse::<EntryPlace>(), Err(NoPlace), "{none}");
        }
    }
}
