//! One round, from what a source says to what is done: the pure steps joined with the effects around them. Every way to run
//! Streamfleet goes through here, so that all of them see the same plan.

mod targets;

use std::collections::{BTreeMap, BTreeSet};

use camino::Utf8PathBuf;
use jiff::{SignedDuration, Timestamp};
use tokio::runtime::Handle;
use uuid::Uuid;

use crate::catalog::{self, Catalog, Recorded, Secrets};
use crate::config::Config;
use crate::execute::{self, Progress, Report};
use crate::names::{FleetKey, ResourceKey};
use crate::parallel;
use crate::plan::{FleetPart, ObservedFleet, Plan, Planner, Policy, Site};
use crate::render::Renderer;
use crate::secret::SecretStore;
use crate::spec::Documents;
use crate::state::{State, StateError};
use crate::target::Targets;

/// What stays the same from round to round.
pub struct Installation {
    /// What is recorded; none where nothing was ever applied and nothing may be written.
    pub state: Option<State>,
    /// Where secrets are, and the keys that open them.
    pub secrets: SecretStore,
    /// The settings.
    pub config: Config,
    /// The folder that directory fleets write to.
    pub output_dir: Utf8PathBuf,
    /// The version that renders.
    pub software: String,
}

/// A tree that was checked against what is recorded.
pub struct Checked {
    /// What is recorded.
    pub recorded: Recorded,
    /// The tree's secrets.
    pub secrets: Secrets,
    /// The tree, resolved.
    pub catalog: Catalog,
}

/// A tree that was planned.
pub struct Round {
    /// The tree, with what it was resolved against.
    pub checked: Checked,
    /// The fleets' targets.
    pub targets: Targets,
    /// What would be done.
    pub plan: Plan,
    /// What is ours on a target and neither recorded nor described. Nothing of it is in the plan.
    pub unknown: Vec<Unknown>,
}

/// Objects of ours on a target whose owner nobody knows any more: it was made after the backup that was restored.
pub struct Unknown {
    /// Where.
    pub fleet: FleetKey,
    /// The owner.
    pub owner: ResourceKey,
    /// How many objects.
    pub objects: usize,
}

impl Installation {
    /// Opens a tree's secrets and resolves it.
    ///
    /// # Errors
    /// When the state can't be read. Mistakes in specs are no such error: they are in the catalog.
    pub fn check(&self, documents: &Documents, now: Timestamp) -> Result<Checked, StateError> {
        let recorded = self.state.as_ref().map(State::recorded_resources).transpose()?.unwrap_or_default();
        let secrets = self.secrets.open_all(documents);
        let catalog = catalog::resolve(documents, &recorded, &secrets, &self.config, now);
        Ok(Checked { recorded, secrets, catalog })
    }

    /// Checks a tree, looks at the targets and plans. It blocks, so it may not be called where async work runs.
    ///
    /// # Errors
    /// As [`Installation::check`].
    pub fn plan(&self, documents: &Documents, now: Timestamp, runtime: &Handle) -> Result<Round, StateError> {
        let mut checked = self.check(documents, now)?;
        let targets = targets::of(&self.output_dir, &checked);
        if remember_ids(&mut checked, &targets, runtime) {
            let Checked { recorded, secrets, .. } = &checked;
            checked.catalog = catalog::resolve(documents, recorded, secrets, &self.config, now);
        }
        let (plan, unknown) = self.plan_fleets(&checked, &targets, &self.policy(now), runtime)?;
        Ok(Round { checked, targets, plan, unknown })
    }

