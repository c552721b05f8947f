//! The recorded sizes of clusters.

use super::*;

/// A node pool with so many brokers, each with one processor.
fn pool(replicas: u64) -> (ObjectKey, RecordedObject) {
    let (key, object) = object("broker");
    let pod = json!({"requests": {"cpu": "1"}});
    let spec = json!({"replicas": replicas, "roles": ["broker"], "resources": pod});
    let key = ObjectKey { kind: "KafkaNodePool".into(), ..key };
    (key, RecordedObject { manifest: Some(json!({"spec": spec}).into()), ..object })
}

fn brokers(state: &State, id: u128) -> Vec<(Timestamp, u64)> {
    let sizes = state.sizes_of_cluster(Uuid::from_u128(id));
    sizes.into_iter().flat_map(|sizes| sizes.changes).map(|it| (it.at, it.size.brokers)).collect()
}

#[test]
fn a_size_is_recorded_when_it_changes_and_survives_a_restart_and_a_backup() {
    let (_dir, path) = place();
    let state = State::open(&path).unwrap();
    state.put_resource(&cluster("orders"), &resource(1)).unwrap();
    assert!(!path.join("sizes.jsonl").exists());
    for (replicas, at) in [(3, 0), (3, 60), (6, 120)] {
        let (key, object) = pool(replicas);
        state.record_size(&fleet(), &key, &object, time(at)).unwrap();
    }
    let (key, other) = object("a");
    state.record_size(&fleet(), &key, &other, time(130)).unwrap();
    let expected = [(time(0), 3), (time(120), 6)];
    assert_eq!(brokers(&state, 1), expected);
    state.flush().unwrap();
    drop(state);
    let state = State::open(&path).unwrap();
    assert_eq!(brokers(&state, 1), expected);
    // An unchanged part is not written again.
    let (key, object) = pool(6);
    state.record_size(&fleet(), &key, &object, time(200)).unwrap();
    assert_eq!(brokers(&state, 1), expected);
    drop(state);
    let archive = back_up(&path, "0.1.0", time(300)).unwrap().unwrap();
    let restored = path.with_file_name("restored");
    restore(&restored, &archive).unwrap();
    assert_eq!(brokers(&State::open(&restored).unwrap(), 1), expected);
    assert_eq!(brokers(&State::read(&restored).unwrap().unwrap(), 1), expected);
}

/// Costs put sizes in the order of their times.
#[test]
fn a_size_counts_after_the_last_one_although_the_clock_was_set_back() {
    let (_dir, path) = place();
    let state = State::open(&path).unwrap();
    state.put_resource(&cluster("orders"), &resource(1)).unwrap();
    for (replicas, at) in [(6, 3600), (3, 300)] {
        let (key, object) = pool(replicas);
        state.record_size(&fleet(), &key, &object, time(at)).unwrap();
    }
    let (key, _) = pool(3);
    state.record_no_size(&fleet(), &key, time(400)).unwrap();
    assert_eq!(brokers(&state, 1), [(time(3600), 6), (time(3600), 3), (time(3600), 0)]);
}

#[test]
fn what_is_gone_has_no_size_and_what_is_made_again_has_a_history_of_its_own() {
    let (_dir, path) = place();
    let state = State::open(&path).unwrap();
    state.put_resource(&cluster("orders"), &resource(1)).unwrap();
    let (key, object) = pool(3);
    state.record_size(&fleet(), &key, &object, time(0)).unwrap();
    state.record_no_size(&fleet(), &key, time(10)).unwrap();
    state.record_no_size(&fleet(), &key, time(20)).unwrap();
    assert_eq!(brokers(&state, 1), [(time(0), 3), (time(10), 0)]);
    state.record_size(&fleet(), &key, &object, time(30)).unwrap();
    state.remove_resource(&cluster("orders"), time(40)).unwrap();
    state.put_resource(&cluster("orders"), &resource(2)).unwrap();
    state.record_size(&fleet(), &key, &object, time(50)).unwrap();
    assert_eq!(brokers(&state, 1)[2..], [(time(30), 3), (time(40), 0)]);
    assert_eq!(brokers(&state, 2), [(time(50), 3)]);
    assert_eq!(state.sizes_on_fleet(&fleet()).len(), 2);
    state.put_resource(&fleet().resource(), &resource(3)).unwrap();
    state.forget_fleet(&fleet(), time(60)).unwrap();
    assert_eq!(brokers(&state, 2), [(time(50), 3), (time(60), 0)]);
}

#[test]
fn what_an_earlier_version_applied_is_recorded_once() {
    let (_dir, path) = place();
    let state = State::open(&path).unwrap();
    state.put_resource(&cluster("orders"), &resource(1)).unwrap();
    let (key, object) = pool(3);
    state.put_object(&fleet(), &key, &object).unwrap();
    state.complete_sizes(&fleet(), false, time(0)).unwrap();
    assert_eq!(brokers(&state, 1), [(time(0), 3)]);
    // As after a crash between the deletion of an object and the line about it.
    state.remove_object(&fleet(), &key).unwrap();
    state.complete_sizes(&fleet(), false, time(10)).unwrap();
    assert_eq!(brokers(&state, 1), [(time(0), 3)]);
    state.complete_sizes(&fleet(), true, time(20)).unwrap();
    assert_eq!(brokers(&state, 1), [(time(0), 3), (time(20), 0)]);
}

#[test]
fn a_size_that_could_not_be_written_follows_with_the_next_round() {
    let (_dir, path) = place();
    let state = State::open(&path).unwrap();
    state.put_resource(&cluster("orders"), &resource(1)).unwrap();
    state.complete_sizes(&fleet(), false, time(0)).unwrap();
    let file = path.join("sizes.jsonl");
    std::fs::create_dir(&file).unwrap();
    let (key, object) = pool(3);
    state.put_object(&fleet(), &key, &object).unwrap();
    state.record_size(&fleet(), &key, &object, time(10)).unwrap_err();
    state.complete_sizes(&fleet(), false, time(20)).unwrap_err();
    std::fs::remove_dir(&file).unwrap();
    state.complete_sizes(&fleet(), false, time(30)).unwrap();
    assert_eq!(brokers(&state, 1), [(time(30), 3)]);
    // Once is enough.
    state.remove_object(&fleet(), &key).unwrap();
    state.complete_sizes(&fleet(), false, time(40)).unwrap();
    assert_eq!(brokers(&state, 1), [(time(30), 3)]);
}

#[test]
fn a_damaged_line_is_refused_by_name_and_a_torn_one_is_dropped() {
    let (_dir, path) = place();
    let state = State::open(&path).unwrap();
    state.put_resource(&cluster("orders"), &resource(1)).unwrap();
    for (replicas, at) in [(3, 0), (6, 120)] {
        let (key, object) = pool(replicas);
        state.record_size(&fleet(), &key, &object, time(at)).unwrap();
    }
    drop(state);
    let file = path.join("sizes.jsonl");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, &text[..text.len() - 9]).unwrap();
    let state = State::open(&path).unwrap();
    assert_eq!(brokers(&state, 1), [(time(0), 3)]);
    assert!(state.warnings().iter().any(|it| it.contains("the last line of")), "{:?}", state.warnings());
    drop(state);
    std::fs::write(&file, text.replacen("\"brokers\":3", "\"brokers\":1", 1)).unwrap();
    let error = State::open(&path).err().unwrap();
    assert!(error.to_string().contains("sizes.jsonl:1`: it is damaged (its checksum"), "{error}");
    assert!(error.hint().ends_with("without a backup, the costs of clusters start anew"), "{}", error.hint());
}
