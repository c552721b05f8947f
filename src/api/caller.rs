//! Who calls, and what they may do: what a token is for and what its owner may do at present, whichever is less.
//!
//! It is judged anew for each call, by the specs as they were planned last: who is taken out of an organization's members may do
//! nothing there from the next plan on, whatever tokens there are.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use uuid::Uuid;

use super::Made;
use super::writing::Written;
use crate::catalog::{Catalog, Recorded, Resource};
use crate::interface;
use crate::names::{Identifier, Kind, ResourceKey};
use crate::source::Author;
use crate::spec::describe::nearest;
use crate::spec::{Documents, Organization, Role, Spec};
use crate::state::{Reach, TOKEN_DAYS, Token, TokenOrder, is_same_email};

pub use crate::state::Access;

/// The host in the e-mail address of who calls on the socket, who has none.
const THIS_HOST: &str = "localhost";

/// What to do where a token is for less than its owner may do.
const ANOTHER_TOKEN: &str = "send one that is for more; `streamfleet token create` makes another";

/// The e-mail addresses of those who may do everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SuperUsers(Arc<[String]>);

impl SuperUsers {
    /// Those whom the settings name.
    pub fn of(emails: &[String]) -> SuperUsers {
        SuperUsers(emails.into())
    }

    /// Whether somebody is one of them.
    pub fn include(&self, email: &str) -> bool {
        self.0.iter().any(|known| is_same_email(known, email))
    }
}

/// Who calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Who {
    /// A user of this host, on the socket.
    Peer {
        /// The number of the user.
        uid: u32,
    },
    /// Somebody who shows a token.
    Token {
        /// Its id.
        id: Uuid,
        /// Its name.
        name: String,
        /// The e-mail address of who it speaks for.
        owner: String,
    },
}

/// Who calls, and what they may do.
#[derive(Debug, Clone)]
pub struct Caller {
    who: Who,
    rights: Rights,
}

#[derive(Debug, Clone)]
enum Rights {
    /// Everything, on the socket.
    All,
    /// What the token of a super user is for.
    Super(Scope),
    /// What the token of anybody else is for, and what its owner may do in each organization that it covers.
    Member(Scope, Arc<BTreeMap<Identifier, Access>>),
}

/// What a token is for, and until when.
#[derive(Debug, Clone)]
struct Scope {
    organization: Reach,
    access: Access,
    expires_at: Timestamp,
}

/// The organizations whose members count: those of the specs that were planned last. One that is held counts as it was when
/// it was last good; one that was never good counts for nothing.
pub fn organizations<'c>(catalog: &'c Catalog, token: &'c Token) -> impl Iterator<Item = &'c Organization> {
    // Not all resources are looked through: there may be many, and this is done for each call.
    let named = catalog.capacity.keys().filter(|organization| token.organization.covers(organization));
    let resources =
        named.filter_map(|organization| catalog.resources.get(&ResourceKey::organization(organization)));
    resources.filter(|resource| is_good(resource)).filter_map(|resource| match &resource.spec {
        Spec::Organization(organization) => Some(organization),
        _ => None,
    })
}

/// The same organizations with what was written since.
fn with_pending<'o>(
    organizations: impl Iterator<Item = &'o Organization>,
    pending: &'o BTreeMap<ResourceKey, Arc<Written>>,
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

/// What comes from the record has no places of its own, and what comes from a document that waits has.
fn is_good(resource: &Resource) -> bool {
    resource.hold.is_none() || resource.fields.is_empty()
}

impl Caller {
    /// A user of this host, on the socket, whom the socket has let in.
    pub fn of_peer(uid: u32) -> Caller {
        Caller { who: Who::Peer { uid }, rights: Rights::All }
    }

