//! Marks: the ids and protection of resources in a target's inventory, which survive the loss of the state
//! folder.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::ResourceMark;
use crate::names::{Identifier, ResourceKey};

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct InventoryMarks(BTreeMap<ResourceKey, RememberedMark>);

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct RememberedMark {
    id: Uuid,
    protected: bool,
}

impl InventoryMarks {
    /// Adds the marks of resources before their steps run. New protection starts at once; lifted protection
    /// lasts until `refresh`.
    pub(super) fn announce(&mut self, marks: BTreeMap<ResourceKey, ResourceMark>) {
        for (resource, ResourceMark { id, protected }) in marks {
            self.0.entry(resource).or_insert(RememberedMark { id, protected }).protected |= protected;
        }
    }

    /// Keeps the resources that still have objects, with the marks that are recorded now.
    pub(super) fn refresh(
        &mut self,
        owners: &BTreeSet<&ResourceKey>,
        mark: impl Fn(&ResourceKey) -> Option<ResourceMark>,
    ) {
        self.0.retain(|resource, _| owners.contains(resource));
        for &owner in owners {
            if let Some(ResourceMark { id, protected }) = mark(owner) {
                self.0.insert(owner.clone(), RememberedMark { id, protected });
            }
        }
    }

    pub(super) fn of<'r>(&self, resources: impl IntoIterator<Item = &'r ResourceKey>) -> InventoryMarks {
        let mark = |resource: &ResourceKey| Some((resource.clone(), self.0.get(resource)?.clone()));
        InventoryMarks(resources.into_iter().filter_map(mark).collect())
    }

    /// Adds another inventory part's marks, limited to an organization's resources.
    pub(super) fn add(&mut self, others: &InventoryMarks, organization: &Identifier) {
        let theirs = others.0.iter().filter(|(resource, _)| resource.organization == *organization);
        self.0.extend(theirs.map(|(resource, mark)| (resource.clone(), mark.clone())));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn protected(&self) -> BTreeSet<ResourceKey> {
        self.0.iter().filter(|(_, mark)| mark.protected).map(|(resource, _)| resource.clone()).collect()
    }

    pub(super) fn all(&self) -> BTreeMap<ResourceKey, ResourceMark> {
        let marks = self.0.iter();
        marks
            .map(|(key, &RememberedMark { id, protected })| (key.clone(), ResourceMark { id, protected }))
            .collect()
    }
}
