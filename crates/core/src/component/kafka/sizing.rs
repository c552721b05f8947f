//! The size of a cluster from its Kafka units: number of brokers, their resources and their limits.

use crate::catalog::ResolvedCluster;
use crate::config::{UnitCatalogue, UnitSizes};

/// The size of a cluster. Sizes of brokers and controllers are those of a single one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sizing {
    pub brokers: u32,
    /// The number of separate controllers; 0 if the brokers are controllers too.
    pub controllers: u32,
    /// Never more than the number of brokers, which Strimzi would refuse.
    pub replication_factor: u32,
    pub min_insync_replicas: u32,
    pub broker_cpu_millis: u32,
    pub broker_memory_mib: u32,
    pub broker_heap_mib: u32,
    pub storage_gib: u32,
    /// The part of that disk that isn't meant for records, in bytes.
    pub reserve_bytes: u64,
    pub controller_cpu_millis: u32,
    pub controller_memory_mib: u32,
    pub controller_heap_mib: u32,
    pub controller_storage_gib: u32,
    /// The quota of all producers together on one broker.
    pub ingress_bytes_per_second: u64,
    /// The quota of all consumers together on one broker.
    pub egress_bytes_per_second: u64,
    /// The most client connections per broker and listener.
    pub connections: u32,
    /// The most new client connections per second, broker and listener.
    pub connection_rate: u32,
    /// Partitions of the whole cluster, before replication.
    pub partitions: u32,
    /// Whether Cruise Control moves partitions when brokers are added or removed.
    pub rebalances: bool,
}

impl Sizing {
    /// Computes the size from a cluster's units and profile, and the disk size in its spec if there is one.
    pub fn of(cluster: &ResolvedCluster, units: &UnitCatalogue) -> Self {
        let config = &cluster.spec.advanced_config;
        let sizes = units.sizes(config.profile);
        let mut sizing = Self::by_units(cluster.spec.units(), sizes);
        if let Some(size_gib) = config.storage.size_gib {
            sizing.storage_gib = size_gib;
        }
        sizing
    }

    pub(super) fn by_units(units: u32, sizes: &UnitSizes) -> Self {
        let &UnitSizes {
            brokers_per_unit: _,
            controllers,
            replication_factor: _,
            min_insync_replicas,
            ingress_bytes_per_second,
            egress_bytes_per_second,
            connections,
            connection_rate,
            partitions,
            storage_gib: _,
            broker_cpu_millis,
            broker_memory_mib,
            broker_heap_mib,
            controller_cpu_millis,
            controller_memory_mib,
            controller_heap_mib,
            controller_storage_gib,
        } = sizes;
        let brokers = sizes.brokers(units);
        let replication_factor = sizes.copies(units);
        let share = |each: u32| u32::try_from(sizes.share(units, u64::from(each))).unwrap_or(u32::MAX);
        Self {
            brokers,
            controllers,
            replication_factor,
            min_insync_replicas: min_insync_replicas.clamp(1, replication_factor),
            broker_cpu_millis,
            broker_memory_mib,
            broker_heap_mib,
            storage_gib: sizes.disk_gib(units),
            reserve_bytes: sizes.reserve_bytes(units),
            controller_cpu_millis,
            controller_memory_mib,
            controller_heap_mib,
            controller_storage_gib,
            ingress_bytes_per_second: sizes.share(units, ingress_bytes_per_second),
            egress_bytes_per_second: sizes.share(units, egress_bytes_per_second),
            connections: share(connections),
            connection_rate: share(connection_rate),
            partitions: partitions.saturating_mul(units),
            // With one broker there is nowhere to move a partition to, and Strimzi refuses Cruise Control.
            rebalances: brokers > 1,
        }
    }

    /// The traffic into a broker that uses up its quotas: from producers, and from the brokers that it
    /// replicates.
    pub fn inbound_bytes_per_second(&self) -> u64 {
        self.ingress_bytes_per_second.saturating_mul(u64::from(self.replication_factor))
    }

    /// The traffic out of a broker that uses up its quotas: to consumers, and to the brokers that replicate
    /// it.
    pub fn outbound_bytes_per_second(&self) -> u64 {
        let copies = u64::from(self.replication_factor.saturating_sub(1));
        self.egress_bytes_per_second.saturating_add(self.ingress_bytes_per_second.saturating_mul(copies))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::component::fixtures::cluster;

    #[test]
    fn units_come_to_the_documented_sizes() {
        let check = |spec, expected: [u64; 8]| {
            let s = Sizing::of(&cluster(spec), &UnitCatalogue::default());
            let actual = [
                s.brokers.into(),
                s.controllers.into(),
                s.storage_gib.into(),
                s.ingress_bytes_per_second >> 10,
                s.egress_bytes_per_second >> 10,
                s.connections.into(),
                s.connection_rate.into(),
                s.partitions.into(),
            ];
            assert_eq!(actual, expected);
        };
        // (1000 GiB ÷ 3 + 10 GiB + 50 MiB/s × 60 s) × 1.05 = 363.6 GiB
        check(json!({}), [3, 3, 364, 17_066, 34_133, 3_000, 34, 1_500]);
        check(json!({"kafka_units": 2}), [6, 3, 364, 17_066, 34_133, 3_000, 34, 3_000]);
        // (10 GiB + 10 GiB + 1 MiB/s × 60 s) × 1.05 = 21.1 GiB
        check(json!({"advanced_config": {"profile": "dev"}}), [1, 0, 22, 1_024, 1_024, 100, 50, 100]);
        check(
            json!({"advanced_config": {"storage": {"size_gib": 77}}}),
            [3, 3, 77, 17_066, 34_133, 3_000, 34, 1_500],
        );
    }

    #[test]
    fn the_largest_numbers_of_a_catalogue_overflow_nothing() {
        let mut sizes = UnitCatalogue::default().standard;
        sizes.ingress_bytes_per_second = u64::MAX;
        sizes.egress_bytes_per_second = u64::MAX;
        sizes.connections = u32::MAX;
        sizes.storage_gib = u32::MAX;
        sizes.brokers_per_unit = 0;
        let sizing = Sizing::by_units(256, &sizes);
        assert_eq!((sizing.brokers, sizing.replication_factor, sizing.min_insync_replicas), (1, 1, 1));
        assert_eq!((sizing.storage_gib, sizing.outbound_bytes_per_second()), (u32::MAX, u64::MAX));
    }
}
