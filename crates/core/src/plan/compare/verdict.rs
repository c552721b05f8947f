//! Judges what a change of an object does to a cluster's clients and data, by the rows of the components and
//! those of [`TABLE`]. The first that matches decides.

mod table;

use serde_json::Value;

use crate::component::COMPONENTS;
use crate::component::consequence::{Direction, GO_ON, Row, RowVerdict, SideEffect, Verdict};
pub(in crate::plan) use crate::component::{Difference, differences};
use crate::names::Json;
use crate::plan::compare::field_effects::FieldEffect;
use crate::plan::{Step, Verb, compare::effects};
use table::TABLE;

/// All rows, in the order in which they are tried.
fn rows() -> impl Iterator<Item = &'static Row> {
    COMPONENTS.iter().flat_map(|component| component.consequences.rows).chain(TABLE)
}

/// Whether a step writes a Secret without changing the certificate in it, so that no broker restarts for it.
pub(in crate::plan) fn keeps_certificate(step: &Step) -> bool {
    COMPONENTS.iter().any(|component| (component.consequences.keeps_certificate)(&step.as_change()))
}

impl Verdict {
    /// Formats the verdict in a few words: `rolling restart`.
    pub fn words(self) -> &'static str {
        match self {
            Verdict::NoOp => "nothing",
            Verdict::InPlace => "in place",
            Verdict::StorageGrowth => "storage growth",
            Verdict::RollingRestart => "rolling restart",
            Verdict::BrokerRemoval => "brokers removed",
            Verdict::ClientsReconnect => "clients must reconnect",
            Verdict::ServiceLoss => "service loss",
            Verdict::DataLoss => "data loss",
            Verdict::Refused => "refused",
        }
    }

    /// Whether brokers restart or clients are cut off, though all data stays.
    pub(in crate::plan) fn restarts_brokers(self) -> bool {
        matches!(self, Verdict::RollingRestart | Verdict::ClientsReconnect)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::plan) struct RefusedChange {
    /// A stable code for programs.
    pub code: &'static str,
    pub why: String,
    pub hint: &'static str,
}

#[derive(Debug, Default)]
pub(in crate::plan) struct ChangeJudgement {
    /// The worst effect; `None` if nothing is done.
    pub verdict: Option<Verdict>,
    pub effects: Vec<String>,
    pub refusals: Vec<RefusedChange>,
    /// The worst effect except for deleted records, which disrupt nothing by themselves.
    disruption: Option<Verdict>,
    permits: Permits,
    /// Whether brokers reject clients that they accepted before, so that some clients can't continue.
    turns_away: bool,
}

/// Changes that are refused unless the spec confirms them.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::plan) struct Permits {
    pub fewer_brokers: bool,
}

impl Permits {
    /// Whether a pool may lose these nodes. The quota of its namespace has room for twice the remaining
    /// nodes, and with a single broker there is no Cruise Control to empty the removed ones.
    fn allow(self, difference: Option<&Difference>) -> bool {
        let [before, after] = [difference.map(|it| it.before), difference.map(|it| it.after)]
            .map(|number| number.and_then(Value::as_u64).unwrap_or(0));
        self.fewer_brokers && after >= 2 && before <= after.saturating_mul(2)
    }
}

pub(in crate::plan) fn judge<'a>(steps: impl Iterator<Item = &'a Step>, permits: Permits) -> ChangeJudgement {
    let mut judgement = ChangeJudgement { permits, ..ChangeJudgement::default() };
    for step in steps {
        match step.verb {
            Verb::Create => {
                judgement.add(step, Direction::Created, None);
                if step.before.is_some() {
                    judge_update(&mut judgement, step);
                }
            }
            Verb::Delete => judgement.add(step, Direction::Deleted, None),
            Verb::Update | Verb::Keep | Verb::Recreate | Verb::Adopt => judge_update(&mut judgement, step),
        }
    }
    if judgement.turns_away {
        judgement.drop_clients_go_on();
    }
    judgement
}

/// Returns the effect on brokers and clients of a change that also deletes records.
pub(in crate::plan) fn disruption(steps: &[Step]) -> Verdict {
    // Whether brokers may be removed was decided when the change was judged.
    let judgement = judge(steps.iter(), Permits { fewer_brokers: true });
    judgement.disruption.unwrap_or(Verdict::NoOp)
}

