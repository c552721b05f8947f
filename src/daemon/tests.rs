//! A process with two directory fleets, driven by hand or by its own loop.

use camino::Utf8PathBuf;
use tempfile::TempDir;

use super::*;
use crate::plan::{Verb, Waiting};
use crate::round::WaitingChanges;
use crate::secret::{Keyring, SecretStore};
use crate::state::State;

const ORDERS: &str = "acme/clusters/orders.yaml";
const EVENTS: &str = "acme/clusters/events.yaml";

/// An installation in a temporary folder, with the cluster `orders` on the fleet `eu` and `events` on `us`.
/// Nothing is protected.
struct Place {
    root: Utf8PathBuf,
    _dir: TempDir,
}

impl Place {
    fn new() -> Place {
        let dir = tempfile::tempdir().unwrap();
        let place = Place { root: Utf8PathBuf::from_path_buf(dir.path().to_owned()).unwrap(), _dir: dir };
        place.write(
            "organizations.yaml",
            "apiVersion: streamfleet/v1\nkind: Organization\nidentifier: acme\n",
        );
        for fleet in ["eu", "us"] {
            place.write(&format!("acme/fleets/{fleet}.yaml"), &fleet_spec(fleet));
        }
        place.write(ORDERS, &cluster_spec("eu", "orders", 1));
        place.write(EVENTS, &cluster_spec("us", "events", 1));
        place
    }

    /// Replaces a file in one step. Written in place, it would count as unfinished, and hold up all deletions,
    /// until the watch has seen it closed.
    fn write(&self, path: &str, text: &str) {
        let path = self.root.join("tree").join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let beside = self.root.join("beside");
        std::fs::write(&beside, text).unwrap();
        std::fs::rename(beside, path).unwrap();
    }

    fn remove(&self, path: &str) {
        std::fs::remove_file(self.root.join("tree").join(path)).unwrap();
    }

    fn has(&self, fleet: &str, cluster: &str) -> bool {
        self.root.join(format!("output/acme/{fleet}/kafka-acme--{cluster}")).exists()
    }

    fn process(&self, absence: Duration) -> Process {
        let state = self.root.join("state");
        let mut config = Config::default();
        config.daemon.fleets_at_once = 1;
        let opened = Arc::new(State::open(&state).unwrap());
        let keyring = Keyring::load_or_create(&state).unwrap();
        let setup = Setup {
            installation: Installation {
                state: Some(Arc::clone(&opened)),
                secrets: Arc::new(SecretStore::new(self.root.join("secrets"), |_| None, keyring)),
                config: Arc::new(config),
                output_dir: self.root.join("output"),
                software: "0.1.0".to_owned(),
                proposed: false,
            },
            source: SpecSource::Folder(self.root.join("tree")),
            socket: self.root.join("socket"),
            webhook_secret: None,
            actor: "tester".to_owned(),
            vitals: Arc::new(Vitals::begin(Timestamp::now())),
            reload: Box::new(Reloaded::default),
        };
        let request_queue =
            Arc::new(RequestQueue::new(Some(opened), Arc::new(RoundMemory::with_absence(absence)), || {}));
        let runtime = runtime().unwrap();
        let listeners = start_api(&setup, Arc::clone(&request_queue), None, &runtime).unwrap();
        Process::start(setup, (request_queue, listeners), None, runtime, mpsc::unbounded_channel()).unwrap()
    }
}

fn fleet_spec(fleet: &str) -> String {
    format!(
        "apiVersion: streamfleet/v1\nkind: Fleet\norganization: acme\nidentifier: {fleet}\ninfra_type: directory\n\
         tenancy_mode: Shared\nmax_tenants: 5\nmax_kafka_units: 10\ndeletion_protection: false\n"
    )
}

fn cluster_spec(fleet: &str, cluster: &str, units: u32) -> String {
    format!(
        "apiVersion: streamfleet/v1\nkind: Cluster\norganization: acme\ninfrastructure: {fleet}\nidentifier: {cluster}\n\
         cluster_type: kafka\ntenancy_mode: Shared\nkafka_units: {units}\ndeletion_protection: false\n\
         advanced_config:\n  version: 4.3.1\n  cluster_access: Internal\n"
    )
}

