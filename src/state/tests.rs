//! Tests of the state folder as its users see it, and after crashes and manual changes to its files.

mod accounts;
mod damage;
mod events;
mod read;
mod sizes;
mod tokens;
mod tokens_kept;

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use tempfile::TempDir;
use uuid::Uuid;

use super::*;
use crate::catalog::{Condition, LastGood, Recorded, RecordedFleet, ResourceStatus, SecretMark, Status};
use crate::names::{Digest, Kind};
use crate::plan::Verb;
use crate::problem::Origin;

/// Puts back one file from a backup.
fn take_back(dir: &Utf8Path, archive: &Archive, name: &str) {
    let bytes = archive.files().find_map(|(saved, bytes)| (saved == name).then_some(bytes)).unwrap();
    std::fs::write(dir.join(name), bytes).unwrap();
}

/// A temporary folder, and the path of a state folder in it that doesn't exist yet.
fn place() -> (TempDir, Utf8PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = Utf8PathBuf::from_path_buf(dir.path().join("state")).unwrap();
    (dir, path)
}

fn time(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + seconds).unwrap()
}

fn cluster(name: &str) -> ResourceKey {
    ResourceKey::new(Kind::Cluster, &"acme".parse().unwrap(), name)
}

fn fleet() -> FleetKey {
    "acme/eu".to_owned().try_into().unwrap()
}

fn resource(id: u128) -> RecordedResource {
    RecordedResource {
        durable: DurableRecord {
            immutable: [("/infrastructure".to_owned(), json!("eu"))].into(),
            ..DurableRecord::new(Uuid::from_u128(id), time(0))
        },
        cached: CachedRecord {
            last_good: Some(LastGood::new(
                json!({"kafka_units": 1}).into(),
                Origin { path: "acme/orders.yaml".parse().unwrap(), line: 3 },
            )),
            secrets: [(
                "tls_key".to_owned(),
                SecretMark { fingerprint: Some("f".into()), sealed: Some(Digest::of("s")) },
            )]
            .into(),
            ..CachedRecord::lost(time(5))
        },
    }
}

/// A resource whose registry part was changed.
fn changed(id: u128, change: impl FnOnce(&mut DurableRecord)) -> RecordedResource {
    let mut resource = resource(id);
    change(&mut resource.durable);
    resource
}

fn object(name: &str) -> (ObjectKey, RecordedObject) {
    let key = ObjectKey {
        namespace: Some("n".into()),
        kind: "ConfigMap".into(),
        name: name.into(),
        api_version: "v1".into(),
    };
    let manifest = json!({"data": {"text": name}});
    let applied = Digest::of_json(&manifest);
    (
        key,
        RecordedObject {
            owner: cluster("orders"),
            uid: Some("u".into()),
            applied,
            manifest: Some(manifest.into()),
        },
    )
}

/// Fills a state with one of everything.
fn fill(state: &State) {
    state.put_resource(&cluster("orders"), &resource(1)).unwrap();
    state.put_resource(&cluster("gone"), &resource(2)).unwrap();
    state.record_deletion(Deletion { fleet: fleet(), cluster: cluster("gone"), at: time(10) }).unwrap();
    state.remove_resource(&cluster("gone"), time(11)).unwrap();
    let (key, object) = object("a");
    state.put_object(&fleet(), &key, &object).unwrap();
    state.record_observation(&fleet(), time(7)).unwrap();
    state.set_source(&SourceId("/specs".into())).unwrap();
    for id in ["used", "open"] {
        state
            .approve(Approval { fleet: fleet(), id: id.into(), by: "ann@example.com".into(), at: time(8) })
            .unwrap();
    }
    state.use_approval("used", None, time(9)).unwrap();
}

#[test]
fn an_approval_goes_on_for_what_has_to_wait_and_ends_as_it_would_have() {
    let (_dir, path) = place();
    let state = State::open(&path).unwrap();
    fill(&state);
    state.use_approval("open", Some("rest"), time(9)).unwrap();
    state.use_approval("open", Some("again"), time(10)).unwrap();
    drop(state);
    let state = State::open(&path).unwrap();
    let expected = Approval { fleet: fleet(), id: "rest".into(), by: "ann@example.com".into(), at: time(8) };
    assert_eq!(state.recorded().unwrap().approvals, [expected]);
}

