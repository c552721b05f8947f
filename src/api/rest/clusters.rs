//! What is known of clusters beyond their records: the status of all, why one is as it is, and how clients
//! connect.

use axum::http::StatusCode;

use super::metrics::not_read;
use super::{Answered, Call, written};
use crate::catalog::Resource;
use crate::names::ResourceKey;
use crate::views::why::{self, WhySubject};
use crate::views::{clients, status};

/// Lists the status of all fleets and clusters that the caller may see.
pub(super) fn status(call: &Call) -> Answered {
    let sees = |key: &ResourceKey| call.caller.sees(&key.organization);
    let resources: Vec<&Resource> =
        call.pending.keys().filter_map(|key| call.resource_written(key)).collect();
    let is_brief = call.query.parsed("unwell", "`true` or `false`")?.unwrap_or_default();
    let list = status::list(&call.made.round, &resources, |key| call.standing(key), sees);
    let list = if is_brief { list.first_unwell() } else { list };
    Ok(call.with_current_plan(written(StatusCode::OK, &list)))
}

pub(super) fn why(call: &Call) -> Answered {
    let (cluster, _) = call.found_key()?;
    let (unplanned, resource) = (call.unplanned(&cluster), call.resource_written(&cluster));
    let subject = WhySubject { cluster, unplanned, written: resource };
    let report = why::report(&call.made.round, subject, call.audience(), &call.runtime);
    Ok(call.with_current_plan(written(StatusCode::OK, &report)))
}

pub(super) fn client_properties(call: &Call) -> Answered {
    let (cluster, _) = call.found_key()?;
    let user = call.query.parsed::<String>("user", "the identifier of a user")?;
    let listeners = clients::listeners(&call.made.round, &cluster, user.as_deref()).map_err(not_read)?;
    Ok(call.with_current_plan(written(StatusCode::OK, &listeners)))
}