fn fleet(name: &str) -> FleetKey {
    format!("acme/{name}").try_into().unwrap()
}

impl Process {
    fn round(&self) -> Arc<Round> {
        self.round.borrow().clone().unwrap()
    }

    /// Makes a plan, as the planning thread does, and returns the next actions.
    fn planned(&mut self) -> Vec<Action> {
        let event = self.look.lock().unwrap().run_planning(&self.installation);
        self.actions_for(event)
    }

    /// Does the work of the last plan on a fleet, and returns the next actions.
    fn work_on(&mut self, name: &str) -> Vec<Action> {
        let round = self.round();
        self.look.lock().unwrap().begins(&fleet(name));
        self.work.begin(round, fleet(name)).run();
        self.actions_for(Event::FleetWorkEnded { fleet: fleet(name) })
    }

    /// Runs until no work is left and nothing is scheduled before the next event.
    fn until_idle(&mut self) {
        while self.schedule.is_planning() || self.schedule.running() > 0 {
            assert!(self.step().unwrap(), "it ended");
        }
    }

    fn until(&mut self, is_so: impl Fn() -> bool) {
        while !is_so() {
            assert!(self.step().unwrap(), "it ended");
        }
    }
}

#[test]
fn who_asks_a_process_that_can_plan_no_more_is_told_so_at_once() {
    let place = Place::new();
    let mut process = place.process(Duration::ZERO);
    process.actions_for(Event::PlanningFailed(DaemonError::ThreadPanicked));
    let asked = process.runtime.block_on(process.request_queue.plan());
    assert_eq!(asked.err().unwrap().why, "the daemon is shutting down");
}

#[test]
fn a_deletion_that_was_not_begun_is_not_begun_when_a_later_plan_guards_it() {
    let place = Place::new();
    let mut process = place.process(Duration::ZERO);
    assert_eq!(process.actions_for(Event::TimerElapsed), [Action::Plan]);
    assert_eq!(process.planned(), [Action::Start(fleet("eu"))]);
    assert_eq!(process.work_on("eu"), [Action::Start(fleet("us"))]);
    assert_eq!(process.work_on("us"), [Action::Plan]);
    assert_eq!(process.planned(), []);
    assert!(place.has("eu", "orders") && place.has("us", "events"));

    // Work runs on one fleet, and the deletion on the other one is next.
    place.write(ORDERS, &cluster_spec("eu", "orders", 2));
    place.remove(EVENTS);
    assert_eq!(process.actions_for(Event::Specs), [Action::Plan]);
    assert_eq!(process.planned(), [Action::Start(fleet("eu"))]);
    let deletes = |process: &Process| {
        let round = process.round();
        round.plan.changes().any(|change| change.verb == Verb::Delete && change.is_ready())
    };
    assert!(deletes(&process));
    let eu = process.work.begin(process.round(), fleet("eu"));

    place.write(EVENTS, &cluster_spec("us", "events", 1));
    assert_eq!(process.actions_for(Event::Specs), [Action::Plan]);
    assert_eq!(process.planned(), []);
    assert!(!deletes(&process));
    eu.run();
    assert_eq!(process.actions_for(Event::FleetWorkEnded { fleet: fleet("eu") }), [Action::Plan]);
    assert_eq!(process.planned(), []);
    assert!(place.has("us", "events"));
}

