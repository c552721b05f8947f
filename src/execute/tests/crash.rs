//! Runs killed between any two operations, each followed by a complete run.

use std::pin::pin;
use std::task::{Context, Waker};

use super::*;
use crate::catalog::{Approval, RecordedFleet};

/// Polls a run this many times and then drops it, as a kill would. Returns whether it had finished.
async fn kill_after(polls: usize, run: impl Future<Output = ExecutionReport>) -> bool {
    let mut run = pin!(run);
    let mut context = Context::from_waker(Waker::noop());
    for _ in 0..polls {
        if run.as_mut().poll(&mut context).is_ready() {
            return true;
        }
        // Tasks that yielded are only woken when the runtime gets its turn.
        tokio::task::yield_now().await;
    }
    assert!(polls < 1000, "the run comes to no end");
    false
}

/// The state that two installations share after they have converged, whatever happened before.
fn outcome(recorded: Recorded, files: Vec<(String, String)>) -> (Recorded, Vec<(String, String)>) {
    let mut recorded = recorded;
    recorded.installation = uuid::Uuid::nil();
    for resource in recorded.resources.values_mut() {
        resource.durable.id = uuid::Uuid::nil();
    }
    let strip = |target: &mut RecordedFleet| {
        for (_, object) in target.objects.iter_mut().filter(|(key, _)| key.kind == "Secret") {
            // The content of a Secret's file is random, and its manifest can't be restored from it when the
            // record is lost.
            (object.uid, object.manifest) = (None, None);
        }
    };
    recorded.fleets.values_mut().for_each(strip);
    // Inventories contain ids and digests, and Secrets contain random text. Everything else is equal to the
    // byte.
    let text = |path: &str, text: String| {
        if path.ends_with(".json") { text.lines().count().to_string() } else { without_random(text) }
    };
    let files = files.into_iter().map(|(path, content)| {
        let (_, path) = path.split_once("/output").unwrap_or_default();
        (path.to_owned(), text(path, content))
    });
    (recorded, files.collect())
}

fn without_random(text: String) -> String {
    text.lines().filter(|line| !line.starts_with("# Random")).collect::<Vec<_>>().join("\n")
}

/// The events between a kill and the next run.
#[derive(Clone, Copy, Debug)]
enum Aftermath {
    Restart,
    /// The cache is lost, as in a power failure.
    LoseCache,
}

/// Brings an installation to `first`, then to `second` with a kill after this many polls. Returns `None` if
/// the run had finished by then.
async fn killed(
    first: &TestSpecs,
    second: &TestSpecs,
    polls: usize,
    aftermath: Aftermath,
) -> Option<(Recorded, Vec<(String, String)>)> {
    let place = Place::new();
    prepare(&place, first).await;
    let state = place.state();
    let (plan, ..) = place.plan(&state, second).await;
    let secrets = second.secrets();
    if kill_after(polls, place.execute(&plan, &state, &secrets)).await {
        return None;
    }
    drop(state);
    if matches!(aftermath, Aftermath::LoseCache) {
        std::fs::remove_dir_all(place.root.join("state/cache-v1")).unwrap();
    }
    Some(converge(&place, second).await)
}

async fn prepare(place: &Place, specs: &TestSpecs) {
    assert_eq!(place.apply(specs).await.failed, []);
    let approval =
        Approval { fleet: fleet("eu"), id: "guard".into(), by: "ann@example.com".into(), at: now() };
    place.state().approve(approval).unwrap();
}

/// Applies once, after which nothing may be left to do.
async fn converge(place: &Place, specs: &TestSpecs) -> (Recorded, Vec<(String, String)>) {
    let report = place.apply(specs).await;
    assert_eq!(report.failed, []);
    let state = place.state();
    assert_eq!(state.journal_unfinished().unwrap(), []);
    let (plan, recorded, _) = place.plan(&state, specs).await;
    let left: Vec<_> = plan.fleets.iter().flat_map(|fleet| &fleet.changes).collect();
    assert!(left.is_empty(), "{left:#?}");
    outcome(recorded, place.files())
}

#[tokio::test]
async fn killed_anywhere_the_next_run_comes_to_the_same_end() {
    let nothing = TestSpecs::new(&[]);
    let one = TestSpecs::new(&[("a", "eu", "1"), ("b", "us", "1")]);
    let other = TestSpecs::new(&[("a", "eu", "2"), ("c", "eu", "1")]);
    for (first, second) in [(&nothing, &one), (&one, &other), (&one, &nothing)] {
        let place = Place::new();
        prepare(&place, first).await;
        let expected = converge(&place, second).await;
        let mut points = 0;
        while let Some(mut found) = killed(first, second, points, Aftermath::Restart).await {
            // An approval stays if the run was killed before anything that needs it.
            found.0.approvals = expected.0.approvals.clone();
            assert_eq!(found, expected, "killed after {points} polls");
            points += 1;
        }
        assert!(points > 20, "{points}");
        for polls in (0..points).step_by(3) {
            let (found, files) = killed(first, second, polls, Aftermath::LoseCache).await.unwrap();
            assert_eq!(files, expected.1, "killed after {polls} polls, cache lost");
            let protection = |recorded: &Recorded| -> Vec<_> {
                recorded
                    .resources
                    .iter()
                    .map(|(key, it)| (key.clone(), it.durable.protected, it.durable.deleting))
                    .collect()
            };
            assert_eq!(protection(&found), protection(&expected.0));
            assert_eq!(found.generations, expected.0.generations);
            assert_eq!(found.deletions.len(), expected.0.deletions.len(), "a deletion counts once");
        }
    }
}

#[tokio::test]
async fn a_killed_run_is_in_the_journal_until_the_next() {
    let place = Place::new();
    let specs = TestSpecs::new(&[("a", "eu", "1")]);
    let mut seen = 0;
    for polls in 0.. {
        let state = place.state();
        let (plan, ..) = place.plan(&state, &specs).await;
        let over = kill_after(polls, place.execute(&plan, &state, &specs.secrets())).await;
        for entry in state.journal_unfinished().unwrap() {
            assert_eq!((entry.plan.as_str(), &entry.fleet), ("7c1e90", &fleet("eu")));
            assert!(entry.description.starts_with("create "), "{}", entry.description);
            seen += 1;
        }
        if over {
            break;
        }
    }
    assert!(seen > 0);
    assert_eq!(place.state().journal_unfinished().unwrap(), []);
}
