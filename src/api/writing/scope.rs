//! What of a tree an edit is judged by: no more than it can matter to, so that an installation may have many organizations.

use std::borrow::Cow;

use crate::catalog::{Catalog, Neighbours, Recorded};
use crate::names::Kind;
use crate::spec::Documents;

use super::wish::{What, Wish};

/// What of a tree an edit is judged by.
pub struct Scope<'r> {
    /// The organizations whose part of the tree it is; none for the whole.
    pub around: Option<Neighbours>,
    /// What was applied of it.
    pub recorded: Cow<'r, Recorded>,
}

impl<'r> Scope<'r> {
    /// What a call's edit of a tree is judged by. Organizations, fleets and base domains reach into what others have, and so
    /// may whatever goes.
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

    /// The part of a tree, resolved as `resolve` does it.
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

    /// Whether what is wrong with this part is among what is wrong with another's.
    pub fn is_within(&self, other: Option<&Neighbours>) -> bool {
        other.is_none() || self.around.as_ref() == other
    }
}
