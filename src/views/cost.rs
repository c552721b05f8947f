//! The cost of clusters, by their recorded sizes.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::config::{Currency, PriceTable};
use crate::plan::cost::{self, Cost, Period, SizeEvent};
use crate::record::timestamp;
use crate::state::ClusterSizes;

/// The cost of a cluster, or of all clusters of a fleet, between two times.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct CostReport {
    /// The currency of all amounts, by its code in ISO 4217.
    pub currency: Currency,
    /// The beginning of the time that is counted.
    #[schemars(extend("format" = "date-time"))]
    pub from: String,
    /// Its end, at most the present.
    #[schemars(extend("format" = "date-time"))]
    pub to: String,
    /// The cost of all clusters: the sum of theirs.
    pub cost: Cost,
    /// The clusters that had a size in that time, deleted ones too.
    pub clusters: Vec<ClusterCost>,
}

/// The cost of a cluster.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct ClusterCost {
    /// The cluster's path: `acme/orders`.
    pub cluster: String,
    /// Its id. A cluster that was deleted and created again has another one.
    pub id: Uuid,
    /// Its cost.
    pub cost: Cost,
    /// The times without a change of its size. Those without any size are left out.
    pub periods: Vec<SizePeriod>,
}

/// A time without a change of size.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct SizePeriod {
    /// The beginning.
    #[schemars(extend("format" = "date-time"))]
    pub from: String,
    /// The end.
    #[schemars(extend("format" = "date-time"))]
    pub to: String,
    /// The processors that all pods request, in millicores.
    pub cpu_millis: u64,
    /// The memory that all pods request, in MiB.
    pub memory_mib: u64,
    /// The disks of brokers and controllers, in GiB.
    pub disk_gib: u64,
    /// The number of load balancers.
    pub load_balancers: u64,
}

/// The time that a report is about.
#[derive(Debug, Clone, Copy)]
pub struct Span {
    pub from: Timestamp,
    pub to: Timestamp,
}

pub fn report(prices: &PriceTable, sizes: &[ClusterSizes], Span { from, to }: Span) -> CostReport {
    let cluster = |sizes: &ClusterSizes| {
        let objects: Vec<String> = sizes.changes.iter().map(|it| String::from(it.object.clone())).collect();
        let changes = sizes.changes.iter().zip(&objects);
        let events: Vec<SizeEvent<'_>> =
            changes.map(|(it, object)| SizeEvent { at: it.at, object, size: it.size }).collect();
        let periods = cost::periods(&events, from, to);
        let cost = cost::usage(&periods).cost(prices);
        let periods = periods.into_iter().map(period).collect();
        ClusterCost { cluster: sizes.cluster.path(), id: sizes.id, cost, periods }
    };
    let clusters: Vec<ClusterCost> = sizes.iter().map(cluster).filter(|it| !it.periods.is_empty()).collect();
    CostReport {
        currency: prices.currency,
        from: timestamp(from),
        to: timestamp(to),
        cost: clusters.iter().map(|it| it.cost).fold(Cost::default(), Cost::plus),
        clusters,
    }
}

fn period(Period { from, to, size }: Period) -> SizePeriod {
    SizePeriod {
        from: timestamp(from),
        to: timestamp(to),
        cpu_millis: size.cpu_millis,
        memory_mib: size.memory_mib,
        disk_gib: size.disk_gib,
        load_balancers: size.load_balancers(),
    }
}
