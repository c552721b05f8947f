//! A run that is killed between any two operations, and what the next run makes of it.

use std::pin::pin;
use std::task::{Context, Waker};

use super::*;
use crate::catalog::{Approval, RecordedFleet};

/// Polls a run so often and then drops it, as a kill would. Says whether it was done by then.
async fn kill_after(polls: usize, run: impl Future<Output = Report>) -> bool {
    let mut run = pin!(run);
    let mut context = Context::from_waker(Waker::noop());
    for _ in 0..polls {
        if run.as_mut().poll(&mut context).is_ready() {
            return true;
        }
        // The runtime wakes what yielded only when it gets its turn.
        tokio::task::yield_now().await;
    }
    assert!(polls < 1000, "the run comes to no end");
    false
}

/// What two installations must agree on once they have converged, whatever happened to them on the way.
fn outcome(recorded: Recorded, files: Vec<(String, String)>) -> (Recorded, Vec<(String, String)>) {
    let mut recorded = recorded;
    recorded.installation = uuid::Uuid::nil();
    for resource in recorded.resources.values_mut() {
        resource.id = uuid::Uuid::nil();
    }
    let strip = |target: &mut RecordedFleet| {
        for (_, object) in target.objects.iter_mut().filter(|(key, _)| key.kind == "Secret") {
            // What is in a Secret's file is random, and its manifest can't be had from it when the record was lost.
            (object.uid, object.manifest) = (None, None);
        }
    };
    recorded.fleets.values_mut().for_each(strip);
    // Inventories hold ids and digests; Secrets hold random text. The rest is equal to the byte.
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

/// What happens after a kill, before the next run.
#[derive(Clone, Copy, Debug)]
enum Aftermath {
    /// Nothing else.
    Restart,
    /// The cache is lost, as in a power cut.
    LoseCache,
}

/// Brings an installation to `first`, then to `second` with a kill after so many polls. Gives none when the run was over by
/// then.
async fn killed(
    first: &Wish,
    second: &Wish,
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

async fn prepare(place: &Place, wish: &Wish) {
    assert_eq!(place.apply(wish).await.failed, []);
    let approval =
        Approval { fleet: fleet("eu"), id: "guard".into(), by: "ann@example.com".into(), at: now() };
    place.state().approve(approval).unwrap();
}

/// Applies until there is nothing left to do, which must be after one round.
async fn converge(place: &Place, wish: &Wish) -> (Recorded, Vec<(String, String)>) {
    let report = place.apply(wish).await;
    assert_eq!(report.failed, []);
    let state = place.state();
    assert_eq!(state.journal_unfinished().unwrap(), []);
    let (plan, recorded, _) = place.plan(&state, wish).await;
    let left: Vec<_> = plan.fleets.iter().flat_map(|fleet| &fleet.changes).collect();
    assert!(left.is_empty(), "{left:#?}");
    outcome(recorded, place.files())
}

#[tokio::test]
async fn killed_anywhere_the_next_run_comes_to_the_same_end() {
    let nothing = Wish::new(&[]);
    let one = Wish::new(&[("a", "eu", "1"), ("b", "us", "1")]);
    let other = Wish::new(&[("a", "eu", "2"), ("c", "eu", "1")]);
    for (first, second) in [(&nothing, &one), (&one, &other), (&one, &nothing)] {
        let place = Place::new();
        prepare(&place, first).await;
        let expected = converge(&place, second).await;
        let mut points = 0;
        while let Some(mut found) = killed(first, second, points, Aftermath::Restart).await {
            // An approval whose run was killed before it did anything that needed it is still there.
            found.0.approvals = expected.0.approvals.clone();
            assert_eq!(found, expected, "killed after {points} polls");
            points += 1;
        }
        assert!(points > 20, "{points}");
        for polls in (0..points).step_by(3) {
            let (found, files) = killed(first, second, polls, Aftermath::LoseCache).await.unwrap();
            assert_eq!(files, expected.1, "killed after {polls} polls, cache lost");
            let protection = |recorded: &Recorded| -> Vec<_> {
                recorded.resources.iter().map(|(key, it)| (key.clone(), it.protected, it.deleting)).collect()
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
    let wish = Wish::new(&[("a", "eu", "1")]);
    let mut seen = 0;
    for polls in 0.. {
        let state = place.state();
        let (plan, ..) = place.plan(&state, &wish).await;
        let over = kill_after(polls, place.execute(&plan, &state, &wish.secrets())).await;
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
