//! Applies one object, for real or as a dry run.
//!
//! The first try doesn't force. Fields that people changed by hand are then taken back. Fields of other
//! controllers are left out, and the rest of the object is applied. A field that we gave up stays while
//! another manager has it.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::KubeError;
use super::api::{self, Api, ApplyError, Mode};
use super::fields::{self, APPLIED};
use crate::names::{Digest, ObjectKey};
use crate::plan::{Contest, take_out};

/// The most tries to apply an object. Each leaves out more fields of others.
const ROUNDS: usize = 4;

pub(super) struct ApplyOutcome {
    pub(super) object: Value,
    pub(super) overwritten: Vec<Contest>,
    pub(super) left: Vec<Contest>,
}

/// The body of an apply, with the digest annotation. With a planned UID, it applies to that object only.
pub(super) fn body(mut filled: Value, applied: &Digest, planned: Option<&str>) -> Value {
    // The server reports malformed metadata.
    if let Some(Value::Object(metadata)) = filled.get_mut("metadata") {
        if let Value::Object(annotations) = metadata.entry("annotations").or_insert_with(|| json!({})) {
            annotations.insert(APPLIED.to_owned(), applied.as_str().into());
        }
        metadata.extend(planned.map(|uid| ("uid".to_owned(), uid.into())));
    }
    filled
}

pub(super) async fn apply(
    api: &Api,
    key: &ObjectKey,
    mut body: Value,
    dry: bool,
) -> Result<ApplyOutcome, KubeError> {
    let (mut overwritten, mut left) = (BTreeSet::new(), BTreeSet::new());
    for _ in 0..ROUNDS {
        // Every conflicting field of a controller was left out by now, so force takes fields only from
        // people's tools.
        let mode = Mode { force: !overwritten.is_empty(), dry };
        let conflicts = match api.apply(key, &body, mode).await {
            Ok(api::ApplyAnswer { object, .. }) => {
                let (overwritten, left) = (Vec::from_iter(overwritten), Vec::from_iter(left));
                tell(key, &overwritten, &left, dry);
                return Ok(ApplyOutcome { object, overwritten, left });
            }
            Err(ApplyError::Other(error)) => return Err(error),
            Err(ApplyError::Conflict(conflicts)) => conflicts,
        };
        let (people, controllers): (Vec<_>, Vec<_>) =
            conflicts.into_iter().partition(|contest| fields::is_people(&contest.manager));
        if people.is_empty() && controllers.is_empty() {
            break;
        }
        for contest in controllers {
            // Several controllers can own one field, and a field around it may have been left out already.
            let gone = left.iter().any(|other: &Contest| contest.field.starts_with(&other.field));
            if !take_out(&mut body, &contest.field) && !gone {
                let managers = format!("{} manages `{}`", contest.manager, contest.field);
                return Err(KubeError::Managed { object: Box::new(key.clone()), managers });
            }
            left.insert(contest);
        }
        overwritten.extend(people);
    }
    Err(KubeError::Changed { attempted: "apply", object: key.clone() })
}

/// The number of fields of one object that are logged individually.
const TOLD: usize = 20;

fn tell(key: &ObjectKey, overwritten: &[Contest], left: &[Contest], dry: bool) {
    for Contest { manager, field } in overwritten.iter().filter(|_| !dry).take(TOLD) {
        tracing::info!(object = %key, manager, field, "streamfleet took `{field}` of {key} back from {manager}");
    }
    for Contest { manager, field } in left.iter().filter(|_| !dry).take(TOLD) {
        tracing::info!(object = %key, manager, field, "streamfleet leaves `{field}` of {key} to {manager}");
    }
    let untold = overwritten.len().saturating_sub(TOLD) + left.len().saturating_sub(TOLD);
    if untold > 0 && !dry {
        tracing::info!(object = %key, fields = untold, "streamfleet took back or left {untold} more fields of {key}");
    }
}
