//! Kills between any two calls, and calls that fail once.

use super::stage::{APPLY, Phase, Stage};
use crate::support::one_in;
use crate::support::proxy::{Fault, Rule, Side};

/// Number of kills at read-only calls. Between two of these nothing happens on the server.
const READS: usize = 6;

/// Kills a run at each modifying call: before the server has seen it, and after the server has answered but
/// before the run has the answer. The fate of other calls in flight is open. A few of the read-only calls are
/// taken, evenly spread. One more run must reach the result of an undisturbed one.
fn kill_everywhere(phase: Phase) {
    let stage = Stage::new();
    let (expected, calls) = stage.undisturbed(phase);
    let changes = calls.iter().filter(|call| call.changes).count();
    let reads = calls.len() - changes;
    assert!(changes > 1 && reads > 10, "{calls:#?}");
    let places = (1..=changes).flat_map(|number| [(true, number, Side::Before), (true, number, Side::After)]);
    let reads = (1..=reads).step_by(reads.div_ceil(READS)).map(|number| (false, number, Side::Before));
    // An odd step takes both sides in turn.
    for (changing, number, side) in places.chain(reads).step_by(one_in(3)) {
        stage.begin(phase);
        let which = if changing { "change" } else { "read" };
        let when = format!("killed at {which} {number}, {side:?}, {phase:?}");
        stage.proxy.inject(Rule::always(Fault::Hold(side)).changing(changing).from(number).times(1));
        let was_held = kill_when_held(&stage);
        // Timing changes the number of reads a little, so a run may end before its last expected read.
        assert!(was_held || !changing, "{when}: there was no such call");
        stage.recover(&expected, phase, &when);
    }
}

/// Starts a run and kills it once a call is held. Returns whether one was.
fn kill_when_held(stage: &Stage) -> bool {
    let mut run = stage.tree.start(APPLY);
    let was_held = stage.proxy.holds_unless(|| run.try_wait().unwrap().is_some());
    run.kill().unwrap();
    run.wait().unwrap();
    was_held
}

#[test]
fn a_first_apply_is_killed_between_any_two_calls() {
    kill_everywhere(Phase::Create);
}

#[test]
fn a_change_is_killed_between_any_two_calls() {
    kill_everywhere(Phase::Update);
}

#[test]
fn a_deletion_is_killed_between_any_two_calls() {
    kill_everywhere(Phase::Delete);
}

/// Any single fault in one call doesn't stop a run. The faults are spread over all calls; the worst, a lost
/// answer, hits every modifying call.
#[test]
fn what_happens_once_is_made_good_in_the_same_run() {
    let stage = Stage::new();
    for phase in [Phase::Create, Phase::Update, Phase::Delete] {
        let (expected, calls) = stage.undisturbed(phase);
        let faults = [
            Fault::Lost,
            Fault::Reset,
            Fault::ResetInBody,
            Fault::Cut,
            Fault::refusal(503, "ServiceUnavailable", ""),
            Fault::CutChunked,
            Fault::refusal(429, "TooManyRequests", "retry-after: 0\r\n"),
            Fault::answer("200 OK", "content-type: text/html\r\n", "<html>Log in</html>"),
            Fault::Half,
        ];
        let changes = calls.iter().filter(|call| call.changes).count();
        let lost = (1..=changes).map(|number| Rule::always(Fault::Lost).changing(true).from(number));
        // Each phase starts with a different fault, so that each hits early and late calls.
        let turns = (0..faults.len()).map(|turn| {
            let fault = faults[(turn + 3 * phase as usize) % faults.len()].clone();
            Rule::always(fault).from(1 + turn * calls.len() / faults.len())
        });
        for rule in lost.chain(turns).step_by(one_in(3)) {
            let when = format!("{rule:?}, {phase:?}");
            stage.begin(phase);
            stage.proxy.inject(rule.times(1));
            let run = stage.apply();
            assert_eq!(run.code, 0, "{when}\n{}{}", run.out, run.err);
            stage.recover(&expected, phase, &when);
        }
    }
}
