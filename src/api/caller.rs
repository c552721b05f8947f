//! The caller and their permissions: the lesser of what the token allows and what its owner's role allows.
//!
//! Permissions are computed for each call from the specs that were planned last and the API writes since. A
//! member who is removed from an organization in a file loses access with the next plan, with any token.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::iter;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use crate::catalog::{Catalog, Recorded, Resource};
use crate::names::{Identifier, Kind, ResourceKey};
use crate::problem::Origin;
use crate::record;
use crate::source::Author;
use crate::spec::describe::nearest;
use crate::spec::{Documents, Organization, Role, Spec};
use crate::state::{Reach, TOKEN_DAYS, Token, TokenOrder, is_same_email};
use crate::writing::{CurrentPlan, WriteResult};

pub use crate::state::Access;

/// The host part of the e-mail address made up for callers on the socket.
const THIS_HOST: &str = "localhost";

/// The hint when the token allows less than its owner's role.
const ANOTHER_TOKEN: &str = "use a token with more access; `streamfleet token create` creates one";

/// The writes that the last plan doesn't include yet.
pub type PendingWrites = BTreeMap<ResourceKey, Arc<WriteResult>>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallerIdentity {
    /// A user of this host, on the socket.
    User {
        uid: u32,
        /// The name that the command line gives; `None` for other clients.
        name: Option<String>,
    },
    /// A caller with a valid token.
    Token(Token),
}

#[derive(Debug, Clone)]
pub struct Caller {
    who: CallerIdentity,
    /// The access of the token's owner in each organization that the token covers; `None` for full access, as
    /// of super users and of callers on the socket. A token limits it further.
    roles: Option<Arc<BTreeMap<Identifier, Access>>>,
}

/// The organizations whose members count: those of the specs that were planned last. A held organization
/// counts as it was last applied; one that was never applied is left out.
pub fn organizations<'c>(catalog: &'c Catalog, reach: &'c Reach) -> impl Iterator<Item = &'c Organization> {
    resources(catalog, reach).filter_map(as_organization)
}

fn resources<'c>(catalog: &'c Catalog, reach: &'c Reach) -> impl Iterator<Item = &'c Resource> {
    // Doesn't scan all resources: there may be many, and this runs for each call.
    let named = catalog.capacity.keys().filter(|organization| reach.covers(organization));
    let resources =
        named.filter_map(|organization| catalog.resources.get(&ResourceKey::organization(organization)));
    let resources = resources.map(|it| &**it);
    // A held resource from the record has no field locations; one from a waiting document has.
    resources.filter(|resource| resource.hold.is_none() || resource.fields.is_empty())
}

/// The organizations of a plan, replaced by their versions in `pending`, the writes since.
fn resources_with<'p>(
    plan: &'p CurrentPlan,
    reach: &'p Reach,
    pending: &'p PendingWrites,
) -> impl Iterator<Item = &'p Resource> {
    resources(&plan.round.checked.catalog, reach).filter_map(|resource| match pending.get(&resource.key) {
        None => Some(resource),
        Some(written) => written.resource.as_deref(),
    })
}

pub(super) fn organizations_with<'p>(
    plan: &'p CurrentPlan,
    reach: &'p Reach,
    pending: &'p PendingWrites,
) -> impl Iterator<Item = &'p Organization> {
    resources_with(plan, reach, pending).filter_map(as_organization)
}

/// A person's role in an organization.
#[derive(Debug)]
pub struct Membership<'p> {
    pub organization: &'p Identifier,
    pub role: Role,
    /// The place of the member's entry; `None` for an organization from the record.
    pub source: Option<Origin>,
}

/// The organizations within `reach` that a person is a member of, by a plan and the writes since.
pub fn memberships<'p>(
    email: &str,
    reach: &'p Reach,
    plan: &'p CurrentPlan,
    pending: &'p PendingWrites,
) -> Vec<Membership<'p>> {
    let of = |resource: &'p Resource| {
        let organization = as_organization(resource)?;
        let (at, role) = membership(organization, email)?;
        Some(Membership { organization: &organization.identifier, role, source: member_source(resource, at) })
    };
    resources_with(plan, reach, pending).filter_map(of).collect()
}

/// The place of an organization's member; `None` for an organization from the record.
pub(super) fn member_source(resource: &Resource, at: usize) -> Option<Origin> {
    let place = || resource.fields.locate(&format!("/members/{at}"), &resource.origin.path).origin();
    (!resource.fields.is_empty()).then(place)
}

