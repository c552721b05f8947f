use super::Rules;
use crate::problem::quote_untrusted;
use crate::spec::{Authentication, Cluster, ClusterAccess, ClusterAdvancedConfig, Profile, SchemaRegistry};

/// Kafka's default of `log.retention.ms`: a week.
const WEEK_MS: i64 = 7 * 24 * 3_600_000;
/// Kafka's value for "no limit".
const UNLIMITED: i64 = -1;

const DEFAULT_GROUPS: &str = "`sr-admin`, `sr-developer` and `sr-readonly`";

impl Rules<'_> {
    pub(super) fn cluster(&mut self, cluster: &Cluster) {
        let config = &cluster.advanced_config;
        if config.private_access && config.cluster_access == ClusterAccess::Internal {
            self.refuse(
                "/advanced_config/private_access",
                "no-effect",
                "`private_access: true` has no effect with `cluster_access: Internal`",
                "remove `private_access`, or use `cluster_access: Internal & External`",
            );
        }
        if config.oauth.is_some() && config.authentication == Authentication::Mtls {
            self.refuse(
                "/advanced_config/authentication",
                "no-effect",
                "`authentication: mtls` has no effect with `oauth`",
                "remove `authentication`, or remove `oauth` to have clients log in with certificates",
            );
        }
        self.tiered_storage(config);
        self.schema_registry(config);
        self.console(config);
        self.broker_options(config);
        self.scale_down(cluster);
        if config.profile == Profile::Dev {
            self.dev(cluster);
        }
    }

    fn tiered_storage(&mut self, config: &ClusterAdvancedConfig) {
        let (bucket, provider) = (&config.tiered_storage_bucket_name, &config.tiered_storage_provider);
        match (bucket, provider) {
            (Some(_), None) => self.refuse(
                "/advanced_config/tiered_storage_bucket_name",
                "missing-key",
                "`tiered_storage_bucket_name` needs `tiered_storage_provider`",
                "add `tiered_storage_provider` with the `cloud_account` of the bucket",
            ),
            (None, Some(_)) => self.refuse(
                "/advanced_config/tiered_storage_provider",
                "missing-key",
                "`tiered_storage_provider` needs `tiered_storage_bucket_name`",
                "add `tiered_storage_bucket_name`, or remove `tiered_storage_provider`",
            ),
            _ => {}
        }
    }

    fn schema_registry(&mut self, config: &ClusterAdvancedConfig) {
        let pointer = "/advanced_config/schema_registry/enabled";
        if !config.schema_registry.enabled {
            return;
        }
        let SchemaRegistry { admin_group, developer_group, reader_group, .. } = &config.schema_registry;
        for (name, group, higher, same) in [
            ("developer_group", developer_group, "admin_group", admin_group),
            ("reader_group", reader_group, "admin_group", admin_group),
            ("reader_group", reader_group, "developer_group", developer_group),
        ] {
            if group == same {
                let group = quote_untrusted(group);
                self.refuse(
                    &format!("/advanced_config/schema_registry/{name}"),
                    "same-group",
                    format!("`{name}` and `{higher}` are both `{group}`, so its members would have the rights of `{higher}`"),
                    format!("name another group in one of them; their defaults are {DEFAULT_GROUPS}"),
                );
            }
        }
        if config.oauth.is_none() {
            self.refuse(
                pointer,
                "missing-key",
                "`schema_registry` needs `oauth`: its clients log in with tokens alone",
                "add `oauth` with the identifier of an identity provider, or turn `schema_registry` off",
            );
        }
        if !config.cluster_access.is_external() {
            self.refuse(
                pointer,
                "missing-key",
                "`schema_registry` needs a host name, which a cluster with `cluster_access: Internal` doesn't have",
                "use `cluster_access: Internal & External`, or turn `schema_registry` off",
            );
        }
    }

    fn console(&mut self, config: &ClusterAdvancedConfig) {
        let pointer = "/advanced_config/operations/console";
        if !config.operations.console {
            return;
        }
        let otherwise = match config.authentication {
            _ if config.oauth.is_some() => Some(("tokens", "`oauth`")),
            Authentication::Mtls => Some(("certificates", "`authentication`")),
            Authentication::ScramSha512 => None,
        };
        if let Some((logins, field)) = otherwise {
            self.refuse(
                pointer,
                "no-passwords",
                format!(
                    "`console` needs users with passwords, and clients of this cluster log in with {logins}"
                ),
                format!("turn `console` off, or remove {field}"),
            );
        }
        let access = config.cluster_access;
        if !access.is_internal() || !access.is_external() {
            self.refuse(
                pointer,
                "missing-key",
                "`console` needs `cluster_access: Internal & External`: it reaches brokers inside of Kubernetes, and its \
                 users reach it from outside",
                "use `cluster_access: Internal & External`, or turn `console` off",
            );
        }
    }

    /// Refuses combinations of options that Kafka itself refuses, in its `LogConfig` when a broker starts.
    fn broker_options(&mut self, config: &ClusterAdvancedConfig) {
        let options = &config.config;
        if config.tiered_storage_bucket_name.is_none() {
            let tiered = |name: &str| name.starts_with("log.local.") || name.starts_with("remote.log.");
            for (name, _) in options.iter().filter(|(name, _)| tiered(name)) {
                self.refuse_option(
                    name,
                    "no-effect",
                    format!("`{name}` has no effect without tiered storage"),
                    format!("remove `{name}`, or add `tiered_storage_bucket_name`"),
                );
            }
        }
        if options.number("log.retention.ms") == Some(0) {
            self.refuse_option(
                "log.retention.ms",
                "broker-option",
                "`log.retention.ms` is 0, which Kafka doesn't accept",
                "use 1 or more, or -1 to keep records without a limit",
            );
        }
        for (local, whole, default) in [
            ("log.local.retention.ms", "log.retention.ms", WEEK_MS),
            ("log.local.retention.bytes", "log.retention.bytes", UNLIMITED),
        ] {
            let (Some(on_disk), kept) = (options.number(local), options.number(whole).unwrap_or(default))
            else {
                continue;
            };
            let exceeds = kept != UNLIMITED && (on_disk == UNLIMITED || on_disk > kept);
            if exceeds && config.tiered_storage_bucket_name.is_some() {
                self.refuse_option(
                    local,
                    "broker-option",
                    format!("`{local}` is {on_disk}, more than the total that is kept: `{whole}` is {kept}"),
                    format!("lower it to at most {kept}, or raise `{whole}`"),
                );
            }
        }
        let (batch, segment) = (options.number("message.max.bytes"), options.number("log.segment.bytes"));
        if let (Some(batch), Some(segment)) = (batch, segment)
            && batch > segment
        {
            self.refuse_option(
                "message.max.bytes",
                "broker-option",
                format!("`message.max.bytes` is {batch}, and a batch must fit in a segment: `log.segment.bytes` is \
                         {segment}"),
                format!("lower it to at most {segment}, or raise `log.segment.bytes`"),
            );
        }
        let lag = |name: &str| options.number(&format!("log.cleaner.{name}.compaction.lag.ms"));
        if let (Some(min), Some(max)) = (lag("min"), lag("max"))
            && min > max
        {
            self.refuse_option(
                "log.cleaner.min.compaction.lag.ms",
                "broker-option",
                format!("`log.cleaner.min.compaction.lag.ms` is {min}, more than `log.cleaner.max.compaction.lag.ms`, which is {max}"),
                "lower the first or raise the second",
            );
        }
    }

    fn refuse_option(
        &mut self,
        name: &str,
        code: &'static str,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        self.refuse(&format!("/advanced_config/config/{name}"), code, message, hint);
    }

    /// Requires the confirmation to match the number of units. A stale confirmation would otherwise let a
    /// later typo remove brokers.
    fn scale_down(&mut self, cluster: &Cluster) {
        let pointer = "/advanced_config/scale_down_to";
        match cluster.advanced_config.scale_down_to {
            Some(_) if cluster.advanced_config.profile == Profile::Dev => self.refuse(
                pointer,
                "dev-profile",
                "a cluster of profile `dev` has one node and can't be scaled down",
                "remove `scale_down_to`",
            ),
            Some(units) if !cluster.may_scale_down() => self.refuse(
                pointer,
                "no-effect",
                format!(
                    "`scale_down_to: {units}` has no effect, because `kafka_units` is {}",
                    cluster.kafka_units
                ),
                format!(
                    "remove `advanced_config.scale_down_to` if the scale-down that it confirms is done; to scale down, set \
                     `kafka_units` to {units} too"
                ),
            ),
            _ => {}
        }
    }

    /// Refuses spreading and scaling, since the profile has one small node.
    fn dev(&mut self, cluster: &Cluster) {
        if cluster.kafka_units != 1 {
            self.refuse(
                "/kafka_units",
                "dev-profile",
                format!("a cluster of profile `dev` has 1 Kafka unit, not {}", cluster.kafka_units),
                "use `kafka_units: 1`, or `profile: standard`",
            );
        }
        if cluster.advanced_config.number_of_zones.get() != 1 {
            self.refuse(
                "/advanced_config/number_of_zones",
                "dev-profile",
                format!(
                    "a cluster of profile `dev` is in 1 zone, not {}",
                    cluster.advanced_config.number_of_zones.get()
                ),
                "use `number_of_zones: 1`, or `profile: standard`",
            );
        }
    }
}
