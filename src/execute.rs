//! Executes a plan: exactly the steps that don't wait, and nothing else.
//!
//! A run may be killed between any two operations; the next plan finds what is left to do. For this, the
//! order of writes matters:
//!
//! - A new resource is recorded as being created before anything of it is on the target.
//! - The intent is on the target before any object is changed.
//! - A resource is recorded as applied once all of its steps are done.
//! - A deleted resource is removed from the records once the target's inventory no longer lists it.

mod bucket;
mod certificate;
mod fleet;
mod report;
#[cfg(test)]
mod tests;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::time::Instant;

use futures_util::StreamExt as _;
use jiff::Timestamp;

use crate::catalog::{Recorded, RecordedObject, RecordedResource, Secrets};
use crate::names::{FleetKey, ResourceKey};
use crate::plan::{Change, FleetPlan, Plan, Step, Verb, Waiting, reason};
use crate::render::{Manifest, Stage};
use crate::secret::Keyring;
use crate::state::{EventOutcome, RecordedEvent, State, StateError};
use crate::target::Targets;

pub use certificate::account_secret;
use report::StepFault;
pub use report::{CompletedChange, ExecutionFailure, ExecutionProgress, ExecutionReport};

const FLEETS_AT_ONCE: usize = 8;

#[derive(Clone, Copy)]
pub struct RunContext<'a> {
    pub plan: &'a Plan,
    /// The records that the plan was made from.
    pub recorded: &'a Recorded,
    pub targets: &'a Targets,
    pub state: &'a State,
    pub secrets: &'a Secrets,
    /// For what is recorded sealed.
    pub keyring: &'a Keyring,
    pub clock: &'a dyn Fn() -> Timestamp,
    pub actor: &'a str,
}