/// The index and role of a member. One listed twice has the lesser role. `root` has no members.
fn membership(organization: &Organization, email: &str) -> Option<(usize, Role)> {
    if organization.identifier.as_str() == Identifier::ROOT {
        return None;
    }
    let members = organization.members.iter().enumerate();
    let own = members.filter(|(_, member)| is_same_email(&member.email, email));
    own.map(|(at, member)| (at, member.role)).min_by_key(|(_, role)| access_of(*role))
}

pub(super) fn as_organization(resource: &Resource) -> Option<&Organization> {
    match &resource.spec {
        Spec::Organization(organization) => Some(organization),
        _ => None,
    }
}

impl Caller {
    /// Has full access: the socket has already checked the user.
    pub fn of_user(uid: u32, name: Option<String>) -> Caller {
        Caller { who: CallerIdentity::User { uid, name }, roles: None }
    }

    /// A caller with a valid token, by the given organizations' members. Super users have full access.
    pub fn of_token<'o>(
        token: &Token,
        super_users: &[String],
        organizations: impl Iterator<Item = &'o Organization>,
    ) -> Caller {
        let is_super = super_users.iter().any(|known| is_same_email(known, &token.owner));
        let roles = (!is_super).then(|| Arc::new(roles(token, organizations)));
        Caller { who: CallerIdentity::Token(token.clone()), roles }
    }

    /// A caller by the members and settings of a plan and the writes since: a member who was just removed loses
    /// access at once. Without a plan, a token's owner is a member of nothing.
    pub fn by_plan(who: &CallerIdentity, plan: Option<&CurrentPlan>, pending: &PendingWrites) -> Caller {
        match (who, plan) {
            (CallerIdentity::User { uid, name }, _) => Caller::of_user(*uid, name.clone()),
            (CallerIdentity::Token(token), None) => Caller::of_token(token, &[], iter::empty()),
            (CallerIdentity::Token(token), Some(plan)) => {
                let super_users = &plan.installation.config.api.super_user_emails;
                let organizations = organizations_with(plan, &token.organization, pending);
                Caller::of_token(token, super_users, organizations)
            }
        }
    }

    /// Whether the caller may do what concerns no single organization, such as creating one.
    pub fn is_super(&self) -> bool {
        let is_full = |token: &Token| token.organization == Reach::All && token.access == Access::Admin;
        self.roles.is_none() && self.token().is_none_or(is_full)
    }

    pub fn may(&self, organization: &Identifier, access: Access) -> bool {
        let covers = |token: &Token| token.organization.covers(organization) && access <= token.access;
        self.token().is_none_or(covers) && self.role(organization).is_some_and(|role| access <= role)
    }

    /// The access of the token's owner, which the token limits further.
    fn role(&self, organization: &Identifier) -> Option<Access> {
        self.roles.as_ref().map_or(Some(Access::Admin), |roles| roles.get(organization).copied())
    }

    /// Whether no role limits the caller: a super user's token, or a user of this host.
    pub fn has_full_role(&self) -> bool {
        self.roles.is_none()
    }

    /// The name that a user of this host gives.
    pub fn user_name(&self) -> Option<&str> {
        match &self.who {
            CallerIdentity::User { name, .. } => name.as_deref(),
            CallerIdentity::Token(_) => None,
        }
    }

    /// Whether it is a user of this host, on the socket.
    pub fn is_user(&self) -> bool {
        matches!(self.who, CallerIdentity::User { .. })
    }

    /// The organizations that the caller is a member of and the token covers.
    pub fn organizations(&self) -> impl Iterator<Item = &Identifier> {
        self.roles.iter().flat_map(|roles| roles.keys())
    }

    /// The detail (a sentence without a full stop) and hint when the caller may see an organization but lacks
    /// the access for an action. `doing` names the action as in `creating clusters`.
    pub fn lacks(&self, doing: &str, organization: &Identifier, access: Access) -> (String, &'static str) {
        if let Some(role) = self.role(organization).filter(|role| *role < access) {
            let (needed, has, owner) = (role_for(access), role_for(role), self.owner());
            let why = format!(
                "{doing} requires the role `{needed}` in organization `{organization}`, and {owner} has `{has}` there"
            );
            return (why, "ask an administrator of the organization for that role");
        }
        let doing = format!("{doing} in organization `{organization}`");
        (self.lacks_access(&doing, access, ""), ANOTHER_TOKEN)
    }

    /// Like `lacks`, for actions that only super users may take.
    pub fn lacks_super(&self, doing: &str) -> (String, &'static str) {
        match self.roles {
            None => (self.lacks_access(doing, Access::Admin, " in all organizations"), ANOTHER_TOKEN),
            _ => (
                format!("{doing} requires a super user, and {} is not one", self.owner()),
                "ask a super user; `api.super_user_emails` in the settings lists them",
            ),
        }
    }

    /// Like `lacks`, for actions that need a role in any one organization.
    pub fn lacks_everywhere(&self, doing: &str, access: Access) -> (String, &'static str) {
        if self.token().is_some_and(|token| token.access < access) {
            return (self.lacks_access(doing, access, ""), ANOTHER_TOKEN);
        }
        let (needed, owner) = (role_for(access), self.owner());
        let why = format!(
            "{doing} requires the role `{needed}` in an organization of this token, and {owner} has it in none"
        );
        (why, "ask an administrator of an organization for that role")
    }

    fn lacks_access(&self, doing: &str, access: Access, place: &str) -> String {
        let has = match self.token() {
            None => "all".to_owned(),
            Some(Token { organization: Reach::All, access, .. }) => format!("`{access}`"),
            Some(Token { organization, access, .. }) => {
                format!("`{access}` in organization `{organization}`")
            }
        };
        format!("{doing} requires a token for `{access}`{place}, and this one is for {has}")
    }

    fn owner(&self) -> &str {
        self.token().map_or("the caller", |token| &token.owner)
    }

    /// Whether the caller may know that an organization, and its resources, exist.
    pub fn sees(&self, organization: &Identifier) -> bool {
        self.may(organization, Access::Read)
    }

    /// The field of a token order that exceeds the caller's rights, and why; `None` if the order is allowed.
    /// Callers other than super users create tokens only for themselves, with no more access than the token
    /// they use and no later expiry, so a stolen token can't be extended.
    pub fn excess(&self, order: &TokenOrder, now: Timestamp) -> Option<(&'static str, String)> {
        let own = self.token().filter(|_| !self.is_super())?;
        let TokenOrder { owner, organization, access, days, .. } = order;
        if !self.speaks_for(owner) {
            return Some(("/owner", "creating tokens for others requires a super user".to_owned()));
        }
        if !organization.is_within(&own.organization) {
            let wanted = match organization {
                Reach::All => "all organizations".to_owned(),
                Reach::Organization(other) => format!("`{other}`"),
            };
            let scope = &own.organization;
            let why = format!("a token for organization `{scope}` can't create one for {wanted}");
            return Some(("/organization", why));
        }
        if *access > own.access {
            let why = format!("a token for `{}` can't create one for `{access}`", own.access);
            return Some(("/access", why));
        }
        let lasts = SignedDuration::from_hours(24 * i64::from(*days));
        let is_later = now.checked_add(lasts).map_or(true, |until| until > own.expires_at);
        is_later.then(|| {
            let ends = record::timestamp(own.expires_at);
            ("/days", format!("a token can't create one that expires later, and this one expires at {ends}"))
        })
    }

    /// The default lifetime, in days, of tokens that the caller creates.
    pub fn usual_days(&self, now: Timestamp) -> u32 {
        let own = self.token().filter(|_| !self.is_super());
        let rest = own.map(|token| token.expires_at.duration_since(now));
        let days = rest.and_then(|rest| u32::try_from(rest.as_hours() / 24).ok());
        days.map_or(TOKEN_DAYS, |days| days.clamp(1, TOKEN_DAYS))
    }

    pub fn sees_token(&self, token: &Token) -> bool {
        self.is_super() || self.speaks_for(&token.owner)
    }

    /// Whether the caller may revoke a token: the one in use, and those of the same owner with no more
    /// access.
    pub fn may_revoke(&self, token: &Token) -> bool {
        let may = |own: &Token| {
            let is_less = token.organization.is_within(&own.organization) && token.access <= own.access;
            own.id == token.id || (is_same_email(&own.owner, &token.owner) && is_less)
        };
        self.is_super() || self.token().is_some_and(may)
    }

    pub fn author(&self) -> Author {
        let (name, email) = match &self.who {
            CallerIdentity::User { uid, .. } => (format!("uid {uid}"), format!("uid-{uid}@{THIS_HOST}")),
            CallerIdentity::Token(Token { owner, .. }) => {
                let name = owner.split_once('@').map_or(owner.as_str(), |(name, _)| name);
                (name.to_owned(), owner.clone())
            }
        };
        Author { name, email }
    }

    /// The caller in the audit trail, events and the log: `ada@example.com (token ci)`, `ann (command line, uid
    /// 1000)`.
    pub fn actor(&self) -> String {
        match &self.who {
            CallerIdentity::User { uid, name: Some(name) } => format!("{name} (command line, uid {uid})"),
            CallerIdentity::User { uid, name: None } => format!("uid {uid} (socket)"),
            CallerIdentity::Token(Token { name, owner, .. }) => format!("{owner} (token {name})"),
        }
    }

    pub fn token(&self) -> Option<&Token> {
        match &self.who {
            CallerIdentity::User { .. } => None,
            CallerIdentity::Token(token) => Some(token),
        }
    }

    pub fn identity(&self) -> &CallerIdentity {
        &self.who
    }

    fn speaks_for(&self, email: &str) -> bool {
        self.token().is_some_and(|token| is_same_email(&token.owner, email))
    }
}

