use super::*;
use crate::component;

/// The fleet `acme/eu` with one Gateway, under the domain `k.example.com`.
fn with_gateway(mut cluster: ResolvedCluster, private: bool) -> Catalog {
    let config = &mut Arc::make_mut(&mut cluster.fleet_spec).advanced_config;
    config.exposure = Exposure::TlsRoute;
    config.gateway = Some(crate::spec::GatewayConfig { class: "envoy".to_owned(), private });
    let domain = cluster.domain.as_ref().map(|domain| domain.key.clone());
    let mut catalog = catalog([cluster]);
    catalog.fleets.values_mut().for_each(|fleet| Arc::make_mut(fleet).domain.clone_from(&domain));
    catalog
}

#[test]
fn a_fleet_has_one_gateway_that_is_its_own() {
    let of_fleet = |catalog: &Catalog| -> Vec<Manifest> {
        let objects = render(catalog).fleets.into_values().flat_map(BTreeMap::into_values);
        objects.filter(|object| object.owner.kind == Kind::Fleet).collect()
    };
    let catalog = with_gateway(external(json!({})), true);
    let objects = of_fleet(&catalog);
    let bodies: Vec<Value> = objects.iter().map(|object| object.body.value()).collect();
    insta::assert_snapshot!("gateway", to_yaml(&json!(bodies)));
    assert!(objects.iter().all(|object| object.stage < Stage::Custom), "it is there before clusters are");
    // The listeners refer to it, and it doesn't depend on the clusters.
    let kafka = objects_of(&catalog).remove("Kafka/orders").unwrap();
    let parent = &kafka["spec"]["kafka"]["listeners"][0]["configuration"]["parentRefs"][0];
    let gateway = &bodies[1];
    for (named, there) in [
        ("kind", "/kind"),
        ("name", "/metadata/name"),
        ("namespace", "/metadata/namespace"),
        ("sectionName", "/spec/listeners/0/name"),
    ] {
        assert_eq!(Some(&parent[named]), gateway.pointer(there));
    }
    let mut without = with_gateway(external(json!({})), true);
    without.clusters = Default::default();
    assert_eq!(of_fleet(&without), objects);
    let public = of_fleet(&with_gateway(external(json!({})), false));
    let scheme = json!({"service.beta.kubernetes.io/aws-load-balancer-scheme": "internet-facing"});
    assert_eq!(public[1].body.value().pointer("/spec/infrastructure/annotations"), Some(&scheme));
    let private = [true, false].map(|it| {
        (component::facts("Gateway").is_private)(&of_fleet(&with_gateway(external(json!({})), it))[1].body)
    });
    assert_eq!(private, [true, false]);
    assert_eq!(of_fleet(&crate::component::fixtures::catalog([external(json!({}))])), []);
}

#[test]
fn an_isolated_cluster_is_open_to_the_gateway_and_has_no_load_balancers_of_its_own() {
    let catalog = with_gateway(external(json!({"tenancy_mode": "Isolated"})), false);
    let objects = objects_of(&catalog);
    let pointer = "/spec/ingress/0";
    let rule = objects["NetworkPolicy/allow-clients"].pointer(pointer).unwrap();
    assert_eq!(
        *rule,
        json!({"ports": [{"port": 9094, "protocol": "TCP"}]}),
        "from anywhere, to that port only"
    );
    assert_eq!(objects["ResourceQuota/orders"]["spec"]["hard"]["services.loadbalancers"], "0");
}

#[test]
fn who_keeps_the_records_decides_whether_external_dns_looks_at_routes() {
    let annotations = |provider| {
        let cluster =
            with_domain(cluster(json!({"advanced_config": {"cluster_access": "External"}})), provider);
        let objects = objects_of(&with_gateway(cluster, false));
        let configuration = &objects["Kafka/orders"]["spec"]["kafka"]["listeners"][0]["configuration"];
        let of = |pointer: &str| configuration.pointer(pointer).cloned().unwrap_or_default();
        [of("/bootstrap/annotations"), of("/perBrokerAnnotationsTemplate")]
    };
    let away = json!({
        "external-dns.alpha.kubernetes.io/controller": "none",
        "external-dns.kubernetes.io/controller": "none",
    });
    assert_eq!(annotations(DnsProvider::None), [away.clone(), away]);
    assert_eq!(annotations(DnsProvider::ExternalDns), [Value::Null, Value::Null]);
}
