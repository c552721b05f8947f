//! Hand-made catalogs for the tests of rendering.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::catalog::{
    Catalog, ResolvedCluster, ResolvedDomain, ResolvedFleet, ResolvedSecret, ResolvedUser, SecretMark,
    TieredStorage,
};
use crate::config::TieredStorageConfig;
use crate::names::{self, FleetKey, Identifier, Kind, ResourceKey, SecretRef};
use crate::problem::Origin;
use crate::spec::{self, DnsProvider, SourceId};

/// A cluster `acme/orders` on the fleet `acme/eu`, with `overlay` merged into its spec.
pub fn cluster(overlay: Value) -> ResolvedCluster {
    let mut document = json!({
        "organization": "acme",
        "infrastructure": "eu",
        "identifier": "orders",
        "cluster_type": "kafka",
        "tenancy_mode": "Shared",
        "kafka_units": 1,
        "advanced_config": {"version": "4.3.1"},
    });
    merge(&mut document, overlay);
    let spec: spec::Cluster = serde_json::from_value(document).unwrap();
    let fleet_spec: spec::Fleet = serde_json::from_value(json!({
        "organization": spec.organization,
        "identifier": spec.infrastructure,
        "infra_type": "byok",
        "tenancy_mode": spec.tenancy_mode,
        "max_tenants": 10,
        "max_kafka_units": 40,
    }))
    .unwrap();
    ResolvedCluster {
        key: ResourceKey::new(Kind::Cluster, &spec.organization, spec.identifier.as_str()),
        id: Uuid::from_u128(7),
        origin: Origin { path: "acme/orders.yaml".parse().unwrap(), line: 1 },
        fleet: FleetKey { organization: spec.organization.clone(), fleet: spec.infrastructure.clone() },
        namespace: names::namespace(&spec.organization, &spec.identifier),
        spec: spec.into(),
        fleet_spec: fleet_spec.into(),
        domain: None,
        identity_provider: None,
        tiered_storage: None,
        topics: Vec::new(),
        users: Vec::new(),
        has_topics: false,
    }
}

/// The user `billing` of that cluster.
pub fn user(mut fields: Value) -> ResolvedUser {
    fields["organization"] = "acme".into();
    fields["cluster"] = "orders".into();
    fields["identifier"] = "billing".into();
    let spec: spec::User = serde_json::from_value(fields).unwrap();
    let key = ResourceKey::on_cluster(Kind::User, &spec.organization, &spec.cluster, "billing");
    let password = spec.password.as_ref().map(|_| secret(&key, "password"));
    ResolvedUser { key, id: Uuid::from_u128(9), spec: Arc::new(spec), password }
}

pub fn with_domain(mut cluster: ResolvedCluster, dns_provider: DnsProvider) -> ResolvedCluster {
    let key = ResourceKey::new(Kind::BaseDomain, &cluster.spec.organization, "k.example.com");
    cluster.domain = Some(ResolvedDomain {
        domain: "k.example.com".parse().unwrap(),
        dns_provider,
        zone: "example.com".parse().unwrap(),
        tls_cert: "-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n".to_owned(),
        tls_key: secret(&key, "tls_key"),
        key,
    });
    cluster
}

pub fn with_identity_provider(mut cluster: ResolvedCluster, overlay: Value) -> ResolvedCluster {
    let mut document = json!({
        "organization": "acme",
        "identifier": "sso",
        "issuer": "https://idp.example.com",
        "jwks_uri": "https://idp.example.com/jwks",
        "audience": "kafka",
    });
    merge(&mut document, overlay);
    cluster.identity_provider = Some(serde_json::from_value(document).unwrap());
    cluster
}

pub fn with_tiered_storage(mut cluster: ResolvedCluster) -> ResolvedCluster {
    let key = ResourceKey::new(Kind::CloudAccount, &cluster.spec.organization, "minio");
    let account = json!({
        "organization": "acme",
        "identifier": "minio",
        "provider": "s3",
        "endpoint": "https://s3.example.com",
        "credentials": {"from_file": "minio"},
    });
    cluster.tiered_storage = Some(TieredStorage {
        bucket: "orders-log".to_owned(),
        region: "eu-1".to_owned(),
        account: serde_json::from_value(account).unwrap(),
        credentials: secret(&key, "credentials"),
        account_key: key,
        plugin: TieredStorageConfig::default(),
    });
    cluster
}

/// A catalog of these clusters, each on its fleet, and of one fleet without clusters.
pub fn catalog(clusters: impl IntoIterator<Item = ResolvedCluster>) -> Catalog {
    let mut catalog = Catalog {
        source: SourceId("/specs".to_owned()),
        revision: "1".to_owned(),
        commit: None,
        config: Arc::default(),
        resources: Default::default(),
        fleets: Default::default(),
        clusters: Default::default(),
        absent: Default::default(),
        capacity: Default::default(),
        managed: [].into(),
        certificates_end: [].into(),
        granted: Default::default(),
        problems: Vec::new(),
        steady_from: Timestamp::MIN,
        steady_until: Timestamp::MAX,
    };
    let empty = FleetKey { organization: identifier("acme"), fleet: identifier("empty") };
    let spec = cluster(json!({})).fleet_spec;
    catalog.fleets.insert(empty.clone(), fleet(empty, spec).into());
    for cluster in clusters {
        let spec = cluster.fleet_spec.clone();
        catalog.fleets.insert(cluster.fleet.clone(), fleet(cluster.fleet.clone(), spec).into());
        catalog.clusters.insert(cluster.key.clone(), cluster.into());
    }
    catalog
}

pub fn longest(letter: &str) -> String {
    letter.repeat(Identifier::MAX_LENGTH)
}

fn fleet(key: FleetKey, spec: Arc<spec::Fleet>) -> ResolvedFleet {
    let (clusters, kafka_units) = Default::default();
    ResolvedFleet {
        key,
        spec,
        domain: None,
        clusters,
        kafka_units,
        conditions: Vec::new(),
        own_prometheus: None,
    }
}

fn identifier(text: &str) -> Identifier {
    text.parse().unwrap()
}

pub fn secret(resource: &ResourceKey, field: &str) -> ResolvedSecret {
    ResolvedSecret {
        reference: SecretRef { resource: resource.clone(), field: field.to_owned() },
        mark: SecretMark { fingerprint: Some("f1".to_owned()), sealed: None },
        unavailable: None,
    }
}

fn merge(document: &mut Value, overlay: Value) {
    match (document, overlay) {
        (Value::Object(fields), Value::Object(overlay)) => {
            for (key, value) in overlay {
                merge(fields.entry(key).or_insert(Value::Null), value);
            }
        }
        (place, value) => *place = value,
    }
}
