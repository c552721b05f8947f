//! Messages for each lasting fault, and the recovery afterwards.

use serde_json::Value;

use super::stage::{Phase, Stage};
use crate::support::Run;
use crate::support::proxy::{ConnectionBehavior, Fault, Rule};

#[derive(Clone)]
enum LastingFault {
    /// In a plan: every call, or every one but the first, which reads whose the cluster is. In an apply:
    /// writes of node pools.
    Calls(fn() -> Fault),
    Inventory(fn() -> Rule),
    ConnectionBehavior(ConnectionBehavior),
}

use LastingFault::{Calls, Inventory};

/// Lasting faults. Missing answers take long and have a test of their own.
const TABLE: [(&str, LastingFault); 25] = [
    ("429", Calls(|| Fault::refusal(429, "TooManyRequests", "retry-after: 0\r\n"))),
    ("429 without a status", Calls(|| Fault::answer("429 Too Many Requests", "retry-after: 0\r\n", "later"))),
    ("500", Calls(|| Fault::refusal(500, "InternalError", ""))),
    ("503", Calls(|| Fault::refusal(503, "ServiceUnavailable", ""))),
    ("502 of a balancer", Calls(|| Fault::answer("502 Bad Gateway", HTML, "<html>"))),
    ("404 of a balancer", Calls(|| Fault::answer("404 Not Found", HTML, "default backend"))),
    ("expired token", Calls(|| Fault::refusal(401, "Unauthorized", ""))),
    ("forbidden", Calls(|| Fault::refusal(403, "Forbidden", ""))),
    ("reset", Calls(|| Fault::Reset)),
    ("answer lost", Calls(|| Fault::Lost)),
    ("reset in the answer", Calls(|| Fault::ResetInBody)),
    ("answer cut", Calls(|| Fault::Cut)),
    ("answer cut between chunks", Calls(|| Fault::CutChunked)),
    ("half JSON", Calls(|| Fault::Half)),
    ("captive portal", Calls(|| Fault::answer("200 OK", HTML, "<html>Log in</html>"))),
    ("empty JSON", Calls(|| Fault::answer("200 OK", JSON, "{}"))),
    ("redirect", Calls(|| Fault::answer("302 Found", "location: https://127.0.0.1:1/\r\n", "{}"))),
    ("early hints, and then no HTTP", Calls(|| Fault::Answer(EARLY.repeat(100) + "and no end\r\n\r\n"))),
    ("compressed though nobody asked", Calls(|| Fault::answer("200 OK", GZIP, "\u{1f}\u{7f}garbage"))),
    ("no HTTP", Calls(|| Fault::Answer("SSH-2.0-OpenSSH_9.9\r\n\r\n".to_owned()))),
    ("another certificate", LastingFault::ConnectionBehavior(ConnectionBehavior::Stranger)),
    ("inventory without items", Inventory(|| Rule::always(Fault::Altered(without_items)))),
    ("inventory cut", Inventory(|| Rule::always(Fault::Altered(with_less)))),
    ("inventory whose page expires once", Inventory(|| Rule::always(Fault::Altered(with_more)).times(1))),
    ("inventory whose pages expire", Inventory(|| Rule::always(Fault::Altered(with_more)))),
];

/// Faults that could pass for "nothing is there" or "nothing was done".
const MISLEADING_FAULTS: [&str; 7] = [
    "404 of a balancer",
    "answer lost",
    "half JSON",
    "empty JSON",
    "inventory without items",
    "inventory cut",
    "inventory whose pages expire",
];

const EARLY: &str = "HTTP/1.1 103 Early Hints\r\n\r\n";
const HTML: &str = "content-type: text/html; charset=utf-8\r\n";
const JSON: &str = "content-type: application/json\r\n";
const GZIP: &str = "content-type: application/json\r\ncontent-encoding: gzip\r\n";
const INVENTORY: &str = "/namespaces/streamfleet-system/configmaps?";

