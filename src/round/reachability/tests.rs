use std::collections::BTreeSet;

use jiff::Timestamp;

use super::*;
use crate::catalog::ResourceStatus;
use crate::component::health::{ClusterObservation, Judgement, Outputs, ProbeUser, PublicListener};
use crate::names::Digest;

const INTERVAL: Duration = Duration::from_secs(60);

const PLACES: [ProbePlace; 3] = [ProbePlace::Bootstrap, ProbePlace::Broker(0), ProbePlace::Broker(1)];

fn fleet(organization: &str) -> FleetKey {
    format!("{organization}/eu").try_into().unwrap()
}

fn cluster(organization: &str, name: &str) -> ResourceKey {
    format!("Cluster/{organization}/{name}").try_into().unwrap()
}

fn side(ready: [bool; 2]) -> PublicSide {
    PublicSide {
        namespace: "kafka-acme--orders".to_owned(),
        listener: PublicListener {
            bootstrap: "orders.k.example.com".to_owned(),
            broker: "broker-{nodeId}--orders.k.example.com".to_owned(),
            port: 9094,
            chain: None,
            user: Some(ProbeUser { name: "orders-probe".to_owned(), has_certificate: false }),
        },
        user_is_ready: false,
        applied: Vec::new(),
        brokers: [(0, ready[0]), (1, ready[1])].into(),
    }
}

fn hindered(why: &str) -> ProbeFindings {
    PLACES.map(|place| (place, NameFinding::Hindered(why.to_owned()))).into()
}

/// One cluster of acme, and what its probes found.
struct Lab {
    table: Arc<ReachabilityTable>,
    now: Instant,
}

impl Lab {
    fn new() -> Self {
        let lab = Self { table: Arc::default(), now: Instant::now() };
        lab.seen([true, true]);
        lab.table.planned([&fleet("acme")].into_iter());
        lab
    }

    fn seen(&self, ready: [bool; 2]) {
        self.table.observed(&fleet("acme"), [(cluster("acme", "orders"), side(ready))].into(), self.now);
    }

    /// Probes once it is due; these names fail.
    fn probe(&mut self, failing: &[ProbePlace]) -> bool {
        let names = PLACES.map(|place| {
            let words = || FailureWords {
                for_tenants: format!("{place}: no answer"),
                for_the_log: format!("{place}: no answer at port 9094"),
            };
            let is_failing = failing.contains(&place);
            (place, if is_failing { NameFinding::Unreached(words()) } else { NameFinding::Reached })
        });
        self.end(names.into())
    }

    /// Returns whether the condition changed.
    fn end(&mut self, findings: ProbeFindings) -> bool {
        self.now += INTERVAL * 2;
        let (due, _) = self.table.due(self.now);
        assert_eq!(due.len(), 1);
        let changed = self.table.found(&due[0], findings, INTERVAL, self.now);
        changed.is_some_and(|changed| !matches!(changed, ChangedFinding::Confirmed))
    }

    fn applied(&self, version: &str) {
        let side = PublicSide { applied: vec![Digest::of(version)], ..side([true, true]) };
        self.table.observed(&fleet("acme"), [(cluster("acme", "orders"), side)].into(), self.now);
    }

    fn is_confirmed(&self) -> bool {
        self.table.unconfirmed(&fleet("acme")).is_empty()
    }

    fn judged(&self, status: Status) {
        let status =
            ResourceStatus { status, reason: None, conditions: Vec::new(), since: Timestamp::UNIX_EPOCH };
        let judgement = Judgement {
            status: status.clone(),
            in_progress: Vec::new(),
            outputs: Outputs::default(),
            unschedulable: None,
            clear_certificates: None,
        };
        let clusters = [(cluster("acme", "orders"), judgement)].into();
        self.table.judged(
            &FleetHealth { status, clusters, on_clusters: BTreeMap::new(), unconfirmed: BTreeSet::new() },
            self.now,
        );
    }

    fn told(&self) -> Vec<Condition> {
        let key = cluster("acme", "orders");
        let clusters = [(key.clone(), ClusterObservation::default())].into();
        let mut seen = FleetObservation { clusters, ..FleetObservation::default() };
        self.table.tell(&mut seen);
        seen.clusters.remove(&key).unwrap().troubles
    }

