//! Dry runs of a fleet's part of a plan on its target, before the plan is shown.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

use jiff::{SignedDuration, Timestamp};

use crate::catalog::Secrets;
use crate::names::{Digest, FleetKey};
use crate::parallel::locked;
use crate::plan::{AlikeDryRuns, DryRunRequests, DryRuns, FleetPart, Step};
use crate::secret;
use crate::target::{ObjectWrite, Target};

/// How long a result stays valid without a visible change: the reason why a server refuses something may be
/// out of sight.
const HOLDS: SignedDuration = SignedDuration::from_secs(60);

/// Caches dry runs in a running process, so that blocked changes don't cause one in every round.
#[derive(Default)]
pub(super) struct DryRunCache(Mutex<BTreeMap<FleetKey, DryRunAnswer>>);

struct DryRunAnswer {
    /// The digest of the request, and of the target's state at the time.
    of: Digest,
    at: Timestamp,
    runs: DryRuns,
}

impl DryRunCache {
    /// Like [`ask`], with the cache.
    pub(super) async fn ask(
        &self,
        (fleet, target): (&FleetKey, &Target),
        part: &FleetPart,
        secrets: &Secrets,
        now: Timestamp,
    ) -> Option<DryRuns> {
        let of = target.revision().map(|revision| digest(part, revision));
        let holds = |answer: &&DryRunAnswer| {
            Some(&answer.of) == of.as_ref() && now.duration_since(answer.at).abs() < HOLDS
        };
        if let Some(answer) = self.lock().get(fleet).filter(holds) {
            return Some(answer.runs.clone());
        }
        let runs = ask(target, part, secrets).await;
        match of.zip(runs.clone()) {
            Some((of, runs)) => drop(self.lock().insert(fleet.clone(), DryRunAnswer { of, at: now, runs })),
            None => drop(self.lock().remove(fleet)),
        }
        runs
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<FleetKey, DryRunAnswer>> {
        // Updates replace whole values, so a poisoned lock is safe to use.
        locked(&self.0)
    }
}

fn digest(part: &FleetPart, revision: u64) -> Digest {
    let DryRunRequests { steps, alike, foregone, kinds } = part.dry_run_requests();
    let steps = steps.iter().chain(&alike).map(|step| {
        let after = step.after.as_ref().map(|manifest| manifest.digest());
        (step.verb, &step.object, &step.uid, after)
    });
    let steps: Vec<_> = steps.collect();
    Digest::of(format!("{revision} {steps:?} {foregone:?} {kinds:?}"))
}

/// Runs the changes of a fleet as dry runs; `None` if there are none, or if the target can't be asked.
///
/// An unchanged fleet costs no call. Objects that can't have a dry run yet only have their kinds checked,
/// with one call for each API group. Of many new Namespaces some are asked about; all others cost one call each.
pub(super) async fn ask(target: &Target, part: &FleetPart, secrets: &Secrets) -> Option<DryRuns> {
    let Target::Kubernetes(target) = target else { return None };
    let requests = part.dry_run_requests();
    let mut runs = requests.foregone.clone();
    if requests.steps.is_empty() && runs.is_empty() {
        return None;
    }
    let missing = target.missing_kinds(&requests.kinds).await;
    for (object, run) in &mut runs {
        if let Some(missing) = missing.get(&(object.api_version.as_str(), object.kind.as_str())) {
            *run = missing.clone();
        }
    }
    let trials = |steps: &[&Step]| steps.iter().filter_map(|step| trial(step, secrets)).collect();
    runs.extend(target.dry_run(trials(&requests.steps)).await);
    let alike = match requests.of_alike(&runs) {
        AlikeDryRuns::Asked(steps) => target.dry_run(trials(steps)).await,
        AlikeDryRuns::Foregone(runs) => runs,
    };
    runs.extend(alike);
    Some(runs)
}

/// A step as it would be sent. Steps whose secrets are missing are left out, since that is reported
/// elsewhere.
fn trial(step: &Step, secrets: &Secrets) -> Option<ObjectWrite> {
    let manifest = step.after.as_ref()?;
    Some(ObjectWrite::of(step, manifest, secret::fill(manifest, secrets).ok()?))
}
