//! Request bodies from the interface specification.

use serde_json::{Value, json};

use crate::names::Kind;

const CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----\n…\n-----END CERTIFICATE-----\n";
const KEY: &str = "-----BEGIN PRIVATE KEY-----\n…\n-----END PRIVATE KEY-----\n";

pub(super) fn created(kind: Kind) -> Value {
    match kind {
        Kind::Organization => json!({"organization": {"value": {
            "identifier": "acme",
            "display_name": "Acme",
            "quotas": {"clusters": 20},
            "domains": ["kafka.acme.example.com"],
            "members": [{"email": "ann@acme.example.com", "role": "admin"}],
        }}}),
        Kind::Fleet => json!({"byok": {"summary": "Your own Kubernetes", "value": {
            "organization": "acme",
            "identifier": "eu",
            "infra_type": "byok",
            "domain": "kafka.example.com",
            "max_tenants": 10,
            "max_kafka_units": 40,
            "tenancy_mode": "Shared",
            "advanced_config": {"kubeconfig": "apiVersion: v1\nkind: Config\n…\n"},
            "placement_config": {},
        }}}),
        Kind::Cluster => json!({"cluster": {"value": {
            "organization": "acme",
            "infrastructure": "eu",
            "identifier": "orders",
            "cluster_type": "kafka",
            "tenancy_mode": "Shared",
            "kafka_units": 2,
            "cloud_provider": "byok",
            "region": "eu-west-1",
            "provisioner_name": "",
            "tags": [{"key": "team", "value": "payments"}],
            "advanced_config": {
                "number_of_zones": "3",
                "cluster_access": "Internal & External",
                "private_access": false,
                "version": "4.3.1",
                "oauth": "corp",
                "tiered_storage_bucket_name": "acme-kafka-history",
                "tiered_storage_provider": {"cloud_account": "archive", "cloud_region": "eu-west-1"},
                "tiered_storage_create_bucket": false,
            },
        }}}),
        Kind::BaseDomain => json!({
            "managed": {"summary": "With managed DNS", "value": {
                "organization": "acme",
                "cloud_account": "dns",
                "domain": "kafka.example.com",
                "tls_cert": CERTIFICATE,
                "tls_key": KEY,
                "dns_provider": "external-dns",
                "dns_base_domain": "example.com",
            }},
            "unmanaged": {"summary": "Without managed DNS", "value": {
                "organization": "acme",
                "domain": "kafka.example.com",
                "tls_cert": CERTIFICATE,
                "tls_key": KEY,
                "dns_provider": "None",
            }},
        }),
        Kind::IdentityProvider => json!({"oauth": {"value": {
            "organization": "acme",
            "identifier": "corp",
            "issuer": "https://login.example.com/realms/acme",
            "jwks_uri": "https://login.example.com/realms/acme/protocol/openid-connect/certs",
            "audience": "kafka",
        }}}),
        Kind::Topic => json!({"topic": {"value": {
            "organization": "acme",
            "cluster": "orders",
            "name": "payments.events.v1",
            "partitions": 12,
            "config": {"retention.ms": 604_800_000},
        }}}),
        Kind::User => json!({"user": {"value": {
            "organization": "acme",
            "cluster": "orders",
            "identifier": "billing",
            "produce": ["payments.events.v1"],
            "consume": [{"topic": "payments.*", "group": "billing"}],
        }}}),
        Kind::CloudAccount => json!({"s3": {"value": {
            "organization": "acme",
            "identifier": "archive",
            "provider": "aws",
            "region": "eu-west-1",
            "credentials": "[default]\naws_access_key_id = …\naws_secret_access_key = …\n",
        }}}),
    }
}

pub(super) fn patched(kind: Kind) -> Value {
    match kind {
        Kind::Cluster => json!({"units": {"summary": "More units", "value": {"kafka_units": 3}}}),
        Kind::Fleet => json!({"units": {"summary": "More capacity", "value": {"max_kafka_units": 60}}}),
        _ => json!({}),
    }
}