/// The owner's access in each organization that the token covers.
fn roles<'o>(
    token: &Token,
    organizations: impl Iterator<Item = &'o Organization>,
) -> BTreeMap<Identifier, Access> {
    let within = organizations.filter(|organization| token.organization.covers(&organization.identifier));
    let role = |organization: &Organization| {
        let (_, role) = membership(organization, &token.owner)?;
        Some((organization.identifier.clone(), access_of(role)))
    };
    within.filter_map(role).collect()
}

fn role_for(access: Access) -> &'static str {
    match access {
        Access::Read => "viewer",
        Access::Write => "editor",
        Access::Admin => "admin",
    }
}

/// The rights of a role.
pub fn access_of(role: Role) -> Access {
    match role {
        Role::Admin => Access::Admin,
        Role::Editor => Access::Write,
        Role::Viewer => Access::Read,
    }
}

/// Like `shortfall`, by the members and settings of a plan and the writes since.
pub fn shortfall_by_plan(
    what: &str,
    token: &Token,
    plan: &CurrentPlan,
    pending: &PendingWrites,
) -> Option<String> {
    let super_users = &plan.installation.config.api.super_user_emails;
    shortfall(what, token, super_users, organizations_with(plan, &token.organization, pending))
}

/// The refusal of a token for an organization that does not exist, as text and hint; `None` if it exists or existed.
pub fn missing_organization(
    reach: &Reach,
    documents: &Documents,
    recorded: &Recorded,
) -> Option<(String, String)> {
    let Reach::Organization(named) = reach else { return None };
    let files = || documents.files.values();
    let described = documents.documents().map(|document| &document.key);
    let invalid = files().flat_map(|file| &file.invalid).map(|document| &document.key);
    let known = described.chain(invalid).chain(recorded.resources.keys());
    let known: BTreeSet<&Identifier> =
        known.filter(|key| key.kind == Kind::Organization).map(|key| &key.organization).collect();
    // An unreadable file may describe it.
    let is_hidden = files().any(|file| !file.unreadable.is_empty());
    if named.as_str() == Identifier::ROOT || known.contains(named) || is_hidden {
        return None;
    }
    let hint = match nearest(named.as_str(), known.iter().map(|known| known.as_str())) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "describe the organization first; `streamfleet get organizations` lists the existing ones"
            .to_owned(),
    };
    Some((format!("there is no organization `{named}` in the specs"), hint))
}

