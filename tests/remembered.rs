//! What a running process remembers of fleets changes no plan, whatever happens between two of them.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use camino::Utf8PathBuf;
use futures_util::FutureExt as _;
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use streamfleet::catalog::{self, Secrets};
use streamfleet::config::Config;
use streamfleet::execute::{Progress, execute};
use streamfleet::names::FleetKey;
use streamfleet::plan::{Plan, Planner, Policy, Site};
use streamfleet::render::Renderer;
use streamfleet::secret::{Keyring, SecretStore};
use streamfleet::source::directory;
use streamfleet::spec;
use streamfleet::state::{State, StateError};
use streamfleet::target::{Basis, Memory, Targets};

use crate::support::{Tree, files};

/// The specs that are edited, each of a cluster on a fleet of its own.
const SPECS: [&str; 2] = ["acme/clusters/events.yaml", "globex/clusters/events.yaml"];

/// A process that plans one tree again and again.
struct Process {
    tree: Tree,
    state: State,
    config: Config,
    now: Timestamp,
}

struct Planned {
    plan: Plan,
    targets: Targets,
    secrets: Secrets,
    /// How many fleets were looked at.
    looks: usize,
}

impl Process {
    /// A process on two organizations with a fleet and a cluster each, which were applied.
    fn start() -> Self {
        let tree = Tree::example("two-organizations");
        tree.run("apply tree --yes").expect(0);
        let state = State::open(&folder(&tree, "state")).unwrap();
        Self { tree, state, config: Config::default(), now: "2026-12-01T12:00:00Z".parse().unwrap() }
    }

    /// A plan as every verb makes one, but for what is remembered.
    fn plan(&self, memory: &Memory) -> Planned {
        let root = Utf8PathBuf::from_path_buf(self.tree.path().canonicalize().unwrap()).unwrap();
        let documents = spec::read(&directory::scan(&root).unwrap(), None);
        let recorded = self.state.recorded_resources().unwrap();
        let keyring = Keyring::load_or_create(&folder(&self.tree, "state")).unwrap();
        let secrets = SecretStore::new(folder(&self.tree, "secrets"), |_| None, keyring).open_all(&documents);
        let catalog = catalog::resolve(&documents, &recorded, &secrets, &self.config, self.now);
        let mut fleets: BTreeMap<FleetKey, Option<String>> =
            ["acme/main", "globex/main"].map(|key| (key.to_owned().try_into().unwrap(), None)).into();
        let paths = catalog.fleets.iter().map(|(key, fleet)| (key, &fleet.spec.advanced_config.path));
        fleets.extend(paths.map(|(key, path)| (key.clone(), path.clone())));
        let targets =
            Targets::for_fleets(&folder(&self.tree, "output"), recorded.installation, fleets.clone());
        let policy = Policy {
            now: self.now,
            cluster_deletions_per_hour: 1,
            approval_lifetime: SignedDuration::from_hours(24),
            software: "0.1.0".to_owned(),
        };
        let planner = Planner::new(&catalog, &recorded, Default::default(), &policy);
        let (renderer, looks) = (Renderer::new(&catalog), AtomicUsize::new(0));
        let look = |fleet: &FleetKey| {
            looks.fetch_add(1, Ordering::Relaxed);
            let held = self.state.recorded_fleet(fleet)?;
            let desired = renderer.fleet(fleet);
            let target = targets.get(fleet).unwrap();
            let observed = target.observe(&held, desired.as_ref()).now_or_never();
            let (desired, observed) = (desired.as_ref(), observed.as_ref());
            Ok::<_, StateError>(planner.fleet(&Site { fleet, desired, recorded: Some(&held), observed }))
        };
        // Nothing here changes twice within a tick without changing its size, so nobody has to wait for the clock.
        let later = SystemTime::now() + Duration::from_secs(60);
        let part = |fleet: &FleetKey| {
            let basis = Basis { desired: renderer.inputs(fleet), recorded: self.state.version_of(fleet) };
            memory.part(&planner, fleet, targets.get(fleet), basis, later, || look(fleet)).unwrap()
        };
        let parts = fleets.keys().map(part).collect();
        let plan = planner.finish(parts);
        Planned { plan, targets, secrets, looks: looks.into_inner() }
    }

    fn apply(&self) {
        let Planned { plan, targets, secrets, .. } = self.plan(&Memory::default());
        let (clock, mut progress) = (|| self.now, |_: Progress<'_>| {});
        let work = execute(&plan, &targets, &self.state, &secrets, &clock, "tester", &mut progress);
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work);
    }
}

fn folder(tree: &Tree, name: &str) -> Utf8PathBuf {
    Utf8PathBuf::from_path_buf(tree.path().join(".streamfleet").join(name)).unwrap()
}

/// What happens between two plans.
#[derive(Debug, Clone)]
enum Event {
    Resize { spec: usize, units: u32 },
    Break { spec: usize },
    Remove { spec: usize },
    Settings,
    Later,
    Apply,
    EditFile(prop::sample::Index),
    DeleteFile(prop::sample::Index),
    ReplaceFile(prop::sample::Index),
    LinkFile(prop::sample::Index),
    ForgetObject(prop::sample::Index),
    ForgetFleet(usize),
    SeeFleet(usize),
}

