//! What a running process remembers of fleets: those that were found as they should be, and the connections to Kubernetes
//! clusters, over which they are watched.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use tokio::runtime::Handle;
use tokio::sync::Notify;

use super::kubernetes::Kept;
use super::{Footprint, Target, Targets};
use crate::names::{Digest, FleetKey};
use crate::parallel::locked;
use crate::plan::Quiet;

/// Which fleets were found as they should be, and what would have to change for that to change. It spares rendering,
/// reading and comparing, and changes no plan: without it, each fleet is looked at.
#[derive(Default)]
pub struct Memory {
    fleets: Mutex<BTreeMap<FleetKey, Arc<Remembered>>>,
    kept: Mutex<BTreeMap<FleetKey, Kept>>,
    changed: Arc<Notify>,
    /// Whether connections are only borrowed.
    is_copy: bool,
    /// Whether folders that were looked at are taken to be as they were.
    trusts_folders: AtomicBool,
    doubts_folders: AtomicBool,
}

/// What a fleet should hold, by [`crate::render::Renderer::inputs`], and what is recorded of it, by the number that
/// `State::version_of` gives. Both are to be asked for before the fleet is looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Basis {
    /// What it should hold.
    pub desired: Digest,
    /// What is recorded of it.
    pub recorded: u64,
}

struct Remembered {
    basis: Basis,
    footprint: Footprint,
    quiet: Arc<Quiet>,
}

/// A look that has begun.
pub struct Begun {
    basis: Basis,
    /// None where a change could go unseen.
    footprint: Option<Footprint>,
}

impl Memory {
    /// What is remembered now. The connections stay the original's: no others are made, and what is told over them isn't told
    /// here.
    pub fn copy(&self) -> Memory {
        let fleets = locked(&self.fleets).clone();
        let kept = locked(&self.kept).clone();
        Memory { fleets: Mutex::new(fleets), kept: Mutex::new(kept), is_copy: true, ..Memory::default() }
    }

    /// Lets the targets of this round go on with the connections of earlier ones. Where a kubeconfig is another one, and
    /// where there was none, a connection is made and the cluster watched from then on; what is no target any more is let
    /// go.
    pub fn connect(&self, targets: &mut Targets, runtime: &Handle) {
        let mut kept = locked(&self.kept);
        if self.is_copy {
            for (fleet, target) in &mut targets.targets {
                if let (Target::Kubernetes(cluster), Some(kept)) = (target, kept.get(fleet)) {
                    cluster.borrow(kept);
                }
            }
            return;
        }
        let mut before = std::mem::take(&mut *kept);
        for (fleet, target) in &mut targets.targets {
            if let Target::Kubernetes(cluster) = target
                && let Some(connection) = cluster.keep(before.remove(fleet), runtime, &self.changed)
            {
                kept.insert(fleet.clone(), connection);
            }
        }
    }

    /// Whether folders are taken to be as they were found, until this is said again. Whoever does so has them looked at now
    /// and then: nothing tells what others do in them. A fleet that should be another or was worked on is looked at in any case.
    /// Gives whether they are now.
    pub fn trust_folders(&self, trust: bool) -> bool {
        let trust = !self.doubts_folders.swap(false, Ordering::Relaxed) && trust;
        self.trusts_folders.store(trust, Ordering::Relaxed);
        trust
    }

    /// Whatever is said of folders next, they aren't taken to be as they were.
    pub fn doubt_folders(&self) {
        self.doubts_folders.store(true, Ordering::Relaxed);
    }

    /// Comes back when something happened on a watched target since this did last, if anything a plan may depend on.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }

    /// What a fleet was found to be by the last look at it; none where it has to be looked at, since something of it may be
    /// other than it was, or was not as it should be.
    pub fn recall(&self, fleet: &FleetKey, target: &Target, basis: &Basis) -> Option<Arc<Quiet>> {
        let fleets = locked(&self.fleets);
        let remembered = fleets.get(fleet).map(Arc::clone)?;
        // Other fleets are looked at meanwhile.
        drop(fleets);
        let quiet = &remembered.quiet;
        let is_known = !quiet.lacks_something() || target.knows_facts();
        let is_trusted = self.trusts_folders.load(Ordering::Relaxed);
        (is_known && remembered.basis == *basis && target.has(&remembered.footprint, is_trusted))
            .then(|| Arc::clone(quiet))
    }

    /// Begins to look at a target. What is found may be remembered as long as it is as it is now.
    pub fn begin(&self, target: &Target, basis: Basis, now: SystemTime) -> Begun {
        Begun { footprint: target.footprint(now), basis }
    }

    /// Remembers what a look found, where everything was as it should be, and forgets what was found before.
    pub fn remember(&self, fleet: &FleetKey, Begun { basis, footprint }: Begun, found: Option<&Quiet>) {
        let remembered = footprint.zip(found.cloned());
        let remembered =
            remembered.map(|(footprint, quiet)| Remembered { basis, footprint, quiet: Arc::new(quiet) });
        let mut fleets = locked(&self.fleets);
        match remembered {
            Some(remembered) => drop(fleets.insert(fleet.clone(), Arc::new(remembered))),
            None => drop(fleets.remove(fleet)),
        }
    }

    /// Forgets what is known of a fleet's Kubernetes cluster beside what it holds of ours: something was done there, or
    /// failed.
    pub fn forget_facts(&self, fleet: &FleetKey) {
        let kept = locked(&self.kept);
        if let Some(kept) = kept.get(fleet) {
            kept.forget_facts();
        }
    }
}
