use super::outputs::NullReasons;
use super::*;
use crate::names::ResourceKey;
use crate::spec::schema::fields_of;

fn record(kind: Kind, spec: Value) -> Value {
    Record::of_spec(&Spec::read(kind, spec).unwrap()).to_json()
}

#[test]
fn a_record_has_the_fields_of_its_schema() {
    let cluster = json!({
        "organization": "acme", "infrastructure": "eu", "identifier": "orders", "cluster_type": "kafka",
        "tenancy_mode": "Shared", "kafka_units": 1, "advanced_config": {"version": "4.3.1"},
    });
    let fleet = json!({
        "organization": "acme", "identifier": "eu", "infra_type": "directory", "tenancy_mode": "Shared", "max_tenants": 1,
        "max_kafka_units": 1,
    });
    for (kind, spec) in [(Kind::Cluster, cluster), (Kind::Fleet, fleet)] {
        let (record, schema) = (record(kind, spec), schema(kind));
        let names = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(&record), names(&schema["properties"]));
        let spec = fields_of(kind);
        for name in output_fields(kind) {
            assert!(record.get(name).is_some() && spec["properties"].get(name).is_none(), "{name}");
        }
    }
}

#[test]
fn what_the_interface_wants_empty_is_never_null() {
    let cluster = json!({
        "organization": "acme", "infrastructure": "eu", "identifier": "orders", "cluster_type": "kafka",
        "tenancy_mode": "Shared", "kafka_units": 1,
        "advanced_config": {"version": "4.3.1", "tiered_storage_provider": {"cloud_account": "archive"}},
    });
    let record = record(Kind::Cluster, cluster);
    assert_eq!(
        (&record["provisioner_name"], &record["region"], &record["cloud_provider"]),
        (&json!(""), &json!(""), &json!(""))
    );
    let config = &record["advanced_config"];
    assert_eq!((&config["oauth"], &config["tiered_storage_bucket_name"]), (&json!(""), &json!("")));
    assert_eq!(config["tiered_storage_provider"], json!({"cloud_account": "archive", "cloud_region": ""}));
}

#[test]
fn a_base_domain_names_a_cloud_account_only_with_managed_dns() {
    let domain = |more: Value| {
        let mut spec =
            json!({"organization": "acme", "domain": "k.example.com", "tls_cert": "x", "tls_key": "y"});
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        record(Kind::BaseDomain, spec)
    };
    let own = domain(json!({}));
    assert_eq!((&own["domain"], &own["dns_base_domain"]), (&json!("k.example.com"), &json!("k.example.com")));
    assert!(own.get("cloud_account").is_none());
    let managed = domain(json!({"dns_provider": "external-dns", "cloud_account": "dns"}));
    assert_eq!(
        (&managed["domain"], &managed["cloud_account"]),
        (&json!("acme.k.example.com"), &json!("dns"))
    );
}

#[test]
fn the_console_of_a_cluster_is_its_own_or_follows_from_the_settings_once_it_is_applied() {
    let told = |settings: &str, is_applied: bool, own: Option<&str>| {
        let config = Config::parse(settings).unwrap();
        let key = ResourceKey::new(Kind::Cluster, &"acme".parse().unwrap(), "orders");
        let inputs = AddressInputs { config: &config, resource: &key, is_applied };
        let (mut reasons, own) = (NullReasons::new(), own.map(str::to_owned));
        let url = noted("console_url", inputs.console(&"eu".parse().unwrap(), own), &mut reasons);
        url.or_else(|| reasons.remove("console_url")).unwrap()
    };
    let template = "console_url_template = \"https://c.example.com/{organization}/{fleet}/{cluster}\"";
    assert_eq!(told(template, true, None), "https://c.example.com/acme/eu/orders");
    assert_eq!(
        told(template, true, Some("https://console--orders.k.example.com")),
        "https://console--orders.k.example.com"
    );
    assert_eq!(
        told(template, false, Some("https://console--orders.k.example.com")),
        "it was not applied yet"
    );
    assert_eq!(
        told("", true, None),
        "the cluster's `advanced_config.operations.console` is not on, and the settings have no `console_url_template`"
    );
}

#[test]
fn the_cost_of_a_fleet_has_an_address_with_prices_and_a_full_base_url() {
    let told = |settings: &str, is_applied: bool| {
        let config = Config::parse(settings).unwrap();
        let key = ResourceKey::new(Kind::Fleet, &"acme".parse().unwrap(), "eu");
        AddressInputs { config: &config, resource: &key, is_applied }.cost().unwrap_or_else(|why| why)
    };
    let prices = "[prices]\ncurrency = \"EUR\"\ncpu_hour = 1\n";
    let whole = format!("{prices}[api]\nbase_url = \"https://k.example.com/x/\"\n");
    assert_eq!(told(&whole, true), "https://k.example.com/x/organizations/acme/infrastructure/eu/cost");
    assert_eq!(told(&whole, false), "it was not applied yet");
    assert_eq!(told(prices, true), "`api.base_url` of the settings is not a full URL");
    assert_eq!(
        told("[api]\nbase_url = \"https://k.example.com\"\n", true),
        "the settings have no `[prices]`"
    );
}
