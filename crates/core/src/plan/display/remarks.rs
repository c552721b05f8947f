use crate::component::{self, ObjectRole};
use crate::plan::compare::effects;
use crate::plan::{Cause, Change, Contest, Remark};

pub(super) fn remark(change: &Change, remark: &Remark) -> String {
    match remark {
        // The spec's value may differ from the value before the manual change.
        Remark::Overwrites { contest: Contest { manager, field }, .. } if change.cause == Cause::Spec => {
            format!("{manager} changed `{field}`: it is set to the spec's value")
        }
        Remark::Overwrites { contest: Contest { manager, field }, .. } => {
            format!("{manager} changed `{field}`: it is changed back")
        }
        Remark::Leaves { contest: Contest { manager, field }, .. } => {
            format!("{manager} manages `{field}`: it is left unchanged")
        }
        Remark::ForeignRecord(record) => format!("{record}: it is left as it is"),
        Remark::Unreadable { known: true, .. } => {
            "can't be read: it is compared with what was applied last, and rewritten".to_owned()
        }
        Remark::Unreadable { known: false, .. } => {
            "can't be read, and what was applied last is unknown: it is rewritten".to_owned()
        }
        Remark::KeptDisks { disks, example } => {
            let resume = resume(&NewCluster::by(change));
            match disks {
                1 => format!("1 disk of an earlier cluster with this name exists, {example}: {resume}"),
                _ => format!(
                    "{disks} disks of an earlier cluster with this name exist, such as {example}: {resume}"
                ),
            }
        }
        Remark::UnseenDisks => {
            let made = NewCluster::by(change);
            let (NewCluster { namespace, cluster }, resume) = (&made, resume(&made));
            format!(
                "disks of an earlier cluster with this name may exist, which streamfleet can't see: kubectl get pvc -n \
                 {namespace} -l strimzi.io/cluster={cluster}. If they exist, {resume}"
            )
        }
        Remark::NewAuthorities { is_seen } => {
            let only_then = if *is_seen { "" } else { "if the Kafka object itself was deleted too: " };
            format!("{only_then}{}", new_authorities(&NewCluster::by(change)))
        }
        Remark::Unverified { objects, why } => {
            let objects = effects::count((*objects).into(), "object");
            format!("{objects} unverified {why}")
        }
    }
}

/// Formats a remark that isn't shown below a step, and so names its object.
pub(super) fn remark_alone(change: &Change, alone: &Remark) -> String {
    match alone.object() {
        Some(object) => format!("{object}: {}", remark(change, alone)),
        None => remark(change, alone),
    }
}

struct NewCluster<'a> {
    namespace: &'a str,
    cluster: &'a str,
}

impl<'a> NewCluster<'a> {
    fn by(change: &'a Change) -> Self {
        let kafka = change
            .steps
            .iter()
            .map(|step| &step.object)
            .find(|object| component::facts(&object.kind).role == ObjectRole::Cluster);
        let namespace = kafka.and_then(|kafka| kafka.namespace.as_deref()).unwrap_or_default();
        Self { namespace, cluster: kafka.map_or(&change.resource.name, |kafka| &kafka.name) }
    }
}

/// Describes what follows if only the Kafka object is recreated. The operator finds the cluster id in the
/// status of the node pools, but the Secrets of the certificate authorities were deleted with the object.
fn new_authorities(NewCluster { namespace, cluster }: &NewCluster) -> String {
    format!(
        "the cluster keeps its id and its data. Its certificate authorities were deleted with its Kafka object, and \
         the operator creates new ones. The operator can't talk to the running brokers until their pods are recreated: \
         delete them one by one, each when the one before is ready again (kubectl get pods -n {namespace} -l \
         strimzi.io/name={cluster}-kafka). Clients that trust the cluster's own authority, or log in by certificate, \
         then need the new one"
    )
}

/// Describes how to recover a cluster that is created over disks with data of an earlier one. The operator
/// gives it a new id, and accepts another one only while it is paused.
fn resume(NewCluster { namespace, cluster }: &NewCluster) -> String {
    let (kafka, pods) =
        (format!("-n {namespace} {cluster}"), format!("-n {namespace} -l strimzi.io/name={cluster}-kafka"));
    format!(
        "their data comes back, and brokers crash until the cluster has the same id as the data. Once they crash, read \
         that id: kubectl logs {pods} --tail=-1 | grep 'Invalid cluster.id' (the one after `but read`). Pause the \
         cluster: kubectl annotate kafka {kafka} strimzi.io/pause-reconciliation=true; wait until it is paused: \
         kubectl wait kafka {kafka} --for=condition=ReconciliationPaused --timeout=15m; write the id: kubectl patch \
         kafka {kafka} --subresource=status --type=merge -p '{{\"status\":{{\"clusterId\":\"ID\"}}}}'; resume it: \
         kubectl annotate kafka {kafka} strimzi.io/pause-reconciliation-; restart the crashed pods: kubectl delete pod \
         {pods}"
    )
}