#[test]
fn what_was_recorded_is_there_after_a_restart() {
    let (_dir, path) = place();
    let state = State::open(&path).unwrap();
    fill(&state);
    let before = state.recorded().unwrap();
    drop(state);

    let state = State::open(&path).unwrap();
    assert_eq!(state.warnings(), Vec::<String>::new());
    let after = state.recorded().unwrap();
    assert_eq!(after, before);
    assert_eq!(after.resources, [(cluster("orders"), resource(1))].into_iter().collect());
    assert_eq!(after.generations, [(cluster("gone"), 1)].into());
    assert_eq!(after.source, Some(SourceId("/specs".into())));
    assert_eq!(after.approvals.iter().map(|it| it.id.as_str()).collect::<Vec<_>>(), ["open"]);
    assert_eq!(after.deletions.len(), 1);
    let (key, object) = object("a");
    assert_eq!(
        after.fleets[&fleet()],
        RecordedFleet { observed_at: Some(time(7)), objects: [(key, object)].into() }
    );
    assert!(!after.installation.is_nil());
}

#[test]
fn looking_at_a_state_that_is_not_there_leaves_nothing_behind() {
    let (_dir, path) = place();
    let mut wait = LockWait { at_most: std::time::Duration::ZERO, tell: &mut |_| {} };
    assert!(State::open_existing(&path, &mut wait).unwrap().is_none());
    assert!(State::read(&path).unwrap().is_none());
    assert!(!path.exists());
    drop(State::open(&path).unwrap());
    assert!(State::open_existing(&path, &mut wait).unwrap().is_some());
}

#[test]
fn a_resource_made_anew_gets_an_id_of_its_own() {
    let (_dir, path) = place();
    let state = State::open(&path).unwrap();
    let first = state.recorded().unwrap().id_of(&cluster("orders"));
    state.put_resource(&cluster("orders"), &changed(1, |it| it.id = first)).unwrap();
    assert_eq!(state.recorded().unwrap().id_of(&cluster("orders")), first);
    for _ in 0..2 {
        // The second removal repeats an interrupted one, and must not count again.
        state.remove_resource(&cluster("orders"), time(1)).unwrap();
    }
    assert_eq!(state.recorded().unwrap().generations[&cluster("orders")], 1);
    assert_ne!(state.recorded().unwrap().id_of(&cluster("orders")), first);
}

#[test]
fn what_is_recorded_is_read_once_and_follows_every_write() {
    let (_dir, path) = place();
    let state = State::open(&path).unwrap();
    let (orders, events) = (cluster("orders"), cluster("events"));
    let deletion = Deletion { fleet: fleet(), cluster: orders.clone(), at: time(1) };
    let guarded = changed(1, |it| it.suspicion = Some("it looks so".into())).durable;
    let suspended = RecordedResource {
        cached: CachedRecord { last_good: None, ..resource(1).cached },
        ..changed(1, |it| it.suspended = true)
    };
    let updated = RecordedResource {
        cached: CachedRecord { updated_at: time(9), ..resource(1).cached },
        ..resource(1)
    };
    let writes: [&dyn Fn() -> Result<(), StateError>; 9] = [
        &|| state.put_resources([(&orders, &resource(1)), (&events, &resource(2))]),
        &|| state.put_resource(&orders, &updated),
        &|| state.guard(&orders, &guarded),
        &|| state.put_planned([(&orders, &suspended, None)]),
        &|| state.mark_deleting(&events),
        &|| state.record_deletion(deletion.clone()),
        &|| state.remove_resource(&orders, time(2)),
        &|| state.put_resource(&orders, &resource(3)),
        &|| state.forget_fleet(&fleet(), time(3)).map(drop),
    ];
    let mut before = state.recorded().unwrap();
    for (number, write) in writes.iter().enumerate() {
        write().unwrap();
        let known = state.recorded().unwrap();
        assert_ne!(known, before, "{number}");
        *locked(&state.recalled) = ResourceRecordCache::default();
        assert_eq!(known, state.recorded().unwrap(), "{number}");
        before = known;
    }
    assert!(before.resources.is_empty());
}