    fn message(&self) -> String {
        self.told().pop().map(|told| told.message).unwrap_or_default()
    }
}

#[test]
fn what_fails_three_times_in_a_row_is_told_until_it_works_once() {
    let mut lab = Lab::new();
    assert!(!lab.probe(&PLACES[..1]) && !lab.probe(&PLACES[..1]));
    assert_eq!(lab.told(), []);
    assert!(!lab.probe(&[]) && !lab.probe(&PLACES[..1]) && !lab.probe(&PLACES[..1]));
    assert!(lab.probe(&PLACES[..1]));
    assert_eq!(lab.message(), "clients outside of Kubernetes can't reach it: bootstrap: no answer");
    assert!(lab.told()[0].degraded);
    let revision = lab.table.revision(&fleet("acme"));
    assert!(!lab.probe(&PLACES[..1]));
    assert_eq!(lab.table.revision(&fleet("acme")), revision);
    assert!(lab.probe(&[]));
    assert_eq!(lab.told(), []);
    assert_ne!(lab.table.revision(&fleet("acme")), revision);
}

#[test]
fn one_name_is_told_and_the_others_counted() {
    let mut lab = Lab::new();
    (0..3).for_each(|_| _ = lab.probe(&PLACES[1..]));
    assert_eq!(
        lab.message(),
        "clients outside of Kubernetes can't reach 2 of its names; the first: broker 0: no answer"
    );
}

#[test]
fn a_broker_that_is_not_ready_is_told_by_its_pod_alone() {
    let mut lab = Lab::new();
    lab.seen([false, true]);
    (0..3).for_each(|_| _ = lab.probe(&PLACES[1..2]));
    assert_eq!(lab.told(), []);
    lab.seen([true, true]);
    (0..3).for_each(|_| _ = lab.probe(&PLACES[1..2]));
    assert_eq!(lab.told().len(), 1);
}

#[test]
fn while_a_cluster_is_changed_failures_do_not_count() {
    let mut lab = Lab::new();
    (0..2).for_each(|_| _ = lab.probe(&PLACES[..1]));
    lab.judged(Status::Updating);
    (0..5).for_each(|_| _ = lab.probe(&PLACES[..1]));
    assert_eq!(lab.told(), []);
    lab.judged(Status::Healthy);
    (0..2).for_each(|_| _ = lab.probe(&PLACES[..1]));
    assert_eq!(lab.told(), []);
    assert!(lab.probe(&PLACES[..1]));
}

#[test]
fn a_change_is_confirmed_by_the_first_probe_after_it_that_reaches_every_name() {
    let mut lab = Lab::new();
    assert!(!lab.is_confirmed(), "it may have been changed before this process began");
    let revision = lab.table.revision(&fleet("acme"));
    lab.probe(&[]);
    assert!(lab.is_confirmed());
    assert_ne!(lab.table.revision(&fleet("acme")), revision, "what waits for it is planned again");
    // It is observed with what was applied before it is seen to change.
    lab.applied("two");
    assert!(!lab.is_confirmed());
    lab.judged(Status::Updating);
    lab.probe(&[]);
    assert!(!lab.is_confirmed(), "not all brokers have restarted");
    lab.now += INTERVAL * 2;
    let (during, _) = lab.table.due(lab.now);
    lab.judged(Status::Healthy);
    let names = || [(ProbePlace::Bootstrap, NameFinding::Reached)].into();
    assert!(lab.table.found(&during[0], names(), INTERVAL, lab.now).is_none());
    assert!(!lab.is_confirmed(), "that probe began before the end of the change");
    let (after, _) = lab.table.due(lab.now);
    lab.table.found(&after[0], names(), INTERVAL, lab.now);
    assert!(lab.is_confirmed());
    // A change that restarts nothing is one, too; a broker that restarts by itself isn't.
    lab.applied("three");
    assert!(!lab.is_confirmed());
    lab.probe(&PLACES[..1]);
    assert!(!lab.is_confirmed());
    lab.probe(&[]);
    let side = |ready| PublicSide { applied: vec![Digest::of("three")], ..side([ready, true]) };
    for ready in [false, true] {
        let seen = [(cluster("acme", "orders"), side(ready))];
        lab.table.observed(&fleet("acme"), seen.into(), lab.now);
        assert!(lab.is_confirmed());
    }
}

