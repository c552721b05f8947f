//! This installation, and the specs that it carries out.

use axum::http::StatusCode;

use super::{Answered, Call, written};
use crate::api::answer::About;

pub(super) fn read(call: &Call) -> Answered {
    let (plan, installation) = (call.visible(&call.made.round), &call.made.installation);
    let about = About {
        version: installation.software.clone(),
        installation: call.made.round.checked.recorded.installation,
        mode: installation.config.policy.mode,
        plan: plan.id.clone(),
        planned_at: plan.created_at,
        revision: plan.inputs.revision.clone(),
        commit: plan.inputs.commit.clone(),
    };
    Ok(call.with_current_plan(written(StatusCode::OK, &about)))
}
