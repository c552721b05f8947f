//! The caller's own identity.

use axum::http::StatusCode;

use super::events::sees;
use super::{Answered, Call, written};
use crate::api::answer::{CallerDescription, CallerOrganization};
use crate::api::caller::{Membership, access_of, memberships};
use crate::record;
use crate::state::{Access, Reach};

/// Describes the caller: their token, and their roles in the organizations that it is valid for.
pub(super) fn read(call: &Call) -> Answered {
    let caller = &call.caller;
    let is_super_user = caller.has_full_role();
    let Some(token) = caller.token() else {
        let on_socket = CallerDescription {
            email: None,
            name: caller.user_name().map(str::to_owned),
            token_id: None,
            organization: Reach::All,
            access: Access::Admin,
            sign_in: None,
            created_at: None,
            expires_at: None,
            revision: None,
            is_super_user,
            organizations: Vec::new(),
        };
        return Ok(call.with_current_plan(written(StatusCode::OK, &on_socket)));
    };
    let of = |Membership { organization, role, source }: Membership| {
        // A super user may do everything, whatever their role.
        let most = if is_super_user { Access::Admin } else { access_of(role) };
        let access = token.access.min(most);
        CallerOrganization { identifier: organization.clone(), role, access, source }
    };
    let members = memberships(&token.owner, &token.organization, &call.made, &call.pending);
    let description = CallerDescription {
        email: Some(token.owner.clone()),
        name: Some(token.name.clone()),
        token_id: Some(token.id),
        organization: token.organization.clone(),
        access: token.access,
        sign_in: token.sign_in.clone(),
        created_at: Some(record::timestamp(token.created_at)),
        expires_at: Some(record::timestamp(token.expires_at)),
        revision: Some(revision(call)),
        is_super_user,
        organizations: members.into_iter().map(of).collect(),
    };
    Ok(written(StatusCode::OK, &description))
}

fn revision(call: &Call) -> String {
    let events = call.service.state.find_events(|event| sees(&call.caller, None, event));
    let keyring = call.made.installation.secrets.keyring();
    let last = events.last().map(|number| keyring.event_id(*number)).unwrap_or_default();
    format!("{}-{last}", record::timestamp(call.made.round.plan.created_at))
}
