//! Decisions to wait, recorded when they are others than before.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::Round;
use crate::names::{FleetKey, ResourceKey};
use crate::plan::{Change, Verb};
use crate::state::{Event, Outcome, State};

/// What waited for what in the round before.
#[derive(Debug, Default)]
pub struct Waits(BTreeMap<ResourceKey, String>);

impl Waits {
    /// Records among the events what waits in a plan, where it is something else, or for something else, than in the one
    /// before.
    pub fn record(&mut self, round: &Round, state: &State, actor: &str, now: Timestamp) {
        let plan = &round.plan;
        let organizations = plan.organizations.iter().flat_map(|plan| &plan.changes).map(|it| (None, it));
        let fleets =
            plan.fleets.iter().flat_map(|plan| plan.changes.iter().map(|it| (Some(&plan.fleet), it)));
        let waiting = organizations.chain(fleets).filter(|(_, change)| !change.waiting.is_empty());
        let (mut waits, mut news) = (BTreeMap::new(), Vec::new());
        for (fleet, change) in waiting {
            if change.waiting.iter().any(|waiting| waiting.is_soon_over(now)) {
                waits.extend(self.0.remove_entry(&change.resource));
                continue;
            }
            let why: Vec<String> = change.waiting.iter().map(ToString::to_string).collect();
            let why = why.join("; ");
            if self.0.get(&change.resource) != Some(&why) {
                news.push(event(round, fleet, change, why.clone(), actor, now));
            }
            waits.insert(change.resource.clone(), why);
        }
        self.0 = waits;
        state.record_events(news);
    }
}

fn event(
    round: &Round,
    fleet: Option<&FleetKey>,
    change: &Change,
    why: String,
    actor: &str,
    now: Timestamp,
) -> Event {
    let what = match change.verb {
        Verb::Create => "to be created",
        Verb::Update | Verb::Recreate => "to be changed",
        Verb::Delete => "to be deleted",
        Verb::Keep => "left as it is",
    };
    Event {
        number: 0,
        at: now,
        actor: actor.to_owned(),
        commit: round.plan.inputs.commit.clone(),
        plan: Some(round.plan.id.clone()),
        fleet: fleet.cloned(),
        resource: Some(change.resource.clone()),
        verb: Some(change.verb),
        outcome: Outcome::Waits,
        what: what.to_owned(),
        why,
    }
}
