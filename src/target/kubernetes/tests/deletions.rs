//! Deletions and changes name the object's UID: another object of the same name is left alone.

use super::*;

fn only(uid: &str) -> Value {
    json!({"preconditions": {"uid": uid}, "propagationPolicy": "Background"})
}

fn write(recreate: bool) -> ObjectWrite {
    let filled = json!({"kind": "Thing", "metadata": {"name": "a", "namespace": "ns"}});
    let (applied, uid) = (Digest::of("manifest"), Some("ours".to_owned()));
    ObjectWrite { key: key(), owner: owner(), applied, filled, uid, recreate, adopts: false }
}

async fn run(target: &KubernetesTarget, write: Option<ObjectWrite>, uid: &str) -> String {
    let deletes = write.is_none();
    let intent = match write {
        Some(write) => Intent { writes: vec![write], ..Intent::default() },
        None => Intent { deletes: vec![key()], ..Intent::default() },
    };
    let mut session = target.begin(intent).await.unwrap();
    session.start(0, Task { object: key(), uid: Some(uid.to_owned()), deletes });
    let taken = session.next().await.unwrap().1;
    session.finish(|_| None).await.unwrap();
    match taken {
        Ok(uid) => format!("done: {uid:?}"),
        Err(error) => error.to_string(),
    }
}

#[tokio::test(start_paused = true)]
async fn only_the_object_that_was_planned_to_go_is_deleted() {
    let server = Server::new();
    server.remembers(&[(key(), written("ours"))].into());
    assert_eq!(run(&server.target(), None, "ours").await, "done: None");
    assert_eq!(server.bodies(&format!("DELETE {THING}")), [only("ours")]);
    // The same holds for the inventory's ConfigMaps: as they were read, and as they were written since.
    assert_eq!(server.bodies(&format!("DELETE {MAPS}/intents-0")), [only("intents-0")]);
    assert_eq!(server.bodies(&format!("DELETE {MAPS}/inventory-3b")), [only("new")]);
    assert_eq!(server.bodies(&format!("DELETE {INVENTORY}")), [only("new")]);
}

#[tokio::test(start_paused = true)]
async fn an_object_that_took_the_name_of_one_that_goes_is_left_alone() {
    let held = "cannot finish the deletion of Thing ns/a: it is being deleted and its blocker is unknown";
    for (there, expected, gets) in [
        ((200, thing("another")), "done: None", 1),
        (refusal(404), "done: None", 1),
        ((200, thing("ours")), held, 151),
    ] {
        let server = Server::new();
        server.remembers(&[(key(), written("ours"))].into());
        server.says("DELETE", THING, [refusal(409)]);
        server.says("GET", THING, [there]);
        let mut session =
            server.target().begin(Intent { deletes: vec![key()], ..Intent::default() }).await.unwrap();
        session.start(0, Task { object: key(), uid: Some("ours".to_owned()), deletes: true });
        let said = session.next().await.unwrap().1;
        let said = said.map_or_else(|error| error.to_string(), |uid| format!("done: {uid:?}"));
        assert_eq!(said, expected);
        assert_eq!(server.bodies(&format!("DELETE {THING}")), [only("ours")]);
        assert_eq!(server.count(&format!("GET {THING}")), gets, "{expected}");
    }
}

#[tokio::test(start_paused = true)]
async fn only_the_object_that_was_planned_for_is_changed_or_made_anew() {
    let uids = |bodies: Vec<Value>| bodies.iter().map(|it| it["metadata"]["uid"].clone()).collect::<Vec<_>>();
    for (recreate, sent, deleted) in [(false, json!("ours"), vec![]), (true, Value::Null, vec![only("ours")])]
    {
        let server = Server::new();
        server.remembers(&[(key(), written("ours"))].into());
        server.says("PATCH", THING, [(201, thing("ours"))]);
        server.says("GET", THING, [(200, thing("ours"))]);
        assert_eq!(run(&server.target(), Some(write(recreate)), "ours").await, "done: Some(\"ours\")");
        assert_eq!(uids(server.bodies(&format!("PATCH {THING}"))), [sent]);
        assert_eq!(server.bodies(&format!("DELETE {THING}")), deleted);
    }
}

/// The inventory names another object by now, or none: nothing is sent, whatever the server would say to it.
#[tokio::test(start_paused = true)]
async fn nothing_is_sent_for_an_object_that_is_not_the_planned_one() {
    for known in [Some("another"), None] {
        let server = Server::new();
        if let Some(uid) = known {
            server.remembers(&[(key(), written(uid))].into());
        }
        for recreate in [false, true] {
            server.says("PATCH", THING, [(201, thing("ours"))]);
            server.says("GET", THING, [(200, thing("ours"))]);
            let told = run(&server.target(), Some(write(recreate)), "ours").await;
            assert_eq!(
                told,
                "cannot apply Thing ns/a: the object with this name was replaced since the plan was made"
            );
            assert_eq!(
                (server.count(&format!("PATCH {THING}")), server.count(&format!("DELETE {THING}"))),
                (0, 0)
            );
        }
    }
}