fn without_items(list: &mut Value) {
    list["items"] = Value::Array(Vec::new());
}

fn with_less(list: &mut Value) {
    list["items"].as_array_mut().unwrap().truncate(1);
}

fn with_more(list: &mut Value) {
    list["metadata"]["continue"] = "more".into();
}

#[derive(Clone, Copy)]
enum Verb {
    Plan,
    Apply,
}

impl LastingFault {
    fn goes(&self, stage: &Stage, phase: Phase, step: Verb) {
        match self {
            Calls(fault) => stage.proxy.inject(match (step, phase) {
                (Verb::Plan, Phase::Create) => Rule::always(fault()),
                (Verb::Plan, _) => Rule::always(fault()).except_path("/namespaces/kube-system"),
                (Verb::Apply, Phase::Delete) => Rule::always(fault()).on("DELETE", "/kafkanodepools/"),
                (Verb::Apply, _) => Rule::always(fault()).on("PATCH", "/kafkanodepools/").changing(true),
            }),
            Inventory(rule) => {
                let expired = Fault::refusal(410, "Expired", "");
                stage.proxy.inject(Rule::always(expired).on("GET", "continue=more"));
                stage.proxy.inject(rule().on("GET", INVENTORY));
            }
            LastingFault::ConnectionBehavior(behavior) => stage.proxy.set_connection_behavior(*behavior),
        }
    }
}

/// The lines about the fault, without the rest of the plan.
fn told(run: &Run) -> String {
    let lines = run.out.lines().chain(run.err.lines()).map(str::trim_start);
    let is_told = |line: &&str| line.starts_with("error: ") || line.starts_with("help: ");
    let unreached =
        lines.clone().find(|line| line.starts_with("! fleet eu") || line.starts_with("! cluster sandbox"));
    let told = unreached.into_iter().chain(lines.filter(is_told)).map(|line| format!("  {line}\n"));
    format!("  exit {}\n{}", run.code, told.collect::<String>())
}

fn assert_no_secret(stage: &Stage, run: &Run, when: &str) {
    for secret in stage.secrets() {
        let leaks = run.out.contains(&secret) || run.err.contains(&secret);
        assert!(!leaks, "{when}\n{}{}", run.out, run.err);
    }
}

/// One run for each fault. Faults with the same effect on a run, a failed call, are spread over the phases;
/// those that could lose something go through each phase.
fn go_wrong(phase: Phase) -> String {
    let stage = Stage::new();
    let mut text = String::new();
    let expected = stage.undisturbed(phase).0;
    for (row, (name, wrong)) in TABLE.iter().enumerate() {
        let is_turn = row % 3 == phase as usize;
        if !is_turn && !MISLEADING_FAULTS.contains(name) {
            continue;
        }
        let when = format!("{name}, {phase:?}");
        stage.begin(phase);
        if is_turn {
            wrong.goes(&stage, phase, Verb::Plan);
            let plan = stage.plan();
            assert_no_secret(&stage, &plan, &when);
            text.push_str(&format!("{name}, plan\n{}", told(&plan)));
            let changed = stage.proxy.reset().into_iter().any(|call| call.changes);
            assert!(!changed, "a plan only looks, {when}");
        }
        wrong.goes(&stage, phase, Verb::Apply);
        let run = stage.apply();
        assert_no_secret(&stage, &run, &when);
        stage.assert_folder(&expected, &when);
        text.push_str(&format!("{when}\n{}", told(&run)));
        stage.recover(&expected, phase, &when);
    }
    text
}

#[test]
fn what_stays_wrong_while_everything_is_made() {
    insta::assert_snapshot!(go_wrong(Phase::Create));
}

#[test]
fn what_stays_wrong_while_something_changes() {
    insta::assert_snapshot!(go_wrong(Phase::Update));
}

#[test]
fn what_stays_wrong_while_something_is_deleted() {
    insta::assert_snapshot!(go_wrong(Phase::Delete));
}
