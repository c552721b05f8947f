//! The cached state of fleets in a running process changes no plan, whatever happens between two of them.
//!
//! ```sh
//! STREAMFLEET_TURMOIL=1000 cargo test --test all remembered    # so many changes instead of a few
//! ```

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use camino::Utf8PathBuf;
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use streamfleet::config::Config;
use streamfleet::execute::ExecutionProgress;
use streamfleet::names::FleetKey;
use streamfleet::plan::Reach;
use streamfleet::round::{Installation, Recorder, Round, RoundMemory};
use streamfleet::secret::{Keyring, SecretStore};
use streamfleet::source::directory;
use streamfleet::spec;
use streamfleet::state::State;
use tokio::runtime::Runtime;

use crate::kubernetes;
use crate::support::control_plane::{ControlPlane, until};
use crate::support::{Tree, files, names};
use crate::turmoil::edits;

/// The edited clusters, of which the last is on the first one's fleet.
const SPECS: [&str; 3] =
    ["acme/clusters/events.yaml", "globex/clusters/events.yaml", "acme/clusters/metrics.yaml"];

const TOPIC: &str = "acme/topics/events/payments.yaml";

/// Documents of all other kinds, each in a file with some variants. An empty one is no file.
static OTHERS: LazyLock<Vec<(&str, Vec<String>)>> = LazyLock::new(|| {
    let organizations = |units: u32, domains: &str| {
        format!(
            "apiVersion: streamfleet/v1\nkind: Organization\nidentifier: acme\nquotas: {{kafka_units: {units}}}\ndomains: [acme.example.com]\n---\n\
             apiVersion: streamfleet/v1\nkind: Organization\nidentifier: globex\ndomains: [{domains}]\n"
        )
    };
    let fleet = |organization: &str, units: u32, more: &str| {
        format!(
            "apiVersion: streamfleet/v1\nkind: Fleet\norganization: {organization}\nidentifier: main\ninfra_type: directory\ntenancy_mode: Shared\n\
             max_tenants: 3\nmax_kafka_units: {units}\n{more}"
        )
    };
    let provider = |audience: &str| {
        format!(
            "apiVersion: streamfleet/v1\nkind: IdentityProvider\norganization: acme\nidentifier: sso\nissuer: https://id.example.com\n\
             jwks_uri: https://id.example.com/keys\ntoken_endpoint: https://id.example.com/token\naudience: {audience}\n"
        )
    };
    let account = |secret: &str| {
        format!(
            "apiVersion: streamfleet/v1\nkind: CloudAccount\norganization: acme\nidentifier: dns\nprovider: aws\nregion: eu-central-1\ncredentials: |\n  \
             [default]\n  aws_access_key_id = ONE\n  aws_secret_access_key = {secret}\n"
        )
    };
    let domain = |organization: &str, name: &str, more: &str| {
        let tls = names::fields(&names::certificate(&[&format!("*.{organization}.{name}")]));
        format!(
            "apiVersion: streamfleet/v1\nkind: BaseDomain\norganization: {organization}\ndomain: {name}\n{more}{tls}"
        )
    };
    let user = |topic: &str| {
        format!(
            "apiVersion: streamfleet/v1\nkind: User\norganization: acme\ncluster: events\nidentifier: reader\n\
             produce: [{topic}]\n"
        )
    };
    let acme = domain("acme", "kafka.acme.example.com", "");
    vec![
        (
            "organizations.yaml",
            vec![organizations(6, "globex.example.com"), organizations(2, "acme.example.com")],
        ),
        (
            "acme/fleets/main.yaml",
            vec![
                fleet("acme", 6, ""),
                fleet("acme", 1, ""),
                fleet("acme", 6, "domain: kafka.acme.example.com\n"),
                fleet("acme", 6, "suspend: true\n"),
            ],
        ),
        ("globex/fleets/main.yaml", vec![fleet("globex", 6, ""), fleet("globex", 2, "")]),
        ("acme/sso.yaml", vec![String::new(), provider("kafka"), provider("other")]),
        ("acme/account.yaml", vec![String::new(), account("one"), account("another")]),
        (
            "acme/domain.yaml",
            vec![String::new(), acme.clone(), format!("{acme}dns_provider: route53\ncloud_account: dns\n")],
        ),
        ("globex/domain.yaml", vec![String::new(), domain("globex", "kafka.acme.example.com", "")]),
        ("acme/user.yaml", vec![String::new(), user("payments"), user("payments*")]),
    ]
});

struct Process {
    tree: Tree,
    installation: Installation,
    now: Timestamp,
    runtime: Runtime,
}

