use super::super::fields::APPLIED;
use super::super::inventory::namespace_key;
use super::*;
use crate::plan::ResourceMark;

fn applied(uid: &str, manifest: &str, made_by_us: bool) -> Value {
    let names = json!({"f:metadata": {"f:annotations": {format!("f:{APPLIED}"): {}}}});
    let ours = json!({"manager": "streamfleet", "operation": "Apply", "time": "2026-01-01T00:00:01Z", "fieldsV1": names});
    let made = if made_by_us { "2026-01-01T00:00:01Z" } else { "2026-01-01T00:00:00Z" };
    let mut object = thing(uid);
    object["metadata"]["managedFields"] = json!([ours]);
    object["metadata"]["creationTimestamp"] = made.into();
    object["metadata"]["annotations"] = json!({APPLIED: Digest::of(manifest)});
    object
}

fn intended(manifest: &str) -> ObjectEntry {
    let intended = Some(Digest::of(manifest));
    ObjectEntry { owner: owner(), written: None, intended, adopts: None, deleting: false }
}

/// Settles an object with this inventory entry and this response of the server. Returns the UID that is
/// recorded after a round without tasks, and the bodies that were applied to the object.
async fn settled(entry: ObjectEntry, there: (u16, Value)) -> (Option<String>, Vec<Value>) {
    let server = Server::new();
    server.remembers(&[(key(), entry)].into());
    server.says("GET", THING, [there.clone()]);
    server.says("PATCH", THING, [there]);
    let session = server.target().begin(Intent::default()).await.unwrap();
    let known = session.recall(&key()).map(|object| object.uid.unwrap());
    assert_eq!(session.known().contains(&key()), known.is_some());
    let maps = ["PUT", "POST"].map(|method| match method {
        "PUT" => server.bodies(&format!("PUT {MAPS}/inventory-3b")),
        _ => server.bodies(&format!("POST {MAPS}")),
    });
    let maps =
        maps.into_iter().flatten().filter_map(|map| Some(map["data"]["inventory.json"].as_str()?.to_owned()));
    for text in maps {
        let chunk: Value = serde_json::from_str(&text).unwrap();
        for entry in chunk["objects"].as_object().unwrap().values() {
            assert_eq!((&entry["intended"], &entry["deleting"]), (&Value::Null, &json!(false)), "{text}");
        }
    }
    (known, server.bodies(&format!("PATCH {THING}")))
}

#[tokio::test(start_paused = true)]
async fn what_a_killed_run_was_about_to_do_is_found_out_by_the_objects() {
    let deleting = || ObjectEntry { deleting: true, ..written("ours") };
    let ours = || Some("ours".to_owned());
    for (entry, there, known) in [
        // Deleted; not deleted; deleted and replaced by another object of the name.
        (deleting(), refusal(404), None),
        (deleting(), (200, applied("ours", "manifest", true)), ours()),
        (deleting(), (200, applied("another", "manifest", true)), None),
        // Created; not created; created by somebody else.
        (intended("manifest"), (200, applied("ours", "manifest", true)), ours()),
        (intended("manifest"), refusal(404), None),
        (intended("manifest"), (200, thing("another")), None),
        (intended("manifest"), (200, applied("another", "something else", true)), None),
    ] {
        let when = format!("{entry:?} {there:?}");
        assert_eq!(settled(entry, there).await, (known, vec![]), "{when}");
    }
    // Taken over; not taken over; replaced by another object since.
    let adopting = || ObjectEntry { adopts: Some("theirs".to_owned()), ..intended("manifest") };
    for (there, known) in [
        (applied("theirs", "manifest", false), Some("theirs".to_owned())),
        (thing("theirs"), None),
        (thing("another"), None),
    ] {
        let when = there.to_string();
        assert_eq!(settled(adopting(), (200, there)).await, (known, vec![]), "{when}");
    }
    // It was applied onto an object that somebody else had just created: we give up all our fields, of
    // exactly that object.
    let (known, patches) = settled(intended("manifest"), (200, applied("theirs", "manifest", false))).await;
    assert_eq!(known, None);
    let identity = json!({"name": "a", "namespace": "ns", "uid": "theirs"});
    assert_eq!(patches, [json!({"apiVersion": "example.org/v1", "kind": "Thing", "metadata": identity})]);
}

