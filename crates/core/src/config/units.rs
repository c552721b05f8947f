//! The size of one Kafka unit: a catalogue that the administrator may override.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::spec::Profile;

/// The sizes behind `kafka_units`, one entry a profile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct UnitCatalogue {
    /// The sizes of `profile: standard`.
    pub standard: UnitSizes,
    /// The sizes of `profile: dev`, which always has one unit.
    pub dev: UnitSizes,
}

/// The sizes of a cluster of one profile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UnitSizes {
    /// Brokers per unit.
    pub brokers_per_unit: u32,
    /// Dedicated controllers, an odd number; 0 where the brokers are also the controllers. It can't be
    /// changed on a running cluster.
    pub controllers: u32,
    /// Copies of each partition of topics created from now on. Existing topics keep theirs.
    pub replication_factor: u32,
    /// Copies that must have a record before it counts as written: 1, or fewer than `replication_factor`, so
    /// that a broker may restart.
    pub min_insync_replicas: u32,
    /// Bytes per second that producers may send, per unit.
    pub ingress_bytes_per_second: u64,
    /// Bytes per second that consumers may read, per unit.
    pub egress_bytes_per_second: u64,
    /// Client connections per unit.
    pub connections: u32,
    /// New client connections per second, per unit.
    pub connection_rate: u32,
    /// Partitions per unit, before replication: what the other sizes are designed for. The topics of the specs
    /// may have that many. Kafka has no such limit, so topics that clients make aren't counted.
    pub partitions: u32,
    /// GiB of records per unit, all brokers together, after replication.
    pub storage_gib: u32,
    /// CPU of a broker, in millicores.
    pub broker_cpu_millis: u32,
    /// Memory of a broker, in MiB.
    pub broker_memory_mib: u32,
    /// Java heap of a broker, in MiB.
    pub broker_heap_mib: u32,
    /// CPU of a controller, in millicores.
    pub controller_cpu_millis: u32,
    /// Memory of a controller, in MiB.
    pub controller_memory_mib: u32,
    /// Java heap of a controller, in MiB.
    pub controller_heap_mib: u32,
    /// Disk of a controller, in GiB.
    pub controller_storage_gib: u32,
}

impl Default for UnitCatalogue {
    /// Sources of the numbers. `x1` is the size of that name in
    /// `config/kafka-instance-types-configuration.yaml` of the open-source Red Hat fleet manager
    /// (`kas-fleet-manager`), and *shard* is the file of that name in `operator/src/main/resources/instances`
    /// of its `kas-fleetshard`, which ran those sizes.
    ///
    /// | | `standard` | `dev` |
    /// |---|---|---|
    /// | brokers, replication factor | *standard* shard: 3 | *developer* shard: 1 |
    /// | `min_insync_replicas` | standard `x1` | developer `x1` |
    /// | throughput, partitions, storage | standard `x1` | developer `x1` |
    /// | connections | three brokers of the 3,000 of the *standard* shard | developer `x1` |
    /// | connection rate | standard `x1` | developer `x1` |
    /// | broker CPU | ours: less than the 4,900 m of the *standard* shard, since it is requested and not a limit | ours: the *developer* shard's 400 m and some for the controller's work |
    /// | broker memory, heap | *standard* shard, memory rounded down | ours: twice the *developer* shard's 1 GiB and 512 MiB, since it is the controller, too |
    /// | controllers | ours: 3, the fewest that survive the loss of one | none of their own |
    /// | controller CPU, memory, heap, disk | ours, and not measured | |
    fn default() -> Self {
        const MIB: u64 = 1024 * 1024;
        Self {
            standard: UnitSizes {
                brokers_per_unit: 3,
                controllers: 3,
                replication_factor: 3,
                min_insync_replicas: 2,
                ingress_bytes_per_second: 50 * MIB,
                egress_bytes_per_second: 100 * MIB,
                connections: 9_000,
                connection_rate: 100,
                partitions: 1_500,
                storage_gib: 1_000,
                broker_cpu_millis: 2_900,
                broker_memory_mib: 17 * 1024,
                broker_heap_mib: 6 * 1024,
                controller_cpu_millis: 500,
                controller_memory_mib: 2 * 1024,
                controller_heap_mib: 1024,
                controller_storage_gib: 20,
            },
            dev: UnitSizes {
                brokers_per_unit: 1,
                controllers: 0,
                replication_factor: 1,
                min_insync_replicas: 1,
                ingress_bytes_per_second: MIB,
                egress_bytes_per_second: MIB,
                connections: 100,
                connection_rate: 50,
                partitions: 100,
                storage_gib: 10,
                broker_cpu_millis: 500,
                broker_memory_mib: 2 * 1024,
                broker_heap_mib: 1024,
                controller_cpu_millis: 0,
                controller_memory_mib: 0,
                controller_heap_mib: 0,
                controller_storage_gib: 0,
            },
        }
    }
}

