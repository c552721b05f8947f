//! What is left of a cluster that is being deleted.

use super::view::{Left, Seen};

/// The kinds that stay or follow their owner: their being there holds nothing up.
const FOLLOWERS: [&str; 2] = ["Secret", "ConfigMap"];

/// The objects that still have to go: everything that belongs to the cluster, save disks that are kept.
pub(super) fn remains(seen: &Seen) -> Vec<Left> {
    let goes = |left: &&Left| {
        let kept = left.kind == "PersistentVolumeClaim"
            && seen.claims.get(&left.name).is_some_and(|claim| !claim.goes);
        !kept && !FOLLOWERS.contains(&left.kind.as_str())
    };
    seen.objects.iter().filter(goes).cloned().collect()
}

/// The words for what is left, kind by kind.
pub(super) fn words(remains: &[Left]) -> String {
    if remains.is_empty() {
        return "nothing is left that would still go".to_owned();
    }
    let kinds = remains.chunk_by(|one, other| one.kind == other.kind).map(|same| match same {
        [only] if only.deleting && only.kind == "KafkaTopic" => {
            format!("{} `{}` (held by its finalizer)", only.kind, only.name)
        }
        [only] => format!("{} `{}`", only.kind, only.name),
        many => format!("{} {}s", many.len(), many[0].kind),
    });
    format!("still there: {}", kinds.collect::<Vec<_>>().join(", "))
}
