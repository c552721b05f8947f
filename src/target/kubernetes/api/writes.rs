//! The calls that change something.

use http::Method;
use kube::core::Status;
use serde_json::{Value, json};

use super::super::answer::{Answer, Failed};
use super::super::error::{self, KubeError};
use super::super::retry::Nature;
use super::super::watch::Written;
use super::{Api, MANAGER, collection, found, of, request};
use crate::names::{ObjectKey, one_line};
use crate::plan::Contest;

impl Api {
    /// Makes or changes an object, by server-side apply.
    pub(in crate::target::kubernetes) async fn apply(
        &self,
        key: &ObjectKey,
        body: &Value,
        Mode { force, dry }: Mode,
    ) -> Result<Applied, ApplyError> {
        let Some(path) = self.path(key).await.map_err(ApplyError::Other)? else {
            return Err(ApplyError::Other(KubeError::NotServed { object: key.clone() }));
        };
        let dry_run = if dry { "&dryRun=All" } else { "" };
        // What the server doesn't know is refused, and not left out.
        let path = format!("{path}?fieldManager={MANAGER}&fieldValidation=Strict&force={force}{dry_run}");
        let attempted = format!("apply {key}");
        let request = request(&attempted, Method::PATCH, &path, Some("application/apply-patch+yaml"), body);
        let (mut failed, tries) =
            match self.send(Nature::Repeatable, request.map_err(ApplyError::Other)?).await {
                Ok(Answer { made, value }) => {
                    let object = of(&attempted, key, value).map_err(ApplyError::Other)?;
                    self.wrote(Written::of(key, &object).filter(|_| !dry));
                    return Ok(Applied { made, object });
                }
                Err((Failed::Refused { status, .. }, _)) if status.code == 409 => {
                    return Err(ApplyError::Conflict(conflicts(&status)));
                }
                Err(failed) => failed,
            };
        let immutable = match &mut failed {
            Failed::Refused { status, .. } => refusal(key, status),
            _ => false,
        };
        Err(ApplyError::Other(match failed.told(&attempted, tries) {
            KubeError::Refused { reason, .. } if immutable => {
                KubeError::Immutable { object: Box::new(key.clone()), reason }
            }
            error => error,
        }))
    }

    /// Whether the server would take an object of this name where there was none. Nothing is stored.
    pub(in crate::target::kubernetes) async fn would_create(
        &self,
        key: &ObjectKey,
        body: &Value,
    ) -> Result<(), KubeError> {
        let Some((plural, _)) = self.served(&key.api_version, &key.kind).await? else {
            return Err(KubeError::NotServed { object: key.clone() });
        };
        let path = collection(&key.api_version, &plural, key.namespace.as_deref());
        let path = format!("{path}?fieldManager={MANAGER}&fieldValidation=Strict&dryRun=All");
        let attempted = format!("make {key}");
        // The one that is there is the last thing to be in the way.
        match self.call(&attempted, Method::POST, &path, Some("application/json"), body).await {
            Err(error) if !error.is_code(409) => Err(error),
            _ => Ok(()),
        }
    }

    /// Makes an object, and gives it as it is then; none where one was there before, which stays.
    pub(in crate::target::kubernetes) async fn create(
        &self,
        key: &ObjectKey,
        body: &Value,
    ) -> Result<Option<Value>, KubeError> {
        let Some((plural, _)) = self.served(&key.api_version, &key.kind).await? else {
            return Err(KubeError::NotServed { object: key.clone() });
        };
        let path = collection(&key.api_version, &plural, key.namespace.as_deref());
        let path = format!("{path}?fieldManager={MANAGER}");
        let made = self.once(key, &format!("create {key}"), Method::POST, &path, body).await?;
        self.wrote(made.as_ref().and_then(|made| Written::of(key, made)));
        Ok(made)
    }

