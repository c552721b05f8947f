//! The metrics and their names. Label values come from fixed sets, never from the names of fleets or
//! clusters, so cardinality is bounded.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::exposition::{Histogram, MetricsText};
use crate::catalog::Status;
use crate::component::probe::{ProbeLevel, ProbeReport};
use crate::execute::{ExecutionProgress, ExecutionReport};
use crate::names::{self, FleetKey, ResourceKey};
use crate::plan::{RecordCounts, RecordState, Verb, Waiting};
use crate::round::{Health, Round};
use crate::target;

/// The outcome of a round: reading specs, observing what may have changed, and planning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RoundOutcome {
    /// No change was made: there was none, or all of them wait.
    Idle,
    /// Changes on fleets begin.
    Begun,
    /// Records that must be stored before anything is done could not be stored.
    Failed,
    /// The specs could not be read, so nothing was done.
    Unreadable,
}

impl RoundOutcome {
    const ALL: [RoundOutcome; 4] =
        [RoundOutcome::Idle, RoundOutcome::Begun, RoundOutcome::Failed, RoundOutcome::Unreadable];

    fn word(self) -> &'static str {
        match self {
            RoundOutcome::Idle => "idle",
            RoundOutcome::Begun => "begun",
            RoundOutcome::Failed => "failed",
            RoundOutcome::Unreadable => "unreadable",
        }
    }
}

/// `Keep` is left out, since it changes nothing.
const VERBS: [(Verb, &str); 5] = [
    (Verb::Create, "create"),
    (Verb::Update, "update"),
    (Verb::Recreate, "recreate"),
    (Verb::Adopt, "adopt"),
    (Verb::Delete, "delete"),
];

const OUTCOMES: [(bool, &str); 2] = [(true, "done"), (false, "failed")];

type Counts<T> = BTreeMap<T, u64>;

#[derive(Default)]
pub(super) struct ProcessMetrics {
    started: Timestamp,
    read: Option<Timestamp>,
    planned: Option<Timestamp>,
    is_unreadable: bool,
    fleets: Counts<Status>,
    clusters: Counts<Status>,
    waiting: Counts<&'static str>,
    waiting_resources: u64,
    errors: u64,
    certificates_end: Option<Timestamp>,
    /// How the DNS records of each fleet stand. A fleet on which a plan is being carried out keeps its counts.
    records: BTreeMap<FleetKey, RecordCounts>,
    rounds: Counts<RoundOutcome>,
    durations: Histogram,
    looked: u64,
    /// Executions of fleets, by outcome.
    runs: Counts<bool>,
    steps: Counts<(Verb, bool)>,
    changes: Counts<Verb>,
    failures: u64,
    /// The time that each level of probes took in all, at all names, and how often.
    probes: BTreeMap<ProbeLevel, (Duration, u64)>,
    probe_failures: Counts<ProbeLevel>,
    /// The inputs of the counts by status.
    counted: Option<Counted>,
    /// The last round, until its resources are counted: only for those who ask.
    uncounted: Option<Arc<Round>>,
}

/// While this is unchanged, so are the statuses of all resources: a plan id is the hash of everything that is
/// read and recorded.
#[derive(PartialEq)]
struct Counted {
    plan: String,
    /// One entry per fleet.
    judged: Vec<Option<(Status, Vec<Status>)>>,
}

impl ProcessMetrics {
    pub(super) fn begin(started: Timestamp) -> ProcessMetrics {
        ProcessMetrics { started, ..ProcessMetrics::default() }
    }

    pub(super) fn read(&mut self, at: Timestamp) {
        self.read = Some(at);
    }

    pub(super) fn planned(&mut self, round: &Arc<Round>, now: Timestamp) {
        self.planned = Some(now);
        self.is_unreadable = false;
        self.looked += round.looked as u64;
        self.errors = u64::from(round.plan.summary.errors);
        self.certificates_end = round.checked.catalog.certificates_end.values().min().copied();
        self.records.retain(|fleet, _| round.under_way.contains(fleet));
        self.records.extend(round.records.clone());
        self.waiting.clear();
        self.waiting_resources = u64::from(round.plan.summary.waiting);
        for change in round.plan.changes().filter(|change| !change.waiting.is_empty()) {
            let kinds: BTreeSet<&str> = change.waiting.iter().map(Waiting::kind).collect();
            kinds.into_iter().for_each(|kind| *self.waiting.entry(kind).or_default() += 1);
        }
        self.uncounted = Some(Arc::clone(round));
    }

