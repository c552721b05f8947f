//! Deleting a resource: its protection goes first, by a change of its own; then its name is typed.

use askama::Template;
use axum::http::{Method, StatusCode};
use serde_json::Value;

use super::review::following;
use super::{KindPages, dry_run, require, resource_list};
use crate::api::route;
use crate::http::problem::FieldError;
use crate::plan::{Outline, Plan};
use crate::problem::Severity;
use crate::ui::client::Refusal;
use crate::ui::view::{self, Frame, filters, shown};
use crate::ui::{Shown, Visit};

#[derive(Template)]
#[template(path = "delete.html")]
struct Delete {
    frame: Frame,
    pages: &'static KindPages,
    organization: String,
    name: String,
    is_protected: bool,
    etag: String,
    /// The plan of the deletion; `None` while the resource is protected.
    outline: Option<(Plan, Outline)>,
    error: Option<Refusal>,
}

pub async fn show(visit: &Visit) -> Shown {
    page(visit, None).await
}

async fn page(visit: &Visit, error: Option<Refusal>) -> Shown {
    let pages = KindPages::of_slug(visit.segment(0)).ok_or_else(Refusal::no_page)?;
    let (organization, name) = (visit.segment(1).to_owned(), visit.segment(2).to_owned());
    let path = pages.record_path(&organization, &name, "", "");
    let (record, etag) = visit.api.tagged(&path).await?;
    require(visit, pages.kind, route::Method::Delete, Some(&organization))?;
    let is_protected = record["deletion_protection"] == true;
    // That it can't be deleted now is what the page says.
    let status = error.as_ref().map_or(StatusCode::OK, |error| error.status);
    let mut error = error;
    let planned = if is_protected {
        Ok(Value::Null)
    } else {
        visit.api.send(Method::DELETE, &dry_run(&path, "true"), None).await
    };
    let outline = match planned {
        Ok(Value::Null) => None,
        Ok(plan) => Some(following(visit, plan).await?),
        Err(refusal) => {
            error = error.or(Some(refusal));
            None
        }
    };
    let frame = visit.frame(resource_list::section(pages));
    Ok(shown(status, &Delete { frame, pages, organization, name, is_protected, etag, outline, error }))
}

pub async fn carry_out(visit: &Visit) -> Shown {
    let pages = KindPages::of_slug(visit.segment(0)).ok_or_else(Refusal::no_page)?;
    let (organization, name) = (visit.segment(1), visit.segment(2));
    if visit.field("confirm") != name {
        let why = "the name that was typed is not the one of what would be deleted";
        let error = FieldError::at("/confirm", why, "type its name exactly");
        return page(visit, Some(Refusal::mistakes(vec![error]))).await;
    }
    if visit.field("etag").is_empty() {
        return Err(Refusal::no_draft());
    }
    if let Some(sign_in) = visit.signs_in_again() {
        return Ok(sign_in);
    }
    let path = pages.record_path(organization, name, "", "");
    match visit.api.send_if(Method::DELETE, &path, None, visit.field("etag")).await {
        // It stays until all of it is gone, unless nothing was made of it.
        Ok(_) if visit.api.get::<Value>(&path).await.is_ok() => {
            Ok(visit.go(&pages.page_path(organization, name)))
        }
        Ok(_) => Ok(visit.go(&format!("/{}", pages.slug))),
        Err(refusal) if refusal.status == StatusCode::UNAUTHORIZED => Err(refusal),
        Err(refusal) => page(visit, Some(refusal)).await,
    }
}
