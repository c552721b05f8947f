//! The daemon's memory between rounds: the last look at each fleet, and the connections to Kubernetes clusters with
//! their watches.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use tokio::runtime::Handle;
use tokio::sync::Notify;

use super::kubernetes::KeptConnection;
use super::{Target, TargetView, Targets};
use crate::names::FleetKey;
use crate::parallel::{Memo, locked};
use crate::plan::UnchangedFleet;
use crate::render::RenderInputs;

/// A cache of looks at fleets, with everything that would invalidate their results. It saves rendering, reading and
/// comparing, and never changes a plan: without it, every fleet is observed.
#[derive(Default)]
pub struct TargetMemory {
    fleets: Memo<FleetKey, Remembered>,
    kept: Mutex<BTreeMap<FleetKey, KeptConnection>>,
    changed: Arc<Notify>,
    /// Whether connections belong to another memory.
    is_copy: bool,
    /// Whether observed folders count as unchanged.
    trusts_folders: AtomicBool,
    doubts_folders: AtomicBool,
}

/// The inputs of a fleet's comparison. Read both before the fleet is observed.
#[derive(Debug, Clone, PartialEq)]
pub struct FleetBasis {
    pub desired: RenderInputs,
    /// The number that `State::version_of` returns.
    pub recorded: u64,
}

/// The last look at a fleet, with all that tells whether another one would find the same.
struct Remembered {
    view: TargetView,
    /// None if the fleet wasn't in its desired state.
    unchanged: Option<(FleetBasis, Arc<UnchangedFleet>)>,
}

impl TargetMemory {
    /// Copies the cache. The copy uses the original's connections: it opens none, and its [`Self::changed`]
    /// is not notified.
    pub fn copy(&self) -> TargetMemory {
        let kept = locked(&self.kept).clone();
        TargetMemory {
            fleets: self.fleets.copy(),
            kept: Mutex::new(kept),
            is_copy: true,
            ..TargetMemory::default()
        }
    }

    /// Gives this round's targets the connections of earlier rounds. New or changed kubeconfigs get a new
    /// connection, and their cluster is watched from then on. Connections without a target are closed.
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
                && let Some(connection) =
                    cluster.reuse_connection(before.remove(fleet), runtime, &self.changed)
            {
                kept.insert(fleet.clone(), connection);
            }
        }
    }

    /// Sets whether observed folders count as unchanged until the next call, and returns whether they do
    /// after this one. The caller has to withdraw the trust regularly, because nothing reports changes by
    /// others. A fleet whose desired state or records changed is observed in any case.
    pub fn trust_folders(&self, trust: bool) -> bool {
        let trust = !self.doubts_folders.swap(false, Ordering::Relaxed) && trust;
        self.trusts_folders.store(trust, Ordering::Relaxed);
        trust
    }

    /// Makes the next [`Self::trust_folders`] withdraw the trust, whatever its argument.
    pub fn doubt_folders(&self) {
        self.doubts_folders.store(true, Ordering::Relaxed);
    }

    /// Waits for the next change on a watched target that a plan may depend on. A change since the last call
    /// counts.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Returns the result of the last comparison if it is still valid. None when the fleet has to be
    /// observed, because something may have changed or it wasn't in its desired state.
    pub fn recall(
        &self,
        fleet: &FleetKey,
        target: &Target,
        basis: &FleetBasis,
        now: SystemTime,
    ) -> Option<Arc<UnchangedFleet>> {
        let remembered = self.fleets.get(fleet)?;
        let (known, quiet) = remembered.unchanged.as_ref()?;
        let is_known = !quiet.lacks_something() || target.knows_facts();
        let is_trusted = self.trusts_folders.load(Ordering::Relaxed);
        (is_known && known == basis && target.is_as_in(&remembered.view, is_trusted, now))
            .then(|| Arc::clone(quiet))
    }

    /// The state in which the last look found a fleet, whether or not it still holds.
    pub fn last_view(&self, fleet: &FleetKey) -> Option<TargetView> {
        self.fleets.get(fleet).map(|remembered| remembered.view.clone())
    }

    /// Keeps the result of a look, and of planning from it if the fleet was in its desired state.
    pub fn remember(
        &self,
        fleet: &FleetKey,
        basis: FleetBasis,
        view: Option<TargetView>,
        found: Option<&Arc<UnchangedFleet>>,
    ) {
        let unchanged = found.map(|quiet| (basis, Arc::clone(quiet)));
        self.fleets.put(fleet, view.map(|view| Remembered { view, unchanged }));
    }

    /// Forgets the looks at other fleets.
    pub fn retain(&self, is_kept: impl Fn(&FleetKey) -> bool) {
        self.fleets.retain(is_kept);
    }

    /// Drops the cached preflight facts of a fleet, after a step there was carried out or failed.
    pub fn forget_facts(&self, fleet: &FleetKey) {
        let kept = locked(&self.kept);
        if let Some(kept) = kept.get(fleet) {
            kept.forget_facts();
        }
    }
}
