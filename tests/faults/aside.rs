//! Optional calls of a plan, whose failure must not stop it.

use super::stage::{Phase, Stage};
use crate::support::one_in;
use crate::support::proxy::{Fault, Rule};

/// Optional queries: what the cluster lacks, permissions, and dry runs of each step.
const ASIDE: [&str; 7] = [
    "/version",
    "/selfsubjectaccessreviews",
    "/apis/storage.k8s.io",
    "/apis/gateway.networking.k8s.io",
    "/nodes",
    "/api/v1/services",
    "dryRun=All",
];

/// With one of them failing all the time, everything is created as planned, and the plan says what is
/// unknown.
#[test]
fn what_is_only_asked_aside_holds_up_nothing() {
    let stage = Stage::new();
    let phases = [Phase::Create, Phase::Update].map(|phase| (phase, stage.undisturbed(phase).0));
    // Every path by default, in one of the phases.
    for (turn, path) in ASIDE.iter().enumerate() {
        for (phase, expected) in phases.iter().skip(turn % one_in(2)).step_by(one_in(2)) {
            let phase = *phase;
            let fault = match (turn + phase as usize) % 4 {
                0 => Fault::refusal(503, "ServiceUnavailable", ""),
                1 => Fault::answer("404 Not Found", "content-type: text/html\r\n", "default backend"),
                2 => Fault::answer("200 OK", "content-type: application/json\r\n", "{}"),
                _ => Fault::Lost,
            };
            stage.begin(phase);
            stage.proxy.inject(Rule::always(fault.clone()).to(path));
            let when = format!("{path}, {phase:?}, {fault:?}");
            let run = stage.apply();
            assert_eq!(run.code, 0, "{when}\n{}{}", run.out, run.err);
            assert!(run.out.contains(", 0 waiting."), "{when}\n{}", run.out);
            let unasked = run.out.contains("1 object unverified because the API server can't be reached: ");
            assert_eq!(unasked, *path == "dryRun=All", "{when}\n{}", run.out);
            stage.recover(expected, phase, &when);
        }
    }
}
