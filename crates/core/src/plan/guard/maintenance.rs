//! Lets disruptions that nobody asks for at that moment begin only in the maintenance window of their fleet: a patch
//! release of Kafka that a cluster follows by itself, and where the settings say so a base domain's new certificate.
//!
//! An edit of the cluster is somebody's wish for now, and takes along what waits for the window. So does an approval.

use jiff::{SignedDuration, Timestamp};

use super::disruption::{certificate, disrupts};
use crate::component::{self, COMPONENTS};
use crate::config::{CertificateRenewal, Mode};
use crate::names::{FleetKey, Kind};
use crate::plan::world::PlanContext;
use crate::plan::{Cause, Change, Step, Waiting};
use crate::spec::MaintenanceWindow;

/// How long before its end a certificate is replaced in any case.
const URGENT: SignedDuration = SignedDuration::from_hours(14 * 24);

pub(in crate::plan) fn apply(world: &PlanContext, fleet: &FleetKey, changes: &mut [Change]) {
    let policy = world.policy;
    let own = world.catalog.fleets.get(fleet).and_then(|it| it.spec.advanced_config.maintenance.as_ref());
    let windows = own.unwrap_or(&policy.maintenance);
    for change in changes.iter_mut().filter(|change| disrupts(change)) {
        let ends = match change.cause {
            Cause::Upgrade { .. } => None,
            _ if is_swept_along(change) => None,
            Cause::Reference { .. } if is_deferred(world, change) => match policy.certificate_renewal {
                CertificateRenewal::Window => replaced_certificate_ends(change),
                CertificateRenewal::Approve => {
                    change.guarded = true;
                    continue;
                }
                CertificateRenewal::Auto => continue,
            },
            _ => continue,
        };
        // Whoever approves a plan chooses the time.
        let Some(opens) = MaintenanceWindow::next(windows, policy.now).filter(|_| policy.mode == Mode::Auto)
        else {
            continue;
        };
        let urgent = ends.and_then(|ends| ends.checked_sub(URGENT).ok());
        let urgent = urgent.filter(|urgent| *urgent < opens);
        let windows = windows.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
        change.waiting.push(match urgent {
            None => Waiting::Maintenance { windows, until: opens, is_urgent: false },
            Some(until) => Waiting::Maintenance { windows, until, is_urgent: true },
        });
    }
}

/// Whether a change takes along a patch release that its cluster follows, though nobody touched the cluster: its fleet or
/// the settings changed, such as the windows themselves.
fn is_swept_along(change: &Change) -> bool {
    let is_of_all = match &change.cause {
        Cause::Reference { to } => to.kind == Kind::Fleet,
        cause => *cause == Cause::Settings,
    };
    let changes_version = |step: &Step| {
        let version = component::facts(&step.object.kind).version;
        let versions = step.before.as_ref().zip(step.after.as_ref());
        versions.is_some_and(|(before, after)| version(before) != version(&after.body))
    };
    is_of_all && change.steps.iter().any(changes_version)
}

/// Whether a change gives its cluster a base domain's new certificate, and the old one doesn't end soon.
pub(in crate::plan) fn is_deferred(world: &PlanContext, change: &Change) -> bool {
    let is_soon = |ends: Timestamp| ends.duration_since(world.policy.now) <= URGENT;
    certificate::is_renewal(change) && !replaced_certificate_ends(change).is_some_and(is_soon)
}

/// The end of the certificate that brokers have now, if it is known.
fn replaced_certificate_ends(change: &Change) -> Option<Timestamp> {
    let ends = |step: &Step| {
        let change = step.as_change();
        COMPONENTS.iter().find_map(|component| (component.consequences.replaced_certificate_ends)(&change))
    };
    change.steps.iter().filter_map(ends).min()
}
