//! What is known of clusters beyond their records: the status of all, why one is as it is, and how clients
//! connect.

use axum::http::StatusCode;

use super::{Answered, Call, written};
use crate::names::ResourceKey;
use crate::views::{clients, status, why};

/// Lists the status of all fleets and clusters that the caller may see.
pub(super) fn status(call: &Call) -> Answered {
    let sees = |key: &ResourceKey| call.caller.sees(&key.organization);
    let list = status::list(&call.made.round, call.audience(), sees);
    Ok(call.with_current_plan(written(StatusCode::OK, &list)))
}

pub(super) fn why(call: &Call) -> Answered {
    let (cluster, _) = call.found_key()?;
    let report = why::report(&call.made.round, cluster, call.audience(), &call.runtime);
    Ok(call.with_current_plan(written(StatusCode::OK, &report)))
}

pub(super) fn client_properties(call: &Call) -> Answered {
    let (cluster, _) = call.found_key()?;
    let listeners = clients::listeners(&call.made.round, &cluster);
    Ok(call.with_current_plan(written(StatusCode::OK, &listeners)))
}
