//! The inventory's ConfigMaps: their content, the order of writes, and reading them.

use super::super::inventory::Inventory;
use super::super::watch::tests::server;
use super::*;
use crate::plan::ResourceMark;

fn changes(server: &Server) -> Vec<String> {
    let sent = locked(&server.sent).clone();
    let changes = sent.iter().filter_map(|(asked, _, body)| {
        let (method, path) = asked.split_once(' ')?;
        let name = path.strip_prefix(MAPS)?.trim_start_matches('/');
        match method {
            "POST" => Some(format!("POST {}", body["metadata"]["name"].as_str()?)),
            "PUT" | "DELETE" => Some(format!("{method} {name}")),
            _ => None,
        }
    });
    changes.collect()
}

fn write(uid: Option<&str>) -> Intent {
    let filled = json!({"kind": "Thing", "metadata": {"name": "a", "namespace": "ns"}});
    let (applied, uid) = (Digest::of("manifest"), uid.map(str::to_owned));
    let write =
        ObjectWrite { key: key(), owner: owner(), applied, filled, uid, recreate: false, adopts: false };
    Intent { writes: vec![write], ..Intent::default() }
}

/// Adds an object of ours to the server's inventory, in the ConfigMap that has the namespace `ns` by its digest.
fn remembers_ours(server: &Server) {
    let ours = [(key(), written("ours"))].into();
    let maps = [
        config_map("inventory", &inventory(Uuid::nil(), &BTreeMap::new(), &["inventory-3b"])),
        config_map("inventory-3b", &inventory(Uuid::nil(), &ours, &[])),
    ];
    for map in &maps {
        let path = format!("{MAPS}/{}", map["metadata"]["name"].as_str().unwrap());
        server.says("GET", &path, [(200, map.clone())]);
    }
    server.says("GET", MAPS, [(200, list("ConfigMap", maps.to_vec()))]);
}

/// The owner of the cluster is recorded first, with the names of the other ConfigMaps until they are gone.
#[tokio::test(start_paused = true)]
async fn what_is_remembered_is_written_in_an_order_that_can_end_anywhere() {
    let server = Server::new();
    server.says("PATCH", THING, [(201, thing("new"))]);
    let mut session = server.target().begin(write(None)).await.unwrap();
    session.start(0, Task { object: key(), uid: None, deletes: false });
    session.next().await.unwrap().1.unwrap();
    let mark = ResourceMark { id: Uuid::nil(), protected: false };
    session.finish(|_| Some(mark)).await.unwrap();
    let made = ["POST inventory", "POST intents-0", "POST inventory-3b", "DELETE intents-0", "PUT inventory"];
    assert_eq!(changes(&server), made);

    let server = Server::new();
    remembers_ours(&server);
    let mut session =
        server.target().begin(Intent { deletes: vec![key()], ..Intent::default() }).await.unwrap();
    session.start(0, Task { object: key(), uid: Some("ours".to_owned()), deletes: true });
    session.next().await.unwrap().1.unwrap();
    session.finish(|_| None).await.unwrap();
    let mut gone = changes(&server);
    assert_eq!(gone.pop().as_deref(), Some("DELETE inventory"));
    assert_eq!(gone, ["PUT inventory-3b", "DELETE inventory-3b"]);
}

/// A ConfigMap is replaced only at the version that was read, and not at all without changes. An object
/// without other managers is recorded as such.
#[tokio::test(start_paused = true)]
async fn what_is_remembered_is_replaced_only_as_it_was_read() {
    let server = Server::new();
    remembers_ours(&server);
    let session = server.target().begin(Intent::default()).await.unwrap();
    assert!(session.known().contains(&key()) && changes(&server).is_empty());

    server.says("PATCH", THING, [(200, thing("ours"))]);
    let mut session = server.target().begin(write(Some("ours"))).await.unwrap();
    session.start(0, Task { object: key(), uid: Some("ours".to_owned()), deletes: false });
    session.next().await.unwrap().1.unwrap();
    let mark = ResourceMark { id: Uuid::nil(), protected: false };
    session.finish(|_| Some(mark)).await.unwrap();
    let [put] = server.bodies(&format!("PUT {MAPS}/inventory-3b")).try_into().unwrap();
    assert_eq!(put["metadata"]["resourceVersion"], "1");
    assert!(!put["data"]["inventory.json"].as_str().unwrap().contains("left"), "{put}");
}

