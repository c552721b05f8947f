//! Reports which changes wait, whenever that differs from the previous round.

use std::collections::BTreeMap;
use std::time::Instant;

use jiff::Timestamp;

use super::{Round, Throttle, left_out};
use crate::names::{FleetKey, ResourceKey};
use crate::plan::{Change, Plan, Verb};
use crate::state::{EventOutcome, RecordedEvent, State};

/// The changes that waited in the previous round, with their last report.
#[derive(Debug)]
pub struct WaitingChanges<T> {
    waiting: BTreeMap<ResourceKey, Wait<T>>,
    throttle: Throttle<ResourceKey>,
}

#[derive(Debug)]
struct Wait<T> {
    fleet: Option<FleetKey>,
    /// `None` if the rate limit prevented a report.
    told: Option<T>,
}

impl<T> Default for WaitingChanges<T> {
    fn default() -> Self {
        Self { waiting: BTreeMap::new(), throttle: Throttle::default() }
    }
}

/// Differences between a plan and the previous one.
pub struct WaitingDiff<'p> {
    /// Changes that newly wait or wait for another reason, each with its fleet and the number of reports that
    /// the rate limit left out.
    pub begun: Vec<(Option<&'p FleetKey>, &'p Change, u32)>,
    /// Changes that no longer wait, without having been done.
    pub over: Vec<(Option<FleetKey>, ResourceKey)>,
}

impl<T: PartialEq> WaitingChanges<T> {
    /// Remembers what waits in a plan, and returns the differences. Short waits are ignored, and frequent
    /// differences are subject to the rate limit.
    pub fn turn<'p>(
        &mut self,
        plan: &'p Plan,
        now: Instant,
        tells: impl Fn(&Change) -> T,
    ) -> WaitingDiff<'p> {
        let mut before = std::mem::take(&mut self.waiting);
        let mut begun = Vec::new();
        let heeded = |(_, change): &(_, &Change)| change.is_ready() || !change.waiting.is_empty();
        for (fleet, change) in plan.placed_changes().filter(heeded) {
            let known = before.remove(&change.resource);
            if change.is_ready() {
                // Reported as a decision.
            } else if change.waiting.iter().any(|waiting| waiting.is_soon_over(plan.created_at)) {
                self.waiting.extend(known.map(|wait| (change.resource.clone(), wait)));
            } else {
                let (tells, mut told) = (tells(change), known.and_then(|known| known.told));
                if told.as_ref() != Some(&tells)
                    && let Some(untold) = self.throttle.admit(&change.resource, now)
                {
                    begun.push((fleet, change, untold));
                    told = Some(tells);
                }
                self.waiting.insert(change.resource.clone(), Wait { fleet: fleet.cloned(), told });
            }
        }
        let over = before.into_iter().filter(|(_, wait)| wait.told.is_some());
        WaitingDiff { begun, over: over.map(|(resource, wait)| (wait.fleet, resource)).collect() }
    }
}

impl WaitingChanges<String> {
    /// Records an event for each change that newly waits, waits for another reason, or no longer waits.
    pub fn record(&mut self, round: &Round, state: &State, actor: &str, now: Timestamp) {
        let plan = &round.plan;
        let WaitingDiff { begun, over } = self.turn(plan, Instant::now(), told);
        let event = |fleet, resource, outcome, what: &str, why| RecordedEvent {
            commit: plan.inputs.commit.clone(),
            plan: Some(plan.id.clone()),
            fleet,
            resource: Some(resource),
            outcome,
            why,
            ..RecordedEvent::done(now, actor, what)
        };
        let begun = begun.into_iter().map(|(fleet, change, untold)| {
            let (resource, what) = (change.resource.clone(), waiting(change.verb));
            let verb = Some(change.verb);
            RecordedEvent {
                verb,
                ..event(fleet.cloned(), resource, EventOutcome::Waits, what, told(change) + &left_out(untold))
            }
        });
        let over = over.into_iter().map(|(fleet, resource)| {
            event(fleet, resource, EventOutcome::Done, "no longer waits", "nothing to do".to_owned())
        });
        state.record_events(begun.chain(over).collect());
    }
}

fn told(change: &Change) -> String {
    let waits: Vec<String> =
        change.waiting.iter().map(|waiting| waiting.redacted_for_tenants().labelled()).collect();
    waits.join("; ")
}

fn waiting(verb: Verb) -> &'static str {
    match verb {
        Verb::Create => "to be created",
        Verb::Update | Verb::Recreate | Verb::Adopt => "to be changed",
        Verb::Delete => "to be deleted",
        Verb::Keep => "unchanged",
    }
}
