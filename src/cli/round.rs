//! The one way from a tree to a plan, which every verb that looks at a tree takes.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use secrecy::SecretString;
use tokio::runtime::Runtime;
use uuid::Uuid;

use crate::catalog::{self, Catalog, Recorded, RecordedResource, Secrets};
use crate::cli::console::Console;
use crate::cli::failure::Failure;
use crate::cli::settings::Settings;
use crate::execute::{self, Progress, Report};
use crate::names::{FleetKey, Kind, ResourceKey};
use crate::parallel;
use crate::plan::{self, FleetPart, ObservedFleet, Plan, Planner, Policy, Site};
use crate::render::Renderer;
use crate::secret::{Keyring, SecretStore};
use crate::source::directory;
use crate::spec::{self, Documents, InfraType, Spec};
use crate::state::{self, State, StateError};
use crate::target::{Target, Targets};

/// Whether a verb may write the state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// It leaves nothing behind: where there is no state, none is made.
    ReadOnly,
    /// It makes the state where there is none.
    Write,
}

/// A tree that was read and checked against what is recorded.
pub struct Checked {
    /// The state, where there is one.
    pub state: Option<State>,
    /// What is recorded.
    pub recorded: Recorded,
    /// The tree's secrets.
    pub secrets: Secrets,
    /// The tree, resolved.
    pub catalog: Catalog,
}

/// A tree that was planned.
pub struct Round {
    /// What the verb works with.
    pub settings: Settings,
    /// The tree, resolved, with the state that it was resolved against.
    pub checked: Checked,
    /// The fleets' targets.
    pub targets: Targets,
    /// What would be done.
    pub plan: Plan,
    runtime: Runtime,
}

/// The time of a verb: the one that a person asked about, or now.
pub fn time(asked: Option<Timestamp>) -> Timestamp {
    asked.unwrap_or_else(Timestamp::now)
}

/// Reads a tree and resolves it.
///
/// # Errors
/// When the tree, the state or the keys can't be read. Mistakes in specs are no such error: they are in the catalog.
pub fn check(
    settings: &Settings,
    access: Access,
    now: Timestamp,
    console: &mut Console,
) -> Result<Checked, Failure> {
    read(settings, access, now, console).map(|(checked, _)| checked)
}

/// Reads a tree and resolves it, and gives what was read too.
fn read(
    settings: &Settings,
    access: Access,
    now: Timestamp,
    console: &mut Console,
) -> Result<(Checked, Documents), Failure> {
    let snapshot = directory::scan(&settings.tree).map_err(|error| {
        Failure::during(format!("could not read the tree `{}`", settings.tree_as_given), &error)
    })?;
    let documents = spec::read(&snapshot, None);
    let state = open_state(settings, access, console)?;
    let recorded = match &state {
        Some(state) => state.recorded_resources().map_err(unreadable_state)?,
        None => Recorded::default(),
    };
    let secrets = secret_store(settings, access)?.open_all(&documents);
    let catalog = catalog::resolve(&documents, &recorded, &secrets, &settings.config, now);
    Ok((Checked { state, recorded, secrets, catalog }, documents))
}

/// Reads a tree, looks at the targets and plans.
///
/// # Errors
/// As [`check`].
pub fn run(
    settings: Settings,
    access: Access,
    now: Timestamp,
    console: &mut Console,
) -> Result<Round, Failure> {
    let (mut checked, documents) = read(&settings, access, now, console)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .map_err(|error| Failure::during("could not start the runtime", &error))?;
    let targets =
        Targets::for_fleets(&settings.output_dir, checked.recorded.installation, directory_fleets(&checked));
    if remember_ids(&mut checked, &targets, &runtime) {
        let Checked { recorded, secrets, .. } = &checked;
        checked.catalog = catalog::resolve(&documents, recorded, secrets, &settings.config, now);
    }
    drop(documents);
    let plan = plan(&checked, &targets, &policy(&settings, now), &runtime, console)?;
    let plan::Summary { create, change, delete, waiting, unchanged, errors, .. } = plan.summary;
    tracing::debug!(plan = plan.id, create, change, delete, waiting, unchanged, errors, "planned");
    Ok(Round { settings, checked, targets, plan, runtime })
}

