//! The form of a resource that exists.

use axum::http::Method;
use axum::response::Response;
use serde_json::json;

use super::create::{FormPage, offer, sections};
use super::resource::Head;
use super::{dry_run, require};
use crate::api::answer::PlanChangeList;
use crate::api::route;
use crate::catalog::immutable_pointers;
use crate::http::problem::FieldError;
use crate::problem::{Problem, Severity};
use crate::spec::describe::InputKind;
use crate::spec::identity_fields;
use crate::ui::client::Refusal;
use crate::ui::form::{self, Draft, FormField, Typed, attach, text_of};
use crate::ui::{Shown, Visit};

pub async fn show(visit: &Visit) -> Shown {
    let head = Head::of(visit, "")?;
    // A file that can't be edited is told before anything is typed.
    let path = dry_run(&head.api_path(""), "file");
    let refused = visit.api.send(Method::PATCH, &path, Some(&json!({}))).await.err();
    let broken = refused.filter(|refusal| refusal.errors.iter().any(|error| error.file.is_some()));
    form_page(visit, &head, None, broken).await
}

/// A refusal because of files, with the mistakes in them.
async fn located(visit: &Visit, refusal: Refusal) -> Result<Refusal, Refusal> {
    let plan: PlanChangeList = visit.api.get("/v1/plan/changes").await?;
    let in_file = |problem: &Problem, file: &str| {
        let is_there = problem.location.as_ref().is_some_and(|at| at.path.as_str() == file);
        is_there && problem.severity == Severity::Error
    };
    let errors = refusal.errors.into_iter().flat_map(|error| {
        let file = error.file.as_deref().unwrap_or_default();
        let mistakes = plan.problems.iter().filter(|problem| in_file(problem, file));
        let mistakes: Vec<FieldError> = mistakes
            .map(|problem| FieldError {
                detail: problem.message.clone(),
                hint: problem.hint.clone(),
                line: problem.location.as_ref().map(|at| at.line),
                ..error.clone()
            })
            .collect();
        if mistakes.is_empty() { vec![error] } else { mistakes }
    });
    let errors = errors.collect();
    Ok(Refusal { errors, ..refusal })
}

/// The form with the values of the record, or with what was typed.
pub async fn form_page(
    visit: &Visit,
    head: &Head,
    draft: Option<&Draft>,
    error: Option<Refusal>,
) -> Result<Response, Refusal> {
    let Head { pages, organization, name, .. } = head;
    let (record, etag) = visit.api.tagged(&head.api_path("")).await?;
    require(visit, pages.kind, route::Method::Patch, Some(organization))?;
    let mut error = match error {
        Some(error) if error.errors.iter().any(|error| error.file.is_some()) => {
            Some(located(visit, error).await?)
        }
        error => error,
    };
    let mut fields = form::fields(pages.kind, false);
    if let Some(error) = &mut error {
        attach(&mut fields, error, 0);
    }
    let mut shown_values = Typed::default();
    shown_values.set("/organization", organization);
    offer(visit, pages.kind, &mut fields, &shown_values).await?;
    for field in &mut fields {
        let is_identity = identity_fields(pages.kind).contains(&field.pointer.trim_start_matches('/'));
        field.is_fixed = is_identity || immutable_pointers(pages.kind).contains(&field.pointer.as_str());
        match field.input {
            InputKind::Secret => {
                field.is_kept = record.pointer(&field.pointer).is_some_and(|value| !value.is_null());
            }
            _ => {
                field.value = text_of(record.pointer(&field.pointer));
                field.shown = Some(field.value.clone());
            }
        }
    }
    let mut hidden = vec![("etag".to_owned(), etag)];
    if let Some(Draft { id, typed, .. }) = draft {
        // Somebody else may have changed the other fields since: they are shown as they are now.
        let is_own = |field: &&mut FormField| {
            typed.has(&field.pointer) && typed.is_changed(&field.pointer).unwrap_or(true)
        };
        for field in fields.iter_mut().filter(is_own) {
            field.fill(typed.text(&field.pointer));
        }
        hidden.push(("draft".to_owned(), id.to_string()));
    }
    let page = FormPage {
        title: format!("Change {name}"),
        action: format!("{}/edit", head.path),
        hidden,
        file_page: format!("{}/file", head.path),
        error,
        ..FormPage::of(visit, pages, sections(pages.kind, fields))
    };
    Ok(page.shown())
}
