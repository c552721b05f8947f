//! The plan, with its differences, and approvals of what was read.

use askama::Template;
use axum::http::{Method, StatusCode};

use crate::api::answer::CallerDescription;
use crate::http::query::encoded;
use crate::plan::{Outline, OutlineSection, Plan, Verb, outline};
use crate::problem::Severity;
use crate::state::Access;
use crate::ui::client::blocking;
use crate::ui::view::{self, Frame, filters, shown};
use crate::ui::{Shown, Visit};

#[derive(Template)]
#[template(path = "plan.html")]
struct PlanPage {
    frame: Frame,
    plan: Plan,
    outline: Outline,
    me: CallerDescription,
    /// Whether something was approved just now.
    approved: bool,
    /// Whether an approval was for another plan than this one.
    other: bool,
}

/// What one approval allows.
struct Approval {
    id: String,
    /// `delete cluster sandbox`.
    changes: Vec<String>,
    deletes: bool,
}

impl PlanPage {
    /// The approvals that a part of the plan waits for. One id may stand for several changes.
    fn approvals(&self, section: &OutlineSection) -> Vec<Approval> {
        let mut approvals: Vec<Approval> = Vec::new();
        for item in &section.items {
            let Some(id) = &item.approval else { continue };
            let action = item.action.trim_start_matches("waiting to ");
            let change = format!("{action} {} {}", item.noun, item.name);
            let deletes = matches!(item.verb, Verb::Delete | Verb::Recreate);
            match approvals.iter_mut().find(|known| known.id == *id) {
                Some(known) => {
                    known.changes.push(change);
                    known.deletes |= deletes;
                }
                None => approvals.push(Approval { id: id.clone(), changes: vec![change], deletes }),
            }
        }
        approvals
    }

    /// Whether the caller may approve what waits in a part of the plan.
    fn may_approve(&self, section: &OutlineSection) -> bool {
        self.me.may(section.name.split('/').next().unwrap_or_default(), Access::Admin)
    }
}

pub async fn show(visit: &Visit) -> Shown {
    let plan: Plan = visit.api.get("/v1/plan").await?;
    let me = visit.me.clone();
    let has = |word: &str| visit.query.iter().any(|(name, _)| name == word);
    let (approved, other) = (has("approved"), has("other"));
    let frame = visit.frame("/plan");
    blocking(move || {
        let outline = outline(&plan, "TREE", true);
        shown(StatusCode::OK, &PlanPage { frame, plan, outline, me, approved, other })
    })
    .await
}

/// Approves the steps of an approval id. It is bound to what the plan said, so what changed since is refused.
pub async fn approve(visit: &Visit) -> Shown {
    if let Some(sign_in) = visit.signs_in_again() {
        return Ok(sign_in);
    }
    let path = format!("/v1/plans/{}/approve", encoded(visit.field("id")));
    match visit.api.send(Method::POST, &path, None).await {
        Err(refusal) if refusal.status == StatusCode::CONFLICT => Ok(visit.go("/plan?other")),
        answer => answer.map(|_| visit.go("/plan?approved")),
    }
}
