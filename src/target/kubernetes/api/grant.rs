//! Access to Secrets in our namespaces. Without it for the whole cluster, we grant it to ourselves in each
//! namespace, by a RoleBinding to a ClusterRole that an administrator made. A policy that comes with the role
//! refuses any other use of this permission.
//!
//! Like the inventory, the RoleBinding is not a step of any plan: it only gives access to the plan's objects.

use std::time::Duration;

use http::Method;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};

use super::super::answer::{CallError, attempt};
use super::super::preflight::is_allowed;
use super::super::retry::{Repeatability, longest};
use super::{Api, KubeError, encoded, request};
use crate::names::Digest;
use crate::parallel::locked;
use crate::plan::preflight::{CLUSTER_NAMESPACES, NAMESPACE_ROLE, Permission};

/// How long a server may take to apply a RoleBinding that it has stored.
const PATIENCE: Duration = Duration::from_secs(5);

const INTERVAL: Duration = Duration::from_millis(50);

/// How long a namespace is skipped after a failed grant. Otherwise each of its Secrets would take that time
/// again, while other fleets wait. It ends, because somebody may have fixed the cause.
const GRANT_COOLDOWN: Duration = Duration::from_secs(60);

const RBAC: &str = "rbac.authorization.k8s.io";

const GIVE_RIGHTS: &str = "get permission for Secrets";

impl Api {
    /// Grants access to Secrets in a namespace that was just created, unless we have it everywhere.
    pub(in crate::target::kubernetes) async fn grant_secret_access(&self, namespace: &str) {
        if !namespace.starts_with(CLUSTER_NAMESPACES) {
            return;
        }
        // An earlier failure was in a namespace that didn't exist as it does now.
        locked(&self.unhelped).remove(namespace);
        let everywhere = self.secrets_everywhere.get_or_try_init(|| async {
            is_allowed(self, &Permission { group: "", resource: "secrets", verb: "get" }).await
        });
        match everywhere.await {
            Ok(false) => drop(self.grant(namespace).await),
            Ok(true) => {}
            Err(error) => tracing::debug!(
                %error, namespace,
                "cannot find out whether we may read Secrets in namespace {namespace}"
            ),
        }
    }

    /// Whether a call on Secrets was refused for lack of permission, and the grant succeeded.
    pub(super) async fn grant_after_refusal(&self, path: &str, refused: &CallError) -> bool {
        match secrets_in(path).filter(|_| lacks_rights(refused)) {
            Some(namespace) if !self.is_in_grant_cooldown(namespace) => self.grant(namespace).await,
            _ => false,
        }
    }

    fn is_in_grant_cooldown(&self, namespace: &str) -> bool {
        locked(&self.unhelped).get(namespace).is_some_and(|since| since.elapsed() < GRANT_COOLDOWN)
    }

    fn start_grant_cooldown(&self, namespace: &str) {
        let mut unhelped = locked(&self.unhelped);
        unhelped.retain(|_, since| since.elapsed() < GRANT_COOLDOWN);
        unhelped.insert(namespace.to_owned(), Instant::now());
    }

    /// Repeats a call until the server applies the new RoleBinding. If it doesn't within [`PATIENCE`], the
    /// namespace is skipped for a while.
    pub(super) async fn once_granted<T, C: Future<Output = Result<T, CallError>>>(
        &self,
        nature: Repeatability,
        path: &str,
        attempt: impl Fn() -> C,
    ) -> Result<T, (CallError, u32)> {
        let since = Instant::now();
        loop {
            match self.persistent(nature, &attempt).await {
                Err((failed, _)) if lacks_rights(&failed) && since.elapsed() < PATIENCE => {
                    sleep(INTERVAL).await;
                }
                answer => {
                    if let (Some(namespace), Err((failed, _))) = (secrets_in(path), &answer)
                        && lacks_rights(failed)
                    {
                        self.start_grant_cooldown(namespace);
                    }
                    return answer;
                }
            }
        }
    }