#[test]
fn a_deletion_that_is_interrupted_counts_once() {
    let (_dir, path) = place();
    let state = State::open(&path).unwrap();
    let deletion = |seconds| Deletion { fleet: fleet(), cluster: cluster("orders"), at: time(seconds) };
    state.put_resource(&cluster("orders"), &resource(1)).unwrap();
    state.record_deletion(deletion(1)).unwrap();
    state.record_deletion(deletion(2)).unwrap();
    assert!(state.recorded().unwrap().resources[&cluster("orders")].durable.deleting);
    assert_eq!(state.recorded().unwrap().deletions, [deletion(1)]);
    // Deleting a recreated cluster is a second deletion.
    state.remove_resource(&cluster("orders"), time(3)).unwrap();
    state.put_resource(&cluster("orders"), &resource(2)).unwrap();
    state.record_deletion(deletion(4)).unwrap();
    assert_eq!(state.recorded().unwrap().deletions, [deletion(1), deletion(4)]);
}

#[test]
fn forgetting_takes_a_fleet_with_all_that_is_on_it_and_nothing_else() {
    let (_dir, path) = place();
    let state = State::open(&path).unwrap();
    let other: FleetKey = "acme/eu-2".to_owned().try_into().unwrap();
    let (key, object) = object("a");
    for fleet in [&fleet(), &other] {
        state.put_object(fleet, &key, &object).unwrap();
        state.record_observation(fleet, time(1)).unwrap();
    }
    let on = |fleet: &str, id| {
        let immutable = [("/infrastructure".to_owned(), json!(fleet))].into();
        changed(id, |it| it.immutable = immutable)
    };
    let stays = [cluster("elsewhere"), other.resource()];
    state.put_resource(&cluster("orders"), &on("eu", 1)).unwrap();
    state.put_resource(&stays[0], &on("eu-2", 2)).unwrap();
    state.put_resource(&stays[1], &resource(3)).unwrap();
    state.put_resource(&fleet().resource(), &resource(4)).unwrap();
    for (fleet, id) in [(&fleet(), "ours"), (&other, "theirs")] {
        let approval = Approval { fleet: fleet.clone(), id: id.into(), by: "ann".into(), at: time(1) };
        state.approve(approval).unwrap();
    }
    let gone = [fleet().resource(), cluster("orders")];
    assert_eq!(state.forget_fleet(&fleet(), time(2)).unwrap(), gone);
    let recorded = state.recorded().unwrap();
    assert_eq!(recorded.fleets.keys().collect::<Vec<_>>(), [&other]);
    let left: std::collections::BTreeSet<_> = recorded.resources.keys().collect();
    assert_eq!(left, stays.iter().collect());
    assert_eq!(recorded.generations, gone.map(|key| (key, 1)).into());
    assert_eq!(recorded.approvals.iter().map(|it| it.id.as_str()).collect::<Vec<_>>(), ["theirs"]);
}

#[test]
fn values_too_large_for_sled_are_stored_in_pieces_and_removed_with_all_of_them() {
    let (_dir, path) = place();
    let state = State::open(&path).unwrap();
    let (key, object) = object("a");
    for size in [300_000, 100_000, 70_000, 10] {
        let manifest = Some(json!("x".repeat(size)).into());
        let object = RecordedObject { manifest, ..object.clone() };
        state.put_object(&fleet(), &key, &object).unwrap();
        assert_eq!(state.recorded().unwrap().fleets[&fleet()].objects[&key], object);
    }
    state.remove_object(&fleet(), &key).unwrap();
    assert!(state.cache.scan::<IgnoredAny>(Table::Objects, b"").unwrap().0.is_empty());
    assert!(state.recorded().unwrap().fleets.is_empty());
}

