use std::fs;

use super::*;
use crate::catalog::{Approval, DurableRecord, OpenedSecret, SecretMark};
use crate::plan::Verb;
use crate::spec::SourceId;

pub fn texts(report: &ExecutionReport) -> Vec<String> {
    report.failed.iter().map(|failure| format!("{failure}; {}", failure.hint)).collect()
}

pub fn done(report: &ExecutionReport) -> Vec<(Verb, String)> {
    report.done.iter().map(|done| (done.verb, done.resource.name.to_string())).collect()
}

fn context<'a>(
    plan: &'a Plan,
    recorded: &'a Recorded,
    targets: &'a Targets,
    state: &'a State,
    secrets: &'a Secrets,
) -> RunContext<'a> {
    RunContext { plan, recorded, targets, state, secrets, keyring: keyring(), clock: &now, actor: "ann" }
}

#[tokio::test]
async fn a_plan_is_done_recorded_and_told() {
    let place = Place::new();
    let specs = TestSpecs::new(&[("a", "eu", "1"), ("b", "us", "1")]);
    let report = place.apply(&specs).await;
    assert_eq!(done(&report), [(Verb::Create, "a".into()), (Verb::Create, "b".into())]);
    assert_eq!((report.steps, report.failed), (6, vec![]));
    let state = place.state();
    let recorded = state.recorded().unwrap();
    assert_eq!(recorded.resources.len(), 2);
    assert_eq!(recorded.source, Some(SourceId("/specs".into())));
    assert_eq!(recorded.fleets[&fleet("eu")].objects.len(), 3);
    assert_eq!(recorded.fleets[&fleet("eu")].observed_at, Some(now()));
    let events = place.events();
    let told: Vec<String> =
        events.iter().map(|event| format!("{} {}", event.outcome.as_str(), event.what)).collect();
    let count = |words: &str| told.iter().filter(|told| *told == words).count();
    assert_eq!((count("decided to be created"), count("done created"), told.len()), (2, 2, 4), "{told:?}");
    assert!(events.iter().all(|event| event.actor == "ann@example.com" && event.verb == Some(Verb::Create)));
    let first = events.iter().find(|event| event.resource == Some(cluster("a"))).unwrap();
    assert_eq!((&first.fleet, first.why.as_str()), (&Some(fleet("eu")), "new spec"));
    let audit = fs::read_to_string(place.root.join("state/audit.jsonl")).unwrap();
    assert!(audit.contains("created cluster acme/a") && audit.contains("7c1e90"), "{audit}");
    let secret = place.output().join("acme/eu/kafka-a/secrets/secret-tls.yaml");
    // base64 of `secret of a`.
    assert!(fs::read_to_string(secret).unwrap().contains("c2VjcmV0IG9mIGE="));
}

#[tokio::test]
async fn secrets_are_in_no_record() {
    let place = Place::new();
    place.apply(&TestSpecs::new(&[("a", "eu", "1")])).await;
    let (mut checked, base64) = (0, "c2VjcmV0IG9mIGE=");
    for file in fs::read_dir(place.root.join("state"))
        .unwrap()
        .chain(fs::read_dir(place.root.join("state/cache-v1")).unwrap())
    {
        if let Ok(bytes) = fs::read(file.unwrap().path()) {
            let text = String::from_utf8_lossy(&bytes);
            assert!(!text.contains("secret of a") && !text.contains(base64));
            checked += 1;
        }
    }
    assert!(checked >= 4, "{checked}");
}

