//! The pods and containers whose logs are those of brokers.

/// The container of a pod of Kafka that runs the broker.
pub const BROKER_CONTAINER: &str = "kafka";

/// Returns the part of a URL's query that selects the pods of brokers, of one cluster or of all.
pub fn broker_selector(cluster: Option<&str>) -> String {
    let of_cluster =
        cluster.map(|cluster| format!("%2Cstrimzi.io%2Fcluster%3D{cluster}")).unwrap_or_default();
    format!("labelSelector=strimzi.io%2Fbroker-role%3Dtrue{of_cluster}")
}

/// Returns the number of the broker that a pod runs: `orders-broker-2`.
pub fn broker_of(pod: &str) -> Option<u32> {
    pod.rsplit_once('-')?.1.parse().ok()
}
