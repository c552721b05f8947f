//! Why a pod isn't ready.

use super::applied_manifests::AppliedCluster;
use super::view::{ClusterObservation, Container, ContainerExit, Pod, VolumeClaimView};
use crate::component::health::words::{brief, quoted};

/// The cause that keeps a pod from being ready, the worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum TroubleKind {
    Crash,
    Image,
    Container,
    /// The pod fits no node, or has no volume.
    Unschedulable,
    Missing,
    Ending,
    Starting,
}

impl TroubleKind {
    /// Whether waiting won't help.
    pub(super) fn is_stuck(self) -> bool {
        self < TroubleKind::Ending
    }

    /// Whether the software is at fault, rather than the place where it should run.
    pub(super) fn is_broken(self) -> bool {
        self < TroubleKind::Unschedulable
    }
}

/// The waiting reasons of containers whose meaning is known. All others are part of starting.
const WAITING: [(&str, TroubleKind); 10] = [
    ("CrashLoopBackOff", TroubleKind::Crash),
    ("ErrImagePull", TroubleKind::Image),
    ("ImagePullBackOff", TroubleKind::Image),
    ("InvalidImageName", TroubleKind::Image),
    ("ErrImageNeverPull", TroubleKind::Image),
    ("ImageInspectError", TroubleKind::Image),
    ("RegistryUnavailable", TroubleKind::Image),
    ("CreateContainerConfigError", TroubleKind::Container),
    ("CreateContainerError", TroubleKind::Container),
    ("RunContainerError", TroubleKind::Container),
];

/// A pod that isn't ready, and why. Ordered by severity, then by name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PodTrouble {
    pub kind: TroubleKind,
    pub pod: String,
    /// Follows the pod's name in a sentence: `isn't there`.
    pub why: String,
}

/// The pods of a pool that aren't ready. Empty if pods aren't watched.
pub(super) fn of_pool(wanted: &AppliedCluster, seen: &ClusterObservation, pool: &str) -> Vec<PodTrouble> {
    let Some(pods) = &seen.pods else { return Vec::new() };
    let found = pods
        .iter()
        .filter(|(_, pod)| pod.pool.as_deref() == Some(pool) && !pod.ready)
        .map(|(name, pod)| of_pod(wanted, seen, name, pod));
    let ids = seen.pools.get(pool).map(|pool| pool.node_ids.as_slice()).unwrap_or_default();
    let missing = ids
        .iter()
        .map(|id| format!("{}-{pool}-{id}", wanted.cluster))
        .filter(|name| !pods.contains_key(name))
        .map(|pod| PodTrouble { kind: TroubleKind::Missing, pod, why: "is missing".to_owned() });
    found.chain(missing).collect()
}

pub(super) fn of_pod(
    wanted: &AppliedCluster,
    seen: &ClusterObservation,
    name: &str,
    pod: &Pod,
) -> PodTrouble {
    let (kind, why) = if pod.deleting {
        (TroubleKind::Ending, "is terminating".to_owned())
    } else if let Some(message) = &pod.unschedulable {
        (TroubleKind::Unschedulable, format!("can't be scheduled: {}{}", brief(message), claims(seen, name)))
    } else {
        pod.containers
            .iter()
            .filter(|container| !container.fine)
            .map(|container| of_container(wanted, name, container))
            .min()
            .filter(|(kind, _)| kind.is_stuck())
            .unwrap_or_else(|| (TroubleKind::Starting, format!("is starting{}", mounting(seen, name))))
    };
    PodTrouble { kind, pod: name.to_owned(), why }
}

fn of_container(wanted: &AppliedCluster, pod: &str, container: &Container) -> (TroubleKind, String) {
    let waiting = container.waiting.as_deref().unwrap_or_default();
    let known = WAITING.iter().find(|(reason, _)| *reason == waiting).map(|(_, kind)| *kind);
    match (known, &container.ended) {
        (Some(TroubleKind::Crash), ended) => {
            (TroubleKind::Crash, crash(wanted, pod, container, ended.as_ref()))
        }
        (None, Some(exit)) if exit.code != 0 => {
            (TroubleKind::Crash, crash(wanted, pod, container, Some(exit)))
        }
        (Some(kind), _) => {
            let message = container.waiting_message.as_deref().map(|text| format!(": {}", brief(text)));
            let name = quoted(&container.name);
            (kind, format!("can't run container {name}: {waiting}{}", message.unwrap_or_default()))
        }
        (None, _) => (TroubleKind::Starting, String::new()),
    }
}