#[tokio::test]
async fn a_failure_stops_what_depends_on_it_and_nothing_else() {
    let place = Place::new();
    let foreign = place.output().join("acme/eu/_cluster/namespace-kafka-a.yaml");
    let specs = TestSpecs::new(&[("a", "eu", "1"), ("b", "eu", "1"), ("c", "us", "1")]);
    let state = place.state();
    let (plan, ..) = place.plan(&state, &specs).await;
    fs::create_dir_all(foreign.parent().unwrap()).unwrap();
    fs::write(&foreign, "theirs: true\n").unwrap();
    let report = place.execute(&plan, &state, &specs.secrets()).await;
    assert_eq!(done(&report), [(Verb::Create, "b".into()), (Verb::Create, "c".into())]);
    assert_eq!(
        texts(&report),
        [
            "cluster acme/a: cannot write `acme/eu/_cluster/namespace-kafka-a.yaml`: a file that streamfleet did not \
             create is there; move it away if it isn't needed, then apply again"
        ]
    );
    assert_eq!(report.failed[0].object.as_ref().unwrap().kind, "Namespace");
    assert!(
        !place.output().join("acme/eu/kafka-a").exists(),
        "nothing is put into a namespace that isn't there"
    );
    assert!(state.recorded().unwrap().resources[&cluster("a")].durable.creating, "its creation has begun");
    assert_eq!(fs::read_to_string(&foreign).unwrap(), "theirs: true\n");
    let mut events = place.events().into_iter().rev();
    let failed = events.find(|event| event.resource == Some(cluster("a"))).unwrap();
    assert_eq!(
        (failed.outcome, failed.what.as_str()),
        (crate::state::EventOutcome::Failed, "could not be created")
    );
    assert!(failed.why.starts_with("cannot write `"), "{}", failed.why);
}

#[tokio::test]
async fn what_waits_is_left_alone() {
    let place = Place::new();
    let state = place.state();
    let (mut plan, ..) = place.plan(&state, &TestSpecs::new(&[("a", "eu", "1")])).await;
    plan.fleets[0].changes[0].waiting = vec![Waiting::Protected];
    let report = place.execute(&plan, &state, &Secrets::default()).await;
    assert_eq!(report, ExecutionReport::default());
    assert_eq!(place.files(), []);
    assert!(state.recorded().unwrap().resources.is_empty());
}

#[tokio::test]
async fn a_secret_that_is_not_the_planned_one_stops_its_resource_before_anything_is_written() {
    let opened = |fingerprint: &str| OpenedSecret::Value {
        value: "s".into(),
        mark: SecretMark { fingerprint: Some(fingerprint.into()), sealed: None },
    };
    let opaque = OpenedSecret::Unavailable {
        mark: SecretMark { fingerprint: None, sealed: None },
        reason: "no identity here opens it".into(),
    };
    let cases = [
        (Some(opened("other")), "`tls_key` of cluster acme/a changed since the plan was made; plan again"),
        (
            Some(opaque),
            "`tls_key` of cluster acme/a is not available: no identity here opens it; apply on a host that can open the \
             secret",
        ),
        (
            None,
            "`tls_key` of cluster acme/a is not available: no spec contains it any more; apply on a host that can open the \
             secret",
        ),
    ];
    for (secret, expected) in cases {
        let place = Place::new();
        let specs = TestSpecs::new(&[("a", "eu", "1"), ("b", "eu", "1")]);
        let mut secrets = specs.secrets();
        secrets.opened.remove(&planner::reference(&cluster("a")));
        secrets.opened.extend(secret.map(|secret| (planner::reference(&cluster("a")), secret)));
        let state = place.state();
        let (plan, ..) = place.plan(&state, &specs).await;
        let report = place.execute(&plan, &state, &secrets).await;
        assert_eq!(done(&report), [(Verb::Create, "b".into())]);
        assert_eq!(texts(&report), [format!("cluster acme/a: {expected}")]);
        assert!(!place.files().iter().any(|(path, _)| path.contains("kafka-a")));
    }
}