/// Describes what a new token can't do although it was asked for; `None` if it can do everything. `what` names what
/// was created: a token, or something that contains one.
pub fn shortfall<'o>(
    what: &str,
    token: &Token,
    super_users: &[String],
    organizations: impl Iterator<Item = &'o Organization>,
) -> Option<String> {
    let Token { owner, organization, access, .. } = token;
    let organizations: Vec<&Organization> = organizations.collect();
    let caller = Caller::of_token(token, super_users, organizations.iter().copied());
    let Some(roles) = &caller.roles else {
        let Reach::Organization(named) = organization else { return None };
        let is_there = named.as_str() == Identifier::ROOT
            || organizations.iter().any(|organization| organization.identifier == *named);
        return (!is_there)
            .then(|| format!("organization {named} is not in the specs; the {what} is useless until it is"));
    };
    let (most, place) = match organization {
        Reach::All => (roles.values().max(), "any organization".to_owned()),
        Reach::Organization(named) => (roles.get(named), format!("organization {named}")),
    };
    match most {
        None => Some(format!(
            "{owner} is neither a member of {place} in the specs nor a super user; the {what} is useless until that changes"
        )),
        Some(role) if role < access => {
            Some(format!("{owner} may only {role} in {place}; the {what} can't do more until that changes"))
        }
        Some(_) => None,
    }
}
