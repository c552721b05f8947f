//! The fields of specs, and values of each that make a difference to the rendered objects.

/// A field, or fields of several kinds that must be equal, and its values as JSON. `null` stands for an
/// absent field.
pub struct Field {
    pub kinds: &'static [&'static str],
    pub path: &'static str,
    pub values: &'static [&'static str],
}

const fn field(kinds: &'static [&'static str], path: &'static str, values: &'static [&'static str]) -> Field {
    Field { kinds, path, values }
}

const CLUSTER: &[&str] = &["Cluster"];
const FLEET: &[&str] = &["Fleet"];
const DOMAIN: &[&str] = &["BaseDomain"];
const PROVIDER: &[&str] = &["IdentityProvider"];
const ACCOUNT: &[&str] = &["CloudAccount"];
const TOPIC: &[&str] = &["Topic"];
const USER: &[&str] = &["User"];

/// An audience with every character that is special to one of its readers.
const HOSTILE: &str = r#""kafka's \"own\" \\ ${secrets:/etc:passwd} ü""#;

const PUBLIC_GATEWAY: &str = r#"{"class": "envoy"}"#;
const PRIVATE_GATEWAY: &str = r#"{"class": "envoy", "private": true}"#;

const WINDOWS: &str = r#"[{"days": ["mon", "tue", "wed", "thu", "fri", "sat", "sun"], "from": "02:00", "hours": 4, "zone": "UTC"}]"#;
pub const MONITORED: &str = r#"{"prometheus": "existing", "labels": {"release": "a", "example.com/team": ""}, "dashboards": false, "alerts": true}"#;
const DASHBOARDS: &str =
    r#"{"prometheus": "existing", "namespace": "default", "dashboards": true, "alerts": false}"#;

pub const OWN: &str = r#"{"prometheus": "own", "own": {"password": "${PASSWORD} and more", "retention_days": 1, "disk_gib": 1}}"#;
pub const PRIVATE_OWN: &str = r#"{"prometheus": "own", "own": {"password": "twelve bytes", "private": true}, "dashboards": false, "alerts": false}"#;

const ENABLED: &str = r#"{"enabled": true}"#;
/// A registry with groups of every character that is special to one of their readers.
const REGISTRY: &str = r#"{"enabled": true, "compatibility": "NONE", "admin_group": "$(admins)", "developer_group": "${developers}",
    "reader_group": "\\all"}"#;

/// Every broker option that doesn't need tiered storage.
pub const OPTIONS: &str = r#"{
    "auto.create.topics.enable": true, "compression.type": "zstd", "connections.max.idle.ms": 60000,
    "delete.topic.enable": false, "fetch.max.bytes": 1048576, "group.initial.rebalance.delay.ms": 0,
    "group.max.session.timeout.ms": 60000, "group.max.size": 100, "log.cleaner.delete.retention.ms": 0,
    "log.cleaner.max.compaction.lag.ms": 9223372036854775807, "log.cleaner.min.compaction.lag.ms": 1,
    "log.cleanup.policy": "delete,compact", "log.message.timestamp.after.max.ms": 0,
    "log.message.timestamp.before.max.ms": 0, "log.message.timestamp.type": "LogAppendTime",
    "log.retention.bytes": -1, "log.retention.check.interval.ms": 1000, "log.retention.ms": -1,
    "log.roll.ms": 60000, "log.segment.bytes": 1048576, "log.segment.delete.delay.ms": 0,
    "message.max.bytes": 1024, "min.insync.replicas": 1, "num.partitions": 1, "offsets.retention.minutes": 1,
    "producer.id.expiration.ms": 1, "replica.fetch.max.bytes": 1024, "replica.lag.time.max.ms": 1000,
    "transaction.max.timeout.ms": 1, "transactional.id.expiration.ms": 1
}"#;