#[tokio::test]
async fn a_deletion_counts_uses_its_approval_and_leaves_nothing() {
    let place = Place::new();
    place.apply(&TestSpecs::new(&[("a", "eu", "1"), ("b", "eu", "1")])).await;
    let approval =
        Approval { fleet: fleet("eu"), id: "guard".into(), by: "ann@example.com".into(), at: now() };
    place.state().approve(approval).unwrap();
    let report = place.apply(&TestSpecs::new(&[("b", "eu", "1")])).await;
    assert_eq!((done(&report), report.failed), (vec![(Verb::Delete, "a".into())], vec![]));
    let recorded = place.state().recorded().unwrap();
    assert_eq!((recorded.approvals.len(), recorded.deletions.len()), (0, 1));
    let audit = fs::read_to_string(place.root.join("state/audit.jsonl")).unwrap();
    assert_eq!(audit.matches("deleting cluster acme/a").count(), 1, "{audit}");
    assert_eq!(recorded.generations, [(cluster("a"), 1)].into());
    assert!(!place.files().iter().any(|(path, _)| path.contains("kafka-a")));
    place.apply(&TestSpecs::new(&[])).await;
    assert_eq!(place.files(), [], "the last cluster takes the fleet's folder with it");
}

#[tokio::test]
async fn a_deletion_begins_no_more_once_a_later_plan_found_the_resource_to_be_guarded() {
    let first = TestSpecs::new(&[("a", "eu", "1"), ("b", "eu", "1")]);
    let second = TestSpecs::new(&[("b", "eu", "2")]);
    let of_a = |place: &Place| -> Vec<String> {
        place.files().into_iter().map(|(path, _)| path).filter(|path| path.contains("kafka-a")).collect()
    };
    let (mut refused, mut begun) = (0, 0);
    for polls in 1.. {
        let place = Place::new();
        place.apply(&first).await;
        let (state, before) = (place.state(), of_a(&place));
        let (plan, ..) = place.plan(&state, &second).await;
        let secrets = second.secrets();
        let mut run = std::pin::pin!(place.execute(&plan, &state, &secrets));
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        let mut is_over = false;
        for _ in 0..polls {
            is_over = is_over || run.as_mut().poll(&mut context).is_ready();
            tokio::task::yield_now().await;
        }
        if is_over {
            break;
        }
        let known = state.recorded().unwrap().resources.remove(&cluster("a"));
        let Some(known) = known.filter(|known| !known.durable.deleting) else {
            begun += 1;
            continue;
        };
        let by = DurableRecord { protected: true, ..known.durable };
        state.guard(&cluster("a"), &by).unwrap();
        let report = run.await;
        let told = "cluster acme/a: cannot delete it: it was protected after the plan was made; plan again to see why it \
                    waits now";
        assert_eq!(texts(&report), [told], "after {polls} polls");
        assert_eq!(done(&report), [(Verb::Update, "b".into())]);
        assert_eq!(of_a(&place), before, "after {polls} polls");
        refused += 1;
    }
    assert!(refused > 5 && begun > 0, "{refused}, {begun}");
}

#[tokio::test]
async fn a_new_source_is_recorded_when_no_deletion_is_left() {
    let place = Place::new();
    place.apply(&TestSpecs::new(&[("a", "eu", "1")])).await;
    let other = TestSpecs { source: "/elsewhere", ..TestSpecs::new(&[]) };
    let state = place.state();
    let (mut plan, ..) = place.plan(&state, &other).await;
    let approval = Waiting::Approval { id: "guard".into(), why: "the tree is another one".into() };
    plan.fleets[0].changes[0].waiting = vec![approval];
    for verb in [Verb::Delete, Verb::Keep] {
        plan.fleets[0].changes[0].verb = verb;
        place.execute(&plan, &state, &Secrets::default()).await;
        assert_eq!(state.recorded().unwrap().source, Some(SourceId("/specs".into())));
    }
    drop(state);
    place.apply(&other).await;
    assert_eq!(place.state().recorded().unwrap().source, Some(SourceId("/elsewhere".into())));
}

#[tokio::test]
async fn a_hand_edit_is_undone() {
    let place = Place::new();
    let specs = TestSpecs::new(&[("a", "eu", "1")]);
    place.apply(&specs).await;
    let before = place.files();
    fs::write(place.output().join("acme/eu/kafka-a/configmap-main.yaml"), "data: {}\n").unwrap();
    let report = place.apply(&specs).await;
    assert_eq!((report.steps, report.failed), (1, vec![]));
    assert_eq!(place.files(), before);
}

