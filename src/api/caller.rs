//! Who calls, and what they may do: what a token is for and what its owner may do at present, whichever is less.
//!
//! It is judged anew for each call, by the specs as they were planned last: who is taken out of an organization's members may do
//! nothing there from the next plan on, whatever tokens there are.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use uuid::Uuid;

use super::Made;
use super::writing::Written;
use crate::catalog::{Catalog, Resource};
use crate::names::{Identifier, ResourceKey};
use crate::source::Author;
use crate::spec::{Organization, Role, Spec};
use crate::state::{Reach, Token, TokenOrder, is_same_email};

pub use crate::state::Access;

/// The host in the e-mail address of who calls on the socket, who has none.
const THIS_HOST: &str = "localhost";

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
        let organizations = organizations(&round.checked.catalog, token).filter_map(|organization| {
            let Some(written) = pending.get(&ResourceKey::organization(&organization.identifier)) else {
                return Some(organization);
            };
            match &written.resource.as_ref()?.spec {
                Spec::Organization(organization) => Some(organization),
                _ => None,
            }
        });
        Caller::of_token(token, &super_users, organizations)
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

    /// Whether they may know that an organization, and what is in it, exists.
    pub fn sees(&self, organization: &Identifier) -> bool {
        self.may(organization, Access::Read)
    }

    /// Whether they may have such a token. Others than super users make them for themselves, for no more than they show one
    /// for, and to end no later: who finds a token can't make it last.
    pub fn may_make(&self, order: &TokenOrder, now: Timestamp) -> bool {
        if self.is_super() {
            return true;
        }
        let Some(scope) = self.scope().filter(|_| self.speaks_for(&order.owner)) else { return false };
        let lasts = SignedDuration::from_hours(24 * i64::from(order.days));
        scope.covers(&order.organization, order.access)
            && now.checked_add(lasts).is_ok_and(|until| until <= scope.expires_at)
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

/// What a role lets somebody do.
fn of_role(role: Role) -> Access {
    match role {
        Role::Admin => Access::Admin,
        Role::Editor => Access::Write,
        Role::Viewer => Access::Read,
    }
}

/// What somebody should know who made a token that is good for less than it was asked for; none where it is good for all of
/// that.
pub fn shortfall<'o>(
    token: &Token,
    super_users: &SuperUsers,
    organizations: impl Iterator<Item = &'o Organization>,
) -> Option<String> {
    let caller = Caller::of_token(token, super_users, organizations);
    let Rights::Member(_, roles) = &caller.rights else { return None };
    let Token { owner, organization, access, .. } = token;
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
