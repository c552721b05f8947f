//! Errors of Kubernetes clusters, with hints for a person.

use kube::core::Status;

use super::AccessField;
use crate::config::DeniedAddress;
use crate::names::{ObjectKey, one_line};
use crate::target::dns::RecordFault;

/// The longest text of a server that is passed on, in characters.
const MAX_TEXT: usize = 400;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KubeError {
    #[error("cannot use the fleet's `{}`: {reason}", field.name())]
    NoAccess { field: AccessField, reason: String, described: bool },
    /// The kubeconfig leads to an address that is not allowed.
    #[error("cannot connect to the `server` of the fleet's `kubeconfig`: {0}")]
    Denied(DeniedAddress),
    #[error("cannot {attempted}: the server is not the one that the fleet's `kubeconfig` trusts: {reason}")]
    Untrusted { attempted: String, reason: String },
    #[error("cannot {attempted}: {reason}")]
    Connection { attempted: String, reason: String },
    /// The server sends more than the budget of a fleet.
    #[error("cannot {attempted}: the server sends more than the limit for a fleet: {reason}")]
    TooMuch { attempted: String, reason: String },
    #[error("cannot {attempted}: the server refused it with {code} {reason}")]
    Refused { attempted: String, code: u16, reason: String },
    #[error("cannot apply {object}: some of its fields are immutable: {reason}")]
    Immutable { object: Box<ObjectKey>, reason: String },
    #[error("cannot apply {object}: {managers}")]
    Managed {
        object: Box<ObjectKey>,
        /// Which manager has which fields, as a clause.
        managers: String,
    },
    #[error("cannot write {object}: an object that streamfleet did not create is there")]
    Foreign { object: ObjectKey },
    /// The watches haven't listed everything yet.
    #[error("cannot list the objects on the Kubernetes cluster: the list is still being read")]
    NotListed,
    #[error("cannot {attempted} {object}: the object with this name was replaced since the plan was made")]
    Changed { attempted: &'static str, object: ObjectKey },
    #[error("cannot write {object}: the server has no kind {} in {}", object.kind, object.api_version)]
    NotServed { object: ObjectKey },
    #[error("cannot create any {kind}: the server has no such kind in {api_version}")]
    KindNotServed { kind: String, api_version: String },
    /// A finalizer or dependent keeps an object that is being deleted.
    #[error("cannot finish the deletion of {object}: it is being deleted and {holder}")]
    Held {
        object: Box<ObjectKey>,
        /// The cause, as a clause.
        holder: String,
    },
    #[error("cannot delete {object}: the pod {pod} of its cluster still runs")]
    StillRuns { object: Box<ObjectKey>, pod: String },
    #[error("cannot delete Namespace {namespace}: it contains the PersistentVolumeClaim {claim}")]
    HasClaims { namespace: String, claim: String },
    #[error("cannot write {object}: its intent was not recorded first")]
    NotIntended { object: ObjectKey },
    #[error("cannot {attempted} the DNS record of {host}: {fault}")]
    Record { attempted: &'static str, host: String, fault: RecordFault },
    #[error("cannot read the inventory, ConfigMap {name}: it is damaged ({reason})")]
    Damaged { name: String, reason: String },
    #[error(
        "cannot read the inventory, ConfigMap {name}: a newer version of streamfleet wrote it (version {found}, this one reads up to {known})"
    )]
    Newer {
        name: String,
        found: u32,
        /// The newest version that this build reads.
        known: u32,
    },
    #[error(
        "cannot read the inventory, ConfigMap {name}: a version of streamfleet before the first release wrote it (version {found}, this one reads {known})"
    )]
    Older { name: String, found: u32, known: u32 },
    #[error("cannot use the Kubernetes cluster: {whose} is on it")]
    AnotherFleet { whose: String },
    #[error("cannot use the Kubernetes cluster: another installation of streamfleet writes to it")]
    AnotherInstallation,
    /// The kubeconfig leads to another cluster than before.
    #[error(
        "cannot use the Kubernetes cluster: it is not the one that the fleet was created on (its `kube-system` has the uid \
         {found} and not {bound})"
    )]
    AnotherCluster { bound: String, found: String },
}

impl KubeError {
    /// Whether the cluster must not be used at all, so that retrying won't help.
    pub fn is_final(&self) -> bool {
        matches!(
            self,
            KubeError::Denied(_)
                | KubeError::Damaged { .. }
                | KubeError::Newer { .. }
                | KubeError::Older { .. }
                | KubeError::AnotherFleet { .. }
                | KubeError::AnotherInstallation
                | KubeError::AnotherCluster { .. }
        )
    }

    /// Whether the cluster may be lost for good: no answer, another cluster, or no kubeconfig any more. A
    /// server that refuses exists.
    pub fn may_be_lost(&self) -> bool {
        matches!(
            self,
            KubeError::Connection { .. }
                | KubeError::AnotherCluster { .. }
                | KubeError::NoAccess { described: false, .. }
        )
    }