impl Process {
    /// A process on two applied organizations with a fleet each.
    fn start() -> Self {
        let tree = Tree::example("two-organizations");
        let neighbour = tree.read(SPECS[0]).replace("identifier: events", "identifier: metrics");
        tree.write(SPECS[2], neighbour);
        tree.write(TOPIC, topic(3));
        tree.run("apply tree --yes").expect(0);
        Self::on(tree, Config::default())
    }

    fn on(tree: Tree, config: Config) -> Self {
        let keyring = Keyring::load_or_create(&folder(&tree, "state")).unwrap();
        let installation = Installation {
            state: Some(State::open(&folder(&tree, "state")).unwrap().into()),
            secrets: SecretStore::new(folder(&tree, "secrets"), |_| None, keyring).into(),
            config: Arc::new(config),
            output_dir: folder(&tree, "output"),
            software: "0.1.0".to_owned(),
            proposed: false,
        };
        // A minute ahead, so that files count as settled at once.
        let now = Timestamp::now() + SignedDuration::from_mins(1);
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        Self { tree, installation, now, runtime }
    }

    fn state(&self) -> &State {
        self.installation.state.as_ref().unwrap()
    }

    fn plan(&self, memory: Option<&RoundMemory>) -> Round {
        let root = Utf8PathBuf::from_path_buf(self.tree.path().canonicalize().unwrap()).unwrap();
        let documents = Arc::new(spec::read(&directory::scan(&root).unwrap(), None));
        self.installation.plan(&documents, self.now, self.runtime.handle(), memory).unwrap()
    }

    fn apply(&self) {
        let round = self.plan(None);
        let (clock, mut progress) = (|| self.now, |_: ExecutionProgress<'_>| {});
        let recorder = Recorder { state: self.state(), clock: &clock, actor: "tester" };
        self.runtime.block_on(round.execute(recorder, &mut progress));
    }
}

fn fleet(at: usize) -> FleetKey {
    FleetKey::try_from(["acme/main", "globex/main"][at].to_owned()).unwrap()
}

fn topic(partitions: u32) -> String {
    format!(
        "apiVersion: streamfleet/v1\nkind: Topic\norganization: acme\ncluster: events\nname: payments\n\
         deletion_protection: false\npartitions: {partitions}\n"
    )
}

fn folder(tree: &Tree, name: &str) -> Utf8PathBuf {
    Utf8PathBuf::from_path_buf(tree.path().join(".streamfleet").join(name)).unwrap()
}

#[derive(Debug, Clone)]
enum Event {
    Resize {
        spec: usize,
        units: u32,
    },
    Break {
        spec: usize,
    },
    Garble {
        spec: usize,
    },
    Remove {
        spec: usize,
    },
    EditTopic {
        partitions: u32,
    },
    RemoveTopic,
    Other {
        file: usize,
        variant: prop::sample::Index,
    },
    /// The first cluster refers to the identity provider, and is reached from outside.
    Refer,
    Settings,
    Later,
    Apply,
    EditFile(prop::sample::Index),
    RewriteFile(prop::sample::Index),
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
        1 => spec().prop_map(|spec| Event::Garble { spec }),
        1 => spec().prop_map(|spec| Event::Remove { spec }),
        2 => (1..6_u32).prop_map(|partitions| Event::EditTopic { partitions }),
        1 => Just(Event::RemoveTopic),
        8 => (0..OTHERS.len(), any::<prop::sample::Index>()).prop_map(|(file, variant)| Event::Other { file, variant }),
        2 => Just(Event::Refer),
        1 => Just(Event::Settings),
        1 => Just(Event::Later),
        4 => Just(Event::Apply),
        2 => file().prop_map(Event::EditFile),
        2 => file().prop_map(Event::RewriteFile),
        2 => file().prop_map(Event::DeleteFile),
        1 => file().prop_map(Event::ReplaceFile),
        1 => file().prop_map(Event::LinkFile),
        2 => file().prop_map(Event::ForgetObject),
        1 => (0..2_usize).prop_map(Event::ForgetFleet),
        1 => (0..2_usize).prop_map(Event::SeeFleet),
    ]
}

/// A random path of the output folder, inventories included.
fn output(process: &Process, chosen: &prop::sample::Index) -> Option<PathBuf> {
    let mut paths = Vec::new();
    list(&process.tree.path().join(".streamfleet/output"), &mut paths);
    paths.sort();
    (!paths.is_empty()).then(|| chosen.get(&paths).clone())
}

