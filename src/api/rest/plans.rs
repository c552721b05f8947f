//! Plans: what would be done now, what somebody's tree would do in place of the one that there is, and approvals.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::http::StatusCode;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::json;

use super::{Answered, Call, forbidden, written};
use crate::api::problem::{FieldError, Problem, code};
use crate::names::{Digest, SpecPath};
use crate::plan::{FleetPlan, Plan};
use crate::problem::plain;
use crate::round::{Approved, Installation, Round};
use crate::spec::{self, Documents, Entry, Snapshot};
use crate::state::Access;

/// A tree of specs that is to be planned.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Proposed {
    files: BTreeMap<String, String>,
    #[serde(default)]
    revision: Option<String>,
}

/// Plans now.
pub(super) fn read(call: &Call) -> Answered {
    let made = call.runtime.block_on(call.service.desk.plan())?;
    Ok(written(StatusCode::OK, &call.visible(&made.round)))
}

/// Plans what is sent, and forgets it.
pub(super) fn propose(call: &Call) -> Answered {
    let mut organizations = call.made.round.checked.catalog.capacity.keys();
    if !call.caller.is_super() && !organizations.any(|it| call.caller.may(it, Access::Write)) {
        return Err(forbidden(call.caller.lacks_everywhere(&call.doing(), Access::Write)));
    }
    let proposed: Proposed = serde_json::from_value(call.json()?).map_err(|error| {
        Problem::invalid(
            format!("no tree can be read from the body: {}", plain(&error.to_string())),
            Vec::new(),
        )
    })?;
    let snapshot = snapshot(call, proposed)?;
    let documents = Arc::new(spec::read(&snapshot, Some(&call.made.documents)));
    call.planned(documents)
}

fn snapshot(call: &Call, Proposed { files, revision }: Proposed) -> Result<Snapshot, Problem> {
    let mut entries = BTreeMap::new();
    for (name, text) in files {
        let refused = |detail: String| {
            let pointer = Some(format!("/files/{}", name.replace('~', "~0").replace('/', "~1")));
            Problem::invalid(detail.clone(), vec![FieldError { pointer, detail, ..FieldError::default() }])
        };
        let path: SpecPath = name
            .parse()
            .map_err(|_| refused(format!("`{}` is no relative path inside a tree", plain(&name))))?;
        let bytes = STANDARD.decode(text).map_err(|_| refused(format!("`{}` is no base64", plain(&name))))?;
        entries.insert(path, Entry::File { digest: Digest::of(&bytes), bytes: bytes.into() });
    }
    let source = call.made.documents.source.clone();
    let revision = revision.unwrap_or_else(|| "proposed".to_owned());
    Ok(Snapshot { source, revision, commit: None, skipped: BTreeMap::new(), entries })
}

/// Approves what waits for that, where the caller is an administrator of the organization whose fleet it is on.
pub(super) fn approve(call: &Call) -> Answered {
    let id = call.parameter("id");
    let missing = || {
        Problem::conflict(
            &code::NOT_WAITING,
            format!("nothing waits for approval `{}`, or the caller may not see it", plain(id)),
        )
    };
    let fleets = &call.made.round.plan.fleets;
    let waits = |plan: &&FleetPlan| plan.guard.as_ref().is_some_and(|guard| guard.id == id);
    let fleet = fleets.iter().find(waits).map(|plan| &plan.fleet);
    let fleet = fleet.filter(|fleet| call.caller.sees(&fleet.organization)).ok_or_else(missing)?;
    call.may(&fleet.organization, call.route.needs)?;
    let by = call.caller.actor();
    let approved = call.runtime.block_on(call.service.desk.approve(id.to_owned(), by.clone()))?;
    let answer = match approved {
        Approved::Now { fleet, changes } => {
            json!({"id": id, "fleet": fleet, "changes": changes, "approved_by": by})
        }
        Approved::Before { by } => json!({"id": id, "fleet": null, "changes": null, "approved_by": by}),
        Approved::Unknown { .. } => return Err(missing()),
    };
    Ok(written(StatusCode::OK, &answer))
}

impl Call {
    /// Plans other specs than there are, with nothing that only this host has: no file, no variable, no
    /// sealed secret is opened for them, and nothing is connected to because of them.
    pub(super) fn planned(&self, documents: Arc<Documents>) -> Answered {
        let own = Installation::clone(&self.made.installation);
        let secrets = Arc::new(own.secrets.closed());
        let installation = Installation { proposed: true, secrets, ..own };
        let memory = self.service.desk.memory.copy();
        let round = installation.plan(&documents, Timestamp::now(), &self.runtime, Some(&memory))?;
        Ok(written(StatusCode::OK, &self.visible(&round)))
    }

    /// A plan, as far as the caller may see it.
    fn visible(&self, round: &Round) -> Plan {
        if self.caller.is_super() {
            return round.plan.clone();
        }
        let resources = round.checked.catalog.resources.keys();
        let resources = resources.filter(|key| self.caller.sees(&key.organization)).count();
        round.plan.only(|organization| self.caller.sees(organization), resources)
    }
}
