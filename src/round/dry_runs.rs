//! Dry runs of a fleet's part of a plan on its target, before the plan is shown.

use jiff::{SignedDuration, Timestamp};

use crate::catalog::Secrets;
use crate::names::{Digest, FleetKey, ObjectKey};
use crate::parallel::Memo;
use crate::plan::{AlikeDryRuns, DryRunRequests, DryRuns, FleetPart, Step, Verb};
use crate::secret;
use crate::target::{ObjectWrite, Target};

/// How long a result stays valid without a visible change: the reason why a server refuses something may be
/// out of sight.
const HOLDS: SignedDuration = SignedDuration::from_secs(60);

/// The answers in a running process, so that blocked changes don't cause a dry run in every round.
pub(super) type DryRunAnswers = Memo<FleetKey, DryRunAnswer>;

pub(super) struct DryRunAnswer {
    of: Asked,
    at: Timestamp,
    runs: DryRuns,
}

/// Everything that an answer depends on, as far as it is known here.
#[derive(PartialEq)]
struct Asked {
    /// The revision of the target.
    revision: u64,
    steps: Vec<(Verb, ObjectKey, Option<String>, Option<Digest>)>,
    foregone: DryRuns,
    kinds: Vec<(String, String)>,
}

/// Like [`ask`], unless the same was asked shortly before.
pub(super) async fn ask_unless_known(
    known: &DryRunAnswers,
    (fleet, target): (&FleetKey, &Target),
    part: &FleetPart,
    secrets: &Secrets,
    now: Timestamp,
) -> Option<DryRuns> {
    let of = target.revision().map(|revision| Asked::by(part, revision));
    if let Some(answer) = known.get(fleet)
        && Some(&answer.of) == of.as_ref()
        && now.duration_since(answer.at).abs() < HOLDS
    {
        return Some(answer.runs.clone());
    }
    let runs = ask(target, part, secrets).await;
    known.put(fleet, of.zip(runs.clone()).map(|(of, runs)| DryRunAnswer { of, at: now, runs }));
    runs
}

impl Asked {
    fn by(part: &FleetPart, revision: u64) -> Self {
        let DryRunRequests { steps, alike, foregone, kinds } = part.dry_run_requests();
        let step = |step: &&Step| {
            let after = step.after.as_ref().map(|manifest| manifest.digest());
            (step.verb, step.object.clone(), step.uid.clone(), after)
        };
        let kinds = kinds.into_iter().map(|(version, kind)| (version.to_owned(), kind.to_owned()));
        Self {
            revision,
            steps: steps.iter().chain(&alike).map(step).collect(),
            foregone,
            kinds: kinds.collect(),
        }
    }
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
