//! The input of a form of a resource: each has a page of its own, from the form's button until it is carried out.
//! So it can be loaded again and returned to, also after a new sign-in.

use std::sync::Arc;

use axum::http::{Method, StatusCode};
use axum::routing::MethodFilter;
use serde_json::Value;

use super::create::{self, of_organization};
use super::resource::Head;
use super::review::{self, ApiCall};
use super::{DRAFTS, EDIT, KindPages, NEW, change};
use crate::api::answer::FleetCheck;
use crate::names::Kind;
use crate::ui::client::Refusal;
use crate::ui::form::{self, Draft, DraftHolder, Target, Typed};
use crate::ui::view::field;
use crate::ui::{Page, SentForm, Shown, Ui, Visit, value_of};

/// Keeps what a form of a resource sent, and returns the page of the draft, below `/ui`. `None` if the page has no such
/// form.
pub fn keep(
    ui: &Arc<Ui>,
    holder: DraftHolder,
    page: &Page,
    path: &[String],
    sent: &SentForm,
) -> Option<String> {
    let target = match (page.path, path) {
        _ if page.method != MethodFilter::POST => return None,
        (NEW, [_]) => Target::New,
        (EDIT, [_, organization, name]) => Target::Known {
            organization: organization.clone(),
            name: name.clone(),
            etag: value_of(&sent.fields, "etag").to_owned(),
        },
        _ => return None,
    };
    let kind = KindPages::of_slug(path.first()?)?.kind;
    let mut typed = Typed::of(&sent.fields);
    // No page shows secrets, so a form that is shown again continues the draft that has them.
    if let Some(before) = ui.drafts.find(&holder, value_of(&sent.fields, "draft")) {
        for pointer in
            form::secrets(kind).filter(|pointer| typed.text(pointer).is_empty()).collect::<Vec<_>>()
        {
            typed.set(pointer, before.typed.text(pointer));
        }
    }
    let id = ui.keep(holder, kind, target, typed);
    let below = match &sent.refusal {
        Some(refusal) => {
            ui.drafts.update(id, |draft| draft.refused = Some(refusal.clone()));
            "/edit"
        }
        None => "",
    };
    Some(format!("{DRAFTS}/{id}{below}"))
}

/// Answers a form that isn't kept: there is none of this kind.
pub async fn no_form(_: &Visit) -> Shown {
    Err(Refusal::no_page())
}

/// A draft of this person with its kind; refused if it is gone.
fn found(visit: &Visit, id: &str) -> Result<(Kind, Draft), Refusal> {
    let draft = visit.ui.drafts.find(&visit.holder(), id);
    draft.and_then(|draft| Some((draft.kind?, draft))).ok_or_else(Refusal::no_draft)
}

/// Shows what would be written and done; with mistakes, the form with each at its field.
pub async fn show(visit: &Visit) -> Shown {
    let (kind, draft) = found(visit, visit.segment(0))?;
    let shown = review::show(visit, kind, &draft).await;
    match shown.map_err(|refusal| told(&draft, refusal)) {
        Err(refusal) if refusal.is_correctable() => form_page(visit, kind, &draft, Some(refusal)).await,
        shown => shown,
    }
}

/// Shows the form with what was typed, and why it was not carried out.
pub async fn edit(visit: &Visit) -> Shown {
    let (kind, draft) = found(visit, visit.segment(0))?;
    form_page(visit, kind, &draft, draft.refused.clone()).await
}

async fn form_page(visit: &Visit, kind: Kind, draft: &Draft, error: Option<Refusal>) -> Shown {
    let pages = KindPages::of(kind);
    match &draft.target {
        Target::New => create::whole(visit, pages, &draft.typed, Some(draft.id), error).await,
        Target::Known { organization, name, .. } => {
            change::form_page(visit, &Head::new(pages, organization, name, ""), Some(draft), error).await
        }
    }
}

fn told(draft: &Draft, refusal: Refusal) -> Refusal {
    if draft.target == Target::New { of_organization(refusal) } else { refusal }
}

/// Carries out what was reviewed. If the API refuses it, what was typed is kept.
pub async fn carry_out(visit: &Visit) -> Shown {
    let (kind, draft) = found(visit, visit.field("draft"))?;
    // It may change who may do what.
    if let (Kind::Organization, Some(sign_in)) = (kind, visit.signs_in_again()) {
        return Ok(sign_in);
    }
    let sent = async {
        let ApiCall { method, path, body, tag, mistakes } =
            review::order(visit, kind, &draft.target, &draft.typed).await?;
        if !mistakes.is_empty() {
            return Err(Refusal::mistakes(mistakes));
        }
        visit.api.send_if(method, &path, Some(&body), &tag).await
    };
    match sent.await {
        Ok(record) => {
            visit.ui.drafts.forget(draft.id);
            Ok(visit.go(&page_of(kind, &record)))
        }
        Err(refusal) if matches!(refusal.status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => {
            Err(refusal)
        }
        Err(refusal) => {
            visit.ui.drafts.update(draft.id, |kept| kept.refused = Some(told(&draft, refusal)));
            Ok(visit.go(&format!("{DRAFTS}/{}/edit", draft.id)))
        }
    }
}

/// Looks at the Kubernetes cluster that the typed kubeconfig leads to, and returns to the review.
pub async fn check(visit: &Visit) -> Shown {
    let (kind, draft) = found(visit, visit.segment(0))?;
    let mut order = review::order(visit, kind, &draft.target, &draft.typed).await?.body;
    if let Target::Known { organization, name, .. } = &draft.target {
        let record: Value =
            visit.api.get(&KindPages::of(kind).record_path(organization, name, "", "")).await?;
        order.complete(organization, name, &record);
    }
    let answer = visit.api.send(Method::POST, "/v1/checks", Some(&order)).await?;
    let check = serde_json::from_value::<FleetCheck>(answer).map_err(review::unexpected)?;
    visit.ui.drafts.update(draft.id, |draft| draft.check = Some(Arc::new(check)));
    Ok(visit.go(&format!("{DRAFTS}/{}#check", draft.id)))
}

fn page_of(kind: Kind, record: &Value) -> String {
    let pages = KindPages::of(kind);
    let name = pages.name_of(record);
    let organization = if kind == Kind::Organization { &name } else { field(record, "organization") };
    pages.page_path(organization, &name)
}
