//! What can go wrong on a Kubernetes cluster, and what a person does about it.

use kube::core::Status;

use super::access::Denied;
use crate::names::{ObjectKey, one_line};

/// The longest text of a server's that is passed on, in characters.
const MAX_TEXT: usize = 400;

/// Why a Kubernetes cluster could not be read or written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KubeError {
    /// There is no kubeconfig that could be used.
    #[error("cannot use the fleet's `kubeconfig`: {reason}")]
    NoAccess {
        /// Why, as the end of a sentence.
        reason: String,
        /// Whether a spec describes the fleet; none does where its file was removed.
        described: bool,
    },
    /// The kubeconfig leads where it may not.
    #[error("cannot connect to the `server` of the fleet's `kubeconfig`: {0}")]
    Denied(Denied),
    /// Who answers isn't who the kubeconfig trusts.
    #[error("cannot {attempted}: the server is not the one that the fleet's `kubeconfig` trusts: {reason}")]
    Untrusted {
        /// What was attempted.
        attempted: String,
        /// What is wrong with its certificate.
        reason: String,
    },
    /// No answer came, or none that makes sense.
    #[error("cannot {attempted}: {reason}")]
    Connection {
        /// What was attempted.
        attempted: String,
        /// Why it failed.
        reason: String,
    },
    /// The server sends more than a fleet may have.
    #[error("cannot {attempted}: the server sends more than the largest fleet has: {reason}")]
    TooMuch {
        /// What was attempted.
        attempted: String,
        /// What is too much.
        reason: String,
    },
    /// The server refused.
    #[error("cannot {attempted}: the server refused it with {code} {reason}")]
    Refused {
        /// What was attempted.
        attempted: String,
        /// The HTTP status.
        code: u16,
        /// The server's words.
        reason: String,
    },
    /// A field that never changes would have to.
    #[error("cannot apply {object}: some of its fields never change: {reason}")]
    Immutable {
        /// The object.
        object: Box<ObjectKey>,
        /// The server's words.
        reason: String,
    },
    /// A controller of somebody else's manages fields of an object.
    #[error("cannot apply {object}: {managers}")]
    Managed {
        /// The object.
        object: Box<ObjectKey>,
        /// Who manages what.
        managers: String,
    },
    /// Something that isn't ours is in the way.
    #[error("cannot write {object}: something that streamfleet did not make is there")]
    Foreign {
        /// The object.
        object: ObjectKey,
    },
    /// A running process has not listed everything yet.
    #[error("cannot say what is on the Kubernetes cluster: it is still being listed")]
    NotListed,
    /// An object isn't the one that was planned for.
    #[error("cannot {attempted} {object}: another object of this name is there than when the plan was made")]
    Changed {
        /// What was attempted, as a verb.
        attempted: &'static str,
        /// The object.
        object: ObjectKey,
    },
    /// The server doesn't know a kind.
    #[error("cannot write {object}: the server has no kind {} in {}", object.kind, object.api_version)]
    NotServed {
        /// The object.
        object: ObjectKey,
    },
    /// The server doesn't know a kind of which objects are to be made.
    #[error("cannot make any {kind}: the server has no such kind in {api_version}")]
    KindNotServed {
        /// The kind.
        kind: String,
        /// The group and version that it should be in.
        api_version: String,
    },
    /// An object that is being deleted stays.
    #[error("cannot see the end of {object}: it is being deleted and {holder}")]
    Held {
        /// The object.
        object: Box<ObjectKey>,
        /// What keeps it, as a clause.
        holder: String,
    },
    /// A cluster that is gone still has a pod.
    #[error("cannot delete {object}: the pod {pod} of its cluster still runs")]
    StillRuns {
        /// The object.
        object: Box<ObjectKey>,
        /// One of the pods.
        pod: String,
    },
    /// A namespace with disks in it.
    #[error("cannot delete Namespace {namespace}: the PersistentVolumeClaim {claim} is in it")]
    HasClaims {
        /// The namespace.
        namespace: String,
        /// One of the claims.
        claim: String,
    },
    /// A step that nothing was written down for.
    #[error("cannot write {object}: its intent was not written down first")]
    NotIntended {
        /// The object.
        object: ObjectKey,
    },
    /// The cluster's own memory can't be read.
    #[error("cannot read the inventory, ConfigMap {name}: it is damaged ({reason})")]
    Damaged {
        /// The ConfigMap.
        name: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The cluster's own memory was written by a newer version of this software.
    #[error(
        "cannot read the inventory, ConfigMap {name}: a newer version of streamfleet wrote it (version {found}, this one reads up to {known})"
    )]
    Newer {
        /// The ConfigMap.
        name: String,
        /// Its version.
        found: u32,
        /// The newest version that this software reads.
        known: u32,
    },
    /// The Kubernetes cluster is another fleet's.
    #[error("cannot use the Kubernetes cluster: {whose} is on it")]
    AnotherFleet {
        /// Who has it: `fleet acme/eu`.
        whose: String,
    },
    /// The Kubernetes cluster is another installation's.
    #[error("cannot use the Kubernetes cluster: another installation of streamfleet writes to it")]
    AnotherInstallation,
    /// The kubeconfig leads to another cluster than before.
    #[error(
        "cannot use the Kubernetes cluster: it is another one than the fleet was made on (its `kube-system` has the uid {found} and not {bound})"
    )]
    AnotherCluster {
        /// The cluster that the fleet is bound to.
        bound: String,
        /// The cluster that answers.
        found: String,
    },
}