impl UnitSizes {
    /// Returns an error for the first impossible size, with the profile's name.
    fn out_of_bounds(&self, profile: &str) -> Option<String> {
        let at_least_one = [
            ("brokers_per_unit", u64::from(self.brokers_per_unit)),
            ("replication_factor", u64::from(self.replication_factor)),
            ("min_insync_replicas", u64::from(self.min_insync_replicas)),
            ("ingress_bytes_per_second", self.ingress_bytes_per_second),
            ("egress_bytes_per_second", self.egress_bytes_per_second),
            ("connections", u64::from(self.connections)),
            ("connection_rate", u64::from(self.connection_rate)),
            ("partitions", u64::from(self.partitions)),
            ("storage_gib", u64::from(self.storage_gib)),
            ("broker_cpu_millis", u64::from(self.broker_cpu_millis)),
            ("broker_memory_mib", u64::from(self.broker_memory_mib)),
            ("broker_heap_mib", u64::from(self.broker_heap_mib)),
        ];
        let at_most = [
            ("replication_factor", self.replication_factor, "brokers_per_unit", self.brokers_per_unit),
            ("broker_heap_mib", self.broker_heap_mib, "broker_memory_mib", self.broker_memory_mib),
            (
                "controller_heap_mib",
                self.controller_heap_mib,
                "controller_memory_mib",
                self.controller_memory_mib,
            ),
        ];
        let small = at_least_one.into_iter().find(|(_, value)| *value == 0);
        let small = small.map(|(key, _)| format!("`units.{profile}.{key}` is 0, and must be at least 1"));
        let large = at_most.into_iter().find(|(_, value, _, limit)| value > limit);
        let large = large.map(|(key, value, by, limit)| {
            format!("`units.{profile}.{key}` is {value}, and must be at most `{by}`, {limit}")
        });
        small.or(large).or_else(|| self.blocks_during_restart(profile))
    }

    /// Refuses sizes with which a restart of a single node blocks clients, and sizes that add nodes without
    /// adding safety.
    fn blocks_during_restart(&self, profile: &str) -> Option<String> {
        let Self { controllers, replication_factor: copies, min_insync_replicas: in_sync, .. } = *self;
        if in_sync > 1 && in_sync >= copies {
            return Some(format!(
                "`units.{profile}.min_insync_replicas` is {in_sync}, and must be less than `replication_factor`, {copies}: \
                 otherwise writes stop while a broker restarts"
            ));
        }
        (controllers > 0 && controllers % 2 == 0).then(|| {
            format!(
                "`units.{profile}.controllers` is {controllers}, and must be odd, or 0 if brokers are also controllers: \
                 {controllers} controllers tolerate no more failures than {}",
                controllers - 1
            )
        })
    }
}

impl UnitCatalogue {
    pub(super) fn out_of_bounds(&self) -> Option<String> {
        self.standard.out_of_bounds("standard").or_else(|| self.dev.out_of_bounds("dev"))
    }

    pub fn sizes(&self, profile: Profile) -> &UnitSizes {
        match profile {
            Profile::Standard => &self.standard,
            Profile::Dev => &self.dev,
        }
    }
}

/// Lists the keys that an incomplete table of sizes lacks, as a sentence; `None` if all tables are complete.
pub(super) fn lacking(text: &str) -> Option<String> {
    let settings: toml::Table = toml::from_str(text).ok()?;
    let all = toml::Table::try_from(UnitCatalogue::default()).ok()?;
    all.iter().find_map(|(profile, sizes)| {
        let given = settings.get("units")?.get(profile)?.as_table()?;
        let lacking = sizes.as_table()?.keys().filter(|key| !given.contains_key(*key));
        let lacking: Vec<String> = lacking.map(|key| format!("`{key}`")).collect();
        (!lacking.is_empty())
            .then(|| format!("`[units.{profile}]` lacks {}: {GIVEN_TOGETHER}", lacking.join(", ")))
    })
}

/// The end of the message about an incomplete table of sizes.
pub const GIVEN_TOGETHER: &str = "a profile needs all of its sizes or none";

const GIB: u128 = 1 << 30;

impl UnitSizes {
    /// GiB of a broker's disk set aside for the operating system and Kafka's own files.
    const STORAGE_MARGIN_GIB: u64 = 10;
    /// How long producers may continue at full rate after a disk counts as full and before its quota takes
    /// effect, in seconds.
    const FULL_DISK_REACTION_SECONDS: u64 = 60;

    /// Returns the number of brokers of a cluster, at least one.
    pub fn brokers(&self, units: u32) -> u32 {
        self.brokers_per_unit.saturating_mul(units).max(1)
    }

    /// Returns how many copies of a partition a cluster keeps: never more than it has brokers.
    pub fn copies(&self, units: u32) -> u32 {
        self.replication_factor.clamp(1, self.brokers(units))
    }

    /// Returns each broker's share of a size that is given per unit, rounded up.
    pub fn share(&self, units: u32, each: u64) -> u64 {
        each.saturating_mul(u64::from(units)).div_ceil(u64::from(self.brokers(units)))
    }

    /// Returns the bytes of a broker's disk that can't be used for records: the margin, and what is written
    /// before a quota takes effect.
    pub fn reserve_bytes(&self, units: u32) -> u64 {
        let copies = u64::from(self.copies(units));
        let written_per_second = self.share(units, self.ingress_bytes_per_second).saturating_mul(copies);
        let written = written_per_second.saturating_mul(Self::FULL_DISK_REACTION_SECONDS);
        written.saturating_add(Self::STORAGE_MARGIN_GIB << 30)
    }

    /// Returns the size of a broker's disk, in whole GiB: its share of the records, plus `reserve_bytes`,
    /// plus 5 % for the file system's own use.
    pub fn disk_gib(&self, units: u32) -> u32 {
        let brokers = self.brokers(units);
        let records = u128::from(self.storage_gib) * u128::from(units) * GIB / u128::from(brokers);
        let content = records + u128::from(self.reserve_bytes(units));
        u32::try_from(content.saturating_mul(105).div_ceil(100 * GIB)).unwrap_or(u32::MAX)
    }
}
