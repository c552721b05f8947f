//! Judges what a change of an object does to a cluster's clients and data, by a table whose first matching
//! row decides. The rows describe the behaviour of Strimzi 1.2, whatever the cause of the change.

mod certificate;
mod difference;
mod login;
mod table;

use serde_json::Value;

use crate::names::Json;
use crate::plan::field_effects::FieldEffect;
use crate::plan::{Step, Verb, Verdict, effects};
pub(super) use certificate::keeps_certificate;
pub(super) use difference::{Difference, differences};
pub(super) use table::{Direction, GO_ON, PUT_VERSION_BACK};
use table::{FEWER_BROKERS, OTHER_BALANCERS, OTHER_LISTENERS, ObjectFilter, Row, RowVerdict, TABLE};

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
    pub(super) fn restarts_brokers(self) -> bool {
        matches!(self, Verdict::RollingRestart | Verdict::ClientsReconnect)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RefusedChange {
    /// A stable code for programs.
    pub code: &'static str,
    pub why: String,
    pub hint: &'static str,
}

#[derive(Debug, Default)]
pub(super) struct ChangeJudgement {
    /// The worst effect; `None` if nothing is done.
    pub verdict: Option<Verdict>,
    pub effects: Vec<String>,
    pub refusals: Vec<RefusedChange>,
    /// The worst effect except for deleted records, which disrupt nothing by themselves.
    disruption: Option<Verdict>,
    permits: Permits,
    /// Whether brokers reject clients that they accepted before, so that not all clients go on.
    turns_away: bool,
}

/// Changes that are refused unless the spec confirms them.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Permits {
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

pub(super) fn judge<'a>(steps: impl Iterator<Item = &'a Step>, permits: Permits) -> ChangeJudgement {
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
            Verb::Update | Verb::Keep | Verb::Recreate => judge_update(&mut judgement, step),
        }
    }
    if judgement.turns_away {
        judgement.drop_clients_go_on();
    }
    judgement
}

/// Returns the effect on brokers and clients of a change that also deletes records.
pub(super) fn disruption(steps: &[Step]) -> Verdict {
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
            for deleted in table::deleted_records(step, &before, &after) {
                judgement.record(Verdict::DataLoss, deleted);
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
        let pointer = difference.map_or("", |difference| &difference.pointer);
        let row = || TABLE.iter().find(|row| row.fits(step, direction, pointer)).map(|row| row.outcome);
        if let Some((verdict, words)) = table::of_records(step, difference) {
            self.turns_away |= table::turns_away(step, difference);
            self.record(verdict, words);
        }
        if let Some(words) = certificate::beside_the_certificate(step, pointer) {
            return self.record(Verdict::InPlace, words);
        }
        let special = table::of_broker_option(step, pointer)
            .or_else(|| table::of_annotations(step, pointer))
            .or_else(|| certificate::of_another_authority(step, difference))
            .or_else(|| login::with_the_same_tokens(difference));
        let Some(outcome) = special.or_else(row) else {
            return self.record(Verdict::InPlace, String::new());
        };
        match outcome {
            RowVerdict::Does(verdict, words) => self.record(verdict, effects::fill(words, step, difference)),
            RowVerdict::RemovesBrokers(words) if self.permits.allow(difference) => {
                self.record(Verdict::BrokerRemoval, effects::fill(words, step, difference));
            }
            RowVerdict::RemovesBrokers(_) => self.refuse_in(FEWER_BROKERS, step, difference),
            RowVerdict::Refuses(refusal) => self.refuse_in(refusal, step, difference),
        }
    }

    /// Adds the possible effects of overwriting an object that can't be read, whatever was applied last.
    pub(super) fn rewritten(&mut self, step: &Step) {
        self.add(step, Direction::Rewritten, None);
    }

    /// Adds the effects of changed fields. If they name the clients that are cut off, general sentences about
    /// listeners and about clients that go on would only raise doubts, and are removed.
    pub(super) fn tell(&mut self, told: &[&FieldEffect]) {
        if told.iter().any(|row| row.verdict == Verdict::ClientsReconnect) {
            self.effects.retain(|effect| effect != OTHER_LISTENERS && effect != OTHER_BALANCERS);
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

    pub(super) fn refuses(&self) -> bool {
        !self.refusals.is_empty()
    }

    fn refuse_in(
        &mut self,
        [code, why, hint]: [&'static str; 3],
        step: &Step,
        difference: Option<&Difference>,
    ) {
        self.refuse(RefusedChange { code, why: effects::fill(why, step, difference), hint });
    }

    pub(super) fn refuse(&mut self, refusal: RefusedChange) {
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

impl Row {
    fn fits(&self, step: &Step, direction: Direction, pointer: &str) -> bool {
        let kind = self.kind == "*" || self.kind == step.object.kind;
        kind && self.when.fits(direction)
            && matches_pattern(self.path, pointer)
            && self.of.fits(step.after.as_ref().map(|manifest| &manifest.body).or(step.before.as_ref()))
    }
}

impl ObjectFilter {
    fn fits(self, body: Option<&Json>) -> bool {
        let body = body.filter(|_| !matches!(self, ObjectFilter::Any)).map(Json::value);
        let controllers = || {
            let roles = body.as_ref().and_then(|body| body.pointer("/spec/roles")).and_then(Value::as_array);
            roles.is_some_and(|roles| roles.iter().any(|role| role == "controller"))
        };
        match self {
            ObjectFilter::Any => true,
            ObjectFilter::Controllers => controllers(),
            ObjectFilter::Tls => body.as_ref().is_some_and(|body| {
                body.get("type").is_some_and(|kind| kind == "kubernetes.io/tls")
                    || body.pointer("/data/tls.crt").is_some()
            }),
        }
    }
}

/// Whether a JSON pointer matches a pattern, in which `*` is one part and a final `**` any number of parts.
fn matches_pattern(pattern: &str, pointer: &str) -> bool {
    let mut pointer = pointer.split('/');
    for part in pattern.split('/') {
        match part {
            "**" => return true,
            "*" if pointer.next().is_some() => {}
            part if pointer.next() == Some(part) => {}
            _ => return false,
        }
    }
    pointer.next().is_none()
}

#[cfg(test)]
mod tests;
