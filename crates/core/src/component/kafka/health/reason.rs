//! The sentences that explain a status.

use super::inputs::HealthInputs;
use super::memory::TroubleSign;
use super::pods::PodCount;
use super::progress::HealthProgress;
use super::report::ReportMeaning;
use super::trouble::TroubleKind;
use crate::component::health::timing::{DEBOUNCE, QUIET_PERIOD};
use crate::component::health::words::{NAMED, brief, quoted};

/// How many pods are ready, and why the others aren't: `2 of 3 pods are ready: …`.
pub(super) fn pods(pods: &PodCount) -> String {
    if pods.pools.values().any(|pool| pool.ready.is_none()) {
        return format!("how many of {} pods are ready is unknown", pods.wanted());
    }
    let mut sentence = format!("{} of {} pods are ready", pods.ready(), pods.wanted());
    let named: Vec<String> = if pods.troubles.is_empty() {
        let short = pods.pools.iter().filter_map(|(name, pool)| {
            let ready = pool.ready.filter(|ready| *ready < pool.wanted)?;
            Some(format!("pool {} has {ready} of {}", quoted(name), pool.wanted))
        });
        short.collect()
    } else {
        pods.troubles.iter().map(|trouble| format!("{} {}", quoted(&trouble.pod), trouble.why)).collect()
    };
    if !named.is_empty() {
        let more = named.len().saturating_sub(NAMED);
        sentence += &format!(": {}", named[..named.len() - more].join("; "));
        if more > 0 {
            sentence += &format!("; and {more} more");
        }
    }
    for trouble in pods.helpers.iter().filter(|trouble| trouble.kind.is_stuck()) {
        sentence += &format!("; {} {}", quoted(&trouble.pod), trouble.why);
    }
    sentence
}

/// A hint for a new cluster whose pods crash on volumes that are older than the cluster: Kafka doesn't start
/// on the disks of another cluster id, and says so only in its log.
pub(super) fn older_disks(facts: &HealthInputs) -> String {
    let made = facts.seen.kafka.as_ref().and_then(|kafka| kafka.created.as_ref());
    let crashing = facts.pods.troubles.iter().filter(|trouble| trouble.kind == TroubleKind::Crash);
    let claims = crashing.flat_map(|trouble| facts.seen.claims_of(&trouble.pod));
    // Both are written by the same API server in RFC 3339 to the second, so they compare as text.
    let mut older = claims.filter(|(_, claim)| claim.created.is_some() && claim.created.as_ref() < made);
    older.next().map_or_else(String::new, |(name, _)| {
        format!("; volume `{name}` is older than this cluster: if it has data of an earlier cluster, that cluster's id is \
                 needed")
    })
}

/// The remedy for a lost quorum, where the pods don't show it.
pub(super) fn way_out(facts: &HealthInputs, voters: u32) -> String {
    let controllers = facts.pods.pools.values().filter(|pool| pool.controller).map(|pool| pool.wanted);
    if controllers.sum::<u32>() < voters {
        return format!("; set the number of controllers back to {voters}");
    }
    let ignored = facts.seen.pools.values().any(|pool| pool.is_behind());
    if ignored && facts.memory.since_change(facts.now) >= DEBOUNCE {
        return "; the operator waits for the quorum and ignores the last change: restart the operator"
            .to_owned();
    }
    String::new()
}

/// How many pods are ready, and what the operator reports if it is more than success.
pub(super) fn pods_and_report(facts: &HealthInputs) -> String {
    let counted = pods(facts.pods);
    let report = facts.report;
    match report.meaning {
        ReportMeaning::GaveUp if !facts.pods_explain_it() => hasnt_finished(counted, facts),
        ReportMeaning::GaveUp | ReportMeaning::Failed | ReportMeaning::Refused if report.fresh => {
            format!("{counted}; the operator reports {}: {}", report.reason, brief(&report.message))
        }
        _ if report.overtaken => format!(
            "{counted}; the operator hasn't finished since these pods were created, and its earlier report ({}) doesn't \
             cover them",
            report.reason
        ),
        _ => match facts.seen.operator.trouble() {
            Some(trouble) => format!("{counted}; the Strimzi operator {trouble}"),
            None => hasnt_finished(counted, facts),
        },
    }
}

fn hasnt_finished(pods: String, facts: &HealthInputs) -> String {
    if facts.pods.is_complete() { format!("{pods}; the operator hasn't finished") } else { pods }
}

/// Describes what is under way. `Change` and `Restarting` are left out where another entry is more specific.
fn telling(progress: &[HealthProgress]) -> String {
    let replaced = progress.iter().any(|progress| matches!(progress, HealthProgress::Revision { .. }));
    let says_more = |one: &&HealthProgress| match one {
        HealthProgress::Change => progress.len() == 1,
        HealthProgress::Restarting { .. } => !replaced,
        _ => true,
    };
    progress.iter().filter(says_more).map(HealthProgress::to_string).collect::<Vec<_>>().join("; ")
}

/// The pod that can't start and blocks everything else.
fn stuck(facts: &HealthInputs) -> String {
    let worst = facts
        .pods
        .troubles
        .first()
        .filter(|_| facts.memory.has_lasted_debounce(TroubleSign::Stuck, facts.now));
    worst.map_or_else(String::new, |trouble| format!("; `{}` {}", trouble.pod, trouble.why))
}

/// Describes what is under way, or that it is about to end.
pub(super) fn under_way(facts: &HealthInputs) -> String {
    let what = if facts.progress.iter().any(|progress| progress.is_active(facts.pods)) {
        format!("{}{}", telling(facts.progress), stuck(facts))
    } else if facts.report.meaning == ReportMeaning::Ready {
        let seconds = QUIET_PERIOD.as_secs();
        format!("{}; done unless the operator restarts more within {seconds} s", pods(facts.pods))
    } else {
        hasnt_finished(pods(facts.pods), facts)
    };
    match facts.seen.operator.trouble() {
        Some(trouble) => format!("waits for the Strimzi operator, which {trouble}: {what}"),
        None => what,
    }
}
