//! The page between a form and its effect: the file, its difference, the plan, and the call that does the same.

use std::sync::Arc;

use askama::Template;
use axum::http::{Method, StatusCode};
use serde_json::{Map, Value};
use similar::{ChangeTag, TextDiff};

use super::create::curl;
use super::{KindPages, dry_run};
use crate::api::answer::{FleetCheck, ProposedEdit};
use crate::http::problem::{FieldError, ProblemDocument};
use crate::names::Kind;
use crate::plan::{Outline, Plan, outline};
use crate::problem::Severity;
use crate::state::Access;
use crate::ui::client::{Refusal, blocking};
use crate::ui::form::{self, Draft, FormBody, Target, Typed};
use crate::ui::view::{self, Frame, filters, shown};
use crate::ui::{Shown, Visit};

#[derive(Template)]
#[template(path = "review.html")]
struct Review {
    frame: Frame,
    title: String,
    edit: ProposedEdit,
    /// The lines of the document with the class of each.
    lines: Vec<(&'static str, String)>,
    plan: Plan,
    outline: Outline,
    curl: String,
    draft: String,
    /// Whether the typed kubeconfig may be tried.
    may_check: bool,
    check: Option<Arc<FleetCheck>>,
    button: &'static str,
}

impl Review {
    /// Whether the typed kubeconfig was tried in vain.
    fn is_unreached(&self) -> bool {
        self.check.as_ref().is_some_and(|check| !check.reached)
    }
}

/// A call of the API.
pub struct ApiCall {
    pub method: Method,
    pub path: String,
    pub body: FormBody,
    pub tag: String,
    /// Input that can't be sent.
    pub mistakes: Vec<FieldError>,
}

/// The call of the API that a form stands for.
///
/// # Errors
/// If nothing would change, or the record is gone.
pub async fn order(visit: &Visit, kind: Kind, target: &Target, typed: &Typed) -> Result<ApiCall, Refusal> {
    let pages = KindPages::of(kind);
    match target {
        Target::New => {
            let (body, mistakes) = form::new_body(&form::fields(kind, true), typed);
            let path = pages.list_path(typed.text("/organization"));
            Ok(ApiCall { method: Method::POST, path, body, tag: String::new(), mistakes })
        }
        Target::Known { organization, name, etag } => {
            if etag.is_empty() {
                return Err(Refusal::no_draft());
            }
            let path = pages.record_path(organization, name, "", "");
            let record: Value = visit.api.get(&path).await?;
            let (body, mistakes) = form::patch(&form::fields(kind, false), typed, &record);
            if mistakes.is_empty() && body.as_object().is_some_and(Map::is_empty) {
                return Err(Refusal::no_change());
            }
            Ok(ApiCall { method: Method::PATCH, path, body, tag: etag.clone(), mistakes })
        }
    }
}

/// Shows what would happen if a draft was carried out.
pub async fn show(visit: &Visit, kind: Kind, Draft { id, target, typed, check, .. }: &Draft) -> Shown {
    let call = order(visit, kind, target, typed).await?;
    let ApiCall { method, path, body, tag, mistakes } = &call;
    let send = async |wanted: &str| {
        let path = dry_run(path, wanted);
        visit.api.send_if(method.clone(), &path, Some(body), tag).await
    };
    let edit = Refusal::with(mistakes.clone(), send("file").await)?;
    let plan = send("true").await?;
    let curl = curl(visit, kind, &call);
    let frame = visit.frame(KindPages::of(kind).slug);
    let (title, button) = match target {
        Target::New => (format!("New {}: review", kind.noun()), "Deploy"),
        Target::Known { name, .. } => (format!("Change {name}: review"), "Save"),
    };
    let organization = match target {
        Target::New => typed.text("/organization"),
        Target::Known { organization, .. } => organization,
    };
    let may_check = kind == Kind::Fleet
        && !typed.text("/advanced_config/kubeconfig").is_empty()
        && visit.me.may(organization, Access::Admin);
    let (draft, check) = (id.to_string(), check.clone());
    let (plan, outline) = following(visit, plan).await?;
    let edit: ProposedEdit = serde_json::from_value(edit).map_err(unexpected)?;
    let page = blocking(move || {
        let lines =
            lines(edit.before.as_deref().unwrap_or_default(), edit.after.as_deref().unwrap_or_default());
        Review { frame, title, edit, lines, plan, outline, curl, draft, may_check, check, button }
    });
    let page = page.await?;
    Ok(shown(StatusCode::OK, &page))
}

/// The effect of a change: the plan with it, without what is planned or waits anyway.
pub async fn following(visit: &Visit, proposed: Value) -> Result<(Plan, Outline), Refusal> {
    let now: Plan = visit.api.get("/v1/plan").await?;
    let planned = blocking(move || {
        let mut plan: Plan = serde_json::from_value(proposed)?;
        plan.problems.retain(|problem| !now.problems.contains(problem));
        let following = outline(&plan, "TREE", true).beside(&outline(&now, "TREE", true));
        Ok((plan, following))
    });
    planned.await?.map_err(unexpected)
}

pub fn unexpected(error: serde_json::Error) -> Refusal {
    tracing::error!(%error, "the answer of the API has another form than the page expects");
    ProblemDocument::internal().into()
}

/// The lines of both texts, each with its class.
fn lines(before: &str, after: &str) -> Vec<(&'static str, String)> {
    let difference = TextDiff::from_lines(before, after);
    let line = |change: similar::Change<&str>| {
        let (class, mark) = match change.tag() {
            ChangeTag::Equal => ("same", ' '),
            ChangeTag::Delete => ("removed", '-'),
            ChangeTag::Insert => ("added", '+'),
        };
        (class, format!("{mark} {}", change.value().trim_end_matches('\n')))
    };
    difference.iter_all_changes().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_marked_as_they_change() {
        let found = lines("a: 1\nb: 2\n", "a: 1\nb: 3\n");
        let found: Vec<_> = found.iter().map(|(class, line)| (*class, line.as_str())).collect();
        assert_eq!(found, [("same", "  a: 1"), ("removed", "- b: 2"), ("added", "+ b: 3")]);
    }
}