/// Executes a whole plan. A failure stops only the changes that depend on the failed one.
pub async fn execute(
    context: RunContext<'_>,
    progress: &mut dyn FnMut(ExecutionProgress<'_>),
) -> ExecutionReport {
    let mut report = ExecutionReport::default();
    let run = PlanExecution::begin(context, progress, &mut report);
    if let Err(error) = run.remember(&BTreeSet::new()) {
        // An unrecorded suspicion may be lost in the next round, so it is recorded before anything changes.
        run.fail(&mut report, failure(None, error.into()));
        return report;
    }
    run.change_organizations(&mut report, |verb| verb != Verb::Delete).await;
    run.change_fleets(&mut report).await;
    // An authority may take minutes, which fleets don't wait for.
    run.get_certificates(&mut report, false).await;
    run.change_organizations(&mut report, |verb| verb == Verb::Delete).await;
    run.record_source(&mut report);
    run.flush(&mut report);
    report
}

/// Executes the parts of a plan that belong to no fleet, for a caller that executes the fleets one by one
/// afterwards. Fleets in `under_way` are still executing an earlier plan, which writes their records. While
/// there are any, nothing is deleted that they may depend on.
pub async fn execute_beside_fleets(
    context: RunContext<'_>,
    under_way: &BTreeSet<FleetKey>,
    progress: &mut dyn FnMut(ExecutionProgress<'_>),
) -> ExecutionReport {
    let mut report = ExecutionReport::default();
    let run = PlanExecution::begin(context, progress, &mut report);
    if let Err(error) = run.remember(under_way) {
        run.fail(&mut report, failure(None, error.into()));
        return report;
    }
    run.change_organizations(&mut report, |verb| verb != Verb::Delete).await;
    if under_way.is_empty() {
        // By the plan, resources that are ready for deletion here have no objects left on a fleet.
        run.change_organizations(&mut report, |verb| verb == Verb::Delete).await;
        run.record_source(&mut report);
    }
    run.flush(&mut report);
    report
}

/// Gets the first certificate of a plan that is due, for a caller that executes its other parts by themselves.
pub async fn execute_certificates(
    context: RunContext<'_>,
    progress: &mut dyn FnMut(ExecutionProgress<'_>),
) -> ExecutionReport {
    let mut report = ExecutionReport::default();
    let run = PlanExecution::begin(context, progress, &mut report);
    run.get_certificates(&mut report, true).await;
    run.flush(&mut report);
    report
}

/// Executes one fleet's part of a plan. Other fleets may be executed at the same time. After `until`, no
/// further step begins except for the first; the rest is part of the next plan.
pub async fn execute_fleet(
    context: RunContext<'_>,
    fleet: &FleetPlan,
    until: Option<Instant>,
    progress: &mut dyn FnMut(ExecutionProgress<'_>),
) -> ExecutionReport {
    let mut report = ExecutionReport::default();
    let run = PlanExecution { until, ..PlanExecution::begin(context, progress, &mut report) };
    let (_, done) = fleet::FleetRun::run(&run, fleet).await;
    report.add(done);
    run.flush(&mut report);
    report
}

struct PlanExecution<'a> {
    plan: &'a Plan,
    recorded: &'a Recorded,
    targets: &'a Targets,
    state: &'a State,
    secrets: &'a Secrets,
    keyring: &'a Keyring,
    clock: &'a dyn Fn() -> Timestamp,
    actor: &'a str,
    progress: RefCell<&'a mut dyn FnMut(ExecutionProgress<'_>)>,
    /// Fleets whose last run was interrupted. Their records may lack its last steps.
    interrupted: BTreeSet<FleetKey>,
    /// The time after which no further step begins, if there is one.
    until: Option<Instant>,
}

impl<'a> PlanExecution<'a> {
    fn begin(
        context: RunContext<'a>,
        progress: &'a mut dyn FnMut(ExecutionProgress<'_>),
        report: &mut ExecutionReport,
    ) -> Self {
        let RunContext { plan, recorded, targets, state, secrets, keyring, clock, actor } = context;
        let (progress, interrupted) = (RefCell::new(progress), BTreeSet::new());
        let until = None;
        let mut run = PlanExecution {
            plan,
            recorded,
            targets,
            state,
            secrets,
            keyring,
            clock,
            actor,
            progress,
            interrupted,
            until,
        };
        match state.journal_unfinished() {
            Ok(entries) => run.interrupted = entries.into_iter().map(|entry| entry.fleet).collect(),
            Err(error) => run.fail(report, failure(None, error.into())),
        }
        run
    }
}

impl PlanExecution<'_> {
    /// Stores the findings of the plan. The record of a resource on a fleet that is under way may have changed
    /// since the plan was made, so only what guards the resource against deletion is added to it.
    fn remember(&self, under_way: &BTreeSet<FleetKey>) -> Result<(), StateError> {
        let is_under_way = |(key, record): &(&ResourceKey, &RecordedResource)| {
            record.fleet(key).is_some_and(|fleet| under_way.contains(&fleet))
        };
        let (written, others): (Vec<_>, Vec<_>) = self.plan.remember.iter().partition(is_under_way);
        written.into_iter().try_for_each(|(key, record)| self.state.guard(key, &record.durable))?;
        self.state.put_resources(others)?;
        let mut void = self.plan.fleets.iter().flat_map(|fleet| &fleet.void_approvals);
        void.try_for_each(|id| self.state.use_approval(id, None, (self.clock)()))
    }

    fn flush(&self, report: &mut ExecutionReport) {
        if let Err(error) = self.state.flush() {
            self.fail(report, failure(None, error.into()));
        }
    }

    /// Changes resources that live on no fleet. Only their records change.
    async fn change_organizations(&self, report: &mut ExecutionReport, chosen: impl Fn(Verb) -> bool) {
        let changes = self.plan.organizations.iter().flat_map(|organization| &organization.changes);
        let mut changes: Vec<&Change> =
            changes.filter(|change| change.is_bookkeeping() && chosen(change.verb)).collect();
        // Resources that others refer to are created first and deleted last.
        changes.sort_by_key(|change| change.resource.kind);
        if changes.iter().any(|change| change.verb == Verb::Delete) {
            changes.reverse();
        }
        self.decide(None, changes.iter().copied());
        for change in changes {
            let committed = if change.steps.is_empty() {
                self.commit(None, &[change])
            } else {
                Err(StepFault::new(
                    format!("cannot change {}: it has objects but no fleet", change.resource),
                    "plan again",
                ))
            };
            self.conclude(report, None, change, committed);
            cancellation_point().await;
        }
    }

    async fn change_fleets(&self, report: &mut ExecutionReport) {
        let rounds = self.plan.fleets.iter().map(|fleet| fleet::FleetRun::run(self, fleet));
        let reports = futures_util::stream::iter(rounds).buffer_unordered(FLEETS_AT_ONCE);
        let mut reports: Vec<(&FleetKey, ExecutionReport)> = reports.collect().await;
        reports.sort_by_key(|(fleet, _)| *fleet);
        reports.into_iter().for_each(|(_, fleet)| report.add(fleet));
    }

    /// Records which tree was applied, once no deletion waits or has failed.
    ///
    /// While the recorded tree differs from the present one, resources that are missing from the present tree
    /// are suspicious, and their deletion needs approval. If the new tree were recorded earlier, the next
    /// round would treat them as ordinary deletions.
    fn record_source(&self, report: &mut ExecutionReport) {
        let changes = self.plan.organizations.iter().flat_map(|organization| &organization.changes);
        let mut changes = changes.chain(self.plan.fleets.iter().flat_map(|fleet| &fleet.changes));
        let done: BTreeSet<&ResourceKey> = report.done.iter().map(|done| &done.resource).collect();
        let is_done = |change: &Change| change.is_ready() && done.contains(&change.resource);
        if changes.any(|change| deletes(change) && !is_done(change)) {
            return;
        }
        if let Err(error) = self.state.set_source(&self.plan.inputs.source) {
            self.fail(report, failure(None, error.into()));
        }
    }

    /// Records changes whose steps are all done, with one fsync per file.
    fn commit(&self, fleet: Option<&FleetKey>, changes: &[&Change]) -> Result<(), StepFault> {
        if changes.is_empty() {
            return Ok(());
        }
        let (state, now) = (self.state, (self.clock)());
        // The audit trail comes first: it must list everything that is done.
        self.audit(changes.iter().map(|change| format!("{} {}", past(change.verb), change.resource)))?;
        self.put_resources(
            changes.iter().filter_map(|change| Some((&change.resource, change.record.as_ref()?))),
        )?;
        let forgotten = |change: &&&Change| change.record.is_none() && change.verb == Verb::Delete;
        for change in changes.iter().filter(forgotten) {
            state.remove_resource(&change.resource, now)?;
            if let Some(fleet) = fleet.filter(|fleet| fleet.resource() == change.resource) {
                state.forget_target(fleet)?;
            }
        }
        let done = |change: &&Change| {
            self.event(fleet, change, EventOutcome::Done, past(change.verb), reason(change))
        };
        state.record_events(changes.iter().map(done).collect());
        Ok(())
    }

    /// Stores the records of this plan. If a later plan has found something that guards a resource against
    /// deletion, that is kept.
    fn put_resources<'r>(
        &self,
        records: impl IntoIterator<Item = (&'r ResourceKey, &'r RecordedResource)>,
    ) -> Result<(), StateError> {
        let records = records.into_iter().map(|(key, record)| (key, record, self.known(key)));
        self.state.put_planned(records.collect::<Vec<_>>())
    }

    /// The record of a resource when the plan was made, including what the plan itself remembers.
    fn known(&self, key: &ResourceKey) -> Option<&RecordedResource> {
        self.plan.remember.get(key).or_else(|| self.recorded.resources.get(key))
    }

    fn decide<'c>(&self, fleet: Option<&FleetKey>, changes: impl Iterator<Item = &'c Change>) {
        let decided = |change: &Change| {
            self.event(
                fleet,
                change,
                EventOutcome::Decided,
                &format!("to be {}", past(change.verb)),
                reason(change),
            )
        };
        self.state.record_events(changes.map(decided).collect());
    }

    fn audit(&self, what: impl IntoIterator<Item = String>) -> Result<(), StateError> {
        self.state.audit(what.into_iter().map(|what| self.done(what)).collect())
    }

    fn done(&self, what: impl Into<String>) -> RecordedEvent {
        RecordedEvent {
            plan: Some(self.plan.id.clone()),
            commit: self.plan.inputs.commit.clone(),
            ..RecordedEvent::done((self.clock)(), self.actor, what)
        }
    }

    fn event(
        &self,
        fleet: Option<&FleetKey>,
        change: &Change,
        outcome: EventOutcome,
        what: &str,
        why: String,
    ) -> RecordedEvent {
        RecordedEvent {
            fleet: fleet.cloned(),
            resource: Some(change.resource.clone()),
            verb: Some(change.verb),
            outcome,
            why,
            ..self.done(what)
        }
    }

    fn record_failure(&self, fleet: Option<&FleetKey>, change: &Change, why: String) {
        let what = format!("could not be {}", past(change.verb));
        self.state.record_events(vec![self.event(fleet, change, EventOutcome::Failed, &what, why)]);
    }

    fn conclude(
        &self,
        report: &mut ExecutionReport,
        fleet: Option<&FleetKey>,
        change: &Change,
        result: Result<(), StepFault>,
    ) {
        match result {
            Ok(()) => {
                let done = CompletedChange {
                    fleet: fleet.cloned(),
                    resource: change.resource.clone(),
                    verb: change.verb,
                };
                let fleet = fleet.map(ToString::to_string);
                let commit = self.plan.inputs.commit.as_ref().map(|commit| &commit.id);
                tracing::info!(fleet, resource = %done.resource, verb = %done.verb, plan = self.plan.id, commit, "done: {} {}", done.verb, done.resource);
                self.tell(ExecutionProgress::Done(&done));
                report.done.push(done);
            }
            Err(fault) => {
                let resource = Some(change.resource.clone());
                self.fail(
                    report,
                    ExecutionFailure { resource, origin: change.origin.clone(), ..failure(fleet, fault) },
                );
            }
        }
    }

    fn fail(&self, report: &mut ExecutionReport, failure: ExecutionFailure) {
        tracing::debug!(plan = self.plan.id, %failure, "failed");
        self.tell(ExecutionProgress::Failed(&failure));
        report.failed.push(failure);
    }

    fn tell(&self, progress: ExecutionProgress<'_>) {
        (self.progress.borrow_mut())(progress);
    }
}

