//! The page between a form and its effect: the file, its difference, the plan, and the call that does the same.

use askama::Template;
use axum::http::{Method, StatusCode};
use serde_json::{Map, Value};
use similar::{ChangeTag, TextDiff};

use super::create::curl;
use super::{KINDS, KindPages, dry_run, resource_list};
use crate::api::answer::ProposedEdit;
use crate::names::Kind;
use crate::plan::{Outline, Plan, outline};
use crate::problem::Severity;
use crate::ui::client::{Refusal, blocking};
use crate::ui::form::{self, Draft, Target, Typed};
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
    /// The address of the form, below `/ui`.
    form: String,
    button: &'static str,
}

/// A call of the API.
pub struct ApiCall {
    pub method: Method,
    pub path: String,
    pub body: Value,
    pub tag: String,
}

pub fn pages_of(kind: Kind) -> &'static KindPages {
    KINDS.iter().find(|pages| pages.kind == kind).unwrap_or(&KINDS[0])
}

/// The typed values, with the secrets of the draft that the form continues, and whether there is such a draft.
pub fn typed(visit: &Visit, kind: Kind) -> (Typed, bool) {
    let mut typed = visit.typed();
    let Some(draft) = visit.ui.drafts.find(&visit.session.form_token(), visit.field("draft")) else {
        return (typed, false);
    };
    if !visit.field("change").is_empty() {
        return (draft.typed.clone(), true);
    }
    for pointer in form::secrets(kind) {
        if typed.text(pointer).is_empty() {
            typed.set(pointer, draft.typed.text(pointer));
        }
    }
    (typed, true)
}

/// The call of the API that a form stands for.
///
/// # Errors
/// With what was typed and is no YAML, or if the record is gone.
pub async fn order(visit: &Visit, kind: Kind, target: &Target, typed: &Typed) -> Result<ApiCall, Refusal> {
    let pages = pages_of(kind);
    match target {
        Target::New => {
            let body = form::new_body(&form::fields(kind, true), typed).map_err(Refusal::mistakes)?;
            let path = pages.list_path(typed.text("/organization"));
            Ok(ApiCall { method: Method::POST, path, body, tag: String::new() })
        }
        Target::Known { organization, name, etag } => {
            if etag.is_empty() {
                return Err(Refusal::no_draft());
            }
            let path = pages.record_path(organization, name, "", "");
            let record: Value = visit.api.get(&path).await?;
            let body = form::patch(&form::fields(kind, false), typed, &record).map_err(Refusal::mistakes)?;
            if body.as_object().is_some_and(Map::is_empty) {
                return Err(Refusal::no_change());
            }
            Ok(ApiCall { method: Method::PATCH, path, body, tag: etag.clone() })
        }
    }
}

/// Shows what would happen, and keeps what was typed for the click that carries it out.
pub async fn show(visit: &Visit, kind: Kind, target: Target, typed: &Typed) -> Shown {
    let call = order(visit, kind, &target, typed).await?;
    let ApiCall { method, path, body, tag } = &call;
    let send = async |wanted: &str| {
        let path = dry_run(path, wanted);
        visit.api.send_if(method.clone(), &path, Some(body), tag).await
    };
    let (edit, plan) = (send("file").await?, send("true").await?);
    let curl = curl(visit, kind, &call);
    let frame = visit.frame(resource_list::section(pages_of(kind)));
    let (title, form, button) = match &target {
        Target::New => {
            let form = format!("/new/{}", pages_of(kind).slug);
            (format!("New {}: review", kind.noun()), form, "Deploy")
        }
        Target::Known { organization, name, .. } => {
            let form = format!("{}/edit", pages_of(kind).page_path(organization, name));
            (format!("Change {name}: review"), form, "Save")
        }
    };
    let draft = visit.keep(kind, target, typed.clone()).to_string();
    let page = blocking(move || -> Result<Review, serde_json::Error> {
        let (edit, plan): (ProposedEdit, Plan) =
            (serde_json::from_value(edit)?, serde_json::from_value(plan)?);
        let lines =
            lines(edit.before.as_deref().unwrap_or_default(), edit.after.as_deref().unwrap_or_default());
        let outline = outline(&plan, "TREE", true);
        Ok(Review { frame, title, edit, lines, plan, outline, curl, draft, form, button })
    });
    let page = page.await?.map_err(|error| {
        tracing::error!(%error, "the answer of the API has another form than the page expects");
        Refusal::from(crate::http::problem::ProblemDocument::internal())
    })?;
    Ok(shown(StatusCode::OK, &page))
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

/// The draft that a click carries out; refused if it is gone.
pub fn draft(visit: &Visit) -> Result<Draft, Refusal> {
    let found = visit.ui.drafts.find(&visit.session.form_token(), visit.field("draft"));
    found.ok_or_else(Refusal::no_draft)
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
