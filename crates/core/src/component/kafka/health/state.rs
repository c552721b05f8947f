//! A table of rules. The first one that applies decides the status and its reason.

use super::inputs::HealthInputs;
use super::memory::{Decision, TroubleSign};
use super::progress::HealthProgress;
use super::report::ReportMeaning;
use super::trouble::TroubleKind;
use super::{authorities, deletion, reason};
use crate::catalog::Status;
use crate::component::health::timing::DEADLINE;
use crate::component::health::words;

type Rule = fn(&HealthInputs) -> Option<Decision>;

/// Ordered by precedence. Rules about pods come before what people or the operator say.
const RULES: [Rule; 16] = [
    deleting,
    not_there,
    refused,
    paused_at_birth,
    out_of_touch,
    never_worked,
    no_quorum,
    pods_lost,
    software_fails,
    gave_up,
    stalled,
    suspended,
    needs_a_person,
    changing,
    overtaken,
    healthy,
];

/// Applies the rules. If none applies, the trouble hasn't lasted long enough to be reported, so the last
/// reported status stays.
pub(super) fn decide(facts: &HealthInputs) -> Decision {
    let decided = RULES.iter().find_map(|rule| rule(facts));
    decided.or_else(|| facts.memory.told()).unwrap_or_else(|| not_healthy(facts))
}

fn decide_status(status: Status, reason: impl Into<String>) -> Decision {
    Decision { status, reason: Some(reason.into()), reports_pod_loss: false }
}

fn deleting(facts: &HealthInputs) -> Option<Decision> {
    let leaving = facts.wanted.deleting || facts.seen.kafka.as_ref().is_some_and(|kafka| kafka.deleting);
    leaving.then(|| decide_status(Status::Deleting, deletion::words(facts.remains)))
}

/// There is no Kafka object, or the operator hasn't reconciled it yet.
fn not_there(facts: &HealthInputs) -> Option<Decision> {
    let why = match &facts.seen.kafka {
        None => "its Kafka object is missing".to_owned(),
        Some(kafka) if kafka.has_status => return None,
        Some(_) if let Some(trouble) = facts.seen.operator.trouble() => {
            format!("the Strimzi operator, which has to process it, {trouble}")
        }
        Some(_) if facts.memory.is_late(facts.now) => {
            let namespace = &facts.wanted.namespace;
            let why = format!(
                "the Strimzi operator hasn't processed it: check that it watches namespace `{namespace}`"
            );
            return Some(decide_status(Status::Failed, why));
        }
        Some(_) => "the operator hasn't processed it yet".to_owned(),
    };
    Some(decide_status(Status::Pending, why))
}

/// The operator refuses the current spec. What ran before keeps running, so a mistake in the spec doesn't
/// make a running cluster Failed.
fn refused(facts: &HealthInputs) -> Option<Decision> {
    let report = facts.report;
    if !report.says(ReportMeaning::Refused) {
        return None;
    }
    let why = format!("the operator refuses the spec ({}): {}", report.reason, words::brief(&report.message));
    if facts.memory.succeeded.is_none() || facts.pods.ready() == 0 {
        return Some(decide_status(Status::Failed, why));
    }
    let how = if facts.pods.is_complete() { "keeps running" } else { "runs in part" };
    Some(decide_status(
        Status::Degraded,
        format!("{why}; what was running before {how} ({})", reason::pods(facts.pods)),
    ))
}

/// The cluster was created paused, as clusters over kept disks are.
fn paused_at_birth(facts: &HealthInputs) -> Option<Decision> {
    facts.memory.succeeded.is_none().then(|| suspended(facts)).flatten()
}

/// The Kafka object was recreated, and the operator can't connect to the pods that kept running.
fn out_of_touch(facts: &HealthInputs) -> Option<Decision> {
    let older = authorities::older_pods(facts.wanted, facts.seen);
    let has_status = facts.seen.kafka.as_ref().is_some_and(|kafka| kafka.has_status);
    (!older.is_empty() && has_status).then(|| {
        let why = "its Kafka object was recreated with other certificate authorities, and the operator can't talk to older \
                   pods";
        let way_out = "delete them one by one, each when the one before is ready again";
        let pods = reason::pods(facts.pods);
        decide_status(Status::Degraded, format!("{why}: {}; {way_out} ({pods})", words::named(&older)))
    })
}

/// The cluster has never worked: it is being created, or its creation failed.
fn never_worked(facts: &HealthInputs) -> Option<Decision> {
    if facts.memory.succeeded.is_some() {
        return None;
    }
    let what = format!("{}{}", reason::pods_and_report(facts), reason::older_disks(facts));
    let given_up = facts.report.says(ReportMeaning::GaveUp) && facts.pods_explain_it();
    let failed = given_up || facts.memory.is_late(facts.now);
    Some(decide_status(if failed { Status::Failed } else { Status::Provisioning }, what))
}

fn no_quorum(facts: &HealthInputs) -> Option<Decision> {
    let voters = facts.memory.voters?.count;
    let ready = facts.pods.controllers()?;
    let why = format!(
        "the controllers have lost their quorum: {ready} of the {voters} that vote {} ready and {} are needed; {}{}",
        if ready == 1 { "is" } else { "are" },
        voters / 2 + 1,
        reason::pods(facts.pods),
        reason::way_out(facts, voters),
    );
    facts.memory.has_lasted_debounce(TroubleSign::NoQuorum, facts.now).then(|| loss(why, facts))
}