    /// Creates the RoleBinding in one of our namespaces. Returns whether it exists. It takes no longer than
    /// one call may: the call on the Secret waits for it, and concurrent ones wait for our user name.
    async fn grant(&self, namespace: &str) -> bool {
        let made = timeout(longest(), self.bind(namespace)).await.unwrap_or_else(|_| {
            let reason = format!("no complete answer within {} s", longest().as_secs());
            Err(KubeError::connection(GIVE_RIGHTS, reason))
        });
        made.unwrap_or_else(|error| {
            tracing::debug!(%error, namespace, "cannot get permission for Secrets in namespace {namespace}");
            // Refusals are quick, so asking again costs little.
            if matches!(error, KubeError::Connection { .. }) {
                self.start_grant_cooldown(namespace);
            }
            false
        })
    }

    async fn bind(&self, namespace: &str) -> Result<bool, KubeError> {
        let path = format!("/api/v1/namespaces/{}", encoded(namespace));
        let there = self.ask("read a namespace", Method::GET, &path, &Value::Null).await?;
        let label = "/metadata/labels/app.kubernetes.io~1managed-by";
        if !namespace.starts_with(CLUSTER_NAMESPACES) || there.pointer(label) != Some(&"streamfleet".into()) {
            return Ok(false);
        }
        let user = self.user.get_or_try_init(|| self.who_we_are()).await?;
        // A RoleBinding of an earlier user has another name, and stays.
        let name = format!("streamfleet-{}", Digest::of(user).short());
        let binding = json!({
            "apiVersion": format!("{RBAC}/v1"),
            "kind": "RoleBinding",
            "metadata": {
                "name": name,
                "namespace": namespace,
                "labels": {"app.kubernetes.io/managed-by": "streamfleet"},
            },
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": NAMESPACE_ROLE},
            "subjects": [{"apiGroup": RBAC, "kind": "User", "name": user}],
        });
        let path = format!("/apis/{RBAC}/v1/namespaces/{}/rolebindings", encoded(namespace));
        match self.ask(GIVE_RIGHTS, Method::POST, &path, &binding).await {
            // A concurrent call of ours may have created it.
            Err(error) if !error.is_code(409) => Err(error),
            _ => Ok(true),
        }
    }

    async fn who_we_are(&self) -> Result<String, KubeError> {
        let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
        let attempted = "ask for the fleet's user";
        let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
        let answer = self.ask(attempted, Method::POST, path, &review).await?;
        let name = answer.pointer("/status/userInfo/username").and_then(Value::as_str);
        name.map(str::to_owned).ok_or_else(|| super::unexpected_response(attempted))
    }

    /// Makes one call without [`Api::send`], which would come back here. All these calls are repeatable: a
    /// second RoleBinding of the same name is refused as a conflict.
    async fn ask(
        &self,
        attempted: &str,
        method: Method,
        path: &str,
        body: &Value,
    ) -> Result<Value, KubeError> {
        let content = (method == Method::POST).then_some("application/json");
        let request = request(attempted, method, path, content, body)?;
        let call = || attempt(&self.client, &self.budget, request.clone());
        let answer = Box::pin(self.persistent(Repeatability::Repeatable, call)).await;
        answer.map(|answer| answer.value).map_err(|(failed, tries)| failed.into_kube_error(attempted, tries))
    }
}

fn lacks_rights(failed: &CallError) -> bool {
    matches!(failed, CallError::Refused { status, .. } if status.code == 403 && status.message.contains("User \""))
}

fn secrets_in(path: &str) -> Option<&str> {
    let (namespace, rest) = path.strip_prefix("/api/v1/namespaces/")?.split_once('/')?;
    (rest == "secrets" || rest.starts_with("secrets/")).then_some(namespace)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_secrets_in_a_namespace_take_rights_there() {
        for (path, namespace) in [
            ("/api/v1/namespaces/kafka-a--b/secrets", Some("kafka-a--b")),
            ("/api/v1/namespaces/kafka-a--b/secrets/orders-tls", Some("kafka-a--b")),
            ("/api/v1/namespaces/kafka-a--b/configmaps/secrets", None),
            ("/api/v1/namespaces/secrets", None),
            ("/api/v1/secrets", None),
        ] {
            assert_eq!(secrets_in(path), namespace, "{path}");
        }
    }
}