#[test]
fn an_interrupted_step_is_in_the_journal() {
    let (_dir, path) = place();
    let entry = JournalEntry {
        plan: "7c1e90".into(),
        fleet: fleet(),
        step: 3,
        description: "create ConfigMap n/a".into(),
        at: time(1),
    };
    let state = State::open(&path).unwrap();
    state.journal_begin(&entry).unwrap();
    drop(state);
    let state = State::open(&path).unwrap();
    assert_eq!(state.journal_unfinished().unwrap(), [entry]);
    state.journal_done(&fleet()).unwrap();
    assert_eq!(state.journal_unfinished().unwrap(), []);
}

#[test]
fn events_are_numbered_bounded_and_followed_by_others() {
    let (_dir, path) = place();
    let event = |number: u64| RecordedEvent {
        number,
        fleet: Some(fleet()),
        resource: Some(cluster("orders")),
        verb: Some(Verb::Create),
        why: "spec".into(),
        ..RecordedEvent::done(time(0), "ann@example.com", "created")
    };
    let numbers = |events: &[RecordedEvent]| events.iter().map(|event| event.number).collect::<Vec<_>>();
    let mut follower = Follower::of(&path);
    assert_eq!(follower.unread_events().unwrap(), []);
    let state = State::open(&path).unwrap();
    state.record_events(vec![event(7), event(7)]);
    // The follower needs no lock.
    assert_eq!(follower.unread_events().unwrap(), [event(0), event(1)]);
    assert_eq!(follower.unread_events().unwrap(), []);
    drop(state);

    // A line cut short by a crash is ignored, and its number is reused.
    let file = path.join("events.jsonl");
    let cut = std::fs::read_to_string(&file).unwrap() + "{\"number\": 2, \"at\"";
    std::fs::write(&file, cut).unwrap();
    assert_eq!(follower.unread_events().unwrap(), []);
    let state = State::open(&path).unwrap();
    state.record_events(vec![event(0)]);
    assert_eq!(numbers(&follower.unread_events().unwrap()), [2]);
    let found =
        |state: &State| state.find_events(|mark| mark.organization.as_ref() == Some(&fleet().organization));
    assert_eq!(found(&state), [0, 1, 2]);
    assert_eq!(state.events(&[2, 0]).unwrap(), [event(2), event(0)]);
    assert_eq!(state.events(&state.find_events(|event| event.number >= 1)).unwrap(), [event(1), event(2)]);
    assert_eq!(state.events(&state.find_events(|event| event.number >= 3)).unwrap(), []);

    // When there are twice as many bytes as are kept, the older half is dropped, and a follower goes on.
    let long = |number: u64| RecordedEvent { why: "x".repeat(2000), ..event(number) };
    for first in (3..12_003).step_by(1000) {
        state.record_events((first..first + 1000).map(long).collect());
    }
    let news = numbers(&follower.unread_events().unwrap());
    let last = *news.last().unwrap();
    assert_eq!(last, 12_002);
    let all = numbers(&Follower::of(&path).unread_events().unwrap());
    assert!((3_000..12_000).contains(&all.len()) && all == news, "{} {}", all.len(), news.len());
    state.record_events(vec![event(0)]);
    assert_eq!(numbers(&follower.unread_events().unwrap()), [last + 1]);
    let left: Vec<_> = std::fs::read_dir(&path).unwrap().map(|it| it.unwrap().file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().starts_with(".tmp")), "{left:?}");
    let kept = found(&state);
    assert_eq!((kept.first(), kept.last()), (all.first(), Some(&(last + 1))));
    assert_eq!(numbers(&state.events(&[last + 1, last, 0]).unwrap()), [last + 1, last]);
    assert_eq!(numbers(&state.events(&state.find_events(|_| true)).unwrap()), kept);
}

