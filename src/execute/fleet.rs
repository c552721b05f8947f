//! Executes one fleet's part of a plan.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use super::report::for_tenants;
use super::{
    ExecutionFailure, ExecutionProgress, ExecutionReport, PlanExecution, StepFault, cancellation_point,
    failure, recorded, together,
};
use crate::catalog::{Deletion, RecordedObject};
use crate::names::{FleetKey, Kind, ObjectKey, ResourceKey};
use crate::plan::{Change, FleetPlan, Reach, Step, Verb};
use crate::secret;
use crate::state::JournalEntry;
use crate::target::{Intent, ObjectWrite, ResourceMark, Session, Task, TaskResult};

pub(super) struct FleetRun<'a, 'r> {
    pub(super) run: &'a PlanExecution<'r>,
    pub(super) plan: &'a FleetPlan,
    report: ExecutionReport,
    /// Resources whose change has failed. Nothing further is done for them.
    pub(super) broken: BTreeSet<&'a ResourceKey>,
    /// Namespaces that could not be created, so nothing can be created in them.
    missing_namespaces: BTreeSet<&'a str>,
    left: BTreeMap<&'a ResourceKey, usize>,
    /// Changes whose steps are all done, but that are not recorded yet.
    complete: Vec<&'a Change>,
    /// Deletions that are already recorded as begun.
    counted: BTreeSet<&'a ResourceKey>,
    begun: usize,
}

impl<'a, 'r> FleetRun<'a, 'r> {
    pub(super) async fn run(
        run: &'a PlanExecution<'r>,
        plan: &'a FleetPlan,
    ) -> (&'a FleetKey, ExecutionReport) {
        let left = plan.changes.iter().filter(|change| change.is_ready());
        let left = left.map(|change| (&change.resource, change.steps.len())).collect();
        let mut round = FleetRun {
            run,
            plan,
            report: ExecutionReport::default(),
            broken: BTreeSet::new(),
            missing_namespaces: BTreeSet::new(),
            left,
            complete: Vec::new(),
            counted: BTreeSet::new(),
            begun: 0,
        };
        round.take_all().await;
        (&plan.fleet, round.report)
    }

    async fn take_all(&mut self) {
        let steps: Vec<(&'a Change, &'a Step)> = self.plan.ordered_steps().collect();
        let reached = self.plan.reach == Reach::Reached;
        if self.left.is_empty() && !reached {
            return;
        }
        self.run.tell(ExecutionProgress::Fleet { fleet: &self.plan.fleet, steps: steps.len() });
        self.run.decide(Some(&self.plan.fleet), self.plan.changes.iter().filter(|change| change.is_ready()));
        let intent = self.intent(&steps);
        let mut session = match self.begin(intent).await {
            Ok(session) => session,
            Err(fault) => return self.fail_all(&fault),
        };
        if let Some(session) = &session {
            let restored = self.restore_object_records(session).await;
            let completed = restored.and_then(|is_restored| {
                Ok(self.run.state.complete_sizes(&self.plan.fleet, is_restored, (self.run.clock)())?)
            });
            if let Err(fault) = completed {
                self.run.fail(&mut self.report, failure(Some(&self.plan.fleet), fault));
            }
        }
        cancellation_point().await;
        self.make_buckets().await;
        self.commit_stepless();
        cancellation_point().await;
        if let Some(session) = &mut session {
            let mut first = 0;
            for batch in steps.chunk_by(|(_, a), (_, b)| together(a) == together(b)) {
                if self.is_over() {
                    let (fleet, left) = (&self.plan.fleet, steps.len() - self.begun);
                    tracing::info!(
                        %fleet, left, plan = self.run.plan.id,
                        "the turn of fleet {fleet} has ended; its remaining steps follow in the next turn"
                    );
                    break;
                }
                self.take_batch(session, first, batch).await;
                first += batch.len();
            }
        }
        self.finish(session).await;
        if reached && !self.is_forgotten() {
            self.seen();
        }
    }