/// Every broker option that needs tiered storage, and second values of options that take words.
const TIERING_OPTIONS: &str = r#"{
    "log.local.retention.bytes": -2, "log.local.retention.ms": -2,
    "remote.log.manager.copy.max.bytes.per.second": 9223372036854775807,
    "remote.log.manager.fetch.max.bytes.per.second": 1,
    "compression.type": "producer", "log.cleanup.policy": "delete", "log.message.timestamp.type": "CreateTime"
}"#;

/// Every topic option that doesn't need tiered storage.
pub const TOPIC_OPTIONS: &str = r#"{
    "cleanup.policy": "delete,compact", "compression.gzip.level": 9, "compression.lz4.level": 17,
    "compression.type": "zstd", "compression.zstd.level": -131072, "delete.retention.ms": 0,
    "file.delete.delay.ms": 0, "flush.messages": 9223372036854775807, "flush.ms": 9223372036854775807,
    "index.interval.bytes": 0, "local.retention.bytes": -2, "local.retention.ms": -2, "max.compaction.lag.ms": 1,
    "max.message.bytes": 0, "message.timestamp.after.max.ms": 0, "message.timestamp.before.max.ms": 0,
    "message.timestamp.type": "LogAppendTime", "min.compaction.lag.ms": 0, "min.insync.replicas": 1,
    "preallocate": true, "retention.bytes": -1, "retention.ms": -1, "segment.bytes": 1048576,
    "segment.index.bytes": 4, "segment.jitter.ms": 0, "segment.ms": 1, "unclean.leader.election.enable": true
}"#;

/// Every topic option that needs tiered storage, and second values of options that take words.
const TIERING_TOPIC_OPTIONS: &str = r#"{
    "remote.log.copy.disable": true, "remote.storage.enable": true, "compression.type": "producer",
    "cleanup.policy": "delete", "message.timestamp.type": "CreateTime"
}"#;

/// Every resource and operation.
const RULES: &str = r#"[
    {"resource": "topic", "name": "p*", "host": "10.0.0.1", "effect": "deny", "operations": ["Alter", "AlterConfigs",
        "Create", "Delete", "Describe", "DescribeConfigs", "Read", "Write"]},
    {"resource": "group", "name": "*", "effect": "allow", "operations": ["All"]},
    {"resource": "transactional_id", "name": "a", "operations": ["Write"]},
    {"resource": "cluster", "operations": ["ClusterAction", "IdempotentWrite"]}
]"#;

