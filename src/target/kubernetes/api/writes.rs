use http::Method;
use kube::core::Status;
use serde_json::{Value, json};

use super::super::answer::{CallError, ServerAnswer};
use super::super::error::{self, KubeError};
use super::super::retry::Repeatability;
use super::super::watch::OwnWrite;
use super::{Api, MANAGER, checked_object, collection, found, request};
use crate::names::{ObjectKey, one_line};
use crate::plan::Contest;

impl Api {
    pub(in crate::target::kubernetes) async fn apply(
        &self,
        key: &ObjectKey,
        body: &Value,
        Mode { force, dry }: Mode,
    ) -> Result<ApplyAnswer, ApplyError> {
        let Some(path) = self.path(key).await.map_err(ApplyError::Other)? else {
            return Err(ApplyError::Other(KubeError::NotServed { object: key.clone() }));
        };
        let dry_run = if dry { "&dryRun=All" } else { "" };
        // Strict validation: unknown fields are refused instead of dropped.
        let path = format!("{path}?fieldManager={MANAGER}&fieldValidation=Strict&force={force}{dry_run}");
        let attempted = format!("apply {key}");
        let request = request(&attempted, Method::PATCH, &path, Some("application/apply-patch+yaml"), body);
        let (mut failed, tries) =
            match self.send(Repeatability::Repeatable, request.map_err(ApplyError::Other)?).await {
                Ok(ServerAnswer { made, value }) => {
                    let object = checked_object(&attempted, key, value).map_err(ApplyError::Other)?;
                    self.wrote(OwnWrite::of(key, &object).filter(|_| !dry));
                    return Ok(ApplyAnswer { made, object });
                }
                Err((CallError::Refused { status, .. }, _)) if status.code == 409 => {
                    return Err(ApplyError::Conflict(conflicts(&status)));
                }
                Err(failed) => failed,
            };
        let immutable = match &mut failed {
            CallError::Refused { status, .. } => refusal(key, status),
            _ => false,
        };
        Err(ApplyError::Other(match failed.into_kube_error(&attempted, tries) {
            KubeError::Refused { reason, .. } if immutable => {
                KubeError::Immutable { object: Box::new(key.clone()), reason }
            }
            error => error,
        }))
    }

    /// Whether the server would accept a new object of this name. Nothing is stored.
    pub(in crate::target::kubernetes) async fn would_create(
        &self,
        key: &ObjectKey,
        body: &Value,
    ) -> Result<(), KubeError> {
        let Some((plural, _)) = self.served(key.into()).await? else {
            return Err(KubeError::NotServed { object: key.clone() });
        };
        let path = collection(&key.api_version, &plural, key.namespace.as_deref());
        let path = format!("{path}?fieldManager={MANAGER}&fieldValidation=Strict&dryRun=All");
        let attempted = format!("create {key}");
        // The server checks last whether the name is taken.
        match self.call(&attempted, Method::POST, &path, Some("application/json"), body).await {
            Err(error) if !error.is_code(409) => Err(error),
            _ => Ok(()),
        }
    }

    /// Creates an object and returns it. None when one already exists, which stays as it is.
    pub(in crate::target::kubernetes) async fn create(
        &self,
        key: &ObjectKey,
        body: &Value,
    ) -> Result<Option<Value>, KubeError> {
        let Some((plural, _)) = self.served(key.into()).await? else {
            return Err(KubeError::NotServed { object: key.clone() });
        };
        let path = collection(&key.api_version, &plural, key.namespace.as_deref());
        let path = format!("{path}?fieldManager={MANAGER}");
        let made = self.once(key, &format!("create {key}"), Method::POST, &path, body).await?;
        self.wrote(made.as_ref().and_then(|made| OwnWrite::of(key, made)));
        Ok(made)
    }

    /// Replaces the object with the `resourceVersion` in `body`, and returns the new one. None when it has
    /// changed since.
    pub(in crate::target::kubernetes) async fn replace(
        &self,
        key: &ObjectKey,
        body: &Value,
    ) -> Result<Option<Value>, KubeError> {
        let Some(path) = self.path(key).await? else {
            return Err(KubeError::NotServed { object: key.clone() });
        };
        let path = format!("{path}?fieldManager={MANAGER}");
        let put = self.once(key, &format!("replace {key}"), Method::PUT, &path, body).await?;
        self.wrote(put.as_ref().and_then(|put| OwnWrite::of(key, put)));
        Ok(put)
    }