    /// Returns what will be written and deleted. A change whose secrets are unavailable fails before anything
    /// of it is done.
    fn intent(&mut self, steps: &[(&'a Change, &'a Step)]) -> Intent {
        let mut writes = Vec::new();
        for (change, step) in steps {
            let Some(manifest) = &step.after else { continue };
            match secret::fill(manifest, self.run.secrets) {
                Ok(filled) => writes.push((change, ObjectWrite::of(step, manifest, filled))),
                Err(fault) => self.fail(change, Some(&step.object), fault.into()),
            }
        }
        let whole = |change: &Change| !self.broken.contains(&change.resource);
        let writes = writes.into_iter().filter(|(change, _)| whole(change)).map(|(_, write)| write).collect();
        let steps = steps.iter().filter(|(change, _)| whole(change));
        let deletes = steps.clone().filter(|(_, step)| step.after.is_none());
        let deletes = deletes.map(|(_, step)| step.object.clone()).collect();
        let mark = |change: &Change| {
            let record = change.record.as_ref()?;
            let mark = ResourceMark { id: record.durable.id, protected: record.durable.protected };
            Some((change.resource.clone(), mark))
        };
        Intent { writes, deletes, marks: steps.filter_map(|(change, _)| mark(change)).collect() }
    }

    async fn begin(&mut self, intent: Intent) -> Result<Option<Session>, StepFault> {
        match self.run.targets.get(&self.plan.fleet) {
            Some(target) => {
                self.record_creations()?;
                cancellation_point().await;
                Ok(Some(target.begin(intent).await?))
            }
            None if self.left.values().all(|&steps| steps == 0) => Ok(None),
            None => Err(StepFault::new(
                format!("cannot change fleet {}: its target has not been observed", self.plan.fleet),
                "plan again",
            )),
        }
    }

    /// Records new resources before anything of them is on the target. Otherwise, if the run were killed and
    /// the resource then removed from the specs, the owner of its objects would be unknown.
    fn record_creations(&self) -> Result<(), StepFault> {
        let plan = self.plan;
        let begun = plan.changes.iter().filter(|change| change.is_ready() && change.verb == Verb::Create);
        let begun =
            begun.filter(|change| !change.steps.is_empty() && !self.broken.contains(&change.resource));
        let begun = begun.filter_map(|change| {
            let mut record = change.record.clone()?;
            record.durable.creating = true;
            Some((&change.resource, record))
        });
        let begun: Vec<_> = begun.collect();
        Ok(self.run.put_resources(begun.iter().map(|(resource, record)| (*resource, record)))?)
    }

    fn commit_stepless(&mut self) {
        let plan = self.plan;
        let ready = plan.changes.iter().filter(|change| change.is_ready());
        for change in ready.filter(|change| change.verb != Verb::Delete) {
            if self.left.get(&change.resource) == Some(&0) && !self.broken.contains(&change.resource) {
                self.complete.push(change);
            }
        }
        self.commit_complete();
    }

    /// Executes the steps of one stage. A folder waits for the disk twice, no matter how many steps there
    /// are: once when all files are written beside their destination, and once when all are in place. Only
    /// then is anything recorded as done.
    async fn take_batch(&mut self, session: &mut Session, first: usize, steps: &[(&'a Change, &'a Step)]) {
        let whole = steps.iter().filter(|(change, _)| !self.broken.contains(&change.resource));
        let writes: Vec<&ObjectKey> =
            whole.filter(|(_, step)| step.after.is_some()).map(|(_, step)| &step.object).collect();
        if let Err(fault) = self.begin_batch(session, first, steps, writes).await {
            return steps.iter().for_each(|(change, _)| self.fail(change, None, fault.clone()));
        }
        cancellation_point().await;
        self.take_steps(session, steps).await;
        let ended = self.end_batch(session).await;
        cancellation_point().await;
        match ended {
            Ok(()) => self.commit_complete(),
            Err(fault) => {
                self.complete.clear();
                steps.iter().for_each(|(change, _)| self.fail(change, None, fault.clone()));
            }
        }
        cancellation_point().await;
    }

