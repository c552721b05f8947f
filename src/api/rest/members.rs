//! The members of an organization, each with the line of the file that makes them one.

use axum::http::StatusCode;

use super::page::ListPage;
use super::{Answered, Call, written};
use crate::api::answer::OrganizationMember;
use crate::api::caller::{as_organization, member_source};
use crate::spec::Member;

/// Lists the members by their addresses.
pub(super) fn list(call: &Call) -> Answered {
    let (key, _) = call.found_key()?;
    let resource = call.resource(&key);
    let of = |(at, member): (usize, &Member)| OrganizationMember {
        email: member.email.clone(),
        role: member.role,
        source: resource.as_ref().and_then(|resource| member_source(resource, at)),
    };
    let organization = resource.as_ref().and_then(|resource| as_organization(resource));
    let mut members: Vec<_> =
        organization.iter().flat_map(|it| it.members.iter().enumerate()).map(of).collect();
    members.sort_by_cached_key(OrganizationMember::place);
    let after = |all: &[OrganizationMember], last: &str| {
        Some(all.partition_point(|member| member.place().as_str() <= last))
    };
    let page = ListPage::behind(&call.query, members, after, OrganizationMember::place)?;
    Ok(call.with_current_plan(written(StatusCode::OK, &page.answer(page.items.iter().collect()))))
}

impl OrganizationMember {
    /// The address, by which members are sorted. Its case says nothing.
    fn place(&self) -> String {
        self.email.to_lowercase()
    }
}