    /// Renders, looks at and plans one fleet after the other, as many at a time as there are processors: what a fleet holds
    /// is forgotten when its part of the plan is made.
    fn plan_fleets(
        &self,
        checked: &Checked,
        targets: &Targets,
        policy: &Policy,
        runtime: &Handle,
    ) -> Result<(Plan, Vec<Unknown>), StateError> {
        let Checked { recorded, catalog, .. } = checked;
        let state = self.state.as_ref();
        let planner = Planner::new(catalog, recorded, protected(catalog, targets, runtime), policy);
        let renderer = Renderer::new(catalog);
        let mut fleets = planner.fleets();
        fleets.extend(targets.fleets().cloned());
        fleets.extend(state.map(State::fleets).transpose()?.unwrap_or_default());
        let fleets: Vec<FleetKey> = fleets.into_iter().collect();
        let part = |fleet: &FleetKey| -> Result<(FleetPart, Vec<Unknown>), StateError> {
            let held = state.map(|state| state.recorded_fleet(fleet)).transpose()?.unwrap_or_default();
            let desired = renderer.fleet(fleet);
            let target = targets.get(fleet);
            let observed = target.map(|target| runtime.block_on(target.observe(&held, desired.as_ref())));
            let (desired, observed) = (desired.as_ref(), observed.as_ref());
            let part = planner.fleet(&Site { fleet, desired, recorded: Some(&held), observed });
            Ok((part, observed.map(|observed| unknown(checked, fleet, observed)).unwrap_or_default()))
        };
        let parts: Vec<_> = parallel::map(&fleets, part).into_iter().collect::<Result<_, _>>()?;
        let (parts, unknown): (Vec<FleetPart>, Vec<Vec<Unknown>>) = parts.into_iter().unzip();
        Ok((planner.finish(parts), unknown.into_iter().flatten().collect()))
    }

    fn policy(&self, now: Timestamp) -> Policy {
        let policy = &self.config.policy;
        Policy {
            now,
            cluster_deletions_per_hour: policy.cluster_deletions_per_hour,
            approval_lifetime: SignedDuration::from_hours(i64::from(policy.approval_hours)),
            software: self.software.clone(),
        }
    }
}

impl Round {
    /// Does what the plan says, and keeps book in `state`.
    pub async fn execute(
        &self,
        state: &State,
        clock: &dyn Fn() -> Timestamp,
        actor: &str,
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> Report {
        let Round { plan, targets, checked, .. } = self;
        execute::execute(plan, targets, state, &checked.secrets, clock, actor, progress).await
    }
}

/// Takes over the ids that targets remember of what isn't recorded, as after the registry was lost or an older one was
/// restored: an id is for life. Says whether any is another one than it would have been.
fn remember_ids(checked: &mut Checked, targets: &Targets, runtime: &Handle) -> bool {
    let Checked { recorded, catalog, .. } = checked;
    let is_unrecorded =
        |key: &ResourceKey| !recorded.resources.contains_key(key) && !recorded.generations.contains_key(key);
    let unrecorded = catalog.resources.values().filter(|resource| is_unrecorded(&resource.key));
    let fleets: BTreeSet<FleetKey> = unrecorded.filter_map(|resource| resource.fleet()).collect();
    let marks = runtime.block_on(targets.marks(|fleet| fleets.contains(fleet)));
    let differing =
        marks.into_iter().filter(|(key, mark)| is_unrecorded(key) && recorded.id_of(key) != mark.id);
    let remembered: BTreeMap<ResourceKey, Uuid> = differing.map(|(key, mark)| (key, mark.id)).collect();
    recorded.remembered_ids = remembered;
    !recorded.remembered_ids.is_empty()
}

/// What targets remember as protected. Only a deletion asks what those of other fleets do.
fn protected(catalog: &Catalog, targets: &Targets, runtime: &Handle) -> BTreeSet<ResourceKey> {
    if catalog.absent.is_empty() {
        return BTreeSet::new();
    }
    let marks = runtime.block_on(targets.marks(|_| true));
    marks.into_iter().filter(|(_, mark)| mark.protected).map(|(resource, _)| resource).collect()
}

/// Whose objects are on a target without anybody knowing the owner. Namespaces are kept on purpose when a cluster is
/// deleted, and definitions always.
fn unknown(checked: &Checked, fleet: &FleetKey, observed: &ObservedFleet) -> Vec<Unknown> {
    let is_known = |owner: &ResourceKey| {
        checked.recorded.resources.contains_key(owner) || checked.catalog.resources.contains_key(owner)
    };
    let mut owners: BTreeMap<&ResourceKey, usize> = BTreeMap::new();
    for (object, known) in &observed.inventory {
        let stays = ["Namespace", "CustomResourceDefinition"].contains(&object.kind.as_str());
        if !stays && !is_known(&known.owner) {
            *owners.entry(&known.owner).or_default() += 1;
        }
    }
    let unknown = |(owner, objects): (&ResourceKey, usize)| Unknown {
        fleet: fleet.clone(),
        owner: owner.clone(),
        objects,
    };
    owners.into_iter().map(unknown).collect()
}
