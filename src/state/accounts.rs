//! The accounts that people sign in with at an OpenID Connect issuer. At the first sign-in, an account is bound
//! to its e-mail address: later, no other account signs in with that address, and the account with no other one.
//! Issuers may let people change their addresses, and may give an address that became free to somebody else.
//!
//! Each issuer has bindings of its own: who names another issuer in the settings trusts it anew.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::records::RegistryLine;
use super::{RecordedEvent, State, StateError, is_same_email};
use crate::parallel::locked;
use crate::problem::quote_untrusted;

/// An account, and the e-mail address that it is bound to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoundAccount {
    pub email: String,
    pub issuer: String,
    /// The id of the account, which the issuer never gives to another.
    pub subject: String,
    pub bound_at: Timestamp,
}

#[derive(Debug, thiserror::Error)]
pub enum BindError {
    #[error(
        "{email} is bound to another account of this issuer; if both are the same person's, or the address was given to \
         somebody else: streamfleet sign-in {email} --forget-account"
    )]
    OtherAccount { email: String },
    #[error(
        "the account is bound to {bound}, and not to {email}; if the person's address changed: streamfleet sign-in {bound} \
         --forget-account"
    )]
    OtherEmail { email: String, bound: String },
    #[error(transparent)]
    State(#[from] StateError),
}

impl State {
    /// Binds an account to an e-mail address, and records it; does nothing if they are bound to each other.
    ///
    /// # Errors
    /// When one of the two is bound already, or the binding can't be recorded.
    pub fn bind_account(&self, account: &BoundAccount, by: &str) -> Result<(), BindError> {
        let BoundAccount { email, issuer, subject, bound_at } = account;
        let mut registry = locked(&self.registry);
        let of_issuer = registry.facts.accounts.iter().filter(|bound| bound.issuer == *issuer);
        let mut related =
            of_issuer.filter(|bound| is_same_email(&bound.email, email) || bound.subject == *subject);
        match related.next() {
            Some(bound) if bound.subject != *subject => {
                return Err(BindError::OtherAccount { email: email.clone() });
            }
            Some(bound) if !is_same_email(&bound.email, email) => {
                return Err(BindError::OtherEmail { email: email.clone(), bound: bound.email.clone() });
            }
            Some(_) => return Ok(()),
            None => {}
        }
        let what = format!("bound {email} to account {} of {issuer}", quote_untrusted(subject));
        self.audit_person(RecordedEvent::done(*bound_at, by, what))?;
        Ok(registry.add(vec![RegistryLine::AccountBound(account.clone())])?)
    }

    /// Forgets which accounts an e-mail address is bound to, and records who did that. Returns how many there
    /// were. The next account that signs in with the address is bound to it.
    pub fn release_accounts(&self, email: &str, by: &str, now: Timestamp) -> Result<usize, StateError> {
        let mut registry = locked(&self.registry);
        let bound = registry.facts.accounts.iter().filter(|bound| is_same_email(&bound.email, email)).count();
        if bound > 0 {
            let what = format!("released {email} from the accounts that it was bound to");
            self.audit_person(RecordedEvent::done(now, by, what))?;
            registry.add(vec![RegistryLine::AccountsReleased { email: email.to_owned(), at: now }])?;
        }
        Ok(bound)
    }
}