    async fn begin_batch(
        &self,
        session: &mut Session,
        first: usize,
        steps: &[(&'a Change, &'a Step)],
        writes: Vec<&ObjectKey>,
    ) -> Result<(), StepFault> {
        let Some((_, step)) = steps.first() else { return Ok(()) };
        let more = match steps.len() {
            1 => String::new(),
            count => format!(" and {} more", count - 1),
        };
        self.run.state.journal_begin(&JournalEntry {
            plan: self.run.plan.id.clone(),
            fleet: self.plan.fleet.clone(),
            step: u32::try_from(first).unwrap_or(u32::MAX),
            description: format!("{} {}{more}", step.verb, step.object),
            at: (self.run.clock)(),
        })?;
        if first == 0 {
            // Records durably that this run began, in case it is killed. Later entries reach the disk without a sync.
            self.run.state.flush()?;
        }
        cancellation_point().await;
        if writes.is_empty() { Ok(()) } else { Ok(session.prepare(writes).await?) }
    }

    async fn end_batch(&self, session: &mut Session) -> Result<(), StepFault> {
        session.sync().await?;
        cancellation_point().await;
        Ok(self.run.state.journal_done(&self.plan.fleet)?)
    }

    /// Executes steps that don't depend on each other, as many at a time as the target accepts. No further
    /// step begins for a change that has failed meanwhile.
    async fn take_steps(&mut self, session: &mut Session, steps: &[(&'a Change, &'a Step)]) {
        let mut waiting = steps.iter().enumerate();
        loop {
            while session.has_room()
                && !self.is_over()
                && let Some((number, (change, step))) = waiting.next()
            {
                if self.begin_step(change, step) {
                    self.begun += 1;
                    let (object, uid) = (step.object.clone(), step.uid.clone());
                    session.start(number, Task { object, uid, deletes: step.after.is_none() });
                }
            }
            cancellation_point().await;
            let Some((number, taken)) = session.next().await else { return };
            cancellation_point().await;
            if let Some((change, step)) = steps.get(number) {
                self.end_step(change, step, taken).await;
            }
        }
    }

    /// Prepares a step and returns whether it should be executed.
    fn begin_step(&mut self, change: &'a Change, step: &'a Step) -> bool {
        let Step { verb, object, .. } = step;
        let (fleet, resource) = (&self.plan.fleet, &change.resource);
        if self.broken.contains(resource) {
            return false;
        }
        if object.namespace.as_deref().is_some_and(|name| self.missing_namespaces.contains(name)) {
            let fault = StepFault::new(
                format!("cannot {verb} {object}: its namespace could not be created"),
                "resolve the problem of the namespace first",
            );
            self.fail(change, Some(object), fault);
            return false;
        }
        tracing::debug!(%fleet, %resource, %verb, %object, plan = self.run.plan.id, "step");
        self.run.tell(ExecutionProgress::Step { fleet, resource, verb: *verb, object });
        match self.count_deletion(change) {
            Ok(()) => true,
            Err(fault) => {
                self.fail(change, Some(object), fault);
                false
            }
        }
    }

    async fn end_step(&mut self, change: &'a Change, step: &'a Step, taken: TaskResult) {
        let recorded = self.record_step(change, step, taken).await;
        self.run.tell(ExecutionProgress::StepEnded { verb: step.verb, done: recorded.is_ok() });
        match recorded {
            Ok(()) => {
                self.report.steps += 1;
                self.step_done(change);
            }
            Err(fault) => {
                if step.object.kind == "Namespace" && step.verb != Verb::Delete {
                    self.missing_namespaces.insert(&step.object.name);
                }
                self.fail(change, Some(&step.object), fault);
            }
        }
        cancellation_point().await;
    }

    async fn record_step(&self, change: &Change, step: &Step, taken: TaskResult) -> Result<(), StepFault> {
        let (state, fleet, key) = (self.run.state, &self.plan.fleet, &step.object);
        match (taken?, &step.after) {
            (Some(uid), Some(manifest)) => {
                let object = recorded(manifest, uid);
                state.put_object(fleet, key, &object)?;
                state.record_size(fleet, key, &object, (self.run.clock)())?;
            }
            _ => {
                state.remove_object(fleet, key)?;
                state.record_no_size(fleet, key, (self.run.clock)())?;
            }
        }
        cancellation_point().await;
        self.use_approval(change)?;
        cancellation_point().await;
        Ok(())
    }