#[test]
fn a_slow_organization_holds_up_no_other() {
    let place = Place::new();
    let mut process = place.process(Duration::ZERO);
    process.actions_for(Event::TimerElapsed);
    assert_eq!(process.planned(), [Action::Start(fleet("eu"))]);
    // The only slot is taken by a fleet whose work doesn't end, and another fleet of its organization waits
    // for it.
    let slow = process.work.begin(process.round(), fleet("eu"));
    let other = |text: String| text.replace("organization: acme", "organization: globex");
    place.write("others.yaml", "apiVersion: streamfleet/v1\nkind: Organization\nidentifier: globex\n");
    place.write("globex/fleets/main.yaml", &other(fleet_spec("main")));
    place.write("globex/clusters/events.yaml", &other(cluster_spec("main", "events", 1)));
    assert_eq!(process.actions_for(Event::Specs), [Action::Plan]);
    let main: FleetKey = "globex/main".to_owned().try_into().unwrap();
    assert_eq!(process.planned(), [Action::Start(main.clone())]);
    process.work.begin(process.round(), main.clone()).run();
    assert!(place.root.join("output/globex/main/kafka-globex--events").exists());
    // Nothing else can begin, and the fleet may have more to do.
    assert_eq!(process.actions_for(Event::FleetWorkEnded { fleet: main }), [Action::Plan]);
    assert_eq!(process.planned(), []);
    slow.run();
}

/// Another fleet comes next where the turn is over, whatever is left to do.
#[test]
fn a_fleet_is_worked_on_for_a_turn_and_the_rest_is_done_in_the_next_ones() {
    let place = Place::new();
    let mut process = place.process(Duration::ZERO);
    process.work.turn = Duration::ZERO;
    process.actions_for(Event::TimerElapsed);
    let (mut turns, mut next) = (0, process.planned());
    while let Some(action) = next.pop() {
        next = match action {
            Action::Start(begun) => process.work_on(begun.fleet.as_str()),
            _ => process.planned(),
        };
        turns += 1;
        assert!(turns < 200);
    }
    // Each fleet has a namespace and several objects in it, and each turn is a single step.
    assert!(turns > 20, "{turns}");
    assert!(place.has("eu", "orders") && place.has("us", "events"));
}

#[test]
fn a_wait_whose_words_keep_changing_is_told_at_a_bounded_rate() {
    let place = Place::new();
    let mut process = place.process(Duration::ZERO);
    process.actions_for(Event::TimerElapsed);
    process.planned();
    let mut plan = process.round().plan.clone();
    let (mut waits, now) = (WaitingChanges::default(), Instant::now());
    let told = (0..100).map(|number| {
        plan.fleets[0].changes[0].waiting = vec![Waiting::Refused { why: format!("by rule {number}") }];
        waits.turn(&plan, now, |change| change.waiting.clone()).begun.len()
    });
    assert_eq!(told.sum::<usize>(), 20);
}

fn audited(place: &Place) -> usize {
    std::fs::read_to_string(place.root.join("state/audit.jsonl")).unwrap_or_default().lines().count()
}

#[test]
fn what_waits_for_a_secret_that_is_nowhere_is_not_done_again_and_again() {
    let place = Place::new();
    place.write(
        "acme/s3.yaml",
        "apiVersion: streamfleet/v1\nkind: CloudAccount\norganization: acme\nidentifier: s3\nprovider: aws\n\
         credentials: {from_env: NOWHERE}\n",
    );
    let mut process = place.process(Duration::ZERO);
    process.actions_for(Event::TimerElapsed);
    process.planned();
    process.work_on("eu");
    process.work_on("us");
    process.planned();
    let before = audited(&place);
    for _ in 0..5 {
        process.actions_for(Event::TimerElapsed);
        assert_eq!(process.planned(), []);
    }
    assert_eq!(audited(&place), before, "nothing is done");
    let round = process.round();
    let waits = round.plan.changes().find(|change| change.resource.name == "s3").unwrap();
    assert_eq!(
        waits.waiting.iter().map(ToString::to_string).collect::<Vec<_>>(),
        ["`credentials` of cloud account acme/s3 can't be opened here: the environment has no variable \
          STREAMFLEET_SECRET_ACME__NOWHERE"]
    );
}

#[test]
fn a_cluster_goes_when_its_file_has_been_missing_for_long_enough() {
    let place = Place::new();
    let mut process = place.process(Duration::from_millis(300));
    process.until(|| place.has("us", "events") && place.has("eu", "orders"));
    process.until_idle();
    // A waiting change continues when its time comes, not at the next event.
    let begun = Instant::now();
    place.remove(EVENTS);
    process.until(|| !place.has("us", "events"));
    assert!(begun.elapsed() >= Duration::from_millis(300), "not before");
    assert!(place.has("eu", "orders"));
    process.tell.send(Event::Stop).unwrap();
    while process.step().unwrap() {}
}

