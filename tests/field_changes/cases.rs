//! One line for each planned change of a field. A new field needs a line here for each of its rows in
//! `crates/core/src/plan/compare/field_effects/table.rs`.

use streamfleet::names::Kind;
use streamfleet::names::Kind::{
    BaseDomain, CloudAccount, Cluster, Fleet, IdentityProvider, Organization, Topic, User,
};

/// A change of one field, in YAML.
pub struct Case {
    pub kind: Kind,
    pub field: &'static str,
    pub before: &'static str,
    pub after: &'static str,
    /// Documents laid over the tree before it is applied, by the names of [`super::DOCUMENTS`].
    pub given: &'static str,
    /// Changes made together with the field's, where it can't change alone.
    pub also: &'static str,
    /// Applies the tree with the new value first, then with the old one.
    pub after_first: bool,
}

const fn case(kind: Kind, field: &'static str, before: &'static str, after: &'static str) -> Case {
    Case { kind, field, before, after, given: "{}", also: "{}", after_first: false }
}

impl Case {
    const fn given(self, given: &'static str) -> Self {
        Self { given, ..self }
    }

    const fn also(self, also: &'static str) -> Self {
        Self { also, ..self }
    }

    const fn after_first(self) -> Self {
        Self { after_first: true, ..self }
    }
}

const OAUTH: &str = "{orders: {advanced_config: {oauth: keycloak}}}";
const REGISTRY: &str = "{orders: {advanced_config: {oauth: keycloak, schema_registry: {enabled: true}}}}";
const TIERED: &str = "{orders: {advanced_config: {tiered_storage_bucket_name: acme-log, tiered_storage_provider: {cloud_account: minio, cloud_region: eu-central-1}}}}";
const INTERNAL: &str = "{orders: {advanced_config: {cluster_access: Internal}}}";
const ROUTED: &str = "{eu: {advanced_config: {exposure: tlsroute, gateway: {class: envoy}}}}";
const ROUTED_INSIDE: &str = "{eu: {advanced_config: {exposure: tlsroute, gateway: {class: envoy}}}, orders: {advanced_config: {cluster_access: Internal}}}";
const MEASURED: &str = "{orders: {advanced_config: {operations: {metrics: true}}}}";
const MONITORED: &str = "{eu: {advanced_config: {monitoring: {prometheus: existing}}}}";
const OWN: &str = "{eu: {advanced_config: {monitoring: {prometheus: own, own: {password: the first of two}}}}, orders: {advanced_config: {operations: {metrics: true}}}}";
const MANAGED: &str = "{domain: {$certificate: first, dns_provider: external-dns}}";
const CERTIFIED: &str = "{domain: {$certificate: first}}";
const ONE_IN_SYNC: &str = "{payments: {config: {min.insync.replicas: 1}}}";
/// The domain with a single certificate, without its chain.
const CHAINED: &str = "{domain: {$certificate: alone}}";

