//! The exchanges of the API specification, each with every field of its tables.

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use serde_json::{Value, json};

use super::Api;
use crate::support::Tree;

/// A certificate chain for a domain and its names, signed by an authority of its own, and the key.
pub fn certificate(domain: &str) -> (String, String) {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, "an authority for tests");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let authority = params.self_signed(&key).unwrap().pem();
    let issuer = Issuer::new(params, key);
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new([domain.to_owned(), format!("*.{domain}")]).unwrap();
    let chain = params.signed_by(&key, &issuer).unwrap().pem() + &authority;
    (chain, key.serialize_pem())
}

/// A kubeconfig that is never connected to: addresses of this host are refused before that.
pub const KUBECONFIG: &str = "apiVersion: v1
kind: Config
clusters:
  - name: there
    cluster: {server: 'https://127.0.0.1:1'}
users:
  - name: us
    user: {token: kubeconfig-token-3f9a2c}
contexts:
  - name: it
    context: {cluster: there, user: us}
current-context: it
";

pub fn fleet() -> Value {
    json!({
        "organization": "acme",
        "identifier": "us",
        "infra_type": "byok",
        "domain": "kafka.acme.example.com",
        "max_tenants": 3,
        "max_kafka_units": 5,
        "tenancy_mode": "Shared",
        "advanced_config": {"kubeconfig": KUBECONFIG},
        "placement_config": {},
    })
}

pub fn cluster() -> Value {
    json!({
        "organization": "acme",
        "infrastructure": "eu",
        "identifier": "payments",
        "cluster_type": "kafka",
        "tenancy_mode": "Shared",
        "kafka_units": 1,
        "cloud_provider": "directory",
        "region": "",
        "provisioner_name": "",
        "tags": [{"key": "team", "value": "payments"}],
        "advanced_config": {
            "number_of_zones": "3",
            "cluster_access": "Internal & External",
            "private_access": false,
            "version": "4.3.1",
            "oauth": "",
            "tiered_storage_bucket_name": "",
            "tiered_storage_provider": {},
            "tiered_storage_create_bucket": false,
        },
    })
}

/// Asserts that a record has exactly these fields; those with a leading dot may have any value.
#[track_caller]
fn has_fields(record: &Value, names: &[&str]) {
    let mut found: Vec<&str> = record.as_object().unwrap().keys().map(String::as_str).collect();
    let mut names = names.to_vec();
    found.sort_unstable();
    names.sort_unstable();
    assert_eq!(found, names);
}

#[track_caller]
fn is_new(record: &Value) {
    assert!(record["id"].as_str().unwrap().parse::<uuid::Uuid>().is_ok());
    let at = record["created_at"].as_str().unwrap();
    assert_eq!(record["updated_at"], at);
    // UTC with microseconds.
    let shape: String = at.chars().map(|letter| if letter.is_ascii_digit() { '0' } else { letter }).collect();
    assert_eq!(shape, "0000-00-00T00:00:00.000000Z");
}