fn judge_update(judgement: &mut ChangeJudgement, step: &Step) {
    let Some(after) = &step.after else {
        return;
    };
    match &step.before {
        Some(before) => {
            let [before, after] = [before, &after.body].map(Json::value);
            for component in COMPONENTS {
                let deleted = (component.consequences.deleted_records)(&step.as_change(), &before, &after);
                deleted.into_iter().for_each(|words| judgement.record(Verdict::DataLoss, words));
            }
            for difference in differences(&before, &after) {
                judgement.add(step, difference.direction(), Some(&difference));
            }
        }
        None => judgement.add(step, Direction::Rewritten, None),
    }
    // Only the form differs: another file with the same content.
    judgement.verdict = judgement.verdict.max(Some(Verdict::NoOp));
}

impl ChangeJudgement {
    fn add(&mut self, step: &Step, direction: Direction, difference: Option<&Difference>) {
        let change = step.as_change();
        let consequences = || COMPONENTS.iter().map(|component| &component.consequences);
        for it in consequences() {
            let side_effect = difference.and_then(|difference| (it.side_effect)(&change, difference));
            if let Some(SideEffect { verdict, words, turns_away }) = side_effect {
                self.turns_away |= turns_away;
                self.record(verdict, words);
            }
        }
        let pointer = difference.map_or("", |difference| &difference.pointer);
        let special = consequences().find_map(|it| (it.special)(&change, difference));
        let row = || rows().find(|row| row.fits(&change, direction, pointer)).map(|row| row.outcome.clone());
        let Some(outcome) = special.or_else(row) else {
            return self.record(Verdict::InPlace, String::new());
        };
        match outcome {
            RowVerdict::Does(verdict, words) => {
                self.record(verdict, effects::fill(&words, &change, difference));
            }
            RowVerdict::RemovesBrokers(words, _) if self.permits.allow(difference) => {
                self.record(Verdict::BrokerRemoval, effects::fill(words, &change, difference));
            }
            RowVerdict::RemovesBrokers(_, [code, why, hint]) | RowVerdict::Refuses([code, why, hint]) => {
                self.refuse(RefusedChange { code, why: effects::fill(why, &change, difference), hint });
            }
        }
    }

    /// Adds the possible effects of overwriting an object that can't be read, whatever was applied last.
    pub(in crate::plan) fn rewritten(&mut self, step: &Step) {
        self.add(step, Direction::Rewritten, None);
    }

    /// Adds the effects of changed fields. If they name the clients that are cut off, general sentences about
    /// listeners and about clients that continue would contradict that, and are removed.
    pub(in crate::plan) fn tell(&mut self, told: &[&FieldEffect]) {
        if told.iter().any(|row| row.verdict == Verdict::ClientsReconnect) {
            let general = || COMPONENTS.iter().flat_map(|component| component.consequences.general);
            self.effects.retain(|effect| general().all(|general| effect != general));
            self.drop_clients_go_on();
        }
        for row in told.iter().filter(|row| row.verdict != Verdict::Refused) {
            if !self.effects.iter().any(|effect| effect == row.why) {
                self.effects.push(row.why.to_owned());
            }
        }
    }

    fn drop_clients_go_on(&mut self) {
        for effect in &mut self.effects {
            effect.truncate(effect.trim_end_matches(GO_ON).len());
        }
    }

    pub(in crate::plan) fn refuses(&self) -> bool {
        !self.refusals.is_empty()
    }

    pub(in crate::plan) fn refuse(&mut self, refusal: RefusedChange) {
        if !self.refusals.contains(&refusal) {
            self.refusals.push(refusal);
        }
        self.verdict = Some(Verdict::Refused);
    }

    fn record(&mut self, verdict: Verdict, effect: String) {
        self.verdict = self.verdict.max(Some(verdict));
        if verdict != Verdict::DataLoss {
            self.disruption = self.disruption.max(Some(verdict));
        }
        if !effect.is_empty() && !self.effects.contains(&effect) {
            self.effects.push(effect);
        }
    }
}

#[cfg(test)]
mod tests;
