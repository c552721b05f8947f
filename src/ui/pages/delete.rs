//! Deleting a resource: its protection goes first, by a change of its own; then its name is typed.

use askama::Template;
use axum::http::{Method, StatusCode};
use serde_json::{Value, json};

use super::resource::Head;
use super::review::following;
use super::{dry_run, require};
use crate::api::route;
use crate::http::problem::FieldError;
use crate::names::Digest;
use crate::plan::{Outline, OutlineItem, Plan};
use crate::problem::Severity;
use crate::ui::client::Refusal;
use crate::ui::view::{self, Frame, filters, shown};
use crate::ui::{Shown, Visit};

#[derive(Template)]
#[template(path = "delete.html")]
struct Delete {
    frame: Frame,
    head: Head,
    is_protected: bool,
    etag: String,
    /// The digest of what the page says that the deletion changes.
    plan_digest: String,
    /// The plan of the deletion; `None` while the resource is protected.
    outline: Option<(Plan, Outline)>,
    error: Option<Refusal>,
}

pub async fn show(visit: &Visit) -> Shown {
    page(visit, None).await
}

async fn page(visit: &Visit, error: Option<Refusal>) -> Shown {
    let head = Head::of(visit, "")?;
    let path = head.api_path("");
    let (record, etag) = visit.api.tagged(&path).await?;
    require(visit, head.pages.kind, route::Method::Delete, Some(&head.organization))?;
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
    let plan_digest = outline.as_ref().map(|(_, outline)| digest(outline)).unwrap_or_default();
    let frame = visit.frame(head.pages.slug);
    let page = Delete { frame, head, is_protected, etag, plan_digest, outline, error };
    Ok(shown(status, &page))
}

/// The digest of the changes of a plan. Why they wait isn't part of it: that names times, which pass.
fn digest(outline: &Outline) -> String {
    let items = outline.sections.iter().flat_map(|section| &section.items);
    let told = |item: &OutlineItem| {
        let OutlineItem { action, resource, fields, effects, objects, .. } = item;
        json!([action, resource, fields, effects, objects])
    };
    let digest = Digest::of_json(&items.map(told).collect());
    digest.as_str().to_owned()
}

pub async fn carry_out(visit: &Visit) -> Shown {
    let head = Head::of(visit, "")?;
    if visit.field("confirm") != head.name {
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
    let path = head.api_path("");
    // The plan that was read is the one that is carried out, as with an approval.
    let planned = visit.api.send(Method::DELETE, &dry_run(&path, "true"), None).await;
    if let Ok(plan) = planned
        && digest(&following(visit, plan).await?.1) != visit.field("plan")
    {
        return page(visit, Some(Refusal::other_plan())).await;
    }
    match visit.api.send_if(Method::DELETE, &path, None, visit.field("etag")).await {
        // It stays until all of it is gone, unless nothing was made of it.
        Ok(_) if visit.api.get::<Value>(&path).await.is_ok() => Ok(visit.go(&head.path)),
        Ok(_) => Ok(visit.go(&format!("/{}", head.pages.slug))),
        Err(refusal) if refusal.status == StatusCode::UNAUTHORIZED => Err(refusal),
        Err(refusal) => page(visit, Some(refusal)).await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{OutlineSection, Verb};

    #[test]
    fn a_digest_is_of_what_changes_and_not_of_how_long_it_waits() {
        let item = |effect: &str, waiting: &str| OutlineItem {
            verb: Verb::Delete,
            action: "waiting to delete".to_owned(),
            resource: "Cluster/acme/orders".to_owned().try_into().unwrap(),
            noun: "cluster".to_owned(),
            name: "orders".to_owned(),
            place: String::new(),
            fields: Vec::new(),
            waiting: vec![waiting.to_owned()],
            ways_out: Vec::new(),
            effects: vec![effect.to_owned()],
            approval: None,
            objects: Vec::new(),
            omitted: 0,
        };
        let of = |effect: &str, waiting: &str| {
            let section = OutlineSection { items: vec![item(effect, waiting)], ..OutlineSection::default() };
            digest(&Outline { summary: waiting.to_owned(), sections: vec![section] })
        };
        assert_eq!(of("its volumes stay", "until 10:00"), of("its volumes stay", "until 10:01"));
        assert_ne!(of("its volumes stay", "until 10:00"), of("its volumes go", "until 10:00"));
    }
}