#[tokio::test(start_paused = true)]
async fn what_nobody_knows_any_more_is_forgotten_only_where_it_is_gone() {
    let mark = || Some(ResourceMark { id: Uuid::nil(), protected: true });
    for (there, known_resource, stays) in [
        ((200, applied("ours", "manifest", true)), false, true),
        (refusal(404), false, false),
        (refusal(404), true, true),
    ] {
        let server = Server::new();
        server.remembers(&[(key(), written("ours"))].into());
        server.says("GET", THING, [there]);
        let session = server.target().begin(Intent::default()).await.unwrap();
        session.finish(|_| mark().filter(|_| known_resource)).await.unwrap();
        assert_eq!(server.count(&format!("DELETE {INVENTORY}")) == 0, stays, "{known_resource}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_that_was_ahead_of_the_inventory_and_is_gone_stays_known() {
    let server = Server::new();
    server.remembers(&[(key(), written("ours"))].into());
    let target = server.target();
    target.swap_ahead([key()].into());
    let session = target.begin(Intent::default()).await.unwrap();
    assert_eq!(server.count(&format!("GET {THING}")), 1);
    assert!(session.known().contains(&key()));
}

#[tokio::test(start_paused = true)]
async fn only_so_many_tasks_are_begun_at_once() {
    let server = Server::new();
    let mut session = server.target().begin(Intent::default()).await.unwrap();
    for number in 0..AT_ONCE {
        assert!(session.has_room(), "after {number}");
        session.start(number, Task { object: key(), uid: None, deletes: false });
    }
    assert!(!session.has_room());
    let nothing = "this is a bug in streamfleet; report it";
    assert_eq!(session.next().await.unwrap().1.unwrap_err().hint(), nothing);
    assert!(session.has_room());
}

#[tokio::test(start_paused = true)]
async fn what_a_cluster_remembers_as_protected_is_what_was_announced() {
    let server = Server::new();
    let marks = |protected| [(owner(), ResourceMark { id: Uuid::nil(), protected })].into();
    for (protected, expected) in [(false, vec![]), (true, vec![owner()])] {
        let intent = Intent { marks: marks(protected), ..Intent::default() };
        let session = server.target().begin(intent).await.unwrap();
        assert_eq!(Vec::from_iter(session.protected()), expected);
    }
}

/// Deleting a namespace would delete every disk in it.
#[tokio::test(start_paused = true)]
async fn a_namespace_with_a_disk_in_it_is_not_deleted() {
    let claim = json!({"kind": "PersistentVolumeClaim", "metadata": {"name": "data-0", "uid": "disk"}});
    let held = "cannot delete Namespace ns: it contains the PersistentVolumeClaim data-0";
    for (claims, expected, asked, deletions) in [
        (vec![vec![claim.clone()]], Err(held), 151, 0),
        (vec![vec![claim], vec![]], Ok(None), 2, 1),
        (vec![vec![]], Ok(None), 1, 1),
    ] {
        let server = Server::new();
        let kinds = json!([
            {"name": "namespaces", "kind": "Namespace", "namespaced": false},
            {"name": "configmaps", "kind": "ConfigMap", "namespaced": true},
            {"name": "persistentvolumeclaims", "kind": "PersistentVolumeClaim", "namespaced": true},
        ]);
        let core = json!({"kind": "APIResourceList", "groupVersion": "v1", "resources": kinds});
        server.says("GET", "/api/v1", [(200, core)]);
        let path = "/api/v1/namespaces/ns/persistentvolumeclaims";
        let lists = claims.into_iter().map(|claims| (200, list("PersistentVolumeClaim", claims)));
        server.says("GET", path, lists.collect::<Vec<_>>());
        server.remembers(&[(namespace_key("ns"), written("ours"))].into());
        let intent = Intent { deletes: vec![namespace_key("ns")], ..Intent::default() };
        let mut session = server.target().begin(intent).await.unwrap();
        let task = Task { object: namespace_key("ns"), uid: Some("ours".to_owned()), deletes: true };
        session.start(0, task);
        let said = session.next().await.unwrap().1.map_err(|error| error.to_string());
        assert_eq!(said.as_ref().map_err(String::as_str), expected.as_ref().map_err(|it| *it));
        assert_eq!(server.count(&format!("GET {path}")), asked);
        assert_eq!(server.count("DELETE /api/v1/namespaces/ns"), deletions);
    }
}