    /// Counts fleets and clusters by status, unless nothing has changed.
    fn count(&mut self) {
        let Some(round) = self.uncounted.take() else { return };
        let of_fleet = |health: &Health| {
            let judged = health.judged.as_ref()?;
            let clusters = judged.clusters.values().map(|judgement| judgement.status.status);
            Some((judged.status.status, clusters.collect()))
        };
        let judged = round.health.values().map(of_fleet).collect();
        let counted = Some(Counted { plan: round.plan.id.clone(), judged });
        if self.counted == counted {
            return;
        }
        self.counted = counted;
        self.fleets.clear();
        self.clusters.clear();
        let known = round.checked.catalog.resources.keys().chain(round.checked.recorded.resources.keys());
        let known: BTreeSet<&ResourceKey> = known.collect();
        for key in known {
            let counts = match key.kind {
                names::Kind::Fleet => &mut self.fleets,
                names::Kind::Cluster => &mut self.clusters,
                _ => continue,
            };
            *counts.entry(round.standing(key).status).or_default() += 1;
        }
    }

    pub(super) fn progress(&mut self, progress: &ExecutionProgress<'_>) {
        if let ExecutionProgress::StepEnded { verb, done } = progress {
            *self.steps.entry((*verb, *done)).or_default() += 1;
        }
    }

    pub(super) fn carried_out(&mut self, report: &ExecutionReport) {
        *self.runs.entry(report.failed.is_empty()).or_default() += 1;
        self.noted(report);
    }

    pub(super) fn noted(&mut self, report: &ExecutionReport) {
        for done in &report.done {
            *self.changes.entry(done.verb).or_default() += 1;
        }
        self.failures += report.failed.len() as u64;
    }

    pub(super) fn round(&mut self, outcome: RoundOutcome, took: Duration) {
        self.is_unreadable = outcome == RoundOutcome::Unreadable;
        *self.rounds.entry(outcome).or_default() += 1;
        self.durations.observe(took);
    }

    pub(super) fn probed(&mut self, report: &ProbeReport) {
        for verdict in &report.verdicts {
            for (level, took) in &verdict.took {
                let (sum, times) = self.probes.entry(*level).or_default();
                *sum += *took;
                *times += 1;
            }
            if let Some(level) = verdict.failed_at() {
                *self.probe_failures.entry(level).or_default() += 1;
            }
        }
    }

    pub(super) fn is_ready(&self) -> bool {
        self.planned.is_some()
    }

    /// A summary of the whole installation for the service manager.
    pub(super) fn status_line(&mut self) -> String {
        self.count();
        if self.is_unreadable {
            return "cannot read the specs; no changes until they can be read".to_owned();
        }
        if !self.is_ready() {
            return "the specs have not been read yet".to_owned();
        }
        let sum = |counts: &Counts<Status>| counts.values().sum();
        let mut line = format!(
            "{}, {}, {} waiting",
            counted(sum(&self.fleets), "fleet"),
            counted(sum(&self.clusters), "cluster"),
            self.waiting_resources
        );
        for (number, what) in
            [(self.count_in_trouble(), "not healthy"), (self.errors, "problems in the specs")]
        {
            if number > 0 {
                line.push_str(&format!(", {number} {what}"));
            }
        }
        line
    }

    /// The number of fleets and clusters in trouble.
    fn count_in_trouble(&self) -> u64 {
        let ailing = [Status::Degraded, Status::Failed, Status::Unreachable];
        let of = |counts: &Counts<Status>| ailing.iter().filter_map(|it| counts.get(it)).sum::<u64>();
        of(&self.fleets) + of(&self.clusters)
    }

    /// All metrics. Counters start at 0, so that the first event is visible as an increase.
    pub(super) fn page(&mut self) -> String {
        self.count();
        let mut page = MetricsText::default();
        self.installation(&mut page);
        self.work(&mut page);
        page.0
    }