#[test]
fn a_cluster_that_no_probe_reaches_is_waited_for_as_long_as_something_can_be_learned() {
    let hindered = || hindered("its password can't be read");
    let mut lab = Lab::new();
    (0..2).for_each(|_| _ = lab.end(hindered()));
    assert!(!lab.is_confirmed());
    let revision = lab.table.revision(&fleet("acme"));
    lab.end(hindered());
    assert!(lab.is_confirmed());
    assert_ne!(lab.table.revision(&fleet("acme")), revision);
    // Failures degrade it as soon as it is waited for no longer.
    lab.applied("two");
    (0..2).for_each(|_| _ = lab.probe(&PLACES[..1]));
    assert!(!lab.is_confirmed() && lab.told().iter().all(|it| !it.degraded));
    lab.probe(&PLACES[..1]);
    assert!(lab.is_confirmed() && lab.told()[0].degraded);
    // Nor is one that isn't probed any more, with the fleet or by its spec.
    lab.applied("three");
    assert!(!lab.is_confirmed());
    lab.table.observed(&fleet("acme"), BTreeMap::new(), lab.now);
    assert!(lab.is_confirmed());
    lab.applied("four");
    lab.table.planned([].into_iter());
    assert!(lab.is_confirmed());
}

#[test]
fn a_roll_of_ours_degrades_nothing_and_a_broker_that_dies_does_within_three_intervals() {
    let mut lab = Lab::new();
    lab.judged(Status::Updating);
    for (broker, ready) in [[false, true], [true, false]].into_iter().enumerate() {
        lab.seen(ready);
        (0..4).for_each(|_| _ = lab.probe(&[PLACES[broker + 1]]));
        // Its pod is ready a moment before it can be reached.
        lab.seen([true, true]);
        (0..2).for_each(|_| _ = lab.probe(&[PLACES[broker + 1]]));
        lab.probe(&[]);
        assert_eq!(lab.told(), []);
    }
    lab.judged(Status::Healthy);
    (0..2).for_each(|_| assert!(!lab.probe(&PLACES[2..])));
    assert!(lab.probe(&PLACES[2..]));
    assert!(lab.told()[0].degraded);
    assert!(lab.probe(&[]));
    assert_eq!(lab.told(), []);
}

#[test]
fn why_nothing_can_be_known_is_told_and_degrades_nothing() {
    let mut lab = Lab::new();
    assert!(lab.end(hindered("its password can't be read")));
    assert_eq!(lab.message(), "it is unknown whether clients reach it: its password can't be read");
    assert!(!lab.told()[0].degraded);
    assert!(lab.probe(&[]));
    assert_eq!(lab.told(), []);
}

#[test]
fn what_is_known_to_fail_stays_while_nothing_can_be_learned() {
    let mut lab = Lab::new();
    (0..3).for_each(|_| _ = lab.probe(&PLACES[..1]));
    let unreached = lab.told();
    assert!(unreached[0].degraded);
    assert!(!lab.end(hindered("its Kafka user isn't ready")));
    assert_eq!(lab.told(), unreached);
    // Another name can be learned about.
    let mut findings = hindered("its Kafka user isn't ready");
    findings.insert(ProbePlace::Bootstrap, NameFinding::Reached);
    assert!(lab.end(findings));
    assert_eq!(lab.message(), "it is unknown whether clients reach it: its Kafka user isn't ready");
}

#[test]
fn a_cluster_whose_login_is_not_probed_says_so() {
    let mut lab = Lab::new();
    let mut side = side([true, true]);
    side.listener.user = None;
    lab.table.observed(&fleet("acme"), [(cluster("acme", "orders"), side)].into(), lab.now);
    lab.probe(&[]);
    let told = lab.told();
    assert_eq!((told[0].kind.as_str(), told[0].degraded), ("LoginNotProbed", false));
    assert_eq!(
        lab.message(),
        "the reachability probe has no login, as where clients log in with tokens of an identity provider: it looks at \
         names, connections and certificates alone"
    );
    assert!(lab.is_confirmed());
    (0..3).for_each(|_| _ = lab.probe(&PLACES[..1]));
    assert_eq!(lab.message(), "clients outside of Kubernetes can't reach it: bootstrap: no answer");
}

