//! Decides when to plan, which fleets to work on, and when to exit. It depends on data alone.
//!
//! Plans are made one at a time, for all fleets. Work runs in parallel, fleet by fleet, up to the limit in
//! the settings. Work starts only from the last plan and while no other plan is being made: older plans are
//! discarded, and so is a plan during which the specs may have changed. A new plan leaves out fleets with
//! running work. So no fleet is worked on by two plans, and one that hangs doesn't block the others.
//!
//! Organizations take turns. An organization without running work doesn't wait for the others, up to twice
//! the limit in all. Time is monotonic, so that setting the system clock neither speeds up nor delays
//! anything.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use super::Event;
use crate::names::{FleetKey, Identifier};
use crate::parallel::fair_queue::FairQueue;

/// The longest time between plans without an event: output folders are not watched, and changes that wait for
/// the hourly limit have to continue. If nothing changed, a plan sends no request to any Kubernetes cluster.
const MAX_PLAN_INTERVAL: Duration = Duration::from_secs(30);

/// How long work may continue after a signal to stop. The next start finds the rest.
const GRACE: Duration = Duration::from_secs(20);

/// How many plans in a row may be discarded because the specs changed meanwhile. If files are saved
/// continuously, the next plan is used, but only for harmless work.
const MAX_DISCARDED_PLANS: u32 = 3;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PendingWork {
    pub fleets: Vec<ReadyFleet>,
    /// The duration until a change that waits for a time may continue.
    pub next: Option<Duration>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadyFleet {
    pub fleet: FleetKey,
    /// Whether it deletes nothing and contains nothing that could need approval.
    pub is_harmless: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Action {
    Fetch,
    Plan,
    Start(FleetKey),
    Leave,
}

#[derive(Debug)]
pub(super) struct Schedule {
    is_planning: bool,
    /// Whether an event arrived since the current plan began, so that another plan has to follow.
    is_outdated: bool,
    /// Whether the specs may have changed since then, so that the current plan has to be discarded.
    is_superseded: bool,
    /// The number of plans in a row that were discarded because of changed specs.
    discarded_plans: u32,
    running: BTreeSet<FleetKey>,
    /// The fleets that wait for their turn, by organization.
    turns: FairQueue<Identifier, FleetKey>,
    /// The number of each fleet's last turn.
    begun: BTreeMap<FleetKey, u64>,
    count: u64,
    /// When the next plan is made without an event.
    due: Instant,
    /// When the process ends, even if work is running; `None` before a stop was requested.
    stop_deadline: Option<Instant>,
}

impl Schedule {
    pub(super) fn new(at_once: usize, now: Instant) -> Self {
        Self {
            is_planning: false,
            is_outdated: false,
            is_superseded: false,
            discarded_plans: 0,
            running: BTreeSet::new(),
            turns: FairQueue::new(at_once).with_reserve_slots(at_once),
            begun: BTreeMap::new(),
            count: 0,
            due: now,
            stop_deadline: None,
        }
    }

    pub(super) fn running(&self) -> usize {
        self.running.len()
    }

    pub(super) fn is_planning(&self) -> bool {
        self.is_planning
    }

    /// Sets how many fleets are worked on at a time. Running work continues.
    pub(super) fn set_at_once(&mut self, at_once: usize) {
        self.turns.set_places(at_once, at_once);
    }

    /// Returns the time until the next timer.
    pub(super) fn pause(&self, now: Instant) -> Duration {
        let next = match (self.stop_deadline, self.is_planning) {
            (Some(leaves), _) => leaves,
            (None, true) => return MAX_PLAN_INTERVAL,
            (None, false) => self.due,
        };
        next.saturating_duration_since(now)
    }

    pub(super) fn step(&mut self, event: &Event, now: Instant) -> Vec<Action> {
        if self.stop_deadline.is_some() {
            return self.step_while_stopping(event, now);
        }
        match event {
            Event::Stop | Event::PlanningFailed(_) => {
                self.is_planning &= matches!(event, Event::Stop);
                self.stop_deadline = Some(now + GRACE);
                self.turns.clear();
                self.step_while_stopping(event, now)
            }
            Event::Pushed => vec![Action::Fetch],
            Event::ReloadRequested => [Action::Fetch].into_iter().chain(self.supersede()).collect(),
            Event::Specs => self.supersede(),
            // Neither a changed target, a request nor an approval changes the specs, so the current plan
            // remains usable.
            Event::Target | Event::RequestReceived => self.plan(),
            // Otherwise a plan that takes longer than the timer would be followed by another one without end.
            Event::TimerElapsed if self.is_planning => Vec::new(),
            Event::TimerElapsed => self.plan(),
            Event::Planned(planned) => self.planned(&planned.outlook, now),
            Event::FleetWorkEnded { fleet, .. } => {
                self.ended(fleet);
                if self.is_planning {
                    // The current plan leaves the fleet out.
                    self.is_outdated = true;
                    return Vec::new();
                }
                let orders = self.start();
                // The fleet may have further work now.
                if orders.is_empty() { self.plan() } else { orders }
            }
        }
    }

    /// Handles events after a stop was requested or when no plan can be made: running work may end, and
    /// nothing begins.
    fn step_while_stopping(&mut self, event: &Event, now: Instant) -> Vec<Action> {
        if let Event::FleetWorkEnded { fleet, .. } = event {
            self.ended(fleet);
        }
        let is_over = self.running.is_empty() || self.pause(now).is_zero();
        if is_over { vec![Action::Leave] } else { Vec::new() }
    }

    /// Marks the current plan as superseded, since the specs may have changed.
    fn supersede(&mut self) -> Vec<Action> {
        self.is_superseded = self.is_planning;
        self.plan()
    }

    fn plan(&mut self) -> Vec<Action> {
        self.is_outdated = self.is_planning;
        if std::mem::replace(&mut self.is_planning, true) { Vec::new() } else { vec![Action::Plan] }
    }

    fn planned(&mut self, outlook: &PendingWork, now: Instant) -> Vec<Action> {
        self.is_planning = false;
        self.due = now + outlook.next.map_or(MAX_PLAN_INTERVAL, |next| next.min(MAX_PLAN_INTERVAL));
        self.turns.clear();
        let is_superseded = std::mem::take(&mut self.is_superseded);
        if is_superseded && self.discarded_plans < MAX_DISCARDED_PLANS {
            self.discarded_plans += 1;
            self.is_outdated = false;
            return self.plan();
        }
        self.discarded_plans = 0;
        let ready = outlook.fleets.iter().filter(|ready| ready.is_harmless || !is_superseded);
        let ready = ready.map(|ready| &ready.fleet).filter(|fleet| !self.running.contains(*fleet));
        let mut ready: Vec<&FleetKey> = ready.collect();
        // Within an organization, the fleet that has waited longest for a turn comes first.
        ready.sort_by_key(|fleet| self.begun.get(*fleet).copied());
        ready.into_iter().for_each(|fleet| self.turns.enqueue(fleet.organization.clone(), fleet.clone()));
        let mut orders = self.start();
        if std::mem::take(&mut self.is_outdated) {
            orders.extend(self.plan());
        }
        orders
    }

    fn start(&mut self) -> Vec<Action> {
        let mut orders = Vec::new();
        while let Some((_, fleet)) = self.turns.assign_slot() {
            self.count += 1;
            self.begun.insert(fleet.clone(), self.count);
            self.running.insert(fleet.clone());
            orders.push(Action::Start(fleet));
        }
        orders
    }

    fn ended(&mut self, fleet: &FleetKey) {
        if self.running.remove(fleet) {
            self.turns.release_slot(&fleet.organization);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use super::*;
    use crate::daemon::{DaemonError, PlannedRound};

    fn at(milliseconds: u64) -> Instant {
        static START: LazyLock<Instant> = LazyLock::new(Instant::now);
        *START + Duration::from_millis(milliseconds)
    }

    /// `eu` of acme, or `globex/eu`.
    fn fleet(name: &str) -> FleetKey {
        let name = if name.contains('/') { name.to_owned() } else { format!("acme/{name}") };
        name.try_into().unwrap()
    }

    fn planned(fleets: &[(&str, &str)]) -> Event {
        let ready = |&(name, what): &(&str, &str)| {
            let is_harmless = !what.starts_with("delete");
            ReadyFleet { fleet: fleet(name), is_harmless }
        };
        let fleets = fleets.iter().map(ready).collect();
        Event::Planned(Box::new(PlannedRound { outlook: PendingWork { fleets, next: None }, round: None }))
    }

    fn ended(name: &str) -> Event {
        Event::FleetWorkEnded { fleet: fleet(name) }
    }

    fn start(name: &str) -> Action {
        Action::Start(fleet(name))
    }

    #[test]
    fn a_fleet_that_hangs_holds_up_no_other() {
        let mut schedule = Schedule::new(2, at(0));
        assert_eq!(schedule.step(&Event::TimerElapsed, at(0)), [Action::Plan]);
        let orders = schedule.step(&planned(&[("eu", "a"), ("us", "b"), ("ap", "c")]), at(10));
        assert_eq!(orders, [start("eu"), start("us")]);
        // One fleet hangs. When another one ends, the next begins, and then everything is planned again.
        assert_eq!(schedule.step(&ended("us"), at(20)), [start("ap")]);
        assert_eq!(schedule.step(&ended("ap"), at(30)), [Action::Plan]);
        let orders = schedule.step(&planned(&[("eu", "d"), ("us", "e")]), at(40));
        assert_eq!(orders, [start("us")], "what hangs is left alone");
        assert_eq!(schedule.step(&ended("eu"), at(5000)), [Action::Plan]);
    }

    #[test]
    fn what_happens_while_a_plan_is_made_makes_another_one_and_no_more() {
        let mut schedule = Schedule::new(8, at(0));
        assert_eq!(schedule.step(&Event::Specs, at(0)), [Action::Plan]);
        for event in [Event::Target, Event::RequestReceived, Event::TimerElapsed] {
            assert_eq!(schedule.step(&event, at(1)), []);
        }
        assert_eq!(schedule.step(&Event::Pushed, at(2)), [Action::Fetch]);
        assert_eq!(schedule.step(&planned(&[("eu", "a")]), at(3)), [start("eu"), Action::Plan]);
        // Nothing begins while a plan is being made, since the plan would not know of it.
        assert_eq!(schedule.step(&ended("eu"), at(4)), []);
        assert_eq!(schedule.step(&planned(&[]), at(5)), [Action::Plan]);
        assert_eq!(schedule.step(&planned(&[]), at(6)), []);
        assert_eq!(schedule.pause(at(6)), MAX_PLAN_INTERVAL);
    }

    #[test]
    fn nothing_begins_with_a_plan_while_which_somebody_wanted_something_else() {
        for event in [Event::Specs, Event::ReloadRequested] {
            let mut schedule = Schedule::new(8, at(0));
            schedule.step(&Event::TimerElapsed, at(0));
            schedule.step(&planned(&[("eu", "a"), ("us", "b")]), at(0));
            // Two events about specs, and others about a target only.
            let fetches = if matches!(event, Event::ReloadRequested) { vec![Action::Fetch] } else { vec![] };
            schedule.step(&Event::Target, at(1));
            assert_eq!(schedule.step(&event, at(2)), fetches);
            assert_eq!(schedule.step(&event, at(2)), fetches);
            schedule.step(&Event::Target, at(2));
            assert_eq!(schedule.step(&planned(&[("ap", "delete")]), at(3)), [Action::Plan]);
            assert_eq!(schedule.step(&planned(&[("ap", "c")]), at(4)), [start("ap")]);
        }
    }

    #[test]
    fn what_was_not_begun_is_forgotten_when_a_later_plan_does_not_have_it() {
        for later in [&[][..], &[("us", "keep the other"), ("ap", "c")]] {
            let mut schedule = Schedule::new(1, at(0));
            schedule.step(&Event::TimerElapsed, at(0));
            let orders = schedule.step(&planned(&[("eu", "a"), ("us", "delete"), ("ap", "c")]), at(1));
            assert_eq!(orders, [start("eu")]);
            // Once the specs may have changed, no work starts from that plan.
            assert_eq!(schedule.step(&Event::Specs, at(2)), [Action::Plan]);
            assert_eq!(schedule.step(&planned(later), at(3)), []);
            let next = later.first().map_or(Action::Plan, |(name, _)| start(name));
            assert_eq!(schedule.step(&ended("eu"), at(4)), [next]);
        }
    }

    #[test]
    fn whoever_saves_again_and_again_holds_up_only_what_could_do_harm() {
        let mut schedule = Schedule::new(8, at(0));
        schedule.step(&Event::TimerElapsed, at(0));
        for _ in 0..2 {
            for _ in 0..MAX_DISCARDED_PLANS {
                schedule.step(&Event::Specs, at(1));
                assert_eq!(schedule.step(&planned(&[("eu", "a"), ("us", "delete")]), at(2)), [Action::Plan]);
            }
            schedule.step(&Event::Specs, at(3));
            let orders = schedule.step(&planned(&[("eu", "a"), ("us", "delete")]), at(4));
            assert_eq!(orders, [start("eu"), Action::Plan]);
            schedule.step(&ended("eu"), at(5));
        }
        assert_eq!(schedule.step(&planned(&[("us", "delete")]), at(6)), [start("us"), Action::Plan]);
    }

    #[test]
    fn a_plan_that_takes_long_is_not_made_again_for_that() {
        let mut schedule = Schedule::new(8, at(0));
        schedule.step(&Event::TimerElapsed, at(0));
        assert_eq!(schedule.step(&Event::TimerElapsed, at(30_000)), []);
        assert_eq!(schedule.step(&planned(&[]), at(31_000)), []);
        assert_eq!(schedule.pause(at(31_000)), MAX_PLAN_INTERVAL);
    }

    #[test]
    fn an_organization_of_which_nothing_is_done_does_not_wait_for_one_whose_fleets_are_slow() {
        let mut schedule = Schedule::new(2, at(0));
        schedule.step(&Event::TimerElapsed, at(0));
        let slow = [("a", "x"), ("b", "x"), ("c", "x")];
        assert_eq!(schedule.step(&planned(&slow), at(1)), [start("a"), start("b")]);
        schedule.step(&Event::Specs, at(2));
        let both = [("a", "x"), ("b", "x"), ("c", "x"), ("globex/eu", "y"), ("globex/us", "y")];
        assert_eq!(schedule.step(&planned(&both), at(3)), [start("globex/eu")]);
        assert_eq!(schedule.step(&ended("globex/eu"), at(4)), [start("globex/us")]);
        // Nothing can begin, and the fleet whose work ended may have more to do.
        assert_eq!(schedule.step(&ended("globex/us"), at(5)), [Action::Plan]);
        let all = [("c", "x"), ("globex/eu", "y"), ("initech/eu", "y"), ("umbrella/eu", "y")];
        let orders = schedule.step(&planned(&all), at(6));
        assert_eq!(orders, [start("initech/eu"), start("umbrella/eu")], "who never had a turn");
        assert_eq!(schedule.step(&ended("a"), at(7)), [start("globex/eu")]);
        assert_eq!(schedule.step(&ended("globex/eu"), at(8)), [Action::Plan]);
    }

    #[test]
    fn a_fleet_that_always_has_something_to_do_holds_up_no_other_of_its_organization() {
        let mut schedule = Schedule::new(1, at(0));
        schedule.step(&Event::TimerElapsed, at(0));
        let both = planned(&[("eu", "a"), ("us", "b")]);
        for name in ["eu", "us", "eu", "us"] {
            assert!(schedule.step(&both, at(1)).starts_with(&[start(name)]));
            // The target changes all the time, so there is another plan before the next fleet in the queue
            // begins.
            schedule.step(&Event::Target, at(2));
            assert_eq!(schedule.step(&ended(name), at(3)), []);
        }
    }

    #[test]
    fn what_waits_for_a_time_is_looked_at_then_and_everything_now_and_then() {
        let mut schedule = Schedule::new(8, at(0));
        assert_eq!(schedule.pause(at(0)), Duration::ZERO);
        schedule.step(&Event::TimerElapsed, at(0));
        let outlook = PendingWork { fleets: Vec::new(), next: Some(Duration::from_secs(5)) };
        schedule.step(&Event::Planned(Box::new(PlannedRound { outlook, round: None })), at(0));
        assert_eq!(schedule.pause(at(0)), Duration::from_secs(5));
        assert_eq!(schedule.pause(at(6000)), Duration::ZERO);
        schedule.step(&Event::TimerElapsed, at(6000));
        schedule.step(&planned(&[]), at(6000));
        assert_eq!(schedule.pause(at(6000)), MAX_PLAN_INTERVAL);
    }

    #[test]
    fn a_signal_lets_end_what_is_being_done_and_begins_nothing() {
        let mut schedule = Schedule::new(1, at(0));
        schedule.step(&Event::TimerElapsed, at(0));
        schedule.step(&planned(&[("eu", "a"), ("us", "b")]), at(0));
        assert_eq!(schedule.step(&Event::Stop, at(10)), []);
        assert_eq!(schedule.step(&Event::Specs, at(20)), []);
        assert_eq!(schedule.step(&ended("eu"), at(30)), [Action::Leave]);

        let mut schedule = Schedule::new(1, at(0));
        assert_eq!(schedule.step(&Event::Stop, at(0)), [Action::Leave]);

        // The same when no plan can be made any more.
        let mut schedule = Schedule::new(1, at(0));
        schedule.step(&Event::TimerElapsed, at(0));
        schedule.step(&planned(&[("eu", "a"), ("us", "b")]), at(0));
        schedule.step(&Event::Specs, at(0));
        assert_eq!(schedule.step(&Event::PlanningFailed(DaemonError::ThreadPanicked), at(10)), []);
        assert!(!schedule.is_planning());
        assert_eq!(schedule.pause(at(10)), GRACE);
        assert_eq!(schedule.step(&ended("eu"), at(30)), [Action::Leave]);

        // Work that takes too long is found by the next start.
        let mut schedule = Schedule::new(1, at(0));
        schedule.step(&Event::TimerElapsed, at(0));
        schedule.step(&planned(&[("eu", "a")]), at(0));
        schedule.step(&Event::Stop, at(0));
        assert_eq!(schedule.pause(at(0)), GRACE);
        assert_eq!(schedule.step(&Event::TimerElapsed, at(20_000)), [Action::Leave]);
    }
}