impl KubeError {
    /// Whether the cluster may not be used at all, so that trying again won't help.
    pub fn is_final(&self) -> bool {
        matches!(
            self,
            KubeError::Denied(_)
                | KubeError::Damaged { .. }
                | KubeError::Newer { .. }
                | KubeError::AnotherFleet { .. }
                | KubeError::AnotherInstallation
                | KubeError::AnotherCluster { .. }
        )
    }

    /// Whether what was there may be gone for good: nothing answers, another cluster does, or nobody knows the way any more.
    /// Who answers and refuses is there.
    pub fn may_be_lost(&self) -> bool {
        matches!(
            self,
            KubeError::Connection { .. }
                | KubeError::AnotherCluster { .. }
                | KubeError::NoAccess { described: false, .. }
        )
    }

    /// Whether it tells how an address was not reached, or who else answers there: whoever may have it try any address
    /// could search a network by that.
    pub fn is_unreached(&self) -> bool {
        matches!(self, KubeError::Connection { .. } | KubeError::Untrusted { .. })
    }

    /// What to do next.
    pub fn hint(&self) -> &'static str {
        match self {
            KubeError::NoAccess { described: true, .. } => {
                "give the fleet's spec a `kubeconfig` that can be opened here"
            }
            KubeError::NoAccess { described: false, .. } => {
                "put the fleet's spec back with its `kubeconfig`, or forget the fleet if its cluster is gone for good"
            }
            KubeError::Denied(_) => {
                "name another server, or allow its address in the settings: `allow_addresses` under `[targets]`"
            }
            KubeError::Untrusted { .. } => {
                "if the server's certificate was renewed by another authority, put that one into the `kubeconfig`; if not, somebody else answers in its place"
            }
            KubeError::Connection { .. } => {
                "see to the API server and the way to it, then do it again; nothing is deleted because it is away"
            }
            KubeError::TooMuch { .. } => {
                "find out what there is so much of, remove what isn't needed, or give the fleet a cluster of its own; \
                 it is looked at again by itself"
            }
            KubeError::Refused { code: 401, .. } => {
                "give the fleet's `kubeconfig` a token or certificate that still holds"
            }
            KubeError::Refused { code: 403, reason, .. } if !reason.contains("User \"") => {
                "see to the policy, webhook or quota of the cluster that refuses it, or change the spec, then do it again"
            }
            KubeError::Refused { code: 403, .. } => {
                "allow it to the user of the fleet's `kubeconfig` by a ClusterRole, then do it again"
            }
            KubeError::Refused { code: 422, .. } => {
                "change the spec so that the server takes it, then do it again"
            }
            KubeError::Immutable { .. } => {
                "put the field back as it was: the object is not deleted to be made anew, since data could go with it; for another value make a new cluster and move the data there"
            }
            KubeError::Refused { .. } => "see to what the server says, then do it again",
            KubeError::Managed { .. } => {
                "make that controller leave the field alone, then apply again; the object stays as it is until then"
            }
            KubeError::Foreign { object } => match object.kind.as_str() {
                "CustomResourceDefinition" => {
                    "leave it there, since every Kafka of the Kubernetes cluster depends on it: set `strimzi: existing` in `advanced_config.components` of the fleet"
                }
                "Namespace" => {
                    "leave it there, since with it would go everything in it, and use another name"
                }
                _ => "remove it if it isn't needed, then apply again",
            },
            KubeError::Changed { .. } => "plan again and look at the difference",
            KubeError::NotListed => "wait: it goes on by itself when it is",
            KubeError::NotServed { .. } | KubeError::KindNotServed { .. } => {
                "install the Strimzi operator with its resource definitions, then apply again"
            }
            KubeError::Held { .. } => {
                "see to what holds it, then apply again; what else was to be done is done"
            }
            KubeError::StillRuns { .. } => "wait until the operator has ended it, then apply again",
            KubeError::HasClaims { .. } => {
                "delete the claim if its data may go, then apply again; with the namespace all its disks would go"
            }
            KubeError::NotIntended { .. } => "report this as a defect of streamfleet",
            KubeError::Damaged { .. } => {
                "restore the ConfigMap in namespace streamfleet-system from a backup; without it nothing there is known to be ours"
            }
            KubeError::Newer { .. } => "install that version again",
            KubeError::AnotherFleet { .. } => "give this fleet a Kubernetes cluster of its own",
            KubeError::AnotherInstallation => {
                "name that installation's state with `state_dir`, restore it from its backup, or give the fleet a cluster of its own"
            }
            KubeError::AnotherCluster { .. } => {
                "put the `kubeconfig` of that cluster back, or forget the fleet if that cluster is gone for good"
            }
        }
    }

    pub(super) fn refused(attempted: &str, status: &Status) -> KubeError {
        let reason = text(&words(status));
        KubeError::Refused { attempted: attempted.to_owned(), code: status.code, reason }
    }

    /// Why it failed, without what was attempted.
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

    /// A server's words as they are passed on.
    pub(super) fn line(words: &str) -> String {
        text(words)
    }

    /// Whether the server refused for this reason.
    pub(super) fn is_code(&self, expected: u16) -> bool {
        matches!(self, KubeError::Refused { code, .. } if *code == expected)
    }
}

/// How servers say that a field never changes. There is no code for it.
const IMMUTABLE: [&str; 6] = [
    "field is immutable",
    "may not change",
    "cannot change roleRef",
    "is immutable after creation",
    "Value is immutable",
    "updates to statefulset spec",
];

/// Whether nothing but fields that never change keeps the server from taking an object.
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

/// A server's text on one line and of bounded length: it may be anybody's.
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
        let errors = [
            KubeError::NoAccess { reason: "its token is in no form".to_owned(), described: true },
            KubeError::NoAccess { reason: "no spec gives it any more".to_owned(), described: false },
            KubeError::Denied(Denied { address: [127, 0, 0, 1].into(), range: "a loopback address" }),
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
            KubeError::Newer { name, found: 2, known: 1 },
            KubeError::AnotherFleet { whose: "fleet acme/eu".to_owned() },
            KubeError::AnotherInstallation,
            KubeError::AnotherCluster { bound: "a".to_owned(), found: "b".to_owned() },
        ];
        let texts: Vec<String> = errors.iter().map(|error| format!("{error}\n  {}", error.hint())).collect();
        insta::assert_snapshot!(texts.join("\n"));
    }
}