/// Lists files, and links to files that exist.
fn list(folder: &Path, found: &mut Vec<PathBuf>) {
    for path in fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path()) {
        match path.is_dir() {
            true => list(&path, found),
            false => found.extend(path.is_file().then_some(path)),
        }
    }
}

fn happen(process: &mut Process, specs: &[String], event: &Event) {
    match event {
        Event::Resize { spec, units } => {
            let text = specs[*spec].lines().filter(|line| !line.starts_with("kafka_units:"));
            let text: Vec<&str> = text.collect();
            process.tree.write(SPECS[*spec], format!("{}\nkafka_units: {units}\n", text.join("\n")));
        }
        Event::Break { spec } => process.tree.write(SPECS[*spec], "kind: [\n"),
        Event::Garble { spec } => process.tree.write(SPECS[*spec], b"kind: \xff\n"),
        Event::EditTopic { partitions } => process.tree.write(TOPIC, topic(*partitions)),
        Event::Other { file, variant } => {
            let (path, variants) = &OTHERS[*file];
            match variant.get(variants).as_str() {
                "" => drop(fs::remove_file(process.tree.path().join(path))),
                text => process.tree.write(path, text),
            }
        }
        Event::Refer => {
            let more = "  oauth: sso\n  cluster_access: External\n";
            process.tree.write(SPECS[0], format!("{}{more}", specs[0]));
        }
        Event::RemoveTopic => drop(fs::remove_file(process.tree.path().join(TOPIC))),
        Event::Remove { spec } => drop(fs::remove_file(process.tree.path().join(SPECS[*spec]))),
        Event::Settings => {
            let secrets = &mut Arc::make_mut(&mut process.installation.config).secrets;
            secrets.write_to_output = !secrets.write_to_output;
        }
        Event::Later => process.now += SignedDuration::from_hours(30),
        Event::Apply => process.apply(),
        Event::EditFile(file) => {
            if let Some(path) = output(process, file) {
                let text = fs::read(&path).unwrap();
                fs::write(path, [&text[..], b"\n# edited"].concat()).unwrap();
            }
        }
        Event::RewriteFile(file) => {
            if let Some(path) = output(process, file) {
                let mut bytes = fs::read(&path).unwrap();
                if let Some(last) = bytes.last_mut() {
                    *last ^= 1;
                }
                fs::write(path, bytes).unwrap();
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
                let other = path.with_added_extension("other");
                fs::rename(&path, &other).unwrap();
                std::os::unix::fs::symlink(other, path).unwrap();
            }
        }
        Event::ForgetObject(object) => {
            let fleet = fleet(0);
            let objects: Vec<_> = process.state().objects(&fleet).unwrap().into_keys().collect();
            if !objects.is_empty() {
                process.state().remove_object(&fleet, object.get(&objects)).unwrap();
            }
        }
        Event::ForgetFleet(at) => process.state().forget_target(&fleet(*at)).unwrap(),
        Event::SeeFleet(at) => process.state().record_observation(&fleet(*at), process.now).unwrap(),
    }
}

/// Changes without an event are found by periodic checks and on request.
#[test]
fn folders_are_taken_to_be_as_they_were_until_somebody_doubts_that() {
    let process = Process::start();
    let memory = RoundMemory::default();
    process.plan(Some(&memory));
    let looked = |memory: &RoundMemory| process.plan(Some(memory)).looked;
    assert_eq!(looked(&memory), 0);
    let root = process.tree.path().join(".streamfleet/output");
    let pool = files(&root).into_iter().map(|(path, _)| path).find(|path| path.contains("kafkanodepool"));
    fs::remove_file(root.join(pool.unwrap())).unwrap();

    assert!(memory.trust_folders(true));
    assert_eq!(looked(&memory), 0);
    // A proposal planned beside the process reads the target.
    assert_eq!(looked(&memory.copy()), 1);
    memory.doubt_folders();
    assert!(!memory.trust_folders(true));
    assert_eq!(looked(&memory), 1);
    assert!(memory.trust_folders(true));
    // A fleet with a finding is checked in every round.
    assert_eq!(looked(&memory), 1);
}

