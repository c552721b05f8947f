//! The members of an organization. A change of one is a change of the organization's list, with its review.

use askama::Template;
use axum::http::StatusCode;
use serde_json::{Value, json};

use super::resource_list::{Organizations, organizations};
use super::{DRAFTS, KindPages, may, require, with_query};
use crate::api::answer::{ListAnswer, OrganizationMember};
use crate::api::route::Method;
use crate::names::Kind;
use crate::spec::Role;
use crate::ui::client::Refusal;
use crate::ui::form::{Target, Typed, text_of};
use crate::ui::view::{self, Frame, field, filters, shown};
use crate::ui::{Shown, Visit};

#[derive(Template)]
#[template(path = "members.html")]
struct Members {
    frame: Frame,
    organizations: Organizations,
    organization: String,
    list: ListAnswer<OrganizationMember>,
    may_change: bool,
}

pub async fn show(visit: &Visit) -> Shown {
    let organizations = organizations(visit).await?;
    let organization = organizations.chosen(visit.parameter("organization"));
    let path = format!("/organizations/{}/members", super::encoded(&organization));
    let query = [("page_token", visit.parameter("page"))];
    let list = match organization.is_empty() {
        true => ListAnswer { items: Vec::new(), next_page_token: None, total: 0 },
        false => visit.api.get(&with_query(path, &query)).await?,
    };
    let may_change = may(&visit.me, Kind::Organization, Method::Patch, Some(&organization));
    let frame = visit.frame("members");
    Ok(shown(StatusCode::OK, &Members { frame, organizations, organization, list, may_change }))
}

/// Reviews the organization with another member, with another role of one, or without one if no role is sent.
pub async fn change(visit: &Visit) -> Shown {
    let organization = visit.segment(0);
    require(visit, Kind::Organization, Method::Patch, Some(organization))?;
    let path = KindPages::of(Kind::Organization).record_path(organization, organization, "", "");
    let (record, etag) = visit.api.tagged(&path).await?;
    let (email, role) = (visit.field("email"), visit.field("role"));
    if email.is_empty() {
        return Err(Refusal::no_draft());
    }
    let mut members: Vec<Value> = record["members"].as_array().cloned().unwrap_or_default();
    let known = members.iter_mut().find(|member| field(member, "email").eq_ignore_ascii_case(email));
    match known {
        _ if role.is_empty() => members.retain(|member| !field(member, "email").eq_ignore_ascii_case(email)),
        Some(member) => member["role"] = json!(role),
        None => members.push(json!({"email": email, "role": role})),
    }
    let mut typed = Typed::default();
    typed.set("/members", &text_of(Some(&Value::Array(members))));
    let name = organization.to_owned();
    let target = Target::Known { organization: name.clone(), name, etag };
    let id = visit.ui.keep(visit.holder(), Kind::Organization, target, typed);
    Ok(visit.go(&format!("{DRAFTS}/{id}")))
}