#[test]
fn what_was_changed_is_probed_at_once_and_an_older_finding_is_of_no_use() {
    let lab = Lab::new();
    let (due, _) = lab.table.due(lab.now);
    let nothing = ProbeFindings::new;
    lab.seen([true, false]);
    assert!(lab.table.found(&due[0], hindered("old"), INTERVAL, lab.now).is_none());
    let (due, _) = lab.table.due(lab.now);
    let found = lab.table.found(&due[0], nothing(), INTERVAL, lab.now);
    assert!(matches!(found, Some(ChangedFinding::Confirmed)));
    let (due, next) = lab.table.due(lab.now);
    assert!(due.is_empty());
    assert!(next >= lab.now + INTERVAL.mul_f64(0.9) && next <= lab.now + INTERVAL);
}

#[test]
fn dead_addresses_of_one_organization_hold_up_no_other() {
    let (table, now) = (Arc::new(ReachabilityTable::default()), Instant::now());
    table.planned([&fleet("acme"), &fleet("globex")].into_iter());
    let many = (0..1000).map(|number| (cluster("acme", &format!("c{number}")), side([true, true])));
    table.observed(&fleet("acme"), many.collect(), now);
    table.observed(&fleet("globex"), [(cluster("globex", "orders"), side([true, true]))].into(), now);
    let (due, _) = table.due(now);
    let whose =
        |organization: &str| due.iter().filter(|it| it.cluster.organization.as_str() == organization).count();
    assert_eq!((whose("acme"), whose("globex")), (AT_ONCE_EACH, 1));
    assert!(table.due(now).0.is_empty());
    // As each of them ends, the next begins, until all had their turn.
    let (mut seen, mut running) = (BTreeSet::new(), due);
    while let Some(probe) = running.pop() {
        table.found(&probe, ProbeFindings::new(), INTERVAL, now);
        seen.insert(probe.cluster.clone());
        running.extend(table.due(now).0);
    }
    assert_eq!(seen.len(), 1001);
    // Above 500 clusters, they are probed less often.
    assert!(table.due(now + INTERVAL * 4).0.is_empty());
    assert!(!table.due(now + INTERVAL * 6).0.is_empty());
}

#[tokio::test]
async fn a_probe_that_panics_frees_its_place_and_begins_again_later() {
    let lab = Lab::new();
    let (mut due, _) = lab.table.due(lab.now);
    // What was notified before isn't what is waited for.
    lab.table.changed().await;
    let probe = due.remove(0);
    let panicked = tokio::spawn(async move {
        let _probe = probe;
        panic!("as a probe should not");
    });
    lab.table.changed().await;
    assert!(panicked.await.is_err());
    assert!(lab.table.lock().running.is_empty());
    assert!(lab.table.due(lab.now).0.is_empty());
    assert_eq!(lab.table.due(Instant::now() + LONGEST).0.len(), 1);
}

#[test]
fn a_fleet_that_no_plan_has_any_more_is_probed_no_more() {
    let lab = Lab::new();
    let (due, _) = lab.table.due(lab.now);
    lab.table.planned([].into_iter());
    drop(due);
    assert!(lab.table.due(lab.now).0.is_empty());
    assert!(lab.table.lock().running.is_empty() && lab.table.lock().clusters.is_empty());
}

#[test]
fn a_fleet_that_is_observed_before_its_plan_is_handed_over_is_probed_right_then() {
    let (table, now) = (Arc::new(ReachabilityTable::default()), Instant::now());
    let of = |organization: &str| [(cluster(organization, "orders"), side([true, true]))].into();
    let due = || table.due(now).0.iter().map(|it| it.fleet.clone()).collect::<Vec<_>>();
    table.observed(&fleet("acme"), of("acme"), now);
    assert_eq!(due(), []);
    table.planned([&fleet("acme")].into_iter());
    assert_eq!(due(), [fleet("acme")]);
    // The next plan has one more.
    table.observed(&fleet("globex"), of("globex"), now);
    assert_eq!(due(), []);
    table.planned([&fleet("acme"), &fleet("globex")].into_iter());
    assert_eq!(due(), [fleet("globex")]);
}