#[tokio::test]
async fn a_run_without_a_target_says_so() {
    let place = Place::new();
    let specs = TestSpecs::new(&[("a", "eu", "1")]);
    let state = place.state();
    let (plan, recorded, _) = place.plan(&state, &specs).await;
    let report =
        execute(context(&plan, &recorded, &Targets::default(), &state, &specs.secrets()), &mut |_| {}).await;
    assert_eq!(
        texts(&report),
        ["cluster acme/a: cannot change fleet acme/eu: its target has not been observed; plan again"]
    );
}

#[tokio::test]
async fn progress_is_told_step_by_step() {
    let place = Place::new();
    let specs = TestSpecs::new(&[("a", "eu", "1")]);
    let state = place.state();
    let (plan, recorded, _) = place.plan(&state, &specs).await;
    let mut told = Vec::new();
    let mut progress = |progress: ExecutionProgress<'_>| match progress {
        ExecutionProgress::Fleet { fleet, steps } => told.push(format!("{fleet}: {steps}")),
        ExecutionProgress::Step { object, .. } => told.push(object.to_string()),
        ExecutionProgress::StepEnded { verb, done } => told.push(format!("{verb} {done}")),
        ExecutionProgress::Done(done) => told.push(format!("done {}", done.resource)),
        ExecutionProgress::Failed(failure) => told.push(failure.to_string()),
    };
    execute(context(&plan, &recorded, &place.targets(), &state, &specs.secrets()), &mut progress).await;
    told.retain(|text| text != "acme/us: 0");
    let steps = told.len();
    told.retain(|text| text != "create true");
    assert_eq!(steps - told.len(), 3, "each step ends");
    let expected = [
        "acme/eu: 3",
        "Namespace kafka-a",
        "Secret kafka-a/tls",
        "ConfigMap kafka-a/main",
        "done cluster acme/a",
    ];
    assert_eq!(told, expected);
}

#[tokio::test]
async fn what_a_later_plan_found_to_guard_a_resource_outlasts_the_run() {
    let first = [TestSpecs::new(&[]), TestSpecs::new(&[("a", "eu", "1")])];
    let second = TestSpecs::new(&[("a", "eu", "2")]);
    for first in first {
        let mut guarded = 0;
        for polls in 1.. {
            let place = Place::new();
            place.apply(&first).await;
            let state = place.state();
            let (plan, ..) = place.plan(&state, &second).await;
            let secrets = second.secrets();
            let mut run = std::pin::pin!(place.execute(&plan, &state, &secrets));
            let mut context = std::task::Context::from_waker(std::task::Waker::noop());
            let mut is_over = false;
            for _ in 0..polls {
                is_over = is_over || run.as_mut().poll(&mut context).is_ready();
                tokio::task::yield_now().await;
            }
            if is_over {
                break;
            }
            let known = state.recorded().unwrap().resources.remove(&cluster("a"));
            // A resource is unknown until its creation begins.
            let Some(known) = known else { continue };
            let suspicion = Some("its folder was emptied".to_owned());
            let by = DurableRecord { protected: true, suspended: true, suspicion, ..known.durable };
            state.guard(&cluster("a"), &by).unwrap();
            assert_eq!(run.await.failed, []);
            let (_, recorded, observed) = place.plan(&state, &second).await;
            let after = &recorded.resources[&cluster("a")];
            assert!(after.durable.protected && after.durable.suspended, "guarded after {polls} polls");
            assert_eq!(after.durable.suspicion, by.suspicion, "guarded after {polls} polls");
            assert_eq!(
                after.cached.last_good,
                plan.fleets[0].changes[0].record.as_ref().unwrap().cached.last_good
            );
            if guarded == 0 {
                assert!(observed.protected().contains(&cluster("a")), "its target knows");
            }
            guarded += 1;
        }
        assert!(guarded > 5, "{guarded}");
    }
}
