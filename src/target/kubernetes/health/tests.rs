use std::cell::RefCell;
use std::future::ready;

use serde_json::json;

use super::*;
use crate::component::health::{GatewayName, GatewayWithoutAddress, OperatorState, ReadWhen};
use crate::component::{self, Extras};
use crate::plan::preflight::{Permission, permissions};

struct Server {
    objects: BTreeMap<&'static str, Vec<Value>>,
    refused: BTreeMap<&'static str, u16>,
    asked: RefCell<Vec<String>>,
}

impl Server {
    fn list(&self, query: HealthQuery) -> KindObjects {
        let HealthQuery { kind, selector } = query;
        self.asked.borrow_mut().push(format!("{} {selector}", kind.kind));
        let attempted = format!("list objects of kind {}", kind.kind);
        match self.refused.get(kind.kind) {
            Some(&code) => Err(KubeError::Refused { attempted, code, reason: "no".to_owned() }),
            None => {
                let objects = self.objects.get(kind.kind).into_iter().flatten();
                Ok(objects.filter_map(|object| kept(query, object)).collect())
            }
        }
    }

    async fn see(&self, wanted: &AppliedCluster) -> Result<FleetObservation, KubeError> {
        self.asked.borrow_mut().clear();
        let wanted = [(cluster(), wanted.clone())].into();
        see(|query| ready(self.list(query)), &wanted).await
    }
}

fn cluster() -> ResourceKey {
    "Cluster/acme/orders".to_owned().try_into().unwrap()
}

fn object(name: &str, namespace: &str, status: &Value) -> Value {
    let labels = json!({"strimzi.io/cluster": "orders", "app": "strimzi"});
    json!({"metadata": {"name": name, "namespace": namespace, "labels": labels}, "status": status})
}

fn healthy() -> (Server, AppliedCluster) {
    let ready = json!({"conditions": [{"type": "Ready", "status": "True"}], "readyReplicas": 1});
    let of = |name| vec![object(name, "kafka-acme--orders", &ready), object(name, "theirs", &ready)];
    let gateway = object("kafka", "streamfleet", &json!({"addresses": [{"value": "gw.example.net"}]}));
    let objects = [
        ("Deployment", vec![object("strimzi-cluster-operator", "ops", &ready)]),
        ("Kafka", of("orders")),
        ("KafkaNodePool", of("broker")),
        ("Pod", of("orders-broker-0")),
        ("Gateway", vec![gateway]),
    ];
    let server = Server { objects: objects.into(), refused: BTreeMap::new(), asked: RefCell::default() };
    let wanted = AppliedCluster {
        namespace: "kafka-acme--orders".to_owned(),
        cluster: "orders".to_owned(),
        ..AppliedCluster::default()
    };
    (server, wanted)
}

fn gateway_name() -> GatewayName {
    GatewayName { namespace: "streamfleet".to_owned(), name: "kafka".to_owned() }
}

/// How many kinds are read then.
fn judged(when: ReadWhen) -> usize {
    component::kinds().filter(|kind| kind.health.is_some_and(|source| source.when == when)).count()
}

#[tokio::test]
async fn no_more_is_asked_than_it_takes() {
    let (mut server, mut wanted) = healthy();
    let seen = server.see(&wanted).await.unwrap();
    let kinds = judged(ReadWhen::Always) + judged(ReadWhen::Clusters);
    assert_eq!(server.asked.borrow().len(), kinds, "{:?}", server.asked);
    assert_eq!(
        seen.operator,
        OperatorState::Found { name: "ops/strimzi-cluster-operator".into(), wanted: 1, ready: 1 }
    );
    let of_ours = &seen.clusters[&cluster()];
    assert_eq!((of_ours.objects.len(), of_ours.pods.as_ref().unwrap().len()), (3, 1));
    assert_eq!(of_ours.storage_classes, None);

    wanted.gateway = Some(gateway_name());
    server.objects.insert("Pod", vec![object("orders-broker-0", "kafka-acme--orders", &json!({}))]);
    let seen = server.see(&wanted).await.unwrap();
    assert_eq!(seen.gateway.as_deref(), Some("gw.example.net"));
    assert_eq!(seen.unserved, None);
    assert!(seen.clusters[&cluster()].storage_classes.is_some());
    assert_eq!(server.asked.borrow().len(), kinds + 3, "why a pod isn't ready, and the Gateway");

    server.objects.remove("Deployment");
    wanted.deleting = true;
    assert_eq!(server.see(&wanted).await.unwrap().operator, OperatorState::Missing);
    assert_eq!(
        server.asked.borrow().len(),
        kinds + 3 + 1 + judged(ReadWhen::Applied) + judged(ReadWhen::Deleting),
        "an operator elsewhere, and what is left"
    );
}