    fn installation(&self, page: &mut MetricsText) {
        let version = [("version", env!("CARGO_PKG_VERSION"))];
        page.samples("streamfleet_build_info", "Always 1; the version that runs.", [(version, 1)]);
        page.value(
            "streamfleet_start_timestamp_seconds",
            "When the process began, in seconds since 1970.",
            seconds(Some(self.started)),
        );
        let by_status =
            |counts: &Counts<Status>| Status::ALL.map(|status| (status.as_str(), count(counts, status)));
        page.by("status", "streamfleet_fleets", "Fleets by status.", by_status(&self.fleets));
        page.by("status", "streamfleet_clusters", "Kafka clusters by status.", by_status(&self.clusters));
        page.by(
            "for",
            "streamfleet_waiting_resources",
            "Waiting resources by reason. A resource with several reasons counts for each.",
            Waiting::KINDS.map(|kind| (kind, count(&self.waiting, kind))),
        );
        page.value("streamfleet_spec_errors", "Problems in the specs that block a resource.", self.errors);
        page.value(
            "streamfleet_certificate_expiry_timestamp_seconds",
            "When the first certificate of a base domain in the specs ends, in seconds since 1970; +Inf without certificates.",
            self.certificates_end.map_or("+Inf".to_owned(), |ends| ends.as_second().to_string()),
        );
        let by_state = RecordState::ALL.map(|state| {
            (state.word(), self.records.values().map(|counts| count(counts, state)).sum::<u64>())
        });
        page.by(
            "state",
            "streamfleet_dns_records",
            "DNS records that Streamfleet keeps, by state.",
            by_state,
        );
        page.value(
            "streamfleet_source_last_success_timestamp_seconds",
            "When the specs were last read, or a fetch of them completed, in seconds since 1970; 0 before the first time.",
            seconds(self.read),
        );
    }

    fn work(&self, page: &mut MetricsText) {
        page.value(
            "streamfleet_round_last_success_timestamp_seconds",
            "When a round last read the specs and planned, in seconds since 1970; 0 before the first time.",
            seconds(self.planned),
        );
        page.by(
            "outcome",
            "streamfleet_rounds_total",
            "Rounds by outcome.",
            RoundOutcome::ALL.map(|outcome| (outcome.word(), count(&self.rounds, outcome))),
        );
        page.histogram(
            "streamfleet_round_duration_seconds",
            "How long rounds took, from reading the specs to the plan. Work on fleets continues in parallel.",
            &self.durations,
        );
        page.value(
            "streamfleet_fleets_looked_at_total",
            "How often a fleet was rendered and compared, because something may have changed.",
            self.looked,
        );
        page.by(
            "outcome",
            "streamfleet_kubernetes_calls_total",
            "Calls to the API servers of Kubernetes clusters, without watches, by outcome.",
            target::calls(),
        );
        page.by(
            "outcome",
            "streamfleet_fleet_runs_total",
            "Fleets' parts of plans that were executed, by outcome.",
            OUTCOMES.map(|(done, outcome)| (outcome, count(&self.runs, done))),
        );
        let steps = VERBS.into_iter().flat_map(|(verb, word)| {
            OUTCOMES.map(|(done, outcome)| {
                ([("verb", word), ("outcome", outcome)], count(&self.steps, (verb, done)))
            })
        });
        page.samples(
            "streamfleet_steps_total",
            "Steps on targets, one per object, by verb and outcome.",
            steps,
        );
        page.by(
            "verb",
            "streamfleet_changes_total",
            "Resources that were changed to match their specs.",
            VERBS.map(|(verb, word)| (word, count(&self.changes, verb))),
        );
        page.value("streamfleet_failures_total", "Failures while plans were executed.", self.failures);
        page.summary(
            "level",
            "streamfleet_probe_seconds",
            "How long probes of clusters took at each level, for each public name.",
            ProbeLevel::ALL.map(|level| {
                let (sum, times) = self.probes.get(&level).copied().unwrap_or_default();
                (level.as_str(), sum.as_secs_f64(), times)
            }),
        );
        page.by(
            "level",
            "streamfleet_probe_failures_total",
            "Public names of clusters that a probe didn't reach, by the level that failed.",
            ProbeLevel::ALL.map(|level| (level.as_str(), count(&self.probe_failures, level))),
        );
    }
}

fn count<T: Ord>(counts: &Counts<T>, of: T) -> u64 {
    counts.get(&of).copied().unwrap_or(0)
}

/// A time in seconds as Prometheus expects it; 0 if there is none.
fn seconds(at: Option<Timestamp>) -> f64 {
    at.map_or(0.0, |at| at.as_duration().as_secs_f64())
}

fn counted(number: u64, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}
