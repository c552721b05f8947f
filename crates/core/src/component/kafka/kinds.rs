//! The Kubernetes kinds of a Kafka cluster: ours, and those that the operator creates for it.

use crate::component::health::source::{FieldPath, HealthSource, ReadWhen};
use crate::component::kind::{ENDS, KubernetesKind, LISTS, OWNS, RBAC, READS};

pub static KINDS: [&KubernetesKind; 10] =
    [&KAFKA, &NODE_POOL, &POD_SET, &POD, &CLAIM, &USER, &SERVICE, &DEPLOYMENT, &REPLICA_SET, &ZONE_BINDING];

pub static KAFKA: KubernetesKind = strimzi("Kafka", "kafkas", OWNS).judged_by(HealthSource::new(
    ReadWhen::Clusters,
    &[
        OF_ALL,
        &[
            &["spec", "entityOperator", "no field of it"],
            &["status", "kafkaVersion"],
            &["status", "kafkaMetadataVersion"],
            &["status", "operatorLastSuccessfulVersion"],
            &["status", "clusterId"],
            &["status", "listeners"],
            &["status", "autoRebalance", "state"],
        ],
    ],
));
pub static NODE_POOL: KubernetesKind =
    strimzi("KafkaNodePool", "kafkanodepools", OWNS).judged_by(of_a_cluster(&[
        OF_ALL,
        &[&["spec", "replicas"], &["status", "replicas"], &["status", "nodeIds"]],
    ]));
pub static USER: KubernetesKind = strimzi("KafkaUser", "kafkausers", OWNS).judged_by(of_a_cluster(&[OF_ALL]));
pub static POD_SET: KubernetesKind =
    KubernetesKind::new("core.strimzi.io/v1", "StrimziPodSet", "strimzipodsets", READS).custom().judged_by(
        of_a_cluster(&[OF_ALL, &[&["status", "pods"], &["status", "readyPods"], &["status", "currentPods"]]]),
    );
pub static POD: KubernetesKind = KubernetesKind::core("Pod", "pods", READS).judged_by(of_a_cluster(&[
    OF_ALL,
    &[
        &["status", "initContainerStatuses", "*", "name"],
        &["status", "initContainerStatuses", "*", "ready"],
        &["status", "initContainerStatuses", "*", "restartCount"],
        &["status", "initContainerStatuses", "*", "state"],
        &["status", "initContainerStatuses", "*", "lastState"],
        &["status", "containerStatuses", "*", "name"],
        &["status", "containerStatuses", "*", "ready"],
        &["status", "containerStatuses", "*", "restartCount"],
        &["status", "containerStatuses", "*", "state"],
        &["status", "containerStatuses", "*", "lastState"],
    ],
]));
/// Disks of brokers removed earlier are deleted with their cluster.
pub static CLAIM: KubernetesKind =
    KubernetesKind::core("PersistentVolumeClaim", "persistentvolumeclaims", ENDS).judged_by(of_a_cluster(&[
        OF_ALL,
        &[
            &["spec", "storageClassName"],
            &["spec", "resources", "requests", "storage"],
            &["status", "phase"],
            &["status", "capacity", "storage"],
        ],
    ]));

static SERVICE: KubernetesKind = KubernetesKind::core("Service", "services", READS).judged_by(REMAINS);
static DEPLOYMENT: KubernetesKind =
    KubernetesKind::new("apps/v1", "Deployment", "deployments", LISTS).judged_by(REMAINS);
static REPLICA_SET: KubernetesKind =
    KubernetesKind::new("apps/v1", "ReplicaSet", "replicasets", LISTS).judged_by(REMAINS);
/// The binding through which brokers learn their zone is deleted with their cluster. A role can't match names
/// that derive from clusters, so it allows deleting any binding, and creating none.
pub static ZONE_BINDING: KubernetesKind =
    KubernetesKind::new(RBAC, "ClusterRoleBinding", "clusterrolebindings", ENDS);

/// The labels and annotations by which the parts of a cluster are told apart.
const OF_ALL: &[FieldPath] = &[
    &["metadata", "labels", "strimzi.io/cluster"],
    &["metadata", "labels", "strimzi.io/pool-name"],
    &["metadata", "labels", "strimzi.io/name"],
    &["metadata", "annotations", "strimzi.io/pause-reconciliation"],
    &["metadata", "annotations", "strimzi.io/delete-claim"],
];

/// Objects that may remain of a cluster that is being deleted.
pub const REMAINS: HealthSource =
    HealthSource::new(ReadWhen::Deleting, &[OF_ALL]).selecting("labelSelector=strimzi.io%2Fcluster");

/// The topic operator's word on topics.
pub const TOPICS: HealthSource = HealthSource::new(ReadWhen::Applied, &[OF_ALL, &[&["spec", "topicName"]]])
    .selecting("labelSelector=strimzi.io%2Fcluster");

/// A kind in the group and version of everything that Strimzi 1.x serves.
pub const fn strimzi(
    kind: &'static str,
    plural: &'static str,
    verbs: &'static [&'static str],
) -> KubernetesKind {
    KubernetesKind::new("kafka.strimzi.io/v1", kind, plural, verbs).custom()
}

/// Objects with Strimzi's label on everything that belongs to one of its clusters.
const fn of_a_cluster(fields: &'static [&'static [FieldPath]]) -> HealthSource {
    HealthSource::new(ReadWhen::Clusters, fields).selecting("labelSelector=strimzi.io%2Fcluster")
}
