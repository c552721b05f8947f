//! Looks at targets, and what is kept of a look to tell whether another one would find the same.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use super::directory::{FolderLook, FolderView};
use super::{KubernetesTarget, Target};
use crate::catalog::{RecordedFleet, Records};
use crate::plan::ObservedFleet;
use crate::render::FleetManifests;

/// How long a fleet that keeps DNS records isn't looked at if nothing of its Kubernetes cluster changes.
const RECORDS_HOLD: Duration = Duration::from_secs(300);

/// A look at a target that began: a change from now on will be noticed.
pub enum TargetLook<'t> {
    Directory(FolderLook<'t>),
    Kubernetes {
        cluster: &'t KubernetesTarget,
        /// None when a change could go unnoticed.
        view: Option<ClusterView>,
    },
}

/// The state in which a look found a target.
#[derive(Clone)]
pub enum TargetView {
    Directory(Arc<FolderView>),
    Kubernetes(ClusterView),
}

#[derive(Clone)]
pub struct ClusterView {
    revision: u64,
    names: Option<NamesView>,
}

/// The inputs of DNS records. Nothing reports what happens on a DNS server, and to the Services of load balancers.
#[derive(Clone)]
struct NamesView {
    until: Instant,
    /// Changes with the status of Gateways and brokers, among others.
    health: Option<u64>,
}

impl Target {
    /// Begins a look. A folder's files that are as in `last` aren't read. `now` is a time before the look.
    pub fn look(&self, last: Option<&TargetView>, now: SystemTime) -> TargetLook<'_> {
        match (self, last) {
            (Target::Directory(directory), last) => {
                let last = match last {
                    Some(TargetView::Directory(view)) => Some(Arc::clone(view)),
                    Some(TargetView::Kubernetes(_)) | None => None,
                };
                TargetLook::Directory(FolderLook::after(directory, last, now))
            }
            (Target::Kubernetes(cluster), _) => {
                let view = cluster.revision().map(|revision| {
                    let names = cluster.keeps_records().then(|| NamesView {
                        until: Instant::now() + RECORDS_HOLD,
                        health: cluster.health_revision(),
                    });
                    ClusterView { revision, names }
                });
                TargetLook::Kubernetes { cluster, view }
            }
        }
    }

    /// Whether another look would find the same as in `view`. With `is_trusted`, a folder's files are not looked at.
    pub(super) fn is_as_in(&self, view: &TargetView, is_trusted: bool, now: SystemTime) -> bool {
        match (self, view) {
            (Target::Directory(directory), TargetView::Directory(view)) => {
                view.holds(directory, is_trusted, now)
            }
            (Target::Kubernetes(_), TargetView::Kubernetes(ClusterView { revision, names })) => {
                let holds = |names: &NamesView| {
                    Instant::now() < names.until && self.health_revision() == names.health
                };
                self.revision() == Some(*revision) && names.as_ref().is_none_or(holds)
            }
            _ => false,
        }
    }
}

impl TargetLook<'_> {
    /// Reads all our objects on the target, and foreign objects in places where ours should be. For a
    /// resource in `there` that is no longer desired, it also finds what deleting it would leave behind. The view
    /// is none when the target wasn't read, or when a change could go unnoticed.
    pub async fn observe(
        self,
        recorded: &RecordedFleet,
        desired: Option<&FleetManifests>,
        there: &Records,
    ) -> (ObservedFleet, Option<TargetView>) {
        match self {
            TargetLook::Directory(look) => {
                let (fleet, view) = look.observe(recorded, desired);
                (fleet, view.map(|view| TargetView::Directory(Arc::new(view))))
            }
            TargetLook::Kubernetes { cluster, view } => {
                (cluster.observe(recorded, desired, there).await, view.map(TargetView::Kubernetes))
            }
        }
    }
}