#[rustfmt::skip]
pub const CASES: &[Case] = &[
    case(Cluster, "organization", "acme", "globex"),
    case(Cluster, "infrastructure", "eu", "us"),
    case(Cluster, "identifier", "orders", "sales"),
    case(Cluster, "cluster_type", "kafka", "redpanda"),
    case(Cluster, "tenancy_mode", "Shared", "Isolated"),
    case(Cluster, "kafka_units", "1", "2"),
    case(Cluster, "kafka_units", "2", "1").also("{advanced_config: {scale_down_to: 1}}"),
    case(Cluster, "cloud_provider", "null", "directory"),
    case(Cluster, "region", "null", "eu-central-1"),
    case(Cluster, "tags", "[{key: team, value: checkout}]", "[]"),
    case(Cluster, "provisioner_name", "null", "terraform"),
    case(Cluster, "suspend", "false", "true"),
    case(Cluster, "suspend", "true", "false").after_first(),
    case(Cluster, "deletion_protection", "false", "true"),
    case(Cluster, "deletion_protection", "true", "false"),
    case(Cluster, "advanced_config.number_of_zones", "1", "3"),
    case(Cluster, "advanced_config.number_of_zones", "3", "1"),
    case(Cluster, "advanced_config.cluster_access", "Internal", "Internal & External"),
    case(Cluster, "advanced_config.cluster_access", "Internal & External", "Internal"),
    case(Cluster, "advanced_config.cluster_access", "Internal", "External"),
    case(Cluster, "advanced_config.private_access", "false", "true"),
    case(Cluster, "advanced_config.private_access", "true", "false"),
    case(Cluster, "advanced_config.version", "4.2.1", "4.3.1"),
    case(Cluster, "advanced_config.version", "4.3.1", "4.2.1"),
    case(Cluster, "advanced_config.oauth", "null", "keycloak"),
    case(Cluster, "advanced_config.oauth", "keycloak", "null"),
    case(Cluster, "advanced_config.authentication", "scram-sha-512", "mtls"),
    case(Cluster, "advanced_config.authentication", "mtls", "scram-sha-512"),
    case(Cluster, "advanced_config.tiered_storage_bucket_name", "null", "acme-log").also("{advanced_config: {tiered_storage_provider: {cloud_account: minio, cloud_region: eu-central-1}}}"),
    case(Cluster, "advanced_config.tiered_storage_bucket_name", "acme-log", "null").given(TIERED).also("{advanced_config: {tiered_storage_provider: null}}"),
    case(Cluster, "advanced_config.tiered_storage_bucket_name", "acme-log", "other-log").given(TIERED),
    case(Cluster, "advanced_config.tiered_storage_provider.cloud_account", "minio", "dns").given(TIERED),
    case(Cluster, "advanced_config.tiered_storage_provider.cloud_region", "eu-central-1", "eu-west-1").given(TIERED),
    case(Cluster, "advanced_config.tiered_storage_create_bucket", "false", "true").given(TIERED),
    case(Cluster, "advanced_config.storage.class", "gp3", "io2"),
    case(Cluster, "advanced_config.storage.size_gib", "400", "500"),
    case(Cluster, "advanced_config.storage.size_gib", "500", "400"),
    case(Cluster, "advanced_config.storage.on_delete", "Retain", "Delete"),
    case(Cluster, "advanced_config.storage.on_delete", "Delete", "Retain"),
    case(Cluster, "advanced_config.profile", "standard", "dev"),
    case(Cluster, "advanced_config.scale_down_to", "null", "1"),
    case(Cluster, "advanced_config.operations.metrics", "false", "true"),
    case(Cluster, "advanced_config.operations.metrics", "true", "false"),
    case(Cluster, "advanced_config.operations.kafka_exporter", "false", "true"),
    case(Cluster, "advanced_config.operations.kafka_exporter", "true", "false"),
    case(Cluster, "advanced_config.schema_registry.enabled", "false", "true").given(OAUTH),
    case(Cluster, "advanced_config.schema_registry.enabled", "true", "false").given(OAUTH),
    case(Cluster, "advanced_config.schema_registry.compatibility", "BACKWARD", "FULL").given(REGISTRY),
    case(Cluster, "advanced_config.schema_registry.admin_group", "admins", "owners").given(REGISTRY),
    case(Cluster, "advanced_config.schema_registry.developer_group", "developers", "authors").given(REGISTRY),
    case(Cluster, "advanced_config.schema_registry.reader_group", "staff", "all").given(REGISTRY),
    case(Cluster, "advanced_config.operations.console", "false", "true"),
    case(Cluster, "advanced_config.operations.console", "true", "false"),
    case(Cluster, "advanced_config.operations.topic_operator", "false", "true"),
    case(Cluster, "advanced_config.operations.topic_operator", "true", "false"),
    case(Cluster, "advanced_config.config.log.retention.ms", "null", "86400000"),
    case(Cluster, "advanced_config.config.log.retention.ms", "86400000", "null"),
    case(Cluster, "advanced_config.config.log.retention.ms", "2592000000", "null"),
    case(Cluster, "advanced_config.config.log.cleanup.policy", "null", "compact"),
    case(Cluster, "advanced_config.config.offsets.retention.minutes", "null", "1440"),
    case(Cluster, "advanced_config.config.min.insync.replicas", "2", "1"),
    case(Cluster, "advanced_config.config.group.max.size", "null", "100"),
    case(Cluster, "advanced_config.config.num.partitions", "6", "null"),

    case(Fleet, "organization", "acme", "globex"),
    case(Fleet, "identifier", "eu", "west"),
    case(Fleet, "infra_type", "directory", "byok").also("{advanced_config: {kubeconfig: {from_file: eu}}}"),
    case(Fleet, "domain", "null", "kafka.acme.example.com").given(INTERNAL),
    case(Fleet, "domain", "kafka.acme.example.com", "null"),
    case(Fleet, "domain", "kafka.acme.example.com", "stream.example.com"),
    case(Fleet, "tenancy_mode", "Shared", "Isolated"),
    case(Fleet, "max_tenants", "5", "6"),
    case(Fleet, "max_tenants", "5", "1"),
    case(Fleet, "max_kafka_units", "10", "12"),
    case(Fleet, "max_kafka_units", "10", "1"),
    case(Fleet, "placement_config", "{}", "{region: frankfurt}"),
    case(Fleet, "suspend", "false", "true"),
    case(Fleet, "suspend", "true", "false").after_first(),
    case(Fleet, "deletion_protection", "false", "true"),
    case(Fleet, "deletion_protection", "true", "false"),
    case(Fleet, "advanced_config.exposure", "loadbalancer", "tlsroute").also("{advanced_config: {gateway: {class: envoy}}}"),
    case(Fleet, "advanced_config.exposure", "tlsroute", "loadbalancer").given(ROUTED).also("{advanced_config: {gateway: null}}"),
    case(Fleet, "advanced_config.gateway.class", "envoy", "istio").given(ROUTED),
    case(Fleet, "advanced_config.gateway.private", "false", "true").given(ROUTED_INSIDE),
    case(Fleet, "advanced_config.gateway.private", "true", "false").given(ROUTED_INSIDE),
    case(Fleet, "advanced_config.maintenance", "null", "[{from: '02:00', hours: 4}]"),
    case(Fleet, "advanced_config.maintenance", "[{from: '02:00', hours: 4}]", "[]"),
    case(Fleet, "advanced_config.monitoring.prometheus", "none", "existing").given(MEASURED),
    case(Fleet, "advanced_config.monitoring.prometheus", "existing", "none").given(MEASURED),
    case(Fleet, "advanced_config.monitoring.prometheus", "none", "own").given(MEASURED).also("{advanced_config: {monitoring: {own: {password: the first of two}}}}"),
    case(Fleet, "advanced_config.monitoring.prometheus", "own", "none").given(OWN).also("{advanced_config: {monitoring: {own: null}}}"),
    case(Fleet, "advanced_config.monitoring.own.password", "the first of two", "the second of two").given(OWN),
    case(Fleet, "advanced_config.monitoring.own.retention_days", "15", "30").given(OWN),
    case(Fleet, "advanced_config.monitoring.own.retention_days", "15", "7").given(OWN),
    case(Fleet, "advanced_config.monitoring.own.disk_gib", "50", "100").given(OWN),
    case(Fleet, "advanced_config.monitoring.own.private", "false", "true").given(OWN),
    case(Fleet, "advanced_config.monitoring.own.private", "true", "false").given(OWN),
    case(Fleet, "advanced_config.monitoring.labels", "{}", "{release: monitoring}").given(MONITORED),
    case(Fleet, "advanced_config.monitoring.namespace", "null", "monitoring").given(MONITORED),
    case(Fleet, "advanced_config.monitoring.dashboards", "false", "true").given(MONITORED),
    case(Fleet, "advanced_config.monitoring.dashboards", "true", "false").given(MONITORED),
    case(Fleet, "advanced_config.monitoring.alerts", "false", "true").given(MONITORED),
    case(Fleet, "advanced_config.monitoring.alerts", "true", "false").given(MONITORED),
    case(Fleet, "advanced_config.components.strimzi", "1.2.0", "1.3.0"),
    case(Fleet, "advanced_config.components.strimzi", "1.3.0", "1.2.0"),
    case(Fleet, "advanced_config.components.strimzi", "existing", "1.2.0"),
    case(Fleet, "advanced_config.storage_class", "gp3", "io2"),
    case(Fleet, "advanced_config.path", "null", "manifests"),

    case(Topic, "organization", "acme", "globex"),
    case(Topic, "cluster", "orders", "sandbox"),
    case(Topic, "name", "payments.events.v1", "payments.events.v2"),
    case(Topic, "partitions", "12", "24"),
    case(Topic, "partitions", "12", "6"),
    case(Topic, "partitions", "null", "12"),
    case(Topic, "replicas", "2", "3").given(ONE_IN_SYNC),
    case(Topic, "replicas", "3", "2").given(ONE_IN_SYNC),
    case(Topic, "replicas", "null", "2").given(ONE_IN_SYNC),
    case(Topic, "config.retention.ms", "604800000", "86400000"),
    case(Topic, "config.retention.ms", "86400000", "604800000"),
    case(Topic, "config.max.message.bytes", "null", "1000000"),
    case(Topic, "deletion_protection", "true", "false"),
    case(Topic, "deletion_protection", "false", "true"),

    case(User, "organization", "acme", "globex"),
    case(User, "cluster", "orders", "sandbox"),
    case(User, "identifier", "billing", "invoicing"),
    case(User, "produce", "[Payments_State]", "[payments.events.v1]"),
    case(User, "consume", "[{topic: payments.*, group: billing}]", "[{topic: payments.events.v1}]"),
    case(User, "transactional_ids", "[billing-*]", "[]"),
    case(User, "password", "null", "first"),
    case(User, "password", "first", "second"),
    case(User, "rules", "[]", "[{resource: cluster, operations: [Describe]}]"),

    case(BaseDomain, "organization", "acme", "globex"),
    case(BaseDomain, "domain", "kafka.acme.example.com", "streams.acme.example.com"),
    case(BaseDomain, "tls_cert", "$certificate alone", "$certificate with_chain").given(CHAINED),
    case(BaseDomain, "tls_cert", "$certificate first", "$certificate renewed").given(CERTIFIED),
    case(BaseDomain, "tls_cert", "$certificate first", "$certificate other_authority").given(CERTIFIED),
    case(BaseDomain, "tls_key", "$certificate first", "$certificate other_key").given(CERTIFIED).also("{$certificate: other_key}"),
    case(BaseDomain, "dns_provider", "None", "external-dns").given(CERTIFIED).also("{cloud_account: dns}"),
    case(BaseDomain, "dns_base_domain", "null", "example.com"),
    case(BaseDomain, "cloud_account", "dns", "minio").given(MANAGED),

    case(IdentityProvider, "organization", "acme", "globex").given(OAUTH),
    case(IdentityProvider, "identifier", "keycloak", "dex").given(OAUTH),
    case(IdentityProvider, "issuer", "https://id.acme.example.com/realms/kafka", "https://id.acme.example.com/realms/streams").given(OAUTH),
    case(IdentityProvider, "jwks_uri", "https://id.acme.example.com/jwks", "https://id.acme.example.com/certs").given(OAUTH),
    case(IdentityProvider, "token_endpoint", "https://id.acme.example.com/token", "https://id.acme.example.com/tokens").given(OAUTH),
    case(IdentityProvider, "audience", "kafka", "streams").given(OAUTH),
    case(IdentityProvider, "username_claim", "preferred_username", "sub").given(OAUTH),
    case(IdentityProvider, "groups_claim", "$.groups", "$.roles").given(OAUTH),
    case(IdentityProvider, "ca_cert", "null", "$certificate first").given(OAUTH),

    case(CloudAccount, "organization", "acme", "globex").given(TIERED),
    case(CloudAccount, "identifier", "minio", "ceph").given(TIERED),
    case(CloudAccount, "provider", "s3", "aws").given(TIERED).also("{endpoint: null}"),
    case(CloudAccount, "region", "eu-central-1", "eu-west-1").given("{orders: {advanced_config: {tiered_storage_bucket_name: acme-log, tiered_storage_provider: {cloud_account: minio}}}}"),
    case(CloudAccount, "endpoint", "https://s3.storage.example.com", "https://s3.example.com").given(TIERED),
    case(CloudAccount, "credentials", "first", "second").given(TIERED),

    case(Organization, "identifier", "acme", "apex"),
    case(Organization, "display_name", "Acme", "Acme Corporation"),
    case(Organization, "quotas.fleets", "2", "3"),
    case(Organization, "quotas.fleets", "2", "1"),
    case(Organization, "quotas.fleets", "2", "null"),
    case(Organization, "quotas.clusters", "10", "20"),
    case(Organization, "quotas.clusters", "10", "1"),
    case(Organization, "quotas.clusters", "10", "null"),
    case(Organization, "quotas.kafka_units", "20", "30"),
    case(Organization, "quotas.kafka_units", "20", "1"),
    case(Organization, "quotas.kafka_units", "20", "null"),
    case(Organization, "quotas.base_domains", "10", "20"),
    case(Organization, "quotas.base_domains", "10", "1"),
    case(Organization, "quotas.base_domains", "10", "null"),
    case(Organization, "quotas.identity_providers", "10", "20"),
    case(Organization, "quotas.identity_providers", "10", "1"),
    case(Organization, "quotas.identity_providers", "10", "null"),
    case(Organization, "quotas.cloud_accounts", "10", "20"),
    case(Organization, "quotas.cloud_accounts", "10", "1"),
    case(Organization, "quotas.cloud_accounts", "10", "null"),
    case(Organization, "domains", "[example.com]", "[example.com, example.org]"),
    case(Organization, "members", "null", "[{email: ann@example.com, role: admin}]"),
];
