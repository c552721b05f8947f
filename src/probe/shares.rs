//! A number of permits for all organizations, of which each has at most a share: what one of them leaves unanswered holds
//! up no other.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::names::Identifier;
use crate::parallel::locked;

pub struct Shares {
    all: Arc<Semaphore>,
    /// The most permits of one organization.
    each: usize,
    /// Those that have permits or wait for some.
    organizations: Mutex<BTreeMap<Identifier, Arc<Semaphore>>>,
}

/// Permits. They are given back when it is dropped.
pub struct Share {
    _own: Option<OwnedSemaphorePermit>,
    _of_all: Option<OwnedSemaphorePermit>,
}

impl Shares {
    pub fn new(all: usize, each: usize) -> Shares {
        let each = each.clamp(1, all.max(1));
        Shares { all: Arc::new(Semaphore::new(all.max(1))), each, organizations: Mutex::default() }
    }

    /// The most permits of one organization.
    pub fn each(&self) -> usize {
        self.each
    }

    /// Waits for so many permits, all at once: those that each wait for more would wait for each other.
    pub async fn take(&self, organization: &Identifier, permits: usize) -> Share {
        let permits = u32::try_from(permits.min(self.each)).unwrap_or(1);
        let own = {
            let mut organizations = locked(&self.organizations);
            // Permits and those who wait for them hold their semaphore, too.
            organizations.retain(|_, own| Arc::strong_count(own) > 1);
            let new = || Arc::new(Semaphore::new(self.each));
            Arc::clone(organizations.entry(organization.clone()).or_insert_with(new))
        };
        // Neither is ever closed. Whoever waits for its own share takes none from the others.
        let own = own.acquire_many_owned(permits).await.ok();
        let of_all = Arc::clone(&self.all).acquire_many_owned(permits).await.ok();
        Share { _own: own, _of_all: of_all }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    fn organization(name: &str) -> Identifier {
        name.parse().unwrap()
    }

    #[tokio::test]
    async fn one_organization_leaves_room_for_the_others() {
        let shares = Shares::new(4, 2);
        let (acme, globex) = (organization("acme"), organization("globex"));
        let first = shares.take(&acme, 2).await;
        assert!(shares.take(&acme, 1).now_or_never().is_none());
        let other = shares.take(&globex, 9).now_or_never();
        assert!(other.is_some(), "more than its share is its share");
        drop(first);
        assert!(shares.take(&acme, 1).now_or_never().is_some());
        drop(other);
        assert!(shares.take(&globex, 1).now_or_never().is_some());
        assert_eq!(locked(&shares.organizations).len(), 1, "those without permits are forgotten");
    }
}