fn failure(
    fleet: Option<&FleetKey>,
    StepFault { message, hint, concealed, alone }: StepFault,
) -> ExecutionFailure {
    ExecutionFailure {
        fleet: fleet.cloned(),
        resource: None,
        origin: None,
        object: None,
        message,
        hint,
        concealed,
        alone,
    }
}

/// Whether a change is a deletion that is ready or waiting.
fn deletes(change: &Change) -> bool {
    use Waiting::{Approval, Children, Protected, UnreadableFile};
    let waits = |waiting: &Waiting| {
        matches!(waiting, Approval { .. } | Children { .. } | Protected | UnreadableFile { .. })
    };
    change.verb == Verb::Delete || (change.verb == Verb::Keep && change.waiting.iter().any(waits))
}

fn past(verb: Verb) -> &'static str {
    match verb {
        Verb::Create => "created",
        Verb::Update => "changed",
        Verb::Delete => "deleted",
        Verb::Keep => "kept",
        Verb::Recreate => "recreated",
        Verb::Adopt => "adopted",
    }
}

/// Yields, so that other tasks can run and the owner of the future can drop it here: everything before is
/// complete, and nothing after has begun.
async fn cancellation_point() {
    tokio::task::yield_now().await;
}

/// The key by which steps form a batch: all writes, or all deletions, of one stage.
fn together(step: &Step) -> (bool, Stage) {
    (step.verb == Verb::Delete, step.stage)
}

fn recorded(manifest: &Manifest, uid: String) -> RecordedObject {
    RecordedObject {
        owner: manifest.owner.clone(),
        uid: Some(uid),
        applied: manifest.digest(),
        manifest: Some(manifest.body.clone()),
    }
}