#[test]
fn the_last_memory_of_health_is_kept() {
    let (_dir, path) = place();
    let state = State::open(&path).unwrap();
    let at = |status, seconds| ResourceStatus {
        status,
        reason: Some(format!("looked at {seconds}")),
        conditions: vec![Condition { kind: "OverCommitted".into(), degraded: true, message: "m".into() }],
        since: time(seconds),
    };
    let key = cluster("orders");
    for (status, seconds) in
        [(Status::Pending, 1), (Status::Pending, 2), (Status::Healthy, 3), (Status::Pending, 4)]
    {
        state.put_memory(&key, &at(status, seconds)).unwrap();
        assert_eq!(state.memory(&key).unwrap(), Some(at(status, seconds)));
    }
    assert_eq!(state.memory::<ResourceStatus>(&cluster("other")).unwrap(), None);
    assert_eq!(state.memory::<u32>(&key).unwrap(), None, "another version wrote it");
}

#[test]
fn what_a_person_did_to_a_resource_is_its_organizations_event() {
    let (_dir, path) = place();
    let restored = RecordedEvent::done(time(0), "ann", "restored");
    let changed =
        RecordedEvent { resource: Some(cluster("orders")), by_super_user: true, ..restored.clone() };
    let state = State::open(&path).unwrap();
    state.audit_person(restored.clone()).unwrap();
    state.audit_person(changed.clone()).unwrap();
    let text = std::fs::read_to_string(path.join("audit.jsonl")).unwrap();
    let lines: Vec<RecordedEvent> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines, [restored, changed]);
    let acme = state.find_events(|event| event.organization.as_ref().is_some_and(|it| it.as_str() == "acme"));
    let [event] = state.events(&acme).unwrap().try_into().unwrap();
    assert_eq!((event.resource, event.by_super_user), (Some(cluster("orders")), true));
    assert_eq!(state.find_events(|_| true).len(), 2);
}

#[test]
fn the_audit_trail_is_lines_of_json_that_only_grow() {
    let (_dir, path) = place();
    let event = |what: &str| RecordedEvent {
        plan: Some("7c1e90".into()),
        ..RecordedEvent::done(time(0), "ann", what)
    };
    for what in ["created cluster acme/orders", "deleted cluster acme/orders"] {
        State::open(&path).unwrap().audit(vec![event(what)]).unwrap();
    }
    let text = std::fs::read_to_string(path.join("audit.jsonl")).unwrap();
    insta::assert_snapshot!(text, @r#"
    {"actor":"ann","at":"2027-01-15T08:00:00Z","outcome":"done","plan":"7c1e90","v":1,"what":"created cluster acme/orders"}
    {"actor":"ann","at":"2027-01-15T08:00:00Z","outcome":"done","plan":"7c1e90","v":1,"what":"deleted cluster acme/orders"}
    "#);
}

#[test]
fn a_long_registry_is_written_anew_with_the_same_meaning() {
    let (_dir, path) = place();
    let state = State::open(&path).unwrap();
    let old =
        Deletion { fleet: fleet(), cluster: cluster("old"), at: time(0) - SignedDuration::from_hours(48) };
    state.record_deletion(old.clone()).unwrap();
    fill(&state);
    for round in 0..600 {
        let protected = round % 2 == 0;
        state.put_resource(&cluster("orders"), &changed(1, |it| it.protected = protected)).unwrap();
        state.set_source(&SourceId(format!("/specs-{round}"))).unwrap();
    }
    let mut expected = state.recorded().unwrap();
    drop(state);
    let lines = || std::fs::read_to_string(path.join("registry.jsonl")).unwrap().lines().count();
    assert!(lines() > 1200);
    let state = State::open(&path).unwrap();
    assert!(lines() < 10, "{}", lines());
    // Limits ignore a deletion of two days ago.
    expected.deletions.retain(|deletion| *deletion != old);
    assert_eq!(state.recorded().unwrap(), expected);
    drop(state);
    assert_eq!(State::open(&path).unwrap().recorded().unwrap(), expected);
    assert_eq!(mode(&path.join("registry.jsonl")), 0o600);
}

fn mode(path: &Utf8Path) -> u32 {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}
