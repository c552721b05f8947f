//! The form of a resource that exists, and the click that carries a reviewed form out.

use axum::http::StatusCode;
use axum::response::Response;
use serde_json::Value;

use super::KindPages;
use super::create::{self, FormPage, fill, offer, sections};
use super::{resource_list::section, review};
use crate::catalog::immutable_pointers;
use crate::names::Kind;
use crate::spec::describe::InputKind;
use crate::spec::identity_fields;
use crate::ui::client::Refusal;
use crate::ui::form::{self, Draft, FormField, Target, Typed, attach, text_of};
use crate::ui::view::{field, shown};
use crate::ui::{Shown, Visit};

/// The resource that the path names.
struct Named {
    pages: &'static KindPages,
    organization: String,
    name: String,
}

fn named(visit: &Visit) -> Result<Named, Refusal> {
    let pages = KindPages::of_slug(visit.segment(0)).ok_or_else(Refusal::no_page)?;
    Ok(Named { pages, organization: visit.segment(1).to_owned(), name: visit.segment(2).to_owned() })
}

pub async fn show(visit: &Visit) -> Shown {
    let Named { pages, organization, name } = named(visit)?;
    form_page(visit, pages, &organization, &name, None, None).await
}

/// The form with the values of the record, or with what was typed.
async fn form_page(
    visit: &Visit,
    pages: &'static KindPages,
    organization: &str,
    name: &str,
    typed: Option<&Typed>,
    error: Option<Refusal>,
) -> Result<Response, Refusal> {
    let (record, etag) = visit.api.tagged(&pages.record_path(organization, name, "", "")).await?;
    let mut fields = form::fields(pages.kind, false);
    if let Some(error) = &error {
        attach(&mut fields, &error.errors, 0);
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
    if let Some(typed) = typed {
        // Somebody else may have changed the other fields since: they are shown as they are now.
        let is_own = |field: &&mut FormField| {
            typed.has(&field.pointer) && typed.is_changed(&field.pointer).unwrap_or(true)
        };
        for field in fields.iter_mut().filter(is_own) {
            let was_kept = field.is_kept;
            fill(std::slice::from_mut(field), typed);
            field.is_kept |= was_kept;
        }
        let (organization, name) = (organization.to_owned(), name.to_owned());
        // Without a tag, it can't be carried out, only reviewed again.
        let target = Target::Known { organization, name, etag: String::new() };
        hidden.push(("draft".to_owned(), visit.keep(pages.kind, target, typed.clone()).to_string()));
    }
    let page = FormPage {
        frame: visit.frame(section(pages)),
        title: format!("Change {name}"),
        action: format!("{}/edit", pages.page_path(organization, name)),
        is_step: false,
        step: None,
        sections: sections(pages.kind, fields),
        hidden,
        missing: Vec::new(),
        back: String::new(),
        error,
    };
    Ok(shown(page.error.as_ref().map_or(StatusCode::OK, |error| error.status), &page))
}

pub async fn review(visit: &Visit) -> Shown {
    let Named { pages, organization, name } = named(visit)?;
    let (typed, is_kept) = review::typed(visit, pages.kind);
    if !visit.field("change").is_empty() {
        return form_page(visit, pages, &organization, &name, is_kept.then_some(&typed), None).await;
    }
    let target = Target::Known {
        organization: organization.clone(),
        name: name.clone(),
        etag: visit.field("etag").to_owned(),
    };
    match review::show(visit, pages.kind, target, &typed).await {
        Err(refusal) if refusal.is_correctable() => {
            form_page(visit, pages, &organization, &name, Some(&typed), Some(refusal)).await
        }
        shown => shown,
    }
}

/// Carries out what was reviewed. If the API refuses it, what was typed is kept.
pub async fn carry_out(visit: &Visit) -> Shown {
    let Draft { id, kind, target, typed, .. } = review::draft(visit)?;
    let kind = kind.ok_or_else(Refusal::no_draft)?;
    let pages = review::pages_of(kind);
    let sent = async {
        let review::ApiCall { method, path, body, tag } = review::order(visit, kind, &target, &typed).await?;
        visit.api.send_if(method, &path, Some(&body), &tag).await
    };
    match (sent.await, target) {
        (Ok(record), _) => {
            visit.ui.drafts.forget(id);
            Ok(visit.go(&page_of(kind, pages, &record)))
        }
        (Err(refusal), _) if refusal.status == StatusCode::UNAUTHORIZED => Err(refusal),
        (Err(refusal), Target::New) => create::whole(visit, pages, &typed, true, Some(refusal)).await,
        (Err(refusal), Target::Known { organization, name, .. }) => {
            form_page(visit, pages, &organization, &name, Some(&typed), Some(refusal)).await
        }
    }
}

fn page_of(kind: Kind, pages: &KindPages, record: &Value) -> String {
    let name = field(record, pages.name);
    let organization = if kind == Kind::Organization { name } else { field(record, "organization") };
    pages.page_path(organization, name)
}