pub const FIELDS: &[Field] = &[
    field(TOPIC, "partitions", &["null", "12"]),
    field(TOPIC, "replicas", &["null", "1"]),
    field(TOPIC, "config", &["null", TOPIC_OPTIONS, TIERING_TOPIC_OPTIONS]),
    field(TOPIC, "on_delete", &["null", r#""Delete""#]),
    field(TOPIC, "deletion_protection", &["null", "false"]),
    field(USER, "produce", &["null", r#"["Payments", "p*", "*"]"#]),
    field(USER, "consume", &["null", r#"[{"topic": "Pay*"}, {"topic": "*", "group": "g*"}]"#]),
    field(USER, "transactional_ids", &["null", r#"["a", "b*"]"#]),
    field(USER, "rules", &["null", RULES]),
    field(&["Fleet", "Cluster"], "tenancy_mode", &[r#""Shared""#, r#""Isolated""#, r#""Dedicated""#]),
    field(CLUSTER, "kafka_units", &["1", "2"]),
    field(CLUSTER, "cloud_provider", &["null", r#""directory""#]),
    field(CLUSTER, "region", &["null", r#""eu""#]),
    field(CLUSTER, "tags", &["null", r#"[{"key": "team", "value": "checkout"}]"#]),
    field(CLUSTER, "provisioner_name", &["null", r#""somebody""#]),
    field(CLUSTER, "deletion_protection", &["null", "true", "false"]),
    field(CLUSTER, "advanced_config/number_of_zones", &["null", r#""3""#, "6"]),
    field(
        CLUSTER,
        "advanced_config/cluster_access",
        &["null", r#""Internal""#, r#""External""#, r#""Internal & External""#],
    ),
    field(CLUSTER, "advanced_config/private_access", &["null", "true"]),
    field(CLUSTER, "advanced_config/version", &[r#""4.3.1""#, r#""4.3.0""#, r#""4.2.1""#, r#""4.2.0""#]),
    field(CLUSTER, "advanced_config/oauth", &["null", r#""own""#]),
    field(CLUSTER, "advanced_config/authentication", &["null", r#""scram-sha-512""#, r#""mtls""#]),
    field(CLUSTER, "advanced_config/tiered_storage_bucket_name", &["null", r#""history""#]),
    field(
        CLUSTER,
        "advanced_config/tiered_storage_provider",
        &["null", r#"{"cloud_account": "store"}"#, r#"{"cloud_account": "store", "cloud_region": "eu-2"}"#],
    ),
    field(CLUSTER, "advanced_config/tiered_storage_create_bucket", &["null", "false"]),
    field(CLUSTER, "advanced_config/auto_upgrade", &["null", "false"]),
    field(CLUSTER, "advanced_config/storage/class", &["null", r#""gp3""#]),
    field(CLUSTER, "advanced_config/storage/size_gib", &["null", "65536"]),
    field(CLUSTER, "advanced_config/storage/on_delete", &["null", r#""Retain""#, r#""Delete""#]),
    field(CLUSTER, "advanced_config/profile", &["null", r#""standard""#, r#""dev""#]),
    field(CLUSTER, "advanced_config/scale_down_to", &["null", "2"]),
    field(CLUSTER, "advanced_config/operations/metrics", &["null", "true"]),
    field(CLUSTER, "advanced_config/operations/kafka_exporter", &["null", "true"]),
    field(CLUSTER, "advanced_config/schema_registry", &["null", ENABLED, REGISTRY]),
    field(CLUSTER, "advanced_config/operations/topic_operator", &["null", "true"]),
    field(CLUSTER, "advanced_config/operations/console", &["null", "true"]),
    field(CLUSTER, "advanced_config/config", &["null", OPTIONS, TIERING_OPTIONS]),
    field(FLEET, "placement_config", &["null", r#"{"region": "eu"}"#]),
    field(FLEET, "deletion_protection", &["null", "false"]),
    field(FLEET, "advanced_config/maintenance", &["null", "[]", WINDOWS]),
    field(
        FLEET,
        "advanced_config/monitoring",
        &["null", r#"{"prometheus": "none"}"#, MONITORED, DASHBOARDS, OWN, PRIVATE_OWN],
    ),
    field(FLEET, "advanced_config/reachability", &["null", r#""probe""#, r#""none""#]),
    field(FLEET, "advanced_config/exposure", &["null", r#""loadbalancer""#, r#""tlsroute""#]),
    field(FLEET, "advanced_config/gateway", &["null", PUBLIC_GATEWAY, PRIVATE_GATEWAY]),
    field(FLEET, "advanced_config/components/strimzi", &["null", r#""existing""#]),
    field(FLEET, "advanced_config/storage_class", &["null", r#""standard""#]),
    field(FLEET, "advanced_config/path", &["null", r#""in/manifests""#]),
    field(DOMAIN, "dns_provider", &["null", r#""None""#, r#""external-dns""#]),
    field(DOMAIN, "dns_base_domain", &["null", r#""example.com""#]),
    field(DOMAIN, "cloud_account", &["null", r#""store""#]),
    field(PROVIDER, "token_endpoint", &["null", r#""https://id.example.com/token""#]),
    field(PROVIDER, "audience", &[r#""kafka""#, HOSTILE]),
    field(PROVIDER, "username_claim", &["null", r#""email""#, r#""['user'].['id']""#]),
    field(PROVIDER, "groups_claim", &["null", r#""$.roles""#]),
    field(PROVIDER, "ca_cert", &["null", r#""CERTIFICATE""#]),
    field(ACCOUNT, "provider", &[r#""s3""#, r#""aws""#]),
    field(ACCOUNT, "endpoint", &[r#""https://s3.example.com:9000""#, "null"]),
];

pub type Choice = (&'static str, &'static str, &'static str);

/// Combinations that are refused, or single values.
pub const REFUSED: &[&[Choice]] = &[
    &[
        ("Cluster", "advanced_config/tiered_storage_bucket_name", "null"),
        ("Topic", "config", TIERING_TOPIC_OPTIONS),
    ],
    &[
        ("Cluster", "advanced_config/tiered_storage_provider", "null"),
        ("Topic", "config", TIERING_TOPIC_OPTIONS),
    ],
    &[("Cluster", "advanced_config/profile", r#""dev""#), ("Cluster", "kafka_units", "2")],
    // A unit is three brokers.
    &[("Cluster", "kafka_units", "1"), ("Cluster", "advanced_config/number_of_zones", "6")],
    &[
        ("Cluster", "advanced_config/profile", r#""dev""#),
        ("Cluster", "advanced_config/number_of_zones", r#""3""#),
    ],
    &[
        ("Cluster", "advanced_config/profile", r#""dev""#),
        ("Cluster", "advanced_config/number_of_zones", "6"),
    ],
    &[
        ("Cluster", "advanced_config/private_access", "true"),
        ("Cluster", "advanced_config/cluster_access", "null"),
    ],
    &[
        ("Cluster", "advanced_config/private_access", "true"),
        ("Cluster", "advanced_config/cluster_access", r#""Internal""#),
    ],
    &[
        ("Cluster", "advanced_config/tiered_storage_bucket_name", r#""history""#),
        ("Cluster", "advanced_config/tiered_storage_provider", "null"),
    ],
    &[
        ("Cluster", "advanced_config/tiered_storage_bucket_name", "null"),
        ("Cluster", "advanced_config/tiered_storage_provider", r#"{"cloud_account": "store"}"#),
    ],
    &[
        ("Cluster", "advanced_config/tiered_storage_bucket_name", "null"),
        (
            "Cluster",
            "advanced_config/tiered_storage_provider",
            r#"{"cloud_account": "store", "cloud_region": "eu-2"}"#,
        ),
    ],
    &[("BaseDomain", "dns_provider", r#""external-dns""#), ("BaseDomain", "cloud_account", "null")],
    &[("BaseDomain", "dns_provider", "null"), ("BaseDomain", "cloud_account", r#""store""#)],
    &[("BaseDomain", "dns_provider", r#""None""#), ("BaseDomain", "cloud_account", r#""store""#)],
    &[
        ("CloudAccount", "provider", r#""aws""#),
        ("CloudAccount", "endpoint", r#""https://s3.example.com:9000""#),
    ],
    &[("CloudAccount", "provider", r#""s3""#), ("CloudAccount", "endpoint", "null")],
    &[
        ("Cluster", "advanced_config/oauth", r#""own""#),
        ("Cluster", "advanced_config/authentication", r#""mtls""#),
    ],
    // A Gateway is private for all that is behind it.
    &[
        ("Fleet", "advanced_config/monitoring", PRIVATE_OWN),
        ("Fleet", "advanced_config/gateway", PUBLIC_GATEWAY),
    ],
    &[
        ("Fleet", "advanced_config/monitoring", PRIVATE_OWN),
        ("Fleet", "advanced_config/gateway", PRIVATE_GATEWAY),
    ],
    &[
        ("Fleet", "advanced_config/monitoring", PRIVATE_OWN),
        ("Fleet", "advanced_config/exposure", r#""tlsroute""#),
    ],
    &[("Cluster", "advanced_config/schema_registry", ENABLED), ("Cluster", "advanced_config/oauth", "null")],
    &[
        ("Cluster", "advanced_config/schema_registry", ENABLED),
        ("Cluster", "advanced_config/cluster_access", "null"),
    ],
    &[
        ("Cluster", "advanced_config/schema_registry", ENABLED),
        ("Cluster", "advanced_config/cluster_access", r#""Internal""#),
    ],
    &[("Cluster", "advanced_config/schema_registry", REGISTRY), ("Cluster", "advanced_config/oauth", "null")],
    &[
        ("Cluster", "advanced_config/schema_registry", REGISTRY),
        ("Cluster", "advanced_config/cluster_access", "null"),
    ],
    &[
        ("Cluster", "advanced_config/schema_registry", REGISTRY),
        ("Cluster", "advanced_config/cluster_access", r#""Internal""#),
    ],
    // It needs tokens, and these clients have certificates.
    &[
        ("Cluster", "advanced_config/schema_registry", ENABLED),
        ("Cluster", "advanced_config/authentication", r#""mtls""#),
    ],
    &[
        ("Cluster", "advanced_config/schema_registry", REGISTRY),
        ("Cluster", "advanced_config/authentication", r#""mtls""#),
    ],
    // A console needs passwords, and both ways to the cluster.
    &[
        ("Cluster", "advanced_config/operations/console", "true"),
        ("Cluster", "advanced_config/authentication", r#""mtls""#),
    ],
    &[
        ("Cluster", "advanced_config/operations/console", "true"),
        ("Cluster", "advanced_config/oauth", r#""own""#),
    ],
    &[
        ("Cluster", "advanced_config/operations/console", "true"),
        ("Cluster", "advanced_config/cluster_access", "null"),
    ],
    &[
        ("Cluster", "advanced_config/operations/console", "true"),
        ("Cluster", "advanced_config/cluster_access", r#""Internal""#),
    ],
    &[
        ("Cluster", "advanced_config/operations/console", "true"),
        ("Cluster", "advanced_config/cluster_access", r#""External""#),
    ],
    &[
        ("Cluster", "advanced_config/operations/console", "true"),
        ("Cluster", "advanced_config/schema_registry", ENABLED),
    ],
    &[
        ("Cluster", "advanced_config/operations/console", "true"),
        ("Cluster", "advanced_config/schema_registry", REGISTRY),
    ],
    &[("Cluster", "kafka_units", "1"), ("Cluster", "advanced_config/scale_down_to", "2")],
    &[("Cluster", "advanced_config/profile", r#""dev""#), ("Cluster", "advanced_config/scale_down_to", "2")],
    &[
        ("Cluster", "advanced_config/tiered_storage_bucket_name", "null"),
        ("Cluster", "advanced_config/config", TIERING_OPTIONS),
    ],
    &[
        ("Cluster", "advanced_config/tiered_storage_provider", "null"),
        ("Cluster", "advanced_config/config", TIERING_OPTIONS),
    ],
    &[("Fleet", "advanced_config/exposure", r#""tlsroute""#), ("Fleet", "advanced_config/gateway", "null")],
    &[("Fleet", "advanced_config/exposure", "null"), ("Fleet", "advanced_config/gateway", PUBLIC_GATEWAY)],
    &[("Fleet", "advanced_config/exposure", "null"), ("Fleet", "advanced_config/gateway", PRIVATE_GATEWAY)],
    &[
        ("Fleet", "advanced_config/exposure", r#""loadbalancer""#),
        ("Fleet", "advanced_config/gateway", PUBLIC_GATEWAY),
    ],
    &[
        ("Fleet", "advanced_config/exposure", r#""loadbalancer""#),
        ("Fleet", "advanced_config/gateway", PRIVATE_GATEWAY),
    ],
    // A private cluster is reached from outside, and so through the Gateway.
    &[
        ("Cluster", "advanced_config/private_access", "true"),
        ("Fleet", "advanced_config/gateway", PUBLIC_GATEWAY),
    ],
    &[
        ("Cluster", "advanced_config/private_access", "null"),
        ("Cluster", "advanced_config/cluster_access", r#""External""#),
        ("Fleet", "advanced_config/gateway", PRIVATE_GATEWAY),
    ],
    &[
        ("Cluster", "advanced_config/private_access", "null"),
        ("Cluster", "advanced_config/cluster_access", r#""Internal & External""#),
        ("Fleet", "advanced_config/gateway", PRIVATE_GATEWAY),
    ],
    // The fleet of each row is a directory, where the operator's version is unknown.
    &[("Cluster", "advanced_config/auto_upgrade", "true")],
    &[
        ("Cluster", "advanced_config/tiered_storage_create_bucket", "true"),
        ("Cluster", "advanced_config/tiered_storage_bucket_name", "null"),
    ],
];

const WORD: &str = "the server looks at no option of brokers, and other words are rendered alike";

const COMPATIBILITY: &str =
    "the server looks at no setting of the registry, and other words are rendered alike";

pub const ELSEWHERE: &[(&str, &str)] = &[
    ("topic config.cleanup.policy compact", WORD),
    ("topic config.compression.type uncompressed", WORD),
    ("topic config.compression.type gzip", WORD),
    ("topic config.compression.type snappy", WORD),
    ("topic config.compression.type lz4", WORD),
    ("base-domain dns_provider rfc2136", "needs a cloud account of a DNS server"),
    ("base-domain dns_provider route53", "needs a cloud account of AWS"),
    ("cloud-account provider rfc2136", "a DNS server has no buckets"),
    ("topic on_delete Retain", "a fleet that is a folder can't have it"),
    ("topic adopt", "a byok fleet alone has it"),
    ("user adopt", "a byok fleet alone has it"),
    ("user password", "not every cluster knows passwords"),
    ("user password.from_file", "a way to give a secret"),
    ("user password.from_env", "a way to give a secret"),
    ("user password.encrypted", "a way to give a secret"),
    ("cluster advanced_config.schema_registry.compatibility BACKWARD", COMPATIBILITY),
    ("cluster advanced_config.schema_registry.compatibility BACKWARD_TRANSITIVE", COMPATIBILITY),
    ("cluster advanced_config.schema_registry.compatibility FORWARD", COMPATIBILITY),
    ("cluster advanced_config.schema_registry.compatibility FORWARD_TRANSITIVE", COMPATIBILITY),
    ("cluster advanced_config.schema_registry.compatibility FULL", COMPATIBILITY),
    ("cluster advanced_config.schema_registry.compatibility FULL_TRANSITIVE", COMPATIBILITY),
    ("cluster suspend", "a suspended cluster is not rendered"),
    ("fleet suspend", "nothing of a suspended fleet is rendered"),
    ("cluster advanced_config.config.compression.type uncompressed", WORD),
    ("cluster advanced_config.config.compression.type gzip", WORD),
    ("cluster advanced_config.config.compression.type snappy", WORD),
    ("cluster advanced_config.config.compression.type lz4", WORD),
    ("cluster advanced_config.config.log.cleanup.policy compact", WORD),
    ("fleet infra_type byok", "the objects are those of a folder"),
    ("cluster cloud_provider byok", "it is the fleet's infra_type"),
    ("fleet advanced_config.kubeconfig", "it leads to a byok fleet"),
    ("fleet advanced_config.kubeconfig.from_file", "a way to give a secret"),
    ("fleet advanced_config.kubeconfig.from_env", "a way to give a secret"),
    ("fleet advanced_config.kubeconfig.encrypted", "a way to give a secret"),
    ("fleet advanced_config.in_cluster", "it leads to a byok fleet"),
    ("fleet advanced_config.monitoring.federate", "a byok fleet alone has it"),
    ("fleet advanced_config.monitoring.own.password.from_file", "a way to give a secret"),
    ("fleet advanced_config.monitoring.own.password.from_env", "a way to give a secret"),
    ("fleet advanced_config.monitoring.own.password.encrypted", "a way to give a secret"),
    ("base-domain tls_key.from_file", "a way to give a secret"),
    ("base-domain tls_key.from_env", "a way to give a secret"),
    ("base-domain tls_key.encrypted", "a way to give a secret"),
    ("cloud-account credentials.from_file", "a way to give a secret"),
    ("cloud-account credentials.from_env", "a way to give a secret"),
    ("cloud-account credentials.encrypted", "a way to give a secret"),
];
