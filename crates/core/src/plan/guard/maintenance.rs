//! Lets disruptions that nobody asks for at that moment begin only in the maintenance window of their fleet: a patch
//! release of Kafka that a cluster follows by itself, and where the settings say so a base domain's new certificate.
//!
//! An edit of the cluster is somebody's wish for now, and takes along what waits for the window. So does an approval.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use super::disruption::{certificate, disrupts};
use crate::catalog::{ResourceStatus, Status};
use crate::component::{self, COMPONENTS};
use crate::config::{CertificateRenewal, Mode};
use crate::names::{FleetKey, ResourceKey};
use crate::plan::world::PlanContext;
use crate::plan::{Cause, Change, Step, Waiting};
use crate::spec::MaintenanceWindow;

/// How long before its end a certificate is replaced in any case.
const URGENT: SignedDuration = SignedDuration::from_hours(14 * 24);

pub(in crate::plan) fn apply(
    world: &PlanContext,
    fleet: &FleetKey,
    changes: &mut [Change],
    unwell: &BTreeMap<ResourceKey, ResourceStatus>,
) {
    let policy = world.policy;
    let own = world.catalog.fleets.get(fleet).and_then(|it| it.spec.advanced_config.maintenance.as_ref());
    let windows = own.unwrap_or(&policy.maintenance);
    // It can only improve, or never worked: another certificate may be what it needs.
    let is_broken = |change: &Change| {
        let status = unwell.get(&change.resource).map(|it| it.status);
        matches!(status, Some(Status::Degraded | Status::Failed))
    };
    for change in changes.iter_mut().filter(|change| disrupts(change)) {
        let renews = is_deferred(world, change);
        if certificate::is_renewal(change) && (!renews || is_broken(change)) {
            continue;
        }
        if renews && policy.certificate_renewal == CertificateRenewal::Approve {
            change.guarded = true;
        }
        let is_unasked = match change.cause {
            Cause::Upgrade { .. } => true,
            Cause::Reference { .. } if renews && policy.certificate_renewal == CertificateRenewal::Window => {
                true
            }
            Cause::Reference { .. } | Cause::Settings => changes_version(change),
            _ => false,
        };
        // Whoever approves chooses the time.
        if !is_unasked || change.guarded || policy.mode != Mode::Auto {
            continue;
        }
        let Some(opens) = MaintenanceWindow::next(windows, policy.now) else { continue };
        let ends = if renews { replaced_certificate_ends(change) } else { None };
        let urgent = ends.and_then(|ends| ends.checked_sub(URGENT).ok());
        let urgent = urgent.filter(|urgent| *urgent < opens);
        let windows = windows.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
        change.waiting.push(match urgent {
            None => Waiting::Maintenance { windows, until: opens, is_urgent: false },
            Some(until) => Waiting::Maintenance { windows, until, is_urgent: true },
        });
    }
}

/// Whether a change whose cause isn't the cluster's own spec takes along a patch release that the cluster follows.
fn changes_version(change: &Change) -> bool {
    let changes = |step: &Step| {
        let version = component::facts(&step.object.kind).version;
        let versions = step.before.as_ref().zip(step.after.as_ref());
        versions.is_some_and(|(before, after)| version(before) != version(&after.body))
    };
    change.steps.iter().any(changes)
}

/// Whether a change gives its cluster a base domain's new certificate, and the old one doesn't end soon. A repair isn't
/// one: it puts back the certificate that the cluster has.
pub(in crate::plan) fn is_deferred(world: &PlanContext, change: &Change) -> bool {
    let is_repair = matches!(change.cause, Cause::Drift { .. });
    certificate::is_renewal(change) && !is_repair && !is_urgent(world, change)
}

/// Whether a change replaces a certificate that ends soon, which beats every window and approval of the restart.
pub(in crate::plan) fn is_urgent(world: &PlanContext, change: &Change) -> bool {
    let is_soon = |ends: Timestamp| ends.duration_since(world.policy.now) <= URGENT;
    certificate::is_renewal(change) && replaced_certificate_ends(change).is_some_and(is_soon)
}

/// The end of the certificate that brokers have now, if it is known.
fn replaced_certificate_ends(change: &Change) -> Option<Timestamp> {
    let ends = |step: &Step| {
        let change = step.as_change();
        COMPONENTS.iter().find_map(|component| (component.consequences.replaced_certificate_ends)(&change))
    };
    change.steps.iter().filter_map(ends).min()
}