/// Work may begin on a fleet during a proposal: what is observed then isn't taken for foreign.
#[test]
fn a_fleet_on_which_work_begins_while_others_plan_is_told_as_under_way() {
    let process = Process::start();
    let memory = Arc::new(RoundMemory::default());
    let (worker, now) = (Arc::clone(&memory), process.now);
    let beside = memory.copy().watched_by(move || worker.begins(&fleet(0), now));
    let round = process.plan(Some(&beside));
    assert_eq!(round.fleet_plan(&fleet(0)).unwrap().reach, Reach::UnderWay { since: now });
    assert_eq!(round.fleet_plan(&fleet(1)).unwrap().reach, Reach::Reached);
    assert_eq!(round.under_way, [fleet(0)].into());
    memory.ended(&fleet(0));
    let round = process.plan(Some(&memory.copy()));
    assert_eq!(round.fleet_plan(&fleet(0)).unwrap().reach, Reach::Reached);
    assert!(round.under_way.is_empty());
}

/// As many as have about the edits that `tests/turmoil.rs` is asked for.
fn cases() -> u32 {
    u32::try_from(edits(48) / 4).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn with_and_without_memory_the_plan_is_the_same(
        events in proptest::collection::vec(event(), 1..16),
        is_young in any::<bool>(),
    ) {
        let (mut process, memory) = (Process::start(), RoundMemory::default());
        let specs = SPECS.map(|spec| process.tree.read(spec));
        for event in &events {
            happen(&mut process, &specs, event);
            if is_young {
                process.now = Timestamp::now();
            }
            let plain = process.plan(None).plan.to_json();
            for _ in 0..2 {
                prop_assert_eq!(&process.plan(Some(&memory)).plan.to_json(), &plain);
            }
        }
    }
}

#[test]
fn a_fleet_is_looked_at_again_when_something_of_it_changed_and_only_then() {
    let (process, memory) = (Process::start(), RoundMemory::default());
    let looks = || process.plan(Some(&memory)).looked;
    assert_eq!([looks(), looks()], [2, 0]);
    process.tree.edit(SPECS[0], "kafka_units: 1", "kafka_units: 2");
    assert_eq!([looks(), looks()], [1, 1], "what differs is not remembered");
    process.apply();
    assert_eq!([looks(), looks()], [1, 0]);
    let manifest = process.tree.path().join(".streamfleet/output").join(manifest(&process));
    let text = fs::read_to_string(&manifest).unwrap();
    fs::write(&manifest, format!("{text}\n")).unwrap();
    let planned = process.plan(Some(&memory));
    assert_eq!((planned.looked, planned.plan.summary.change), (1, 1));
    fs::write(&manifest, text).unwrap();
    assert_eq!([looks(), looks()], [1, 0]);
    let fleet = "acme/main".to_owned().try_into().unwrap();
    process.state().record_observation(&fleet, process.now).unwrap();
    assert_eq!(looks(), 0);
    process.state().forget_target(&fleet).unwrap();
    assert_eq!(looks(), 1);
}

/// A fleet on a Kubernetes cluster gets the same plan from watch events as from reads.
#[test]
fn what_a_cluster_tells_gives_the_same_plan_as_what_it_answers() {
    let plane = ControlPlane::lease();
    let tree = kubernetes::on(&plane);
    tree.run("apply tree --yes --config config.toml").expect(0);
    let config = Config::parse("[targets]\nallow_addresses = [\"127.0.0.0/8\"]\n").unwrap();
    let (process, memory) = (Process::on(tree, config), RoundMemory::default());
    let looks_the_same = || {
        let asked = process.plan(None).plan.to_json();
        // An event takes a moment.
        until("both plans are the same", || {
            (process.plan(Some(&memory)).plan.to_json() == asked).then_some(())
        });
        process.plan(None).plan.summary
    };
    assert_eq!(looks_the_same().change, 0);
    until("nothing is looked at any more", || (process.plan(Some(&memory)).looked == 0).then_some(()));
    let sandbox = "--namespace=kafka-acme--sandbox";
    for command in [
        format!("patch resourcequota sandbox {sandbox} -p {{\"spec\":{{\"hard\":{{\"pods\":\"99\"}}}}}}"),
        format!("label resourcequota sandbox {sandbox} app.kubernetes.io/managed-by-"),
        format!("delete limitrange --all {sandbox}"),
        "patch secret orders-tls --namespace=kafka-acme--orders -p {\"data\":{\"tls.key\":\"c2VjcmV0\"}}"
            .to_owned(),
        "delete kafkanodepools --all --namespace=kafka-acme--orders".to_owned(),
    ] {
        plane.kubectl(&command, "").expect(0);
        assert!(looks_the_same().change > 0, "{command}");
    }
    process.apply();
    assert_eq!(looks_the_same().change, 0);
}

fn manifest(process: &Process) -> String {
    let output = process.tree.output().into_iter().map(|(path, _)| path);
    output.filter(|path| path.starts_with("acme/main/")).find(|path| path.ends_with(".yaml")).unwrap()
}
