//! The caller and their permissions: the lesser of what the token allows and what its owner's role allows.
//!
//! Permissions are computed for each call from the specs that were planned last and the API writes since. A
//! member who is removed from an organization in a file loses access with the next plan, with any token.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use uuid::Uuid;

use crate::catalog::{Catalog, Recorded, Resource};
use crate::names::{Identifier, Kind, ResourceKey};
use crate::record;
use crate::source::Author;
use crate::spec::describe::nearest;
use crate::spec::{Documents, Organization, Role, Spec};
use crate::state::{Reach, TOKEN_DAYS, Token, TokenOrder, is_same_email};
use crate::writing::CurrentPlan;
use crate::writing::WriteResult;

pub use crate::state::Access;

/// The host part of the e-mail address made up for callers on the socket.
const THIS_HOST: &str = "localhost";

/// The hint when the token allows less than its owner's role.
const ANOTHER_TOKEN: &str = "use a token with more access; `streamfleet token create` creates one";

/// The e-mail addresses that have full access.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SuperUsers(Arc<[String]>);

impl SuperUsers {
    pub fn of(emails: &[String]) -> SuperUsers {
        SuperUsers(emails.into())
    }

    pub fn include(&self, email: &str) -> bool {
        self.0.iter().any(|known| is_same_email(known, email))
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallerIdentity {
    /// A user of this host, on the socket.
    User {
        uid: u32,
        /// The name that the command line gives; `None` for other clients.
        name: Option<String>,
    },
    Token {
        id: Uuid,
        name: String,
        /// The e-mail address of the token's owner.
        owner: String,
    },
}

#[derive(Debug, Clone)]
pub struct Caller {
    who: CallerIdentity,
    rights: Rights,
}

#[derive(Debug, Clone)]
enum Rights {
    /// Everything; for callers on the socket.
    All,
    /// A super user, limited by the token.
    Super(TokenScope),
    /// Any other owner: the token's limits, and the owner's access in each organization that the token
    /// covers.
    Member(TokenScope, Arc<BTreeMap<Identifier, Access>>),
}

#[derive(Debug, Clone)]
struct TokenScope {
    organization: Reach,
    access: Access,
    expires_at: Timestamp,
}

/// The organizations whose members count: those of the specs that were planned last. A held organization
/// counts as it was last applied; one that was never applied is left out.
pub fn organizations<'c>(catalog: &'c Catalog, token: &'c Token) -> impl Iterator<Item = &'c Organization> {
    // Doesn't scan all resources: there may be many, and this runs for each call.
    let named = catalog.capacity.keys().filter(|organization| token.organization.covers(organization));
    let resources =
        named.filter_map(|organization| catalog.resources.get(&ResourceKey::organization(organization)));
    resources.filter(|resource| is_good(resource)).filter_map(|resource| match &resource.spec {
        Spec::Organization(organization) => Some(organization),
        _ => None,
    })
}

/// Replaces organizations by their versions in `pending`, the writes that aren't planned yet.
fn with_pending<'o>(
    organizations: impl Iterator<Item = &'o Organization>,
    pending: &'o BTreeMap<ResourceKey, Arc<WriteResult>>,
) -> impl Iterator<Item = &'o Organization> {
    organizations.filter_map(|organization| {
        let Some(written) = pending.get(&ResourceKey::organization(&organization.identifier)) else {
            return Some(organization);
        };
        match &written.resource.as_ref()?.spec {
            Spec::Organization(organization) => Some(organization),
            _ => None,
        }
    })
}

/// Whether a spec is the last good one. A held resource from the record has no field locations; one from a
/// waiting document has.
fn is_good(resource: &Resource) -> bool {
    resource.hold.is_none() || resource.fields.is_empty()
}

impl Caller {
    /// Has full access: the socket has already checked the user.
    pub fn of_user(uid: u32, name: Option<String>) -> Caller {
        Caller { who: CallerIdentity::User { uid, name }, rights: Rights::All }
    }