    /// Puts an object in the place of the one whose `resourceVersion` it has, and gives it as it is then; none where another
    /// one is there by now.
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
        self.wrote(put.as_ref().and_then(|put| Written::of(key, put)));
        Ok(put)
    }

    /// Makes a call that would be refused the second time. Where it isn't known whether it was done, what is there says so,
    /// before it is made again.
    async fn once(
        &self,
        key: &ObjectKey,
        attempted: &str,
        method: Method,
        path: &str,
        body: &Value,
    ) -> Result<Option<Value>, KubeError> {
        let request = request(attempted, method, path, Some("application/json"), body)?;
        let mut answer = self.send(Nature::Once, request.clone()).await;
        if answer.as_ref().is_err_and(|(failed, _)| failed.may_be_done())
            // Where that can't be seen, the first failure is what there is to tell.
            && let Ok(there) = self.get(key).await
        {
            if let Some(done) = there.filter(|there| holds(there, body)) {
                return Ok(Some(done));
            }
            answer = self.send(Nature::Once, request).await;
            let conflicts = |(failed, _): &(Failed, u32)| failed.is_refusal(409);
            if answer.as_ref().is_err_and(conflicts) {
                // By another, or by the first call, which was only late.
                return Ok(self.get(key).await?.filter(|there| holds(there, body)));
            }
        }
        match answer {
            Ok(answer) => of(attempted, key, answer.value).map(Some),
            Err((failed, _)) if failed.is_refusal(409) => Ok(None),
            Err((failed, tries)) => Err(failed.told(attempted, tries)),
        }
    }

    /// Asks for the deletion of the very object with this uid, and says whether it is gone by the server's answer. One that
    /// is gone already is no error.
    pub(in crate::target::kubernetes) async fn delete(
        &self,
        key: &ObjectKey,
        uid: &str,
    ) -> Result<bool, KubeError> {
        let Some(path) = self.path(key).await? else { return Ok(true) };
        let options = json!({"preconditions": {"uid": uid}, "propagationPolicy": "Background"});
        let attempted = format!("delete {key}");
        match found(self.call(&attempted, Method::DELETE, &path, Some("application/json"), &options).await) {
            // Another object may be there by now, which only a look at it tells.
            Err(error) if error.is_code(409) => Ok(false),
            Ok(answer) => {
                self.wrote(answer.is_some().then(|| Written::deleted(key, uid)));
                match answer {
                    None => Ok(true),
                    Some(answer) if answer["kind"] == "Status" && answer["status"] == "Success" => Ok(true),
                    // What is still there for a while is shown as it is.
                    Some(object) => of(&attempted, key, object).map(|_| false),
                }
            }
            Err(error) => Err(error),
        }
    }
}

/// An object that was applied.
pub(in crate::target::kubernetes) struct Applied {
    /// Whether nothing was there before.
    pub(in crate::target::kubernetes) made: bool,
    /// The object as it is now.
    pub(in crate::target::kubernetes) object: Value,
}

/// Why an object was not applied.
pub(in crate::target::kubernetes) enum ApplyError {
    /// Others manage some of the fields, each with its manager. None are told where another object is there.
    Conflict(Vec<Contest>),
    /// Anything else.
    Other(KubeError),
}

/// How an object is applied.
#[derive(Clone, Copy)]
pub(in crate::target::kubernetes) struct Mode {
    /// Others lose the fields that they manage.
    pub(in crate::target::kubernetes) force: bool,
    /// Nothing is stored.
    pub(in crate::target::kubernetes) dry: bool,
}

/// Whether a refusal means that a field never changes. The words about a Secret are taken out.
fn refusal(key: &ObjectKey, status: &mut Status) -> bool {
    let immutable = error::is_immutable(status);
    if key.kind == "Secret" {
        // Its words could quote what is in the Secret.
        status.message = "its words are left out, since they may hold secrets".to_owned();
    }
    immutable
}

/// How many conflicts are read of one answer. What else there is, the next answer tells.
const MAX_CONFLICTS: usize = 200;

/// The longest path of a field of ours, and far longer than the name of a manager, which has at most 128 characters.
const LONGEST_FIELD: usize = 512;

fn conflicts(status: &Status) -> Vec<Contest> {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    let causes = causes.filter(|cause| cause.reason == "FieldManagerConflict");
    let causes = causes.filter(|cause| cause.field.len() <= LONGEST_FIELD).take(MAX_CONFLICTS);
    // The manager's name stands only in the text: `conflict with "kubectl-edit" using v1`.
    let manager = |message: &str| {
        let name = message.split('"').nth(1).unwrap_or("somebody else");
        one_line(name, LONGEST_FIELD).into_owned()
    };
    causes.map(|it| Contest { manager: manager(&it.message), field: it.field.clone() }).collect()
}

/// Whether an object is as it was sent. What the server added, and which version of it was to be replaced, doesn't matter.
fn holds(there: &Value, sent: &Value) -> bool {
    match (there, sent) {
        (Value::Object(there), Value::Object(sent)) => {
            let mut sent = sent.iter().filter(|(name, value)| *name != "resourceVersion" && !value.is_null());
            sent.all(|(name, value)| there.get(name).is_some_and(|there| holds(there, value)))
        }
        _ => there == sent,
    }
}
