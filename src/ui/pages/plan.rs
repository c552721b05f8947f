//! The plan, with its differences, and approvals of what was read.

use askama::Template;
use axum::http::{Method, StatusCode};

use crate::plan::{Outline, Plan, outline};
use crate::problem::Severity;
use crate::ui::client::encoded;
use crate::ui::view::{self, Frame, filters, shown};
use crate::ui::{Shown, Visit};

#[derive(Template)]
#[template(path = "plan.html")]
struct PlanPage {
    frame: Frame,
    plan: Plan,
    outline: Outline,
    /// Whether something was approved just now.
    approved: bool,
}

pub async fn show(visit: &Visit) -> Shown {
    let plan: Plan = visit.api.get("/v1/plan").await?;
    let outline = outline(&plan, "TREE");
    let approved = visit.query.iter().any(|(name, _)| name == "approved");
    Ok(shown(StatusCode::OK, &PlanPage { frame: visit.frame("/plan"), plan, outline, approved }))
}

/// Approves the steps of an approval id. It is bound to what the plan said, so what changed since is refused.
pub async fn approve(visit: &Visit) -> Shown {
    let path = format!("/v1/plans/{}/approve", encoded(visit.field("id")));
    visit.api.send(Method::POST, &path, None).await?;
    Ok(visit.go("/plan?approved"))
}