    fn step_done(&mut self, change: &'a Change) {
        let left = self.left.entry(&change.resource).or_default();
        *left = left.saturating_sub(1);
        if *left == 0 && change.verb != Verb::Delete {
            self.complete.push(change);
        }
    }

    /// Records that a deletion begins, once per resource. Deletions of clusters and topics count against
    /// the fleet's limits; other resources are marked, so that an interrupted deletion needs no second approval. Refused
    /// if a later plan has guarded the resource against deletion.
    fn count_deletion(&mut self, change: &'a Change) -> Result<(), StepFault> {
        let cluster = &change.resource;
        if change.verb != Verb::Delete || !self.counted.insert(cluster) {
            return Ok(());
        }
        if self.run.state.is_guarded_since(cluster, self.run.known(cluster)) {
            return Err(StepFault::new(
                "cannot delete it: it was protected after the plan was made",
                "plan again to see why it waits now",
            ));
        }
        // This comes before any deletion: the audit trail must list every one.
        self.run.audit([format!("deleting {cluster}")])?;
        let (fleet, at) = (self.plan.fleet.clone(), (self.run.clock)());
        match cluster.kind {
            Kind::Cluster | Kind::Topic => {
                self.run.state.record_deletion(Deletion { fleet, cluster: cluster.clone(), at })?;
            }
            _ => self.run.state.mark_deleting(cluster)?,
        }
        Ok(())
    }

    /// Uses up the fleet's approval as soon as a step that needed it is done, except for steps that wait for
    /// a later turn.
    fn use_approval(&self, change: &Change) -> Result<(), StepFault> {
        let guard = self.plan.guard.as_ref().filter(|guard| change.guarded && guard.approved_by.is_some());
        match guard {
            Some(guard) => {
                let rest = guard.rest.as_deref();
                Ok(self.run.state.use_approval(&guard.id, rest, (self.run.clock)())?)
            }
            None => Ok(()),
        }
    }

    /// Updates the records of objects from the target's inventory, after an interrupted run or the loss of
    /// the cache. Returns whether that was necessary.
    async fn restore_object_records(&self, session: &Session) -> Result<bool, StepFault> {
        let (state, fleet) = (self.run.state, &self.plan.fleet);
        let interrupted = self.run.interrupted.contains(fleet);
        let known = session.known();
        if !interrupted && (known.is_empty() || state.has_objects(fleet)?) {
            return Ok(false);
        }
        let recorded = state.objects(fleet)?;
        for key in recorded.keys().filter(|key| !known.contains(*key)) {
            state.remove_object(fleet, key)?;
        }
        for key in &known {
            let recalled = session.recall(key).await?;
            let same = |a: &RecordedObject, b: &RecordedObject| a.uid == b.uid && a.applied == b.applied;
            let is_known = |it: &RecordedObject| recorded.get(key).is_some_and(|recorded| same(recorded, it));
            if let Some(object) = recalled.filter(|object| !is_known(object)) {
                state.put_object(fleet, key, &object)?;
            }
        }
        // The entry is removed last, so that the next run repeats the work if this one is killed, and before
        // any step adds another entry.
        state.journal_done(fleet)?;
        Ok(true)
    }