/// Takes over the ids that targets remember of what isn't recorded, as after the registry was lost or an older one was
/// restored: an id is for life. Says whether any is another one than it would have been.
fn remember_ids(checked: &mut Checked, targets: &Targets, runtime: &Runtime) -> bool {
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

/// Renders, looks at and plans one fleet after the other, as many at a time as there are processors: what a fleet holds
/// is forgotten when its part of the plan is made.
fn plan(
    checked: &Checked,
    targets: &Targets,
    policy: &Policy,
    runtime: &Runtime,
    console: &mut Console,
) -> Result<Plan, Failure> {
    let Checked { state, recorded, catalog, .. } = checked;
    // Only a deletion asks what other fleets' targets remember.
    let marks = match catalog.absent.is_empty() {
        true => BTreeMap::new(),
        false => runtime.block_on(targets.marks(|_| true)),
    };
    let protected = marks.into_iter().filter(|(_, mark)| mark.protected).map(|(resource, _)| resource);
    let planner = Planner::new(catalog, recorded, protected.collect(), policy);
    let renderer = Renderer::new(catalog);
    let mut fleets = planner.fleets();
    fleets.extend(targets.fleets().cloned());
    fleets
        .extend(state.as_ref().map(State::fleets).transpose().map_err(unreadable_state)?.unwrap_or_default());
    let fleets: Vec<FleetKey> = fleets.into_iter().collect();
    let part = |fleet: &FleetKey| -> Result<(FleetPart, Unknown), StateError> {
        let held = state.as_ref().map(|state| state.recorded_fleet(fleet)).transpose()?.unwrap_or_default();
        let desired = renderer.fleet(fleet);
        let target = targets.get(fleet);
        let observed = target.map(|target| runtime.block_on(target.observe(&held, desired.as_ref())));
        let (desired, observed) = (desired.as_ref(), observed.as_ref());
        let part = planner.fleet(&Site { fleet, desired, recorded: Some(&held), observed });
        Ok((part, observed.map(|observed| unknown(checked, observed)).unwrap_or_default()))
    };
    let parts: Vec<(FleetPart, Unknown)> =
        parallel::map(&fleets, part).into_iter().collect::<Result<_, _>>().map_err(unreadable_state)?;
    let (parts, unknown): (Vec<FleetPart>, Vec<Unknown>) = parts.into_iter().unzip();
    fleets.iter().zip(unknown).for_each(|(fleet, unknown)| warn_of_unknown(fleet, unknown, console));
    Ok(planner.finish(parts))
}

fn unreadable_state(error: StateError) -> Failure {
    Failure::of_state("could not read the state", &error)
}

/// How many objects of ours a target holds for owners that are neither recorded nor described.
type Unknown = BTreeMap<ResourceKey, usize>;

/// What was made after the backup that was restored. Nothing of it is in the plan. Namespaces are kept on purpose when a
/// cluster is deleted, and definitions always.
fn unknown(checked: &Checked, observed: &ObservedFleet) -> Unknown {
    let is_unknown = |owner: &ResourceKey| {
        !checked.recorded.resources.contains_key(owner) && !checked.catalog.resources.contains_key(owner)
    };
    let mut unknown = Unknown::new();
    for (object, known) in &observed.inventory {
        let stays = ["Namespace", "CustomResourceDefinition"].contains(&object.kind.as_str());
        if !stays && is_unknown(&known.owner) {
            *unknown.entry(known.owner.clone()).or_default() += 1;
        }
    }
    unknown
}

fn warn_of_unknown(fleet: &FleetKey, unknown: Unknown, console: &mut Console) {
    for (owner, count) in unknown {
        console.warn(&format!(
            "fleet {fleet} holds objects of {owner} ({count}), which is neither recorded nor in the tree, as after an \
             older backup was restored: they stay; to go on with it or to delete it, put its spec back and apply first"
        ));
    }
}

/// The fleets that are folders, with the path of each where it is known: those of the tree, and those that are recorded
/// and may have to go. What a folder holds is found without the path.
fn directory_fleets(checked: &Checked) -> BTreeMap<FleetKey, Option<String>> {
    let recorded = checked.recorded.resources.iter().filter_map(recorded_directory);
    let planned = checked.catalog.fleets.values().map(|fleet| &fleet.spec);
    let planned = planned.filter(|fleet| fleet.infra_type == InfraType::Directory).map(|fleet| {
        let key = FleetKey { organization: fleet.organization.clone(), fleet: fleet.identifier.clone() };
        (key, fleet.advanced_config.path.clone())
    });
    recorded.chain(planned).collect()
}

/// A recorded fleet that is a folder. Its kind can't change, so that it outlives a lost cache; its path doesn't.
fn recorded_directory(
    (key, record): (&ResourceKey, &RecordedResource),
) -> Option<(FleetKey, Option<String>)> {
    if key.kind != Kind::Fleet {
        return None;
    }
    let last_good = record.last_good.as_ref();
    let applied = match last_good.and_then(|good| Spec::from_record(key.kind, &good.spec).ok()) {
        Some(Spec::Fleet(fleet)) => Some(fleet),
        _ => None,
    };
    let kind = || serde_json::from_value(record.immutable.get("/infra_type")?.clone()).ok();
    let infra_type: Option<InfraType> = applied.as_ref().map(|fleet| fleet.infra_type).or_else(kind);
    if infra_type != Some(InfraType::Directory) {
        return None;
    }
    let fleet = FleetKey { organization: key.organization.clone(), fleet: key.name.parse().ok()? };
    Some((fleet, applied.and_then(|fleet| fleet.advanced_config.path)))
}

fn policy(settings: &Settings, now: Timestamp) -> Policy {
    let policy = &settings.config.policy;
    Policy {
        now,
        cluster_deletions_per_hour: policy.cluster_deletions_per_hour,
        approval_lifetime: SignedDuration::from_hours(i64::from(policy.approval_hours)),
        software: env!("CARGO_PKG_VERSION").to_owned(),
    }
}

/// Before anything is written to the tree's own folder, git is told to leave it alone: it holds keys.
///
/// # Errors
/// When the folder can't be written.
pub fn prepare(settings: &Settings, access: Access) -> Result<(), Failure> {
    match access {
        Access::ReadOnly => Ok(()),
        Access::Write => settings
            .ignore_own_folder()
            .map_err(|error| Failure::during("could not keep `.streamfleet` in the tree out of git", &error)),
    }
}

/// Opens the state and passes on what it has to say about its own health.
pub fn open_state(
    settings: &Settings,
    access: Access,
    console: &mut Console,
) -> Result<Option<State>, Failure> {
    prepare(settings, access)?;
    let opened = match access {
        Access::ReadOnly => State::open_existing(&settings.state_dir),
        Access::Write => State::open(&settings.state_dir).map(Some),
    };
    let attempt = || format!("could not open the state in `{}`", settings.state_dir);
    let state = opened.map_err(|error| Failure::of_state(attempt(), &error))?;
    for warning in state.iter().flat_map(State::warnings) {
        console.warn(&warning);
    }
    Ok(state)
}

/// The keys of the installation and the places that secrets are in.
pub fn secret_store(settings: &Settings, access: Access) -> Result<SecretStore, Failure> {
    let variable = |name: &str| std::env::var(name).ok().map(SecretString::from);
    Ok(SecretStore::new(settings.secrets_dir.clone(), variable, keyring(settings, access)?))
}

/// The keys of the installation. Without any, a dry run can still compare what it can't open; it makes none that it would
/// leave behind.
pub fn keyring(settings: &Settings, access: Access) -> Result<Keyring, Failure> {
    prepare(settings, access)?;
    let attempt = || format!("could not read the keys in `{}`", settings.state_dir);
    state::finish_restore(&settings.state_dir).map_err(|error| Failure::of_state(attempt(), &error))?;
    let keyring = match access {
        Access::Write => Keyring::load_or_create(&settings.state_dir),
        Access::ReadOnly => match Keyring::load(&settings.state_dir) {
            Ok(None) => Keyring::ephemeral(),
            Ok(Some(keyring)) => Ok(keyring),
            Err(error) => Err(error),
        },
    };
    keyring.map_err(|error| Failure::of_secret(attempt(), &error))
}

impl Round {
    /// Does what the plan says.
    ///
    /// # Errors
    /// When there is no state to keep book in. Steps that fail are in the report.
    pub fn execute(&self, progress: &mut dyn FnMut(Progress<'_>)) -> Result<Report, Failure> {
        let Some(state) = &self.checked.state else {
            return Err(Failure::new("nothing can be applied without a state"));
        };
        let actor = actor();
        let work = execute::execute(
            &self.plan,
            &self.targets,
            state,
            &self.checked.secrets,
            &Timestamp::now,
            &actor,
            progress,
        );
        Ok(self.runtime.block_on(work))
    }

    /// Where the fleets that this plan changes have their manifests.
    pub fn written_folders(&self) -> Vec<String> {
        let changed = self.plan.fleets.iter().filter(|fleet| fleet.ordered_steps().next().is_some());
        changed.filter_map(|fleet| self.folder(&fleet.fleet)).collect()
    }

    /// Where a cluster's manifests are.
    pub fn manifests_of(&self, cluster: &ResourceKey) -> Option<String> {
        let cluster = self.checked.catalog.clusters.get(cluster)?;
        Some(format!("{}/{}", self.folder(&cluster.fleet)?, cluster.namespace))
    }

    fn folder(&self, fleet: &FleetKey) -> Option<String> {
        match self.targets.get(fleet)? {
            Target::Directory(directory) => Some(self.shorten(&directory.root())),
        }
    }

    /// A path as the person would write it: below the tree as they named it.
    fn shorten(&self, path: &camino::Utf8Path) -> String {
        match path.strip_prefix(&self.settings.tree) {
            Ok(below) => self.settings.tree_as_given.join(below).into_string(),
            Err(_) => path.to_string(),
        }
    }
}

/// Who runs the command, for the audit trail.
pub fn actor() -> String {
    let user = std::env::var("SUDO_USER")
        .or_else(|_| std::env::var("USER"))
        .unwrap_or_else(|_| "unknown".to_owned());
    format!("{user} (command line)")
}