fn event() -> impl Strategy<Value = Event> {
    let spec = || 0..SPECS.len();
    let file = any::<prop::sample::Index>;
    prop_oneof![
        3 => (spec(), 1..4_u32).prop_map(|(spec, units)| Event::Resize { spec, units }),
        1 => spec().prop_map(|spec| Event::Break { spec }),
        1 => spec().prop_map(|spec| Event::Remove { spec }),
        1 => Just(Event::Settings),
        1 => Just(Event::Later),
        4 => Just(Event::Apply),
        2 => file().prop_map(Event::EditFile),
        2 => file().prop_map(Event::DeleteFile),
        1 => file().prop_map(Event::ReplaceFile),
        1 => file().prop_map(Event::LinkFile),
        2 => file().prop_map(Event::ForgetObject),
        1 => spec().prop_map(Event::ForgetFleet),
        1 => spec().prop_map(Event::SeeFleet),
    ]
}

/// A path of the output folder, chosen at random: the inventories are among them.
fn output(process: &Process, chosen: &prop::sample::Index) -> Option<PathBuf> {
    let root = process.tree.path().join(".streamfleet/output");
    let paths: Vec<String> = files(&root).into_iter().map(|(path, _)| path).collect();
    (!paths.is_empty()).then(|| root.join(chosen.get(&paths)))
}

fn happen(process: &mut Process, specs: &[String], event: &Event) {
    let fleet = |at: usize| FleetKey::try_from(["acme/main", "globex/main"][at].to_owned()).unwrap();
    match event {
        Event::Resize { spec, units } => {
            let text = specs[*spec].lines().filter(|line| !line.starts_with("kafka_units:"));
            let text: Vec<&str> = text.collect();
            process.tree.write(SPECS[*spec], format!("{}\nkafka_units: {units}\n", text.join("\n")));
        }
        Event::Break { spec } => process.tree.write(SPECS[*spec], "kind: [\n"),
        Event::Remove { spec } => drop(fs::remove_file(process.tree.path().join(SPECS[*spec]))),
        Event::Settings => {
            process.config.secrets.write_to_output = !process.config.secrets.write_to_output;
        }
        Event::Later => process.now += SignedDuration::from_hours(30),
        Event::Apply => process.apply(),
        Event::EditFile(file) => {
            if let Some(path) = output(process, file) {
                let text = fs::read(&path).unwrap();
                fs::write(path, [&text[..], b"\n# edited"].concat()).unwrap();
            }
        }
        Event::DeleteFile(file) => drop(output(process, file).map(fs::remove_file)),
        Event::ReplaceFile(file) => {
            if let Some(path) = output(process, file) {
                let other = path.with_extension("other");
                fs::copy(&path, &other).unwrap();
                fs::rename(other, path).unwrap();
            }
        }
        Event::LinkFile(file) => {
            if let Some(path) = output(process, file) {
                let other = path.with_extension("other");
                fs::rename(&path, &other).unwrap();
                std::os::unix::fs::symlink(other, path).unwrap();
            }
        }
        Event::ForgetObject(object) => {
            let fleet = fleet(0);
            let objects: Vec<_> = process.state.objects(&fleet).unwrap().into_keys().collect();
            if !objects.is_empty() {
                process.state.remove_object(&fleet, object.get(&objects)).unwrap();
            }
        }
        Event::ForgetFleet(at) => process.state.forget_target(&fleet(*at)).unwrap(),
        Event::SeeFleet(at) => process.state.put_seen(&fleet(*at), process.now).unwrap(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn with_and_without_memory_the_plan_is_the_same(events in proptest::collection::vec(event(), 1..8)) {
        let (mut process, memory) = (Process::start(), Memory::default());
        let specs = SPECS.map(|spec| process.tree.read(spec));
        for event in &events {
            happen(&mut process, &specs, event);
            let plain = process.plan(&Memory::default()).plan.to_json();
            for _ in 0..2 {
                prop_assert_eq!(&process.plan(&memory).plan.to_json(), &plain);
            }
        }
    }
}

#[test]
fn a_fleet_is_looked_at_again_when_something_of_it_changed_and_only_then() {
    let (process, memory) = (Process::start(), Memory::default());
    let looks = || process.plan(&memory).looks;
    assert_eq!([looks(), looks()], [2, 0]);
    process.tree.edit(SPECS[0], "kafka_units: 1", "kafka_units: 2");
    assert_eq!([looks(), looks()], [1, 1], "what differs is not remembered");
    process.apply();
    assert_eq!([looks(), looks()], [1, 0]);
    let manifest = process.tree.path().join(".streamfleet/output").join(manifest(&process));
    let text = fs::read_to_string(&manifest).unwrap();
    fs::write(&manifest, format!("{text}\n")).unwrap();
    let planned = process.plan(&memory);
    assert_eq!((planned.looks, planned.plan.summary.change), (1, 1));
    fs::write(&manifest, text).unwrap();
    assert_eq!([looks(), looks()], [1, 0]);
    let fleet = "acme/main".to_owned().try_into().unwrap();
    process.state.put_seen(&fleet, process.now).unwrap();
    assert_eq!(looks(), 0);
    process.state.forget_target(&fleet).unwrap();
    assert_eq!(looks(), 1);
}

/// A manifest of the first fleet.
fn manifest(process: &Process) -> String {
    let output = process.tree.output().into_iter().map(|(path, _)| path);
    output.filter(|path| path.starts_with("acme/main/")).find(|path| path.ends_with(".yaml")).unwrap()
}