#[test]
fn a_fleet_is_created_with_every_field_of_its_table() {
    let tree = Tree::example("quickstart");
    let api = Api::start(&tree);
    let made = api.call("POST /organizations/acme/infrastructure/", fleet()).expect(201);
    let record = &made.body;
    has_fields(
        record,
        &[
            "id",
            "organization",
            "identifier",
            "infra_type",
            "domain",
            "tenancy_mode",
            "max_tenants",
            "max_kafka_units",
            "advanced_config",
            "placement_config",
            "advanced_properties",
            "metadata",
            "provisioner_name",
            "destroyer_name",
            "kubeconfig",
            "kubeconfig_str",
            "metrics_endpoint",
            "cost_endpoint",
            "logs_endpoint",
            "null_reasons",
            "loadbalancer_dns",
            "network",
            "status",
            "created_at",
            "updated_at",
            // Optional by the specification.
            "status_reason",
            "conditions",
            "suspend",
            "deletion_protection",
        ],
    );
    is_new(record);
    for (field, value) in fleet().as_object().unwrap() {
        match field.as_str() {
            "advanced_config" => assert_eq!(record[field]["kubeconfig"], KUBECONFIG, "it is echoed"),
            _ => assert_eq!(&record[field], value, "{field}"),
        }
    }
    for field in [
        "provisioner_name",
        "destroyer_name",
        "kubeconfig",
        "kubeconfig_str",
        "metrics_endpoint",
        "cost_endpoint",
        "logs_endpoint",
        "loadbalancer_dns",
        "network",
    ] {
        assert_eq!(record[field], Value::Null, "{field}");
    }
    assert_eq!((&record["advanced_properties"], &record["metadata"]), (&json!({}), &json!({})));
    assert_eq!(record["status"], "Pending");

    // It is readable at once by name and by id, without its secret, and stays the same.
    assert_eq!(made.header("location").unwrap(), "/organizations/acme/infrastructure/us");
    let id = record["id"].as_str().unwrap();
    let by_name = api.get("/organizations/acme/infrastructure/us").expect(200);
    let by_id = api.get(&format!("/organizations/acme/infrastructure/{id}/")).expect(200);
    assert_eq!(by_name.body["id"], id);
    assert_eq!(by_id.body["created_at"], record["created_at"]);
    assert!(!by_name.body.to_string().contains("kubeconfig-token"));
    let file = tree.read("acme/fleets/us.yaml");
    assert!(file.starts_with("apiVersion: streamfleet/v1\nkind: Fleet\n"), "{file}");
    assert!(
        file.contains("-----BEGIN AGE ENCRYPTED FILE-----") && !file.contains("kubeconfig-token"),
        "{file}"
    );
    let now = api.serve.until("it was looked at", || {
        let now = api.get("/organizations/acme/infrastructure/us").expect(200).body;
        (now["status"] != "Pending").then_some(now)
    });
    assert_eq!((&now["id"], &now["created_at"]), (&record["id"], &record["created_at"]));
    assert_eq!(api.serve.stop(), Some(0));
}

#[test]
fn a_cluster_is_created_with_every_field_of_its_table() {
    let tree = Tree::example("quickstart");
    let api = Api::start(&tree);
    let made = api.call("POST /v1/clusters", cluster()).expect(201);
    let record = &made.body;
    has_fields(
        record,
        &[
            "id",
            "organization",
            "infrastructure",
            "identifier",
            "cluster_type",
            "tenancy_mode",
            "kafka_units",
            "cloud_provider",
            "region",
            "tags",
            "advanced_config",
            "provisioner_name",
            "destroyer_name",
            "version_updater_name",
            "console_url",
            "metrics_endpoint",
            "null_reasons",
            "client_properties",
            "new_version",
            "storage_manifests_file_path",
            "status",
            "created_at",
            "updated_at",
            "status_reason",
            "conditions",
            "suspend",
            "deletion_protection",
        ],
    );
    is_new(record);
    for (field, value) in cluster().as_object().unwrap() {
        if field != "advanced_config" {
            assert_eq!(&record[field], value, "{field}");
        }
    }
    let config = &record["advanced_config"];
    for (field, value) in [
        ("number_of_zones", json!("3")),
        ("cluster_access", json!("Internal & External")),
        ("private_access", json!(false)),
        ("version", json!("4.3.1")),
    ] {
        assert_eq!(config[field], value, "{field}");
    }
    // Returned as sent, and never null.
    for field in
        ["oauth", "tiered_storage_bucket_name", "tiered_storage_provider", "tiered_storage_create_bucket"]
    {
        assert_eq!(config[field], cluster()["advanced_config"][field], "{field}");
    }
    assert_eq!(record["status"], "Pending");
    assert_eq!(record["provisioner_name"], "");
    for field in ["destroyer_name", "version_updater_name", "console_url", "metrics_endpoint"] {
        assert_eq!(record[field], Value::Null, "{field}");
    }
    assert_eq!(made.header("location").unwrap(), format!("/v1/clusters/{}", record["id"].as_str().unwrap()));

    // The round applies the change from the file.
    let file = tree.read("acme/clusters/payments.yaml");
    assert!(file.contains("kafka_units: 1\n"), "{file}");
    let now = api.serve.until("it is made", || {
        let now = api.get(&made.header("location").unwrap()).expect(200).body;
        (now["status"] == "Written").then_some(now)
    });
    assert_eq!((&now["id"], &now["created_at"]), (&record["id"], &record["created_at"]));
    assert!(tree.beside("output/acme/eu/kafka-acme--payments/kafkanodepool-broker.yaml").exists());
    assert_eq!(api.serve.stop(), Some(0));
}