/// A list may be truncated.
#[tokio::test(start_paused = true)]
async fn what_a_listing_of_the_inventory_lacks_is_asked_for_by_name() {
    for listed in [vec![], vec!["inventory"], vec!["inventory-3b"]] {
        let server = Server::new();
        remembers_ours(&server);
        let all = locked(&server.answers)[&("GET", MAPS.to_owned())][0].1["items"].clone();
        let mut items = all.as_array().unwrap().clone();
        items.retain(|map| listed.contains(&map["metadata"]["name"].as_str().unwrap()));
        server.says("GET", MAPS, [(200, list("ConfigMap", items))]);
        let session = server.target().begin(Intent::default()).await.unwrap();
        assert!(session.known().contains(&key()), "{listed:?}");
    }
}

#[test]
fn an_inventory_is_complete_with_all_that_it_names() {
    let main = config_map("inventory", &inventory(Uuid::nil(), &BTreeMap::new(), &["inventory-3b"]));
    let part = config_map("inventory-3b", &inventory(Uuid::nil(), &BTreeMap::new(), &[]));
    for (maps, absent, complete) in [
        (vec![], true, true),
        (vec![&main], false, false),
        (vec![&part], false, false),
        (vec![&main, &part], false, true),
    ] {
        let inventory = Inventory::of(&fleet(), Uuid::nil(), maps.iter().map(|map| (*map).clone())).unwrap();
        assert_eq!((inventory.is_absent(), inventory.is_complete()), (absent, complete), "{maps:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_inventory_of_another_version_is_left_alone() {
    for (version, expected) in [(1, false), (2, true), (3, false)] {
        let server = Server::new();
        let mut chunk = inventory(Uuid::nil(), &BTreeMap::new(), &[]);
        chunk["version"] = version.into();
        server.says("GET", MAPS, [(200, list("ConfigMap", vec![config_map("inventory", &chunk)]))]);
        let begun = server.target().begin(Intent::default()).await;
        assert_eq!(begun.is_ok(), expected, "{version}");
        let is_told = match begun {
            Err(KubeError::Newer { found, known: 2, .. }) => found == 3,
            Err(KubeError::Older { found, known: 2, .. }) => found == 1,
            _ => expected,
        };
        assert!(is_told, "{version}");
    }
}

/// With watches, a run reads only the versions of the inventory's ConfigMaps. It reads their content when another
/// writer has changed one.
#[tokio::test(start_paused = true)]
async fn a_run_of_a_daemon_reads_the_inventory_again_only_if_it_changed() {
    let server = server::Server::new();
    let maps = |ours: &BTreeMap<ObjectKey, ObjectEntry>, version: &str| {
        let mut maps = vec![
            config_map("inventory", &inventory(Uuid::nil(), &BTreeMap::new(), &["inventory-3b"])),
            config_map("inventory-3b", &inventory(Uuid::nil(), ours, &[])),
        ];
        maps[1]["metadata"]["resourceVersion"] = version.into();
        maps
    };
    server.world().objects.insert(MAPS, maps(&[(key(), written("ours"))].into(), "2"));
    let api = Arc::new(Api::remembering(server.client()));
    let whose = (fleet(), Uuid::nil());
    let view = ClusterWatch::start(
        whose,
        cluster(Some("first")),
        Arc::clone(&api),
        Handle::current(),
        Arc::default(),
    );
    let target = target(api, Some("first"), Some(Arc::new(view)));
    assert!(target.base().await.unwrap().1.find(&key()).is_some());
    let listed = || server.count("configmaps?") - server.count("watch=true");
    let before = listed();
    let known = async || target.begin(Intent::default()).await.unwrap().known();
    assert_eq!((known().await, listed() - before), ([key()].into(), 1));

    server.world().objects.insert(MAPS, maps(&BTreeMap::new(), "3"));
    assert_eq!((known().await, listed() - before), ([].into(), 3));
}
