//! Limits a check to the part of the tree that an edit can affect, so that the cost doesn't grow with the
//! number of organizations.

use std::borrow::Cow;

use crate::catalog::{Catalog, Neighbours, Recorded};
use crate::names::Kind;
use crate::spec::Documents;

use super::wish::{What, Wish};

/// The part of a tree that is checked.
pub struct Scope<'r> {
    /// The organizations whose part it is; `None` for the whole.
    pub around: Option<Neighbours>,
    pub recorded: Cow<'r, Recorded>,
}

impl<'r> Scope<'r> {
    /// Selects the part that a write can affect. Organizations, fleets and base domains affect other
    /// organizations, and so may any deletion: those need the whole tree.
    pub fn of(wish: &Wish, tree: &Documents, recorded: &'r Recorded) -> Self {
        let is_own = matches!(wish.key.kind, Kind::Cluster | Kind::IdentityProvider | Kind::CloudAccount);
        let around = match wish.what {
            What::Create(_) | What::Replace(_) | What::Patch(_) if is_own => {
                Neighbours::of(&wish.key.organization, tree, recorded)
            }
            _ => None,
        };
        let recorded = match &around {
            Some(around) => Cow::Owned(Neighbours::recorded(tree, &around.documents(tree), recorded)),
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
    pub fn is_within(&self, other: Option<&Neighbours>) -> bool {
        other.is_none() || self.around.as_ref() == other
    }
}