#[tokio::test]
async fn a_gateway_without_an_address_is_seen_with_what_its_controller_says() {
    let (mut server, mut wanted) = healthy();
    wanted.gateway = Some(gateway_name());
    let conditions = json!([{"type": "Accepted", "status": "True", "message": "fine"},
        {"type": "Programmed", "status": "False", "message": "no address is left"}]);
    let mut gateway = object("kafka", "streamfleet", &json!({"conditions": conditions}));
    gateway["metadata"]["creationTimestamp"] = "2026-11-21T11:00:00Z".into();
    server.objects.insert("Gateway", vec![gateway]);
    let seen = server.see(&wanted).await.unwrap();
    let unserved = GatewayWithoutAddress {
        gateway: "streamfleet/kafka".to_owned(),
        made: Some("2026-11-21T11:00:00Z".parse().unwrap()),
        controller_message: Some("no address is left".to_owned()),
    };
    assert_eq!((seen.gateway, seen.unserved), (None, Some(unserved)));
}

#[test]
fn every_kind_may_be_listed_and_watched_with_the_role_that_is_printed() {
    for kind in component::kinds() {
        let Some(health) = &kind.health else { continue };
        // Only a fleet with a Gateway reads those, and its administrator prints the role with the option.
        let (gateway, topics) = (health.when == ReadWhen::Routed, health.when == ReadWhen::Applied);
        let with_options = Extras { gateway, topics, ..Extras::default() };
        for (verb, extras) in [("list", Extras::default()), ("watch", with_options)] {
            if verb == "watch" && !health.is_watched() {
                continue;
            }
            let permission = Permission { group: kind.group(), resource: kind.plural, verb };
            assert!(permissions(extras).contains(&permission), "{permission}");
        }
    }
}

#[tokio::test]
async fn what_the_server_does_not_show_is_unknown_and_said() {
    let (mut server, wanted) = healthy();
    let partly = "the health of clusters is known only in part";
    for (refused, clusters, message) in [
        (
            vec![("Pod", 403)],
            1,
            "the user of the fleet's `kubeconfig` may not list Pod objects; grant it `list` on `pods` with a ClusterRole",
        ),
        (
            vec![("Pod", 403), ("StrimziPodSet", 403)],
            0,
            "the user of the fleet's `kubeconfig` may not list StrimziPodSet objects; grant it `list` on \
             `strimzipodsets.core.strimzi.io` with a ClusterRole",
        ),
        (
            vec![("Kafka", 500)],
            0,
            "cannot list objects of kind Kafka: the server refused it with 500 no; resolve what the server reports, then \
             try again",
        ),
    ] {
        server.refused = refused.iter().copied().collect();
        let seen = server.see(&wanted).await.unwrap();
        assert_eq!((seen.clusters.len(), seen.unobservable.len()), (clusters, refused.len()));
        assert_eq!(seen.unobservable[0].message, format!("{partly}: {message}"));
    }
    server.refused = [("Deployment", 403)].into();
    assert_eq!(server.see(&wanted).await.unwrap().operator, OperatorState::Unknown);
    server.refused = [("User", 403), ("Kafka", 401)].into();
    assert!(server.see(&wanted).await.unwrap_err().is_code(401), "who isn't known sees nothing");
}
