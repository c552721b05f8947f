//! Applies one object, really or only to see what would come of it.
//!
//! It is done unforced at first. What people changed by hand is taken back; what another controller manages is left as it
//! is, and the rest of the object is applied without it. A field that only we gave up stays as long as somebody has it.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::KubeError;
use super::api::{self, Api, ApplyError, Mode};
use super::fields::{self, APPLIED};
use crate::names::{Digest, ObjectKey};
use crate::plan::{Contest, take_out};

/// How often an object is sent again without what others are found to manage.
const ROUNDS: usize = 4;

/// What came of applying an object.
pub(super) struct Applied {
    /// The object as it is now.
    pub(super) object: Value,
    /// What people had changed.
    pub(super) overwritten: Vec<Contest>,
    /// What other controllers manage, which is as they have it.
    pub(super) left: Vec<Contest>,
}

/// The object as it is sent: with the digest of its manifest and, where one was planned for, for that very object only.
pub(super) fn body(mut filled: Value, applied: &Digest, planned: Option<&str>) -> Value {
    // Where it isn't as an object has to be, the server says so.
    if let Some(Value::Object(metadata)) = filled.get_mut("metadata") {
        if let Value::Object(annotations) = metadata.entry("annotations").or_insert_with(|| json!({})) {
            annotations.insert(APPLIED.to_owned(), applied.as_str().into());
        }
        metadata.extend(planned.map(|uid| ("uid".to_owned(), uid.into())));
    }
    filled
}

/// Applies an object as far as no other controller has it.
pub(super) async fn apply(
    api: &Api,
    key: &ObjectKey,
    mut body: Value,
    dry: bool,
) -> Result<Applied, KubeError> {
    let (mut overwritten, mut left) = (BTreeSet::new(), BTreeSet::new());
    for _ in 0..ROUNDS {
        // Where only people's tools are in the way, the server is told to pass over them.
        let mode = Mode { force: !overwritten.is_empty(), dry };
        let conflicts = match api.apply(key, &body, mode).await {
            Ok(api::Applied { object, .. }) => {
                let (overwritten, left) = (Vec::from_iter(overwritten), Vec::from_iter(left));
                tell(key, &overwritten, &left, dry);
                return Ok(Applied { object, overwritten, left });
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
            // One field can be several controllers', and what is around it may be gone already.
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

/// How many fields of one object are logged each by itself.
const TOLD: usize = 20;

fn tell(key: &ObjectKey, overwritten: &[Contest], left: &[Contest], dry: bool) {
    for Contest { manager, field } in overwritten.iter().filter(|_| !dry).take(TOLD) {
        tracing::info!(object = %key, manager, field, "took a field back");
    }
    for Contest { manager, field } in left.iter().filter(|_| !dry).take(TOLD) {
        tracing::info!(object = %key, manager, field, "left a field to its manager");
    }
    let untold = overwritten.len().saturating_sub(TOLD) + left.len().saturating_sub(TOLD);
    if untold > 0 && !dry {
        tracing::info!(object = %key, fields = untold, "took back, or left, more fields");
    }
}
