//! The remains of a cluster that is being deleted.

use super::view::{ClusterObservation, RemainingObject};

/// Kinds that stay or are deleted with their owner. They don't delay a deletion.
const FOLLOWERS: [&str; 2] = ["Secret", "ConfigMap"];

/// Returns the objects that still have to be deleted: all objects of the cluster except for kept disks.
pub(super) fn remains(seen: &ClusterObservation) -> Vec<RemainingObject> {
    let goes = |left: &&RemainingObject| {
        let kept = left.kind == "PersistentVolumeClaim"
            && seen.claims.get(&left.name).is_some_and(|claim| !claim.deleted_with_node);
        !kept && !FOLLOWERS.contains(&left.kind.as_str())
    };
    seen.objects.iter().filter(goes).cloned().collect()
}

pub(super) fn words(remains: &[RemainingObject]) -> String {
    if remains.is_empty() {
        return "all objects are deleted".to_owned();
    }
    let kinds = remains.chunk_by(|one, other| one.kind == other.kind).map(|same| match same {
        [only] if only.deleting && only.kind == "KafkaTopic" => {
            format!("{} `{}` (blocked by its finalizer)", only.kind, only.name)
        }
        [only] => format!("{} `{}`", only.kind, only.name),
        many => format!("{} {}s", many.len(), many[0].kind),
    });
    format!("still there: {}", kinds.collect::<Vec<_>>().join(", "))
}