    /// Makes a call that the server would refuse the second time. If its outcome is unknown, reading the
    /// object settles whether it has to be repeated.
    async fn once(
        &self,
        key: &ObjectKey,
        attempted: &str,
        method: Method,
        path: &str,
        body: &Value,
    ) -> Result<Option<Value>, KubeError> {
        let request = request(attempted, method, path, Some("application/json"), body)?;
        let mut answer = self.send(Repeatability::Once, request.clone()).await;
        if answer.as_ref().is_err_and(|(failed, _)| failed.may_be_done())
            // If the read fails as well, the first error is reported.
            && let Ok(there) = self.get(key).await
        {
            if let Some(done) = there.filter(|there| holds(there, body)) {
                return Ok(Some(done));
            }
            answer = self.send(Repeatability::Once, request).await;
            let conflicts = |(failed, _): &(CallError, u32)| failed.is_refusal(409);
            if answer.as_ref().is_err_and(conflicts) {
                // The conflict is with another writer, or with our first call, which was only late.
                return Ok(self.get(key).await?.filter(|there| holds(there, body)));
            }
        }
        match answer {
            Ok(answer) => checked_object(attempted, key, answer.value).map(Some),
            Err((failed, _)) if failed.is_refusal(409) => Ok(None),
            Err((failed, tries)) => Err(failed.into_kube_error(attempted, tries)),
        }
    }

    /// Requests the deletion of the object with this UID. Returns whether the server says that it is gone. An
    /// object that was gone before is no error.
    pub(in crate::target::kubernetes) async fn delete(
        &self,
        key: &ObjectKey,
        uid: &str,
    ) -> Result<bool, KubeError> {
        let Some(path) = self.path(key).await? else { return Ok(true) };
        let options = json!({"preconditions": {"uid": uid}, "propagationPolicy": "Background"});
        let attempted = format!("delete {key}");
        match found(self.call(&attempted, Method::DELETE, &path, Some("application/json"), &options).await) {
            // Another object may have the name by now. The caller has to read it.
            Err(error) if error.is_code(409) => Ok(false),
            Ok(answer) => {
                self.wrote(answer.is_some().then(|| OwnWrite::deleted(key, uid)));
                match answer {
                    None => Ok(true),
                    Some(answer) if answer["kind"] == "Status" && answer["status"] == "Success" => Ok(true),
                    // While finalizers run, the response is the object.
                    Some(object) => checked_object(&attempted, key, object).map(|_| false),
                }
            }
            Err(error) => Err(error),
        }
    }
}

pub(in crate::target::kubernetes) struct ApplyAnswer {
    pub(in crate::target::kubernetes) made: bool,
    pub(in crate::target::kubernetes) object: Value,
}

pub(in crate::target::kubernetes) enum ApplyError {
    /// Other managers own some of the fields. Empty when the conflict is with another object.
    Conflict(Vec<Contest>),
    Other(KubeError),
}

#[derive(Clone, Copy)]
pub(in crate::target::kubernetes) struct Mode {
    /// Take fields over from other managers.
    pub(in crate::target::kubernetes) force: bool,
    /// Store nothing.
    pub(in crate::target::kubernetes) dry: bool,
}

/// Whether a refusal means that an immutable field differs. For a Secret, the message is removed.
fn refusal(key: &ObjectKey, status: &mut Status) -> bool {
    let immutable = error::is_immutable(status);
    if key.kind == "Secret" {
        // The message could quote the Secret.
        status.message = "the server's message is left out, because it may contain secrets".to_owned();
    }
    immutable
}

/// How many conflicts of one response are read. The next response has the rest.
const MAX_CONFLICTS: usize = 200;

/// Longer than any field path of ours, and than a manager's name, which has at most 128 characters.
const LONGEST_FIELD: usize = 512;

fn conflicts(status: &Status) -> Vec<Contest> {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    let causes = causes.filter(|cause| cause.reason == "FieldManagerConflict");
    let causes = causes.filter(|cause| cause.field.len() <= LONGEST_FIELD).take(MAX_CONFLICTS);
    // Only the message has the manager's name: `conflict with "kubectl-edit" using v1`.
    let manager = |message: &str| {
        let name = message.split('"').nth(1).unwrap_or("an unknown program");
        one_line(name, LONGEST_FIELD).into_owned()
    };
    causes.map(|it| Contest { manager: manager(&it.message), field: it.field.clone() }).collect()
}

/// Whether an object has everything that was sent. Fields that the server added and the `resourceVersion`
/// don't matter.
fn holds(there: &Value, sent: &Value) -> bool {
    match (there, sent) {
        (Value::Object(there), Value::Object(sent)) => {
            let mut sent = sent.iter().filter(|(name, value)| *name != "resourceVersion" && !value.is_null());
            sent.all(|(name, value)| there.get(name).is_some_and(|there| holds(there, value)))
        }
        _ => there == sent,
    }
}