    /// A caller with a valid token, by the given organizations' members.
    pub fn of_token<'o>(
        token: &Token,
        super_users: &SuperUsers,
        organizations: impl Iterator<Item = &'o Organization>,
    ) -> Caller {
        let Token { id, name, owner, organization, access, expires_at, .. } = token;
        let scope =
            TokenScope { organization: organization.clone(), access: *access, expires_at: *expires_at };
        let rights = match super_users.include(owner) {
            true => Rights::Super(scope),
            false => {
                let roles = roles(owner, organizations, &scope);
                Rights::Member(scope, Arc::new(roles))
            }
        };
        Caller { who: CallerIdentity::Token { id: *id, name: name.clone(), owner: owner.clone() }, rights }
    }

    /// A caller with a valid token, by the members and settings of a plan.
    pub fn by_plan(token: &Token, made: &CurrentPlan) -> Caller {
        Caller::by_plan_and(token, made, &BTreeMap::new())
    }

    /// Like `by_plan`, with the writes since that plan: a member who was just removed loses access at once.
    pub fn by_plan_and(
        token: &Token,
        CurrentPlan { installation, round, .. }: &CurrentPlan,
        pending: &BTreeMap<ResourceKey, Arc<WriteResult>>,
    ) -> Caller {
        let super_users = SuperUsers::of(&installation.config.api.super_user_emails);
        let organizations = organizations(&round.checked.catalog, token);
        Caller::of_token(token, &super_users, with_pending(organizations, pending))
    }

    pub fn who(&self) -> &CallerIdentity {
        &self.who
    }

    /// Whether the caller may do what concerns no single organization, such as creating one.
    pub fn is_super(&self) -> bool {
        match &self.rights {
            Rights::All => true,
            Rights::Super(scope) => scope.organization == Reach::All && scope.access == Access::Admin,
            Rights::Member(..) => false,
        }
    }

    pub fn may(&self, organization: &Identifier, access: Access) -> bool {
        match &self.rights {
            Rights::All => true,
            Rights::Super(scope) => scope.allows(organization, access),
            Rights::Member(scope, roles) => {
                scope.allows(organization, access)
                    && roles.get(organization).is_some_and(|role| access <= *role)
            }
        }
    }

    /// Whether it is a user of this host, on the socket.
    pub fn is_user(&self) -> bool {
        matches!(self.who, CallerIdentity::User { .. })
    }

    /// The organizations that the caller is a member of and the token covers.
    pub fn organizations(&self) -> impl Iterator<Item = &Identifier> {
        let roles = match &self.rights {
            Rights::Member(_, roles) => Some(roles),
            Rights::All | Rights::Super(_) => None,
        };
        roles.into_iter().flat_map(|roles| roles.keys())
    }

    /// The detail (a sentence without a full stop) and hint when the caller may see an organization but lacks
    /// the access for an action. `doing` names the action as in `creating clusters`.
    pub fn lacks(&self, doing: &str, organization: &Identifier, access: Access) -> (String, &'static str) {
        if let Rights::Member(_, roles) = &self.rights
            && let Some(role) = roles.get(organization).filter(|role| **role < access)
        {
            let (needed, has, owner) = (role_for(access), role_for(*role), self.owner());
            return (
                format!(
                    "{doing} requires the role `{needed}` in organization `{organization}`, and {owner} has `{has}` there"
                ),
                "ask an administrator of the organization for that role",
            );
        }
        (
            format!(
                "{doing} in organization `{organization}` requires a token for `{access}`, and this one is {}",
                self.is_for()
            ),
            ANOTHER_TOKEN,
        )
    }

    /// Like `lacks`, for actions that only super users may take.
    pub fn lacks_super(&self, doing: &str) -> (String, &'static str) {
        match self.rights {
            Rights::Super(_) => (
                format!(
                    "{doing} requires a token for `admin` in all organizations, and this one is {}",
                    self.is_for()
                ),
                ANOTHER_TOKEN,
            ),
            _ => (
                format!("{doing} requires a super user, and {} is not one", self.owner()),
                "ask a super user; `api.super_user_emails` in the settings lists them",
            ),
        }
    }

    /// Like `lacks`, for actions that need a role in any one organization.
    pub fn lacks_everywhere(&self, doing: &str, access: Access) -> (String, &'static str) {
        if self.scope().is_some_and(|scope| scope.access < access) {
            return (
                format!("{doing} requires a token for `{access}`, and this one is {}", self.is_for()),
                ANOTHER_TOKEN,
            );
        }
        (
            format!(
                "{doing} requires the role `{}` in an organization of this token, and {} has it in none",
                role_for(access),
                self.owner()
            ),
            "ask an administrator of an organization for that role",
        )
    }

    fn is_for(&self) -> String {
        match self.scope() {
            None => "for all".to_owned(),
            Some(TokenScope { organization: Reach::All, access, .. }) => format!("for `{access}`"),
            Some(TokenScope { organization, access, .. }) => {
                format!("for `{access}` in organization `{organization}`")
            }
        }
    }

    fn owner(&self) -> &str {
        match &self.who {
            CallerIdentity::Token { owner, .. } => owner,
            CallerIdentity::User { .. } => "the caller",
        }
    }

    /// Whether the caller may know that an organization, and its resources, exist.
    pub fn sees(&self, organization: &Identifier) -> bool {
        self.may(organization, Access::Read)
    }

    /// The field of a token order that exceeds the caller's rights, and why; `None` if the order is allowed.
    /// Callers other than super users create tokens only for themselves, with no more access than the token
    /// they use and no later expiry, so a stolen token can't be extended.
    pub fn excess(&self, order: &TokenOrder, now: Timestamp) -> Option<(&'static str, String)> {
        let scope = self.scope().filter(|_| !self.is_super())?;
        let TokenOrder { owner, organization, access, days, .. } = order;
        if !self.speaks_for(owner) {
            return Some(("/owner", "creating tokens for others requires a super user".to_owned()));
        }
        if !organization.is_within(&scope.organization) {
            let why = match organization {
                Reach::All => format!(
                    "a token for organization `{}` can't create one for all organizations",
                    scope.organization
                ),
                Reach::Organization(other) => {
                    format!(
                        "a token for organization `{}` can't create one for `{other}`",
                        scope.organization
                    )
                }
            };
            return Some(("/organization", why));
        }
        if *access > scope.access {
            return Some((
                "/access",
                format!("a token for `{}` can't create one for `{access}`", scope.access),
            ));
        }
        let lasts = SignedDuration::from_hours(24 * i64::from(*days));
        let is_later = now.checked_add(lasts).map_or(true, |until| until > scope.expires_at);
        is_later.then(|| {
            let ends = record::timestamp(scope.expires_at);
            ("/days", format!("a token can't create one that expires later, and this one expires at {ends}"))
        })
    }

    /// The default lifetime, in days, of tokens that the caller creates.
    pub fn usual_days(&self, now: Timestamp) -> u32 {
        let rest =
            self.scope().filter(|_| !self.is_super()).map(|scope| scope.expires_at.duration_since(now));
        let days = rest.and_then(|rest| u32::try_from(rest.as_hours() / 24).ok());
        days.map_or(TOKEN_DAYS, |days| days.clamp(1, TOKEN_DAYS))
    }

    pub fn sees_token(&self, token: &Token) -> bool {
        self.is_super() || self.speaks_for(&token.owner)
    }

    /// Whether the caller may revoke a token: the one in use, and those of the same owner with no more
    /// access.
    pub fn may_revoke(&self, token: &Token) -> bool {
        let is_shown = matches!(&self.who, CallerIdentity::Token { id, .. } if *id == token.id);
        let is_less = || self.scope().is_some_and(|scope| scope.covers(&token.organization, token.access));
        self.is_super() || is_shown || (self.speaks_for(&token.owner) && is_less())
    }

    pub fn author(&self) -> Author {
        let (name, email) = match &self.who {
            CallerIdentity::User { uid, .. } => (format!("uid {uid}"), format!("uid-{uid}@{THIS_HOST}")),
            CallerIdentity::Token { owner, .. } => {
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
            CallerIdentity::Token { name, owner, .. } => format!("{owner} (token {name})"),
        }
    }

    fn scope(&self) -> Option<&TokenScope> {
        match &self.rights {
            Rights::All => None,
            Rights::Super(scope) | Rights::Member(scope, _) => Some(scope),
        }
    }

    fn speaks_for(&self, email: &str) -> bool {
        matches!(&self.who, CallerIdentity::Token { owner, .. } if is_same_email(owner, email))
    }
}

