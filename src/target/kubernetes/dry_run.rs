//! Dry runs: asks the server to check a plan's steps without storing anything.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use futures_util::future::join_all;
use futures_util::stream::{self, StreamExt as _};

use super::api::{Api, KindRef};
use super::write::{self, ApplyOutcome};
use super::{KubeError, KubernetesTarget};
use crate::plan::{DryRun, DryRuns, UNASKED};
use crate::target::ObjectWrite;

const AT_ONCE: usize = 16;

/// Kinds without data, on which nothing else depends. Their objects may be deleted and recreated when an
/// immutable field has to change. Never add a kind that disks, topics or other objects are deleted with.
const RECREATED: [&str; 13] = [
    "ClusterRole",
    "ClusterRoleBinding",
    "ConfigMap",
    "Deployment",
    "LimitRange",
    "NetworkPolicy",
    "PodDisruptionBudget",
    "ResourceQuota",
    "Role",
    "RoleBinding",
    "Secret",
    "Service",
    "ServiceAccount",
];

impl KubernetesTarget {
    /// Returns the server's verdict on each write. After one write of a kind gets no answer, the other writes of
    /// the kind are not checked, so that a hanging webhook delays a plan only once.
    pub async fn dry_run(&self, writes: Vec<ObjectWrite>) -> DryRuns {
        let Ok(api) = self.api().await else { return DryRuns::new() };
        let unanswered = RefCell::new(BTreeMap::new());
        let asked = writes.into_iter().map(async |write| {
            let key = write.key.clone();
            let kind = (key.api_version.clone(), key.kind.clone());
            let known = unanswered.borrow().get(&kind).cloned();
            let run = match known {
                Some(run) => run,
                None => ask(api, write).await.unwrap_or_else(|error| {
                    let run = unverified(&error);
                    if is_awaited(&error) {
                        unanswered.borrow_mut().insert(kind, run.clone());
                    }
                    run
                }),
            };
            (key, run)
        });
        let asked: Vec<_> = asked.collect();
        self.while_planning(stream::iter(asked).buffer_unordered(AT_ONCE).collect()).await
    }

    /// Returns the kinds that the server doesn't have, with a hint for each.
    pub async fn missing_kinds<'k>(
        &self,
        kinds: &BTreeSet<(&'k str, &'k str)>,
    ) -> BTreeMap<(&'k str, &'k str), DryRun> {
        let Ok(api) = self.api().await else { return BTreeMap::new() };
        let missing = kinds.iter().map(async |&(api_version, kind)| {
            // An unknown result is not reported here; applying will fail.
            let missing = matches!(api.is_served(KindRef { api_version, kind }).await, Ok(false));
            missing.then(|| {
                let (kind, api_version) = (kind.to_owned(), api_version.to_owned());
                refused(&KubeError::KindNotServed { kind, api_version })
            })
        });
        let missing = self.while_planning(join_all(missing)).await;
        kinds.iter().copied().zip(missing).filter_map(|(kind, missing)| Some((kind, missing?))).collect()
    }
}

async fn ask(api: &Api, write: ObjectWrite) -> Result<DryRun, KubeError> {
    let ObjectWrite { key, uid, applied, filled, .. } = write;
    let body = write::body(filled.clone(), &applied, uid.as_deref());
    match write::apply(api, &key, body, true).await {
        Ok(ApplyOutcome { overwritten, left, .. }) => Ok(DryRun::Accepted { overwritten, left }),
        Err(error @ KubeError::Immutable { .. }) if RECREATED.contains(&key.kind.as_str()) => {
            // Recreate only if the server would accept the new object; otherwise the old one would be lost
            // for nothing.
            match api.would_create(&key, &write::body(filled, &applied, None)).await {
                Ok(()) => Ok(DryRun::Immutable),
                Err(failed) if !is_decided(&failed) => Err(failed),
                Err(_) => Ok(refused(&error)),
            }
        }
        Err(error) if is_decided(&error) => Ok(refused(&error)),
        Err(error) => Err(error),
    }
}

/// Whether an error is the server's final verdict on the object.
fn is_decided(error: &KubeError) -> bool {
    match error {
        // A webhook that doesn't support dry runs says nothing about the object.
        KubeError::Refused { reason, .. } if reason.contains("does not support dry run") => false,
        KubeError::Refused { code: 400 | 403 | 405 | 413 | 415 | 422, .. } => true,
        KubeError::Immutable { .. } | KubeError::NotServed { .. } | KubeError::Managed { .. } => true,
        _ => false,
    }
}

fn is_awaited(error: &KubeError) -> bool {
    matches!(error, KubeError::Connection { .. } | KubeError::Refused { code: 429 | 500.., .. })
}

fn refused(error: &KubeError) -> DryRun {
    DryRun::Refused { reason: error.words(), hint: error.hint().to_owned() }
}

fn unverified(error: &KubeError) -> DryRun {
    DryRun::Unverified { why: format!("{UNASKED}: {}", error.words()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_word_of_the_server_on_the_object_itself_counts() {
        let refused = |code, reason: &str| KubeError::Refused {
            attempted: "apply x".to_owned(),
            code,
            reason: reason.to_owned(),
        };
        for (error, expected) in [
            (refused(422, "Invalid: spec.x"), true),
            (refused(403, "Forbidden: exceeded quota"), true),
            (refused(400, "BadRequest: unknown field"), true),
            (refused(400, "BadRequest: admission webhook \"a\" does not support dry run"), false),
            (refused(401, "Unauthorized"), false),
            (refused(404, "NotFound: namespaces \"a\" not found"), false),
            (refused(429, "TooManyRequests"), false),
            (refused(500, "InternalError: failed calling webhook"), false),
            (KubeError::connection("apply x", "refused"), false),
        ] {
            assert_eq!(is_decided(&error), expected, "{error}");
        }
    }

    #[test]
    fn nothing_that_holds_data_is_ever_made_anew() {
        for kind in [
            "PersistentVolumeClaim",
            "Namespace",
            "CustomResourceDefinition",
            "Kafka",
            "KafkaNodePool",
            "KafkaUser",
            "StatefulSet",
        ] {
            assert!(!RECREATED.contains(&kind), "{kind}");
        }
    }
}
