use proptest::prelude::*;

use super::*;

/// The objects of a recording, in its first moments.
fn recorded() -> Vec<Value> {
    let lines = include_str!("../../../../../../../tests/recordings/unschedulable.jsonl").lines();
    lines.map(|line| serde_json::from_str::<Value>(line).unwrap()["object"].take()).collect()
}

/// Any JSON, rich in the values that the views read.
fn anything() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        Just(Value::from(u64::MAX)),
        "[a-zA-Z0-9 .é-]{0,12}".prop_map(Value::from),
        prop::sample::select(vec![
            "True",
            "NotReady",
            "Warning",
            "Pending",
            "1Gi",
            "ScaleDownPreventionCheck"
        ])
        .prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-z]{1,4}", inner, 0..4).prop_map(|map| json!(map)),
        ]
    })
}

fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    found.push(at.to_owned());
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                let key = key.replace('~', "~0").replace('/', "~1");
                places(value, &format!("{at}/{key}"), found);
            }
        }
        Value::Array(list) => {
            for (index, value) in list.iter().enumerate() {
                places(value, &format!("{at}/{index}"), found);
            }
        }
        _ => {}
    }
}

fn wanted() -> AppliedCluster {
    AppliedCluster {
        namespace: "kafka-acme--uns".into(),
        cluster: "uns".into(),
        pools: BTreeMap::from([("dual".into(), WantedPool { replicas: 1, controller: true })]),
        ..AppliedCluster::default()
    }
}

fn look(objects: &[Value], memory: &HealthMemory, second: i64) -> (Judgement, HealthMemory) {
    let deployment = objects.iter().find(|object| object["kind"] == "Deployment");
    let seen = ClusterObservation::of("kafka-acme--uns", "uns", OperatorState::of(deployment), objects);
    let now = Timestamp::from_second(1_800_000_000 + second).unwrap();
    judge(&wanted(), &seen, memory, now)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_json_in_the_place_of_anything_is_judged(
        spoils in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), anything()), 1..6),
        seconds in prop::collection::vec(0..2000i64, 3),
    ) {
        let mut objects = recorded();
        for (object, place, value) in spoils {
            let object = object.get(&objects[..]).clone();
            let mut found = Vec::new();
            places(&object, "", &mut found);
            let mut spoilt = object;
            *spoilt.pointer_mut(place.get(&found[..]).as_str()).unwrap() = value;
            objects.push(spoilt);
        }
        let mut memory = HealthMemory::default();
        for second in seconds {
            memory = look(&objects, &memory, second).1;
        }
    }

    #[test]
    fn the_order_of_objects_does_not_matter(order in Just((0..29usize).collect::<Vec<_>>()).prop_shuffle()) {
        // The latest version of each object, so that no two compete for one name.
        let latest: BTreeMap<String, Value> = recorded()
            .into_iter()
            .map(|object| (format!("{}/{}", object["kind"], object["metadata"]["name"]), object))
            .collect();
        let sorted: Vec<Value> = latest.into_values().collect();
        let shuffled: Vec<Value> = order.into_iter().filter_map(|at| sorted.get(at).cloned()).collect();
        prop_assert_eq!(shuffled.len(), sorted.len());
        let before = HealthMemory::default();
        prop_assert_eq!(look(&sorted, &before, 0), look(&shuffled, &before, 0));
    }
}