    /// Somebody who shows a token that holds, as the organizations have their members.
    pub fn of_token<'o>(
        token: &Token,
        super_users: &SuperUsers,
        organizations: impl Iterator<Item = &'o Organization>,
    ) -> Caller {
        let Token { id, name, owner, organization, access, expires_at, .. } = token;
        let scope = Scope { organization: organization.clone(), access: *access, expires_at: *expires_at };
        let rights = match super_users.include(owner) {
            true => Rights::Super(scope),
            false => {
                let roles = roles(owner, organizations, &scope);
                Rights::Member(scope, Arc::new(roles))
            }
        };
        Caller { who: Who::Token { id: *id, name: name.clone(), owner: owner.clone() }, rights }
    }

    /// Somebody who shows a token that holds, as a plan found the members and the settings.
    pub fn by_plan(token: &Token, made: &Made) -> Caller {
        Caller::by_plan_and(token, made, &BTreeMap::new())
    }

    /// The same with what was written since: who was taken out of the members may do nothing from then on.
    pub fn by_plan_and(
        token: &Token,
        Made { installation, round, .. }: &Made,
        pending: &BTreeMap<ResourceKey, Arc<Written>>,
    ) -> Caller {
        let super_users = SuperUsers::of(&installation.config.api.super_user_emails);
        let organizations = organizations(&round.checked.catalog, token);
        Caller::of_token(token, &super_users, with_pending(organizations, pending))
    }

    /// Who it is.
    pub fn who(&self) -> &Who {
        &self.who
    }

    /// Whether they may do what concerns no single organization, as to make one.
    pub fn is_super(&self) -> bool {
        match &self.rights {
            Rights::All => true,
            Rights::Super(scope) => scope.organization == Reach::All && scope.access == Access::Admin,
            Rights::Member(..) => false,
        }
    }

    /// Whether they may do something in an organization.
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

    /// The organizations of which they are a member, as far as their token covers them.
    pub fn organizations(&self) -> impl Iterator<Item = &Identifier> {
        let roles = match &self.rights {
            Rights::Member(_, roles) => Some(roles),
            Rights::All | Rights::Super(_) => None,
        };
        roles.into_iter().flat_map(|roles| roles.keys())
    }

    /// Why they may not do something in an organization of which they may know, as a sentence without a full stop, and what to do
    /// next. It says what is done as in `creating clusters`.
    pub fn lacks(&self, doing: &str, organization: &Identifier, access: Access) -> (String, &'static str) {
        if let Rights::Member(_, roles) = &self.rights
            && let Some(role) = roles.get(organization).filter(|role| **role < access)
        {
            let (needed, has, owner) = (role_for(access), role_for(*role), self.owner());
            return (
                format!(
                    "{doing} takes the role `{needed}` in organization `{organization}`, and {owner} has `{has}` there"
                ),
                "ask an administrator of the organization for that role",
            );
        }
        (
            format!(
                "{doing} in organization `{organization}` takes a token for `{access}`, and this one is {}",
                self.is_for()
            ),
            ANOTHER_TOKEN,
        )
    }

    /// The same of what only super users may.
    pub fn lacks_super(&self, doing: &str) -> (String, &'static str) {
        match self.rights {
            Rights::Super(_) => (
                format!(
                    "{doing} takes a token for `admin` in all organizations, and this one is {}",
                    self.is_for()
                ),
                ANOTHER_TOKEN,
            ),
            _ => (
                format!("{doing} is for super users alone, and {} is none", self.owner()),
                "ask one of those whom `api.super_user_emails` names in the settings",
            ),
        }
    }

    /// The same of what takes a role in any organization.
    pub fn lacks_everywhere(&self, doing: &str, access: Access) -> (String, &'static str) {
        if self.scope().is_some_and(|scope| scope.access < access) {
            return (
                format!("{doing} takes a token for `{access}`, and this one is {}", self.is_for()),
                ANOTHER_TOKEN,
            );
        }
        (
            format!(
                "{doing} takes the role `{}` in an organization, and {} has it in none that this token is for",
                role_for(access),
                self.owner()
            ),
            "ask an administrator of an organization for that role",
        )
    }

    /// What the token that is shown is for.
    fn is_for(&self) -> String {
        match self.scope() {
            None => "for all".to_owned(),
            Some(Scope { organization: Reach::All, access, .. }) => format!("for `{access}`"),
            Some(Scope { organization, access, .. }) => {
                format!("for `{access}` in organization `{organization}`")
            }
        }
    }

    /// Whom the token speaks for.
    fn owner(&self) -> &str {
        match &self.who {
            Who::Token { owner, .. } => owner,
            Who::Peer { .. } => "the caller",
        }
    }

    /// Whether they may know that an organization, and what is in it, exists.
    pub fn sees(&self, organization: &Identifier) -> bool {
        self.may(organization, Access::Read)
    }

    /// Why they may not have such a token, with the field that is too much; none where they may. Others than super users make
    /// them for themselves, for no more than they show one for, and to end no later: who finds a token can't make it last.
    pub fn excess(&self, order: &TokenOrder, now: Timestamp) -> Option<(&'static str, String)> {
        let scope = self.scope().filter(|_| !self.is_super())?;
        let TokenOrder { owner, organization, access, days, .. } = order;
        if !self.speaks_for(owner) {
            return Some(("/owner", "making tokens for others is for super users alone".to_owned()));
        }
        if !organization.is_within(&scope.organization) {
            let why = match organization {
                Reach::All => format!("a token for organization `{}` makes none for all", scope.organization),
                Reach::Organization(other) => {
                    format!("a token for organization `{}` makes none for `{other}`", scope.organization)
                }
            };
            return Some(("/organization", why));
        }
        if *access > scope.access {
            return Some(("/access", format!("a token for `{}` makes none for `{access}`", scope.access)));
        }
        let lasts = SignedDuration::from_hours(24 * i64::from(*days));
        let is_later = now.checked_add(lasts).map_or(true, |until| until > scope.expires_at);
        is_later.then(|| {
            let ends = interface::timestamp(scope.expires_at);
            ("/days", format!("a token makes none that ends later than itself, and this one ends at {ends}"))
        })
    }

    /// How many days a token holds that they make, where they don't say.
    pub fn usual_days(&self, now: Timestamp) -> u32 {
        let rest =
            self.scope().filter(|_| !self.is_super()).map(|scope| scope.expires_at.duration_since(now));
        let days = rest.and_then(|rest| u32::try_from(rest.as_hours() / 24).ok());
        days.map_or(TOKEN_DAYS, |days| days.clamp(1, TOKEN_DAYS))
    }

    /// Whether they may know of a token.
    pub fn sees_token(&self, token: &Token) -> bool {
        self.is_super() || self.speaks_for(&token.owner)
    }

    /// Whether they may revoke a token: the one that they show, and those of the same owner that are for no more.
    pub fn may_revoke(&self, token: &Token) -> bool {
        let is_shown = matches!(&self.who, Who::Token { id, .. } if *id == token.id);
        let is_less = || self.scope().is_some_and(|scope| scope.covers(&token.organization, token.access));
        self.is_super() || is_shown || (self.speaks_for(&token.owner) && is_less())
    }

    /// The name and e-mail address that a commit of theirs has.
    pub fn author(&self) -> Author {
        let (name, email) = match &self.who {
            Who::Peer { uid } => (format!("uid {uid}"), format!("uid-{uid}@{THIS_HOST}")),
            Who::Token { owner, .. } => {
                let name = owner.split_once('@').map_or(owner.as_str(), |(name, _)| name);
                (name.to_owned(), owner.clone())
            }
        };
        Author { name, email }
    }

    /// Who it is, for the audit trail, events and the log: `ada@example.com (token ci)`, `uid 1000 (socket)`.
    pub fn actor(&self) -> String {
        match &self.who {
            Who::Peer { uid } => format!("uid {uid} (socket)"),
            Who::Token { name, owner, .. } => format!("{owner} (token {name})"),
        }
    }

    fn scope(&self) -> Option<&Scope> {
        match &self.rights {
            Rights::All => None,
            Rights::Super(scope) | Rights::Member(scope, _) => Some(scope),
        }
    }

    fn speaks_for(&self, email: &str) -> bool {
        matches!(&self.who, Who::Token { owner, .. } if is_same_email(owner, email))
    }
}