#[test]
fn a_base_domain_without_managed_dns_is_created_with_every_field_of_its_table() {
    let tree = Tree::example("quickstart");
    let api = Api::start(&tree);
    let (cert, key) = certificate("streams.acme.example.com");
    let body = json!({
        "organization": "acme",
        "domain": "streams.acme.example.com",
        "tls_cert": cert,
        "tls_key": key,
        "dns_provider": "None",
    });
    let made = api.call("POST /organizations/acme/base-domains/", body.clone()).expect(201);
    let record = &made.body;
    has_fields(
        record,
        &[
            "id",
            "organization",
            "domain",
            "tls_cert",
            "tls_key",
            "dns_provider",
            "dns_base_domain",
            "created_at",
            "updated_at",
            // Beside the specification.
            "not_before",
            "not_after",
            "covered_names",
        ],
    );
    is_new(record);
    for (field, value) in body.as_object().unwrap() {
        assert_eq!(&record[field], value, "{field}");
    }
    assert_eq!(record["dns_base_domain"], record["domain"]);
    assert_eq!(record["covered_names"], json!(["streams.acme.example.com", "*.streams.acme.example.com"]));
    let time = |field: &str| record[field].as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
    assert!(time("not_before") < time("created_at") && time("created_at") < time("not_after"), "{record:#}");
    let read = api.get("/organizations/acme/base-domains/streams.acme.example.com").expect(200).body;
    assert_eq!((&read["id"], &read["tls_cert"]), (&record["id"], &record["tls_cert"]));
    assert_eq!(read["tls_key"], json!({"redacted": true}));
    assert_eq!(api.serve.stop(), Some(0));
}

#[test]
fn a_base_domain_with_managed_dns_is_created_with_every_field_of_its_table() {
    let tree = Tree::example("quickstart");
    tree.edit("organizations.yaml", "  - acme.example.com", "  - example.com");
    let api = Api::start(&tree);
    let account = json!({
        "organization": "acme",
        "identifier": "aws",
        "provider": "aws",
        "region": "eu-central-1",
        "credentials": "[default]\naws_access_key_id = AKIAEXAMPLE\naws_secret_access_key = cloud-secret-71c\n",
    });
    api.call("POST /organizations/acme/cloud-accounts", account).expect(201);
    // The resource's name is prefixed with the organization.
    let (cert, key) = certificate("acme.streams.example.com");
    let body = json!({
        "organization": "acme",
        "cloud_account": "aws",
        "domain": "streams.example.com",
        "tls_cert": cert,
        "tls_key": key,
        "dns_provider": "external-dns",
        "dns_base_domain": "example.com",
    });
    let made = api.call("POST /organizations/acme/base-domains", body.clone()).expect(201);
    let record = &made.body;
    has_fields(
        record,
        &[
            "id",
            "organization",
            "domain",
            "tls_cert",
            "tls_key",
            "dns_provider",
            "dns_base_domain",
            "cloud_account",
            "created_at",
            "updated_at",
            "not_before",
            "not_after",
            "covered_names",
        ],
    );
    is_new(record);
    for (field, value) in body.as_object().unwrap() {
        match field.as_str() {
            "domain" => assert_eq!(record["domain"], "acme.streams.example.com"),
            _ => assert_eq!(&record[field], value, "{field}"),
        }
    }
    assert_eq!(made.header("location").unwrap(), "/organizations/acme/base-domains/acme.streams.example.com");
    assert_eq!(api.serve.stop(), Some(0));
}