    /// Whether the error describes a failed connection or an untrusted server. Such details would let a
    /// tenant scan our network with kubeconfigs.
    pub fn is_unreached(&self) -> bool {
        matches!(self, KubeError::Connection { .. } | KubeError::Untrusted { .. })
    }

    pub fn hint(&self) -> &'static str {
        match self {
            KubeError::NoAccess { field: AccessField::InCluster, .. } => {
                "the settings have to name the fleet in `in_cluster` under `[targets]`, and streamfleet to run in a pod with \
                 its service account's token mounted; the chart does both with `inCluster`"
            }
            KubeError::NoAccess { described: true, .. } => {
                "set a `kubeconfig` in the fleet's spec that can be opened here"
            }
            KubeError::NoAccess { described: false, .. } => {
                "restore the fleet's spec with its `kubeconfig`, or forget the fleet if its cluster is gone for good"
            }
            KubeError::Denied(_) => {
                "use another server, or allow its address in the settings: `allow_addresses` under `[targets]`; a fleet on \
                 the Kubernetes cluster that Streamfleet runs in needs no kubeconfig with `in_cluster`"
            }
            KubeError::Untrusted { .. } => {
                "if another authority issued the server's certificate, put that authority in the `kubeconfig`; if not, \
                 another server answers in its place"
            }
            KubeError::Connection { .. } => {
                "check the API server and the network to it, then try again; nothing is deleted while it is unreachable"
            }
            KubeError::TooMuch { .. } => {
                "find out which objects are so many, remove those that aren't needed, or give the fleet its own cluster; \
                 streamfleet tries again by itself"
            }
            KubeError::Refused { code: 401, .. } => {
                "put a valid token or certificate in the fleet's `kubeconfig`; with `in_cluster`, check the service account \
                 of streamfleet's pod"
            }
            KubeError::Refused { code: 403, reason, .. } if !reason.contains("User \"") => {
                "check the policy, webhook or quota of the cluster that refuses it, or change the spec, then try again"
            }
            KubeError::Refused { code: 403, .. } => {
                "grant it to that user with a ClusterRole, then try again: `streamfleet role` prints the rights that it needs"
            }
            KubeError::Refused { code: 422, .. } => {
                "change the spec to one that the server accepts, then try again"
            }
            KubeError::Immutable { .. } => {
                "restore the field: streamfleet doesn't delete and recreate the object, because its data could be lost; to \
                 use another value, create a new cluster and move the data there"
            }
            KubeError::Refused { .. } => "resolve what the server reports, then try again",
            KubeError::Managed { .. } => {
                "make that controller stop managing the field, then apply again; the object is left unchanged until then"
            }
            KubeError::Foreign { object } => match object.kind.as_str() {
                "CustomResourceDefinition" => {
                    "don't remove it, because every Kafka of the Kubernetes cluster depends on it: set `strimzi: existing` \
                     in `advanced_config.components` of the fleet"
                }
                "Namespace" => {
                    "don't remove it, because everything in it would be deleted too; use another name"
                }
                _ => "remove it if it isn't needed, then apply again",
            },
            KubeError::Changed { .. } => "plan again and check the difference",
            KubeError::NotListed => "wait: streamfleet continues when the list is complete",
            KubeError::NotServed { .. } | KubeError::KindNotServed { .. } => {
                "install the Strimzi operator with its resource definitions, then apply again"
            }
            KubeError::Held { .. } => "resolve what blocks it, then apply again; all other steps are done",
            KubeError::StillRuns { .. } => "wait until the operator has stopped it, then apply again",
            KubeError::HasClaims { .. } => {
                "delete the claim if its data isn't needed, then apply again; deleting the namespace would delete all of \
                 its disks"
            }
            KubeError::Record { fault, .. } => fault.hint(),
            KubeError::NotIntended { .. } => "this is a bug in streamfleet; report it",
            KubeError::Damaged { .. } => {
                "restore the ConfigMap in namespace streamfleet-system from a backup; without it streamfleet treats no \
                 object there as its own"
            }
            KubeError::Newer { .. } => "install that version again",
            KubeError::Older { .. } => {
                "delete the fleet with that version, and create it again with this one"
            }
            KubeError::AnotherFleet { .. } => "give this fleet its own Kubernetes cluster",
            KubeError::AnotherInstallation => {
                "use that installation's state with `state_dir`, restore it from its backup, or give the fleet its own \
                 cluster"
            }
            KubeError::AnotherCluster { .. } => {
                "restore the `kubeconfig` of that cluster, or forget the fleet if that cluster is gone for good"
            }
        }
    }

    pub(super) fn refused(attempted: &str, status: &Status) -> KubeError {
        let reason = text(&words(status));
        KubeError::Refused { attempted: attempted.to_owned(), code: status.code, reason }
    }

    pub(super) fn words(&self) -> String {
        match self {
            KubeError::Refused { code, reason, .. } => format!("{code} {reason}"),
            KubeError::Connection { reason, .. }
            | KubeError::TooMuch { reason, .. }
            | KubeError::Immutable { reason, .. } => reason.clone(),
            KubeError::Managed { managers, .. } => managers.clone(),
            error => error.to_string(),
        }
    }

    pub(super) fn connection(attempted: &str, reason: impl AsRef<str>) -> KubeError {
        KubeError::Connection { attempted: attempted.to_owned(), reason: text(reason.as_ref()) }
    }

    pub(super) fn too_much(attempted: &str, reason: String) -> KubeError {
        KubeError::TooMuch { attempted: attempted.to_owned(), reason }
    }

    /// A server's text in a form that is safe to pass on.
    pub(super) fn line(words: &str) -> String {
        text(words)
    }

    /// Whether the server refused with this HTTP status.
    pub fn is_code(&self, expected: u16) -> bool {
        matches!(self, KubeError::Refused { code, .. } if *code == expected)
    }
}