/// Pods that were ready are away, and no rolling restart explains it.
fn pods_lost(facts: &HealthInputs) -> Option<Decision> {
    let lost = facts.memory.has_lasted_debounce(TroubleSign::Lost, facts.now);
    (lost && !is_rolling(facts)).then(|| loss(reason::pods(facts.pods), facts))
}

/// Whether the operator may be restarting pods: a change is under way, the operator runs, only one pod is
/// away, it can start, and it isn't overdue.
fn is_rolling(facts: &HealthInputs) -> bool {
    let HealthInputs { memory, now, .. } = *facts;
    let overdue = memory.lasted(TroubleSign::Lost, now).is_some_and(|lasted| lasted >= DEADLINE);
    memory.update.is_some()
        && !facts.seen.operator.is_down()
        && !memory.loss_told
        && !memory.has_lasted_debounce(TroubleSign::LostMany, now)
        && !memory.has_lasted_debounce(TroubleSign::Stuck, now)
        && !overdue
}

fn loss(why: String, facts: &HealthInputs) -> Decision {
    let mut why = why;
    let troubles = &facts.pods.troubles;
    if let Some(trouble) = facts.seen.operator.trouble() {
        // Kubernetes restarts an existing pod without the operator.
        let comes_back =
            !troubles.is_empty() && troubles.iter().all(|trouble| trouble.kind == TroubleKind::Starting);
        let nothing = if comes_back { "" } else { ", so nothing restores them" };
        why += &format!("; the Strimzi operator {trouble}{nothing}");
    } else if is_paused(facts) {
        why += "; the cluster is paused";
    } else if troubles.iter().any(|trouble| trouble.kind == TroubleKind::Missing) {
        why += "; the operator restores what was lost in its absence within 5 minutes of its start";
    }
    Decision { reports_pod_loss: true, ..decide_status(Status::Degraded, why) }
}

/// New pods crash or can't be run, while all pods that were there before are ready.
fn software_fails(facts: &HealthInputs) -> Option<Decision> {
    let broken = facts.memory.has_lasted_debounce(TroubleSign::Broken, facts.now);
    broken.then(|| decide_status(Status::Degraded, reason::pods(facts.pods)))
}

/// The operator's wait for pods timed out, and the pods are still as it reported.
fn gave_up(facts: &HealthInputs) -> Option<Decision> {
    let given_up = facts.report.says(ReportMeaning::GaveUp) && facts.pods_explain_it();
    given_up.then(|| decide_status(Status::Degraded, reason::pods_and_report(facts)))
}

/// A change is under way and nothing has moved for too long. A change with only partition movement left never
/// counts as stalled: it may take hours without a sign in any observed object, and Cruise Control reports if
/// it gives up.
fn stalled(facts: &HealthInputs) -> Option<Decision> {
    let mut active = facts.progress.iter().filter(|progress| progress.is_active(facts.pods)).peekable();
    if active.peek().is_some() && active.all(|progress| *progress == HealthProgress::Rebalance) {
        return None;
    }
    let minutes = DEADLINE.as_mins();
    let why = || format!("no progress for {minutes} minutes: {}", reason::under_way(facts));
    facts.memory.is_stalled(facts.now).then(|| decide_status(Status::Degraded, why()))
}

fn is_paused(facts: &HealthInputs) -> bool {
    facts.seen.kafka.as_ref().is_some_and(|kafka| kafka.paused)
}

fn suspended(facts: &HealthInputs) -> Option<Decision> {
    let who = if facts.wanted.paused { "" } else { ", which the spec doesn't request" };
    let why = format!("the cluster is paused (`strimzi.io/pause-reconciliation`{who}): changes wait");
    is_paused(facts).then(|| decide_status(Status::Suspended, why))
}

/// The pods are ready, but a person has to decide or repair something.
fn needs_a_person(facts: &HealthInputs) -> Option<Decision> {
    if let Some(condition) = facts.conditions.iter().find(|condition| condition.degraded) {
        return Some(decide_status(Status::Degraded, condition.message.clone()));
    }
    let failed = facts.report.says(ReportMeaning::Failed) || facts.report.says(ReportMeaning::GaveUp);
    let still = facts.memory.update.is_none();
    (failed && still).then(|| decide_status(Status::Degraded, reason::pods_and_report(facts)))
}

/// A change is under way, or was until a moment ago.
fn changing(facts: &HealthInputs) -> Option<Decision> {
    facts.memory.update?;
    let upgrading = facts.progress.iter().any(|progress| matches!(progress, HealthProgress::Version { .. }));
    Some(decide_status(
        if upgrading { Status::Upgrading } else { Status::Updating },
        reason::under_way(facts),
    ))
}

/// The operator's last report is a failure that is older than the pods, and it hasn't finished since.
fn overtaken(facts: &HealthInputs) -> Option<Decision> {
    facts.report.overtaken.then(|| decide_status(Status::Degraded, reason::pods_and_report(facts)))
}

fn healthy(facts: &HealthInputs) -> Option<Decision> {
    let well = facts.report.meaning == ReportMeaning::Ready && facts.pods.is_complete();
    well.then_some(Decision { status: Status::Healthy, reason: None, reports_pod_loss: false })
}

fn not_healthy(facts: &HealthInputs) -> Decision {
    decide_status(Status::Degraded, reason::pods_and_report(facts))
}
