//! Limits a check to the part of the tree that an edit can affect, so that the cost doesn't grow with the
//! number of organizations.

use std::borrow::Cow;

use crate::catalog::{Catalog, Recorded, RelatedOrganizations};
use crate::names::Kind;
use crate::spec::Documents;

use super::write_request::{WriteAction, WriteRequest};

/// The part of a tree that is checked.
pub struct JudgedPart<'r> {
    /// The organizations whose part it is; `None` for the whole.
    pub around: Option<RelatedOrganizations>,
    pub recorded: Cow<'r, Recorded>,
}

impl<'r> JudgedPart<'r> {
    /// Selects the part that a write can affect. Organizations, fleets and base domains affect other
    /// organizations, and so may any deletion: those need the whole tree.
    pub fn of(request: &WriteRequest, tree: &Documents, recorded: &'r Recorded) -> Self {
        let is_own = matches!(
            request.key.kind,
            Kind::Cluster | Kind::Topic | Kind::User | Kind::IdentityProvider | Kind::CloudAccount
        );
        let around = match request.what {
            WriteAction::Create(_) | WriteAction::Replace(_) | WriteAction::Patch(_) if is_own => {
                RelatedOrganizations::of(&request.key.organization, tree, recorded)
            }
            _ => None,
        };
        let recorded = match &around {
            Some(around) => {
                Cow::Owned(RelatedOrganizations::recorded(tree, &around.documents(tree), recorded))
            }
            None => Cow::Borrowed(recorded),
        };
        Self { around, recorded }
    }

    pub fn resolve(
        &self,
        tree: &Documents,
        resolve: impl FnOnce(&Documents, &Recorded) -> Catalog,
    ) -> Catalog {
        match &self.around {
            Some(around) => resolve(&around.documents(tree), &self.recorded),
            None => resolve(tree, &self.recorded),
        }
    }

    /// Whether the problems of this part are a subset of the other part's.
    pub fn is_within(&self, other: Option<&RelatedOrganizations>) -> bool {
        other.is_none() || self.around.as_ref() == other
    }
}