pub(super) fn logged(does: impl FnOnce()) -> String {
    let file = tempfile::NamedTempFile::new().unwrap();
    let to = Arc::new(file.reopen().unwrap());
    // With a single subscriber, another test's thread that comes first to a line of the log would turn it off.
    static SECOND: std::sync::LazyLock<tracing::Dispatch> =
        std::sync::LazyLock::new(|| tracing::Dispatch::new(tracing_subscriber::registry()));
    std::sync::LazyLock::force(&SECOND);
    let log = tracing_subscriber::fmt().with_ansi(false).with_writer(to).finish();
    tracing::subscriber::with_default(log, does);
    std::fs::read_to_string(file.path()).unwrap()
}

#[test]
fn what_was_decided_and_done_is_told_again_when_it_is_decided_once_more() {
    let place = Place::new();
    let mut process = place.process(Duration::ZERO);
    process.actions_for(Event::TimerElapsed);
    process.planned();
    process.work_on("eu");
    process.work_on("us");
    let folder = place.root.join("output/acme/eu/kafka-acme--orders");
    let mut decided = || {
        let mut files: Vec<_> =
            folder.read_dir_utf8().unwrap().map(|file| file.unwrap().into_path()).collect();
        files.sort();
        std::fs::remove_file(&files[0]).unwrap();
        // The same work is repeated only after a pause.
        let log = logged(|| {
            while process.planned().is_empty() {
                process.actions_for(Event::TimerElapsed);
            }
        });
        // It is logged once until it begins.
        assert!(!logged(|| drop(process.planned())).contains("decided to"));
        process.work_on("eu");
        log.lines().filter_map(|line| Some(line.split_once("decided to ")?.1.to_owned())).collect::<Vec<_>>()
    };
    let first = decided();
    assert_eq!(first.len(), 1, "{first:?}");
    assert!(first[0].starts_with("update cluster acme/orders: "), "{first:?}");
    let text = |line: &str| line.split(" fleet=").next().unwrap().to_owned();
    let second = decided();
    assert_eq!(second.iter().map(|line| text(line)).collect::<Vec<_>>(), [text(&first[0])]);
}

#[test]
fn a_failure_is_logged_once_with_the_time_of_the_next_attempt() {
    let place = Place::new();
    let mut process = place.process(Duration::ZERO);
    process.actions_for(Event::TimerElapsed);
    process.planned();
    let folder = place.root.join("output/acme/eu/kafka-acme--orders");
    std::fs::create_dir_all(folder.parent().unwrap()).unwrap();
    std::fs::write(&folder, "").unwrap();
    let log = logged(|| drop(process.work_on("eu")));
    let failed = "ERROR streamfleet::daemon::work: cluster acme/orders (acme/clusters/orders.yaml:1): cannot use \
                  `acme/eu/kafka-acme--orders`: it is a link or not a folder";
    assert!(log.contains(failed) && log.contains(" again="), "{log}");
    std::fs::remove_file(&folder).unwrap();
    let log = logged(|| drop(process.planned()));
    assert!(!log.contains("next attempt"), "{log}");
}

#[test]
fn who_asks_while_the_specs_are_away_hears_nothing_of_where_they_are() {
    let place = Place::new();
    let mut process = place.process(Duration::ZERO);
    std::fs::rename(place.root.join("tree"), place.root.join("away")).unwrap();
    let request_queue = Arc::clone(&process.request_queue);
    let asked = process.runtime.spawn(async move { request_queue.plan().await });
    let log = logged(|| {
        while !asked.is_finished() {
            process.planned();
        }
    });
    let told = process.runtime.block_on(asked).unwrap().err().unwrap();
    assert_eq!(told.why, "cannot read the specs; no changes until they can be read");
    assert_eq!(told.hint, "check the log of `streamfleet serve`, and try again when it reads the specs");
    assert!(log.contains(place.root.join("tree").as_str()), "{log}");
    assert!(log.contains("create the folder, or give the path of the one with your specs"), "{log}");
}
