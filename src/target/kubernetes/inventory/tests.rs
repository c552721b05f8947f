use super::*;
use crate::names::Kind;
use crate::plan::ResourceMark;

fn empty() -> Inventory {
    Inventory {
        fleet: "acme/eu".to_owned().try_into().unwrap(),
        installation: Uuid::nil(),
        resources: InventoryMarks::default(),
        objects: BTreeMap::new(),
        saved: BTreeMap::new(),
    }
}

/// An object with the longest possible names, in a namespace of its own.
fn key(number: usize) -> ObjectKey {
    ObjectKey {
        namespace: Some(format!("{number:063}")),
        kind: "K".repeat(63),
        name: "n".repeat(253),
        api_version: format!("{}/v1beta2", "g".repeat(100)),
    }
}

#[test]
fn what_no_object_is_called_is_not_believed() {
    let entry = |owner: &str| json!({"owner": owner});
    let chunk = |key: &str, owner: &str| {
        let text = json!({"version": 2, "fleet": "acme/eu", "installation": Uuid::nil(),
            "objects": {key: entry(owner)}});
        json!({"data": {KEY: text.to_string()}})
    };
    let (key, owner) = ("v1|Secret|kafka-acme--a|a", "Cluster/acme/a");
    assert!(Chunk::parse("inventory", &chunk(key, owner)).is_ok());
    for (key, owner) in [
        ("v1|Secret|kafka-acme--a|\u{1b}[2J", owner),
        ("v1|Secret|kafka acme|a", owner),
        ("v1|Sec ret||a", owner),
        (key, "Cluster/acme/a\u{202e}"),
    ] {
        let error = Chunk::parse("inventory", &chunk(key, owner)).err().unwrap();
        let expected = "cannot read the inventory, ConfigMap inventory: it is damaged (it contains objects that \
                        streamfleet can't have created)";
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn what_is_about_to_be_made_stands_together_and_is_read_back() {
    let mut inventory = empty();
    for number in 0..=INTENTS_IN_ONE {
        let owner = ResourceKey::new(Kind::Cluster, &"acme".parse().unwrap(), format!("c-{number:030}"));
        let mark = ResourceMark { id: Uuid::nil(), protected: true };
        inventory.resources.announce([(owner.clone(), mark)].into());
        let intended = Some(Digest::of("manifest"));
        let entry = ObjectEntry { owner, written: None, intended, adopts: None, deleting: false };
        inventory.objects.insert(key(number), entry);
    }
    // One was there before, and is recreated.
    let written =
        AppliedObject { uid: "u".to_owned(), applied: Digest::of("before"), fields: None, left: None };
    inventory.objects.entry(key(7)).and_modify(|entry| {
        entry.written = Some(written);
        entry.deleting = true;
    });

    let chunks = inventory.chunks();
    let names: Vec<&str> = chunks.keys().map(String::as_str).collect();
    assert_eq!(names, ["intents-0", "intents-1", "inventory", "inventory-0e"]);
    // Each has only its own part, so that an outdated one is not believed.
    for (name, chunk) in &chunks {
        let is_intent = name.starts_with(INTENTS);
        let only_its_part = |entry: &ObjectEntry| match is_intent {
            true => entry.intended.is_some() && entry.written.is_none() && !entry.deleting,
            false => entry.intended.is_none() && entry.written.is_some(),
        };
        assert!(chunk.objects.values().all(only_its_part), "{name}");
    }
    let longest = chunks.values().map(|chunk| serde_json::to_string(chunk).unwrap().len()).max();
    assert!(longest < Some(1 << 20), "a ConfigMap holds 1 MiB, and not {longest:?} bytes");

    let mut again = empty();
    for (name, chunk) in chunks {
        again.take(&name, &chunk.body(&name, None)).unwrap();
    }
    assert!(again.objects == inventory.objects && again.resources == inventory.resources);
}

fn written(kind: Kind, name: &str) -> ObjectEntry {
    let owner = ResourceKey::new(kind, &"acme".parse().unwrap(), name);
    let applied = AppliedObject {
        uid: Uuid::nil().to_string(),
        applied: Digest::of("manifest"),
        fields: Some(Digest::of("fields")),
        left: None,
    };
    ObjectEntry { owner, written: Some(applied), intended: None, adopts: None, deleting: false }
}

/// A change of one namespace must not write those of a whole fleet, and a first apply not one ConfigMap for each.
#[test]
fn a_thousand_namespaces_share_64_config_maps_that_are_far_from_full() {
    let mut inventory = empty();
    for number in 0..1_000 {
        let cluster = format!("cluster-{number:022}");
        for kind in 0..16 {
            let key = ObjectKey {
                namespace: Some(format!("kafka-acme--{cluster}")),
                kind: format!("KafkaNodePool{kind}"),
                name: format!("{cluster}-controllers"),
                api_version: "kafka.strimzi.io/v1".to_owned(),
            };
            inventory.objects.insert(key, written(Kind::Cluster, &cluster));
        }
    }
    let mut chunks = inventory.chunks();
    let main = chunks.remove(MAIN).unwrap();
    assert_eq!((chunks.len(), main.chunks.len()), (64, 64));
    let longest = chunks.values().map(|chunk| serde_json::to_string(chunk).unwrap().len()).max().unwrap();
    assert!(longest < 256 << 10, "{longest} bytes");

    let mut again = empty();
    for (name, chunk) in chunks {
        again.take(&name, &chunk.body(&name, None)).unwrap();
    }
    assert!(again.objects == inventory.objects);
}

/// Topics and users can be thousands in each namespace, so they would not fit into one that is shared.
#[test]
fn topics_and_users_have_a_config_map_of_their_namespace() {
    let namespace = "kafka-acme--orders";
    let within = |kind: &str| -> ObjectKey { format!("v1|{kind}|{namespace}|a").try_into().unwrap() };
    let owner = |kind, name: &str| written(kind, name).owner;
    let alone = format!("inventory-{namespace}");
    for (key, owner, expected) in [
        (namespace_key(namespace), owner(Kind::Cluster, "orders"), "inventory-11"),
        (within("Secret"), owner(Kind::Cluster, "orders"), "inventory-11"),
        (within("KafkaTopic"), owner(Kind::Topic, "orders/a"), alone.as_str()),
        (within("Secret"), owner(Kind::User, "orders/a"), alone.as_str()),
        ("v1|ClusterRole||a".to_owned().try_into().unwrap(), owner(Kind::Fleet, "eu"), "inventory"),
    ] {
        assert_eq!(chunk_of(&key, &owner), expected, "{key}");
    }
}
