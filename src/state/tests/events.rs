use super::*;
use crate::state::{EventOutcome, RecordedEvent};

fn event(why: String) -> RecordedEvent {
    serde_json::from_value(serde_json::json!({
        "at": "2026-11-21T12:00:00Z", "actor": "tester", "outcome": EventOutcome::Waits, "what": "to be changed",
        "why": why, "commit": {"id": "3f2c1ab", "author": "a".repeat(10_000), "is_edited": false},
    }))
    .unwrap()
}

#[test]
fn an_event_and_all_of_them_together_are_bounded_in_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let path = Utf8Path::from_path(dir.path()).unwrap();
    let state = State::open(path).unwrap();
    state.record_events(vec![event("ü".repeat(20 << 20))]);
    let read = state.events(&state.find_events(|_| true)).unwrap();
    assert_eq!(read[0].why.len(), 4096 + "… (41938944 bytes more)".len());
    assert!(read[0].why.ends_with("… (41938944 bytes more)"));
    let file = || std::fs::metadata(path.join("events.jsonl")).unwrap().len();
    assert!(file() < 16 << 10, "{}", file());

    // 40 MB of events.
    for round in 0..20 {
        state.record_events(
            (0..200).map(|number| event(format!("{round} {number}{}", "x".repeat(10_000)))).collect(),
        );
        assert!(file() <= 16 << 20, "{}", file());
    }
    let kept = state.find_events(|_| true);
    assert_eq!(kept.last(), Some(&4_000));
    assert!(kept.len() > 500, "{}", kept.len());
    assert!(kept.windows(2).all(|pair| pair[0] + 1 == pair[1]));
    assert_eq!(state.events(&kept[..1]).unwrap()[0].number, kept[0]);
    drop(state);
    let state = State::open(path).unwrap();
    assert_eq!(state.find_events(|_| true), kept, "the same when it is opened again");
}