    /// Finishes the session, and only then removes the records of deleted resources: the target's inventory
    /// must not list objects without a known owner.
    async fn finish(&mut self, session: Option<Session>) {
        let state = self.run.state;
        // The target's marks of protection may be newer than a restored state. Only a spec that exists and
        // was applied removes them.
        let unsettled = self.unsettled();
        let marked = session.as_ref().map(Session::protected).unwrap_or_default();
        let mark = |key: &ResourceKey| {
            let (id, protected) = state.identity(key)?;
            let kept = unsettled.contains(key) && marked.contains(key);
            Some(ResourceMark { id, protected: protected || kept })
        };
        let finished = match session {
            Some(session) => session.finish(mark).await.map_err(StepFault::from),
            None => Ok(()),
        };
        cancellation_point().await;
        let plan = self.plan;
        // A repair of a resource whose deletion waits is not a deletion.
        let gone = plan.changes.iter().filter(|change| change.is_ready() && change.verb == Verb::Delete);
        let gone = gone.filter(|change| self.left.get(&change.resource) == Some(&0));
        let gone = gone.filter(|change| !self.broken.contains(&change.resource));
        let mut gone: Vec<&Change> = gone.collect();
        gone.sort_by_key(|change| std::cmp::Reverse(change.resource.kind));
        match &finished {
            Ok(()) => {
                for change in gone {
                    self.delete_record(change);
                    cancellation_point().await;
                }
            }
            Err(fault) if gone.is_empty() => {
                self.run.fail(&mut self.report, failure(Some(&plan.fleet), fault.clone()));
            }
            Err(fault) => gone.into_iter().for_each(|change| self.fail(change, None, fault.clone())),
        }
    }

    /// The resources that this run deletes, leaves unchanged or failed to change. Their protection marks stay.
    fn unsettled(&self) -> BTreeSet<ResourceKey> {
        let done: BTreeSet<&ResourceKey> = self.report.done.iter().map(|done| &done.resource).collect();
        let is_done = |change: &Change| change.is_ready() && done.contains(&change.resource);
        let changes = self.plan.changes.iter().filter(|change| !is_done(change));
        changes.map(|change| change.resource.clone()).collect()
    }

    fn delete_record(&mut self, change: &'a Change) {
        // A deletion without steps on the target isn't recorded as begun yet.
        match self.count_deletion(change) {
            Ok(()) => {
                self.complete.push(change);
                self.commit_complete();
            }
            Err(fault) => self.fail(change, None, fault),
        }
    }

    fn commit_complete(&mut self) {
        let fleet = Some(&self.plan.fleet);
        let changes = std::mem::take(&mut self.complete);
        let approved = changes.iter().try_for_each(|change| self.use_approval(change));
        let committed = approved.and_then(|()| self.run.commit(fleet, &changes));
        for change in changes {
            self.run.conclude(&mut self.report, fleet, change, committed.clone());
        }
    }

    /// Whether this fleet's turn is over. At least one step begins in each turn, however late. Approved
    /// changes run in a single turn: the first step uses up the approval, and the rest would need another
    /// one.
    fn is_over(&self) -> bool {
        let is_approved = self.plan.guard.as_ref().is_some_and(|guard| guard.approved_by.is_some());
        self.begun > 0 && !is_approved && self.run.until.is_some_and(|until| until <= Instant::now())
    }

    fn is_forgotten(&self) -> bool {
        let fleet = self.plan.fleet.resource();
        self.report.done.iter().any(|done| done.verb == Verb::Delete && done.resource == fleet)
    }

    fn seen(&mut self) {
        if let Err(error) = self.run.state.record_observation(&self.plan.fleet, self.run.plan.created_at) {
            self.run.fail(&mut self.report, failure(Some(&self.plan.fleet), error.into()));
        }
    }

    fn fail_all(&mut self, fault: &StepFault) {
        let plan = self.plan;
        let ready = plan.changes.iter().filter(|change| change.is_ready());
        let ready: Vec<&Change> = ready.filter(|change| !self.broken.contains(&change.resource)).collect();
        if ready.is_empty() {
            self.run.fail(&mut self.report, failure(Some(&plan.fleet), fault.clone()));
        }
        ready.into_iter().for_each(|change| self.fail(change, None, fault.clone()));
    }

    pub(super) fn fail(&mut self, change: &'a Change, object: Option<&ObjectKey>, fault: StepFault) {
        if !self.broken.insert(&change.resource) {
            return;
        }
        let why = for_tenants(&fault.message, fault.concealed);
        let fleet = Some(&self.plan.fleet);
        let (resource, origin) = (Some(change.resource.clone()), change.origin.clone());
        let failed = ExecutionFailure { resource, origin, object: object.cloned(), ..failure(fleet, fault) };
        self.run.fail(&mut self.report, failed);
        self.run.record_failure(fleet, change, why);
    }
}
