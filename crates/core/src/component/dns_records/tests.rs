use super::*;
use crate::component::fixtures::{cluster, with_domain};
use crate::spec::DnsProvider;

fn named() -> ResolvedCluster {
    with_domain(cluster(json!({"advanced_config": {"cluster_access": "External"}})), DnsProvider::Rfc2136)
}

fn resource(cluster: &ResolvedCluster) -> NamedResource<'_> {
    NamedResource::of_cluster(cluster).unwrap()
}

fn leads(last: u8) -> HostRecords {
    HostRecords { addresses: [IpAddr::from([192, 0, 2, last])].into(), alias: None }
}

const BOOTSTRAP: &str = "orders.k.example.com";
const BROKER: &str = "broker-0--orders.k.example.com";

#[test]
fn only_a_clusters_own_names_get_records() {
    let cluster = named();
    let names = [
        BOOTSTRAP,
        BROKER,
        "broker-12--orders.k.example.com",
        "billing.k.example.com",
        "broker-00--orders.k.example.com",
        "broker-1000--orders.k.example.com",
        "broker-x--orders.k.example.com",
        "a.broker-0--orders.k.example.com",
        "www.example.com",
    ];
    let found: FoundHosts = names.map(|name| (name.to_owned(), leads(1))).into();
    let made = resource(&cluster).records(&found).into_iter().map(|it| it.key.name);
    let made: Vec<String> = made.collect();
    assert_eq!(made, ["broker-0--orders.k.example.com", "broker-12--orders.k.example.com", BOOTSTRAP]);
    let external = with_domain(cluster_of_external_dns(), DnsProvider::ExternalDns);
    assert!(NamedResource::of_cluster(&external).is_none());
}

fn cluster_of_external_dns() -> ResolvedCluster {
    cluster(json!({"advanced_config": {"cluster_access": "External"}}))
}

#[test]
fn a_record_says_where_its_name_leads() {
    let cluster = named();
    let found: FoundHosts = [(BOOTSTRAP.to_owned(), leads(7))].into();
    let body = resource(&cluster).records(&found)[0].body.value();
    assert_eq!(body["spec"], json!({"zone": "example.com", "addresses": ["192.0.2.7"]}));
    assert_eq!(HostRecords::of_body(&body), leads(7));
    let alias = HostRecords { alias: Some("lb.example.net".to_owned()), ..HostRecords::default() };
    let body = alias.body(BOOTSTRAP, &"example.com".parse().unwrap()).value();
    assert_eq!(HostRecords::of_body(&body), alias);
}

#[test]
fn a_record_stays_while_it_is_not_known_where_its_name_leads() {
    let cluster = named();
    let resource = resource(&cluster);
    let keys = [BOOTSTRAP, BROKER, "broker-7--orders.k.example.com", "orders.old.example.com"]
        .map(|it| resource.record_key(it));
    let kept = |found: Option<&FoundHosts>| {
        let kept = resource.undecided(found, keys.iter());
        kept.into_iter().map(|key| key.name).collect::<Vec<_>>()
    };
    let own = ["broker-0--orders.k.example.com", "broker-7--orders.k.example.com", BOOTSTRAP];
    // The Services can't be read, or none is there: the operator may be about to make them anew.
    assert_eq!(kept(None), own);
    assert_eq!(kept(Some(&FoundHosts::new())), own);
    // A load balancer without an address.
    let waiting = [(BOOTSTRAP.to_owned(), leads(1)), (BROKER.to_owned(), HostRecords::default())].into();
    assert_eq!(kept(Some(&waiting)), [BROKER]);
    // Broker 7 is gone, and the domain of another time isn't the cluster's.
    let all = [(BOOTSTRAP.to_owned(), leads(1)), (BROKER.to_owned(), leads(2))].into();
    assert!(kept(Some(&all)).is_empty());
}

#[test]
fn what_a_tenants_cluster_says_is_bounded() {
    let ingress: Vec<Value> = (0..200).map(|last| json!({"ip": format!("192.0.2.{last}")})).collect();
    let service = |ingress: Value| json!({"metadata": {"annotations": {HOST: BOOTSTRAP}}, "status": {"loadBalancer": {"ingress": ingress}}});
    let (host, found) = of_service(&service(json!(ingress))).unwrap();
    assert_eq!((host.as_str(), found.addresses.len()), (BOOTSTRAP, MAX_ADDRESSES));
    let odd = json!([{"ip": "nowhere"}, {"hostname": "-bad-.example.com"}, {"hostname": 7}, {}]);
    assert!(of_service(&service(odd)).unwrap().1.is_empty());
    let named = of_service(&service(json!([{"hostname": "LB.Example.net."}]))).unwrap().1;
    assert_eq!(named.alias.as_deref(), Some("lb.example.net"));
    assert!(of_service(&service(Value::Null)).unwrap().1.is_empty());
    assert_eq!(of_service(&json!({"metadata": {}})), None);
}

#[test]
fn behind_a_gateway_all_names_lead_to_it() {
    let cluster = named();
    let gateway = json!({"status": {"addresses": [{"type": "IPAddress", "value": "192.0.2.9"}]}});
    let nodes = [json!({"status": {"nodeIds": [0, 1]}}), json!({"status": {"nodeIds": [1000]}}), json!({})];
    let found = resource(&cluster).behind(&of_gateway(&gateway), nodes.iter());
    assert_eq!(found.keys().collect::<Vec<_>>(), [BROKER, "broker-1--orders.k.example.com", BOOTSTRAP]);
    assert!(found.values().all(|it| *it == leads(9)));
    let named = json!({"status": {"addresses": [{"type": "Hostname", "value": "gw.example.net"}]}});
    assert_eq!(of_gateway(&named).alias.as_deref(), Some("gw.example.net"));
    assert!(of_gateway(&json!({})).is_empty());
    // While no broker is known, nothing is, so that no record is deleted.
    assert!(resource(&cluster).behind(&leads(9), [json!({})].iter()).is_empty());
}