impl Scope {
    fn allows(&self, organization: &Identifier, access: Access) -> bool {
        self.organization.covers(organization) && access <= self.access
    }

    fn covers(&self, organization: &Reach, access: Access) -> bool {
        organization.is_within(&self.organization) && access <= self.access
    }
}

/// What somebody may do in each organization that a token is for. Who is named twice has the lesser role; `root` has no members.
fn roles<'o>(
    email: &str,
    organizations: impl Iterator<Item = &'o Organization>,
    scope: &Scope,
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

/// The role that lets somebody do something.
fn role_for(access: Access) -> &'static str {
    match access {
        Access::Read => "viewer",
        Access::Write => "editor",
        Access::Admin => "admin",
    }
}

/// What a role lets somebody do.
fn of_role(role: Role) -> Access {
    match role {
        Role::Admin => Access::Admin,
        Role::Editor => Access::Write,
        Role::Viewer => Access::Read,
    }
}

/// What somebody should know who made a token that is good for less than it was asked for, as a plan found the members and the
/// settings, and with what was written since.
pub fn shortfall_by_plan(
    token: &Token,
    Made { installation, round, .. }: &Made,
    pending: &BTreeMap<ResourceKey, Arc<Written>>,
) -> Option<String> {
    let super_users = SuperUsers::of(&installation.config.api.super_user_emails);
    let organizations = organizations(&round.checked.catalog, token);
    shortfall(token, &super_users, with_pending(organizations, pending))
}

/// Why a token for an organization that there is not is refused, and what to do next; none where there is such a one, or was.
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
    // What can't be read may describe it.
    let is_hidden = files().any(|file| !file.unreadable.is_empty());
    if named.as_str() == Identifier::ROOT || known.contains(named) || is_hidden {
        return None;
    }
    let hint = match nearest(named.as_str(), known.iter().map(|known| known.as_str())) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "describe the organization first; `streamfleet get organizations` lists those that there are"
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
        return (!is_there).then(|| {
            format!(
                "there is no organization {named} in the specs: until there is, the token is good for nothing"
            )
        });
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
            "{owner} is no member of {place} in the specs, and no super user: until that changes the token is good for nothing"
        )),
        Some(role) if role < access => Some(format!(
            "{owner} may only {role} in {place}: until that changes the token is good for no more"
        )),
        Some(_) => None,
    }
}
