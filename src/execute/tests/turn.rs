use std::time::Instant;

use super::*;
use crate::catalog::Approval;

async fn take_turn(place: &Place, specs: &TestSpecs) -> ExecutionReport {
    let (state, targets, secrets) = (place.state(), place.targets(), specs.secrets());
    let (plan, recorded, _) = place.plan(&state, specs).await;
    let (secrets, recorded, actor) = (&secrets, &recorded, "ann@example.com");
    let context = RunContext {
        plan: &plan,
        recorded,
        targets: &targets,
        state: &state,
        secrets,
        keyring: keyring(),
        clock: &now,
        actor,
    };
    let Some(fleet) = plan.fleets.iter().find(|plan| plan.fleet == fleet("eu")) else {
        return ExecutionReport::default();
    };
    let report = execute_fleet(context, fleet, Some(Instant::now()), &mut |_| {}).await;
    assert_eq!(report.failed, []);
    assert_eq!(state.journal_unfinished().unwrap(), [], "nothing is left half done");
    report
}

#[tokio::test]
async fn turns_that_are_over_at_once_get_where_one_long_one_does() {
    let (place, whole) = (Place::new(), Place::new());
    let wishes = [
        TestSpecs::new(&[("a", "eu", "1"), ("b", "eu", "1"), ("c", "eu", "1")]),
        TestSpecs::new(&[("a", "eu", "2"), ("c", "eu", "1")]),
    ];
    for specs in wishes {
        whole.apply(&specs).await;
        let mut turns = 0;
        loop {
            let report = take_turn(&place, &specs).await;
            if report.steps == 0 && report.done.is_empty() {
                break;
            }
            assert!(report.steps <= 1, "{report:?}");
            turns += 1;
            assert!(turns < 50);
        }
        assert!(turns > 3, "{turns}");
        // Each Secret has a random line, and the inventory has its digest.
        let relative = |place: &Place| -> Vec<(String, String)> {
            let files =
                place.files().into_iter().map(|(path, text)| (path.replace(place.root.as_str(), ""), text));
            let text =
                |path: &str, text: String| if path.contains("configmap") { text } else { String::new() };
            files.map(|(path, full)| (path.clone(), text(&path, full))).collect()
        };
        assert_eq!(relative(&place), relative(&whole));
        let recorded = |place: &Place| -> Vec<_> {
            place.state().recorded().unwrap().resources.keys().cloned().collect()
        };
        assert_eq!(recorded(&place), recorded(&whole));
    }
}

#[tokio::test]
async fn what_was_approved_is_done_in_one_turn() {
    let place = Place::new();
    place.apply(&TestSpecs::new(&[("a", "eu", "1"), ("b", "eu", "1"), ("c", "eu", "1")])).await;
    let approval =
        Approval { fleet: fleet("eu"), id: "guard".into(), by: "ann@example.com".into(), at: now() };
    place.state().approve(approval).unwrap();
    let report = take_turn(&place, &TestSpecs::new(&[("c", "eu", "1")])).await;
    let done: Vec<&str> = report.done.iter().map(|done| done.resource.name.as_str()).collect();
    assert_eq!(done, ["a", "b"], "the approval is used, and nothing is left for which there is none");
}