impl TokenScope {
    fn allows(&self, organization: &Identifier, access: Access) -> bool {
        self.organization.covers(organization) && access <= self.access
    }

    fn covers(&self, organization: &Reach, access: Access) -> bool {
        organization.is_within(&self.organization) && access <= self.access
    }
}

/// The owner's access in each organization that the token covers. A member listed twice gets the lesser role.
/// `root` has no members.
fn roles<'o>(
    email: &str,
    organizations: impl Iterator<Item = &'o Organization>,
    scope: &TokenScope,
) -> BTreeMap<Identifier, Access> {
    let within = organizations.filter(|organization| {
        let identifier = &organization.identifier;
        identifier.as_str() != Identifier::ROOT && scope.organization.covers(identifier)
    });
    let role = |organization: &Organization| {
        let own = organization.members.iter().filter(|member| is_same_email(&member.email, email));
        let least = own.map(|member| of_role(member.role)).min()?;
        Some((organization.identifier.clone(), least))
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

fn of_role(role: Role) -> Access {
    match role {
        Role::Admin => Access::Admin,
        Role::Editor => Access::Write,
        Role::Viewer => Access::Read,
    }
}

/// Like `shortfall`, by the members and settings of a plan and the writes since.
pub fn shortfall_by_plan(
    token: &Token,
    CurrentPlan { installation, round, .. }: &CurrentPlan,
    pending: &BTreeMap<ResourceKey, Arc<WriteResult>>,
) -> Option<String> {
    let super_users = SuperUsers::of(&installation.config.api.super_user_emails);
    let organizations = organizations(&round.checked.catalog, token);
    shortfall(token, &super_users, with_pending(organizations, pending))
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

/// What somebody should know who made a token that is good for less than it was asked for; none where it is good for all of
/// that.
pub fn shortfall<'o>(
    token: &Token,
    super_users: &SuperUsers,
    organizations: impl Iterator<Item = &'o Organization>,
) -> Option<String> {
    let Token { owner, organization, access, .. } = token;
    let organizations: Vec<&Organization> = organizations.collect();
    let caller = Caller::of_token(token, super_users, organizations.iter().copied());
    let Rights::Member(_, roles) = &caller.rights else {
        let Reach::Organization(named) = organization else { return None };
        let is_there = named.as_str() == Identifier::ROOT
            || organizations.iter().any(|organization| organization.identifier == *named);
        return (!is_there)
            .then(|| format!("organization {named} is not in the specs; the token is useless until it is"));
    };
    let most = match organization {
        Reach::All => roles.values().max(),
        Reach::Organization(organization) => roles.get(organization),
    };
    let place = match organization {
        Reach::All => "any organization".to_owned(),
        Reach::Organization(organization) => format!("organization {organization}"),
    };
    match most {
        None => Some(format!(
            "{owner} is neither a member of {place} in the specs nor a super user; the token is useless until that changes"
        )),
        Some(role) if role < access => {
            Some(format!("{owner} may only {role} in {place}; the token can't do more until that changes"))
        }
        Some(_) => None,
    }
}
