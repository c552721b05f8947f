//! Silent and slow servers.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use super::stage::{Phase, Stage};
use crate::support::control_plane::ControlPlane;
use crate::support::proxy::{ConnectionBehavior, Fault, Rule};

/// How a server is silent, the expected duration in seconds, and the message.
type Silent = (fn(&Stage), u64, &'static str);

/// An unreachable server costs its fleet one deadline, however many calls there would be, and other fleets
/// nothing.
#[test]
fn a_server_that_says_nothing_is_waited_for_once() {
    let plane = Arc::new(ControlPlane::lease());
    let plans: [Silent; 3] = [
        (
            |it| it.proxy.set_connection_behavior(ConnectionBehavior::Deaf),
            10,
            "the connection failed: no answer within 10 s",
        ),
        (|it| it.proxy.inject(Rule::always(Fault::Silence)), 30, "no complete answer within 30 s"),
        (|it| it.proxy.inject(Rule::always(Fault::Trickle)), 30, "no complete answer within 30 s"),
    ];
    thread::scope(|scope| {
        for (wrong, seconds, reason) in plans {
            let plane = Arc::clone(&plane);
            scope.spawn(move || {
                let stage = Stage::on(plane);
                wrong(&stage);
                let begin = Instant::now();
                stage.plan().expect(3).says(&["cannot read the namespace kube-system", reason]);
                let took = begin.elapsed();
                assert!(took < Duration::from_secs(seconds * 2), "{took:?}, {reason}");
            });
        }
    });
}

/// The server falls silent at different moments of a run, with all concurrent calls in flight: during
/// observation, while intents are recorded, and while objects are created.
#[test]
fn a_server_that_falls_silent_during_an_apply_is_waited_for_once() {
    let silence = || Rule::always(Fault::Silence).and_all_after();
    let moments = [
        (silence().changing(false).from(6), 3),
        (silence().changing(true).from(2), 1),
        (silence().on("PATCH", "/namespaces/").changing(true).from(3), 1),
    ];
    thread::scope(|scope| {
        for (silence, code) in moments {
            scope.spawn(move || {
                let stage = Stage::new();
                let (expected, _) = stage.undisturbed(Phase::Create);
                stage.begin(Phase::Create);
                stage.proxy.inject(silence);
                let begin = Instant::now();
                stage.apply().expect(code).says(&["no complete answer within 30 s"]);
                let took = begin.elapsed();
                assert!(took < Duration::from_secs(50), "{took:?}");
                stage.assert_folder(&expected, "beside a silent server");
                stage.recover(&expected, Phase::Create, "after a silent server");
            });
        }
    });
}

#[test]
fn a_slow_server_works_and_an_endless_answer_is_not_read() {
    let stage = Stage::new();
    let slow = || Rule::always(Fault::Late(Duration::from_secs(2)));
    stage.proxy.inject(slow());
    stage.plan().expect(2).says_nothing_of(&["Unreachable"]);
    // To save time, only modifying calls are slow.
    stage.proxy.reset();
    stage.proxy.inject(slow().on("PATCH", ""));
    stage.proxy.inject(slow().on("POST", ""));
    stage.apply().expect(0);
    stage.proxy.reset();
    stage.plan().expect(0);
    stage.proxy.inject(Rule::always(Fault::Huge));
    stage
        .plan()
        .expect(3)
        .says(&["cannot read the namespace kube-system: the server sends more than the limit for a fleet: a part of the \
                 answer is longer than 4096 KiB, the limit"]);
}