/// Describes a container that exits with an error. From the second restart on it counts as a crash loop, even
/// while the container runs.
fn crash(wanted: &AppliedCluster, pod: &str, container: &Container, ended: Option<&ContainerExit>) -> String {
    let looping = container.restarts > 1 || container.waiting.is_some();
    let what = if looping { "is in a crash loop" } else { "has crashed" };
    let mut details = vec![match container.restarts {
        0 => "not restarted yet".to_owned(),
        1 => "restarted once".to_owned(),
        many => format!("restarted {many} times"),
    }];
    if looping {
        details.insert(0, "CrashLoopBackOff".to_owned());
    }
    details.extend(ended.map(|exit| format!("exit code {}", exit.code)));
    // `Error` only means that the exit code isn't 0.
    details.extend(ended.and_then(|exit| exit.reason.clone()).filter(|reason| reason != "Error"));
    let (details, namespace, container) = (details.join(", "), &wanted.namespace, &container.name);
    format!("{what} ({details}); see `kubectl logs --previous -n {namespace} {pod} -c {container}`")
}

fn claims(seen: &ClusterObservation, pod: &str) -> String {
    let pending = seen.claims_of(pod).filter(|(_, claim)| claim.pending);
    pending
        .map(|(name, claim)| {
            format!(
                "; its claim {} has no volume yet{}",
                quoted(name),
                claim_reason(seen, name, claim.class.as_deref())
            )
        })
        .collect()
}

/// Returns the claim for which a pod can't be scheduled, unless the pod lacks room on the nodes instead. A
/// claim that only waits for its pod to be scheduled has no volume either, so a pending claim alone proves
/// nothing.
pub(super) fn lacks_volume<'a>(seen: &'a ClusterObservation, trouble: &PodTrouble) -> Option<&'a str> {
    if trouble.kind != TroubleKind::Unschedulable {
        return None;
    }
    let message = seen.pods.as_ref()?.get(&trouble.pod)?.unschedulable.as_deref()?.to_lowercase();
    let names_volume = message.contains("volume");
    let lacks = |name: &str, claim: &VolumeClaimView| {
        let class = claim.class.as_deref().zip(seen.storage_classes.as_ref());
        let no_class = class.is_some_and(|(class, known)| !known.contains(class));
        names_volume || no_class || seen.warning_about("PersistentVolumeClaim", name).is_some()
    };
    let mut pending = seen.claims_of(&trouble.pod).filter(|(_, claim)| claim.pending);
    pending.find(|(name, claim)| lacks(name, claim)).map(|(name, _)| name.as_str())
}

fn claim_reason(seen: &ClusterObservation, name: &str, class: Option<&str>) -> String {
    let exists = |class: &str| seen.storage_classes.as_ref().map(|known| known.contains(class));
    match (class, class.and_then(exists), seen.warning_about("PersistentVolumeClaim", name)) {
        (Some(class), Some(false), _) => {
            let class = quoted(class);
            format!(
                ": storage class {class} doesn't exist; create one with that name, because a claim keeps its class"
            )
        }
        (_, _, Some(event)) => format!(": {}: {}", event.reason, brief(&event.message)),
        (Some(class), _, None) => format!(" (storage class {})", quoted(class)),
        (None, _, None) => String::new(),
    }
}

/// Describes what a starting pod waits for, if Kubernetes has reported it.
fn mounting(seen: &ClusterObservation, pod: &str) -> String {
    const REASONS: [&str; 3] = ["FailedMount", "FailedAttachVolume", "FailedCreatePodSandBox"];
    let event = seen.warning_about("Pod", pod).filter(|event| REASONS.contains(&event.reason.as_str()));
    event.map(|event| format!(" ({}: {})", event.reason, brief(&event.message))).unwrap_or_default()
}