/// Messages by which servers say that a field is immutable. There is no code for it.
const IMMUTABLE: [&str; 6] = [
    "field is immutable",
    "may not change",
    "cannot change roleRef",
    "is immutable after creation",
    "Value is immutable",
    "updates to statefulset spec",
];

/// Whether immutable fields are the only reason for a refusal.
pub(super) fn is_immutable(status: &Status) -> bool {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    let says_so = |message: &str| IMMUTABLE.iter().any(|words| message.contains(words));
    status.code == 422
        && causes.clone().next().is_some()
        && causes.clone().all(|cause| says_so(&cause.message))
}

fn words(status: &Status) -> String {
    match (status.reason.as_str(), status.message.as_str()) {
        ("", message) => message.to_owned(),
        (reason, "") => reason.to_owned(),
        (reason, message) => format!("{reason}: {message}"),
    }
}

/// Puts a server's text on one line of bounded length. The text is untrusted.
fn text(text: &str) -> String {
    one_line(text, MAX_TEXT).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_says_what_failed_why_and_what_to_do() {
        let object = || ObjectKey {
            namespace: Some("kafka-acme--orders".to_owned()),
            kind: "Kafka".to_owned(),
            name: "orders".to_owned(),
            api_version: "kafka.strimzi.io/v1".to_owned(),
        };
        let refused = |code| KubeError::Refused {
            attempted: format!("apply {}", object()),
            code,
            reason: "Why: words".to_owned(),
        };
        let name = "inventory".to_owned();
        let no_access = |field, reason: &str, described| KubeError::NoAccess {
            field,
            reason: reason.to_owned(),
            described,
        };
        let errors = [
            no_access(AccessField::Kubeconfig, "its token is in no form", true),
            no_access(AccessField::Kubeconfig, "no spec contains it any more", false),
            no_access(AccessField::InCluster, "streamfleet doesn't run in a pod", true),
            KubeError::Denied(DeniedAddress { address: [127, 0, 0, 1].into(), range: "a loopback address" }),
            KubeError::Untrusted { attempted: "read x".to_owned(), reason: "UnknownIssuer".to_owned() },
            KubeError::connection("read x", "Connection\n refused"),
            KubeError::TooMuch {
                attempted: "list objects of kind Pod".to_owned(),
                reason: "one list has more than 150000 objects".to_owned(),
            },
            refused(401),
            refused(403),
            KubeError::Refused {
                attempted: "read x".to_owned(),
                code: 403,
                reason: "Forbidden: User \"a\" cannot get x".to_owned(),
            },
            refused(422),
            refused(500),
            KubeError::Immutable {
                object: Box::new(object()),
                reason: "Invalid: field is immutable".to_owned(),
            },
            KubeError::Managed { object: Box::new(object()), managers: "argocd manages `.spec`".to_owned() },
            KubeError::Foreign { object: object() },
            KubeError::NotListed,
            KubeError::Changed { attempted: "delete", object: object() },
            KubeError::NotServed { object: object() },
            KubeError::KindNotServed {
                kind: "Kafka".to_owned(),
                api_version: "kafka.strimzi.io/v1".to_owned(),
            },
            KubeError::Held { object: Box::new(object()), holder: "held by a/b".to_owned() },
            KubeError::StillRuns { object: Box::new(object()), pod: "orders-broker-0".to_owned() },
            KubeError::HasClaims { namespace: "n".to_owned(), claim: "data-0".to_owned() },
            KubeError::NotIntended { object: object() },
            KubeError::Damaged { name: name.clone(), reason: "it has no `inventory.json`".to_owned() },
            KubeError::Newer { name: name.clone(), found: 2, known: 1 },
            KubeError::Older { name, found: 1, known: 2 },
            KubeError::AnotherFleet { whose: "fleet acme/eu".to_owned() },
            KubeError::AnotherInstallation,
            KubeError::AnotherCluster { bound: "a".to_owned(), found: "b".to_owned() },
        ];
        let texts: Vec<String> = errors.iter().map(|error| format!("{error}\n  {}", error.hint())).collect();
        insta::assert_snapshot!(texts.join("\n"));
    }
}
