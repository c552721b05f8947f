//! Conclusions about one name from the findings of all names.

use super::*;

const BOOTSTRAP: ProbePlace = ProbePlace::Bootstrap;

fn verdict(place: ProbePlace) -> NameVerdict {
    NameVerdict {
        place,
        name: PublicName { host: "orders.example.com".to_owned(), port: 9094 },
        address: None,
        reached: Some(ProbeLevel::Identity),
        failure: None,
        note: None,
        took: BTreeMap::new(),
    }
}

/// The verdict about broker 1, whose partition 4 this broker leads.
fn written(leader: i32, written: Option<Result<Option<ProbeNote>, ProbeFailure>>) -> NameVerdict {
    let seen = Seen { written: written.map(|it| (1, it)).into_iter().collect(), ..Seen::default() };
    let layout = Layout { assigned: [(1, Assignment { partition: 4, leader })].into(), ..Layout::default() };
    let mut verdict = verdict(ProbePlace::Broker(1));
    seen.judge_write(&mut verdict, (1, &layout));
    verdict
}

#[test]
fn a_record_counts_for_the_broker_that_the_partition_belongs_to() {
    let fine = written(1, Some(Ok(None)));
    assert_eq!((fine.reached, fine.failure, fine.note), (Some(ProbeLevel::Write), None, None));
    let moved = written(0, Some(Ok(None)));
    let led = ProbeNote::Led { partition: 4, by: 0 };
    assert_eq!((moved.reached, moved.failure, moved.note), (Some(ProbeLevel::Write), None, Some(led)));
    let refused = ProbeFailure::WriteRefused { partition: 4, code: 19 };
    for leader in [0, 1] {
        assert_eq!(written(leader, Some(Err(refused.clone()))).failure, Some(refused.clone()));
    }
    assert_eq!(written(-1, None).failure, Some(ProbeFailure::Leaderless { partition: 4 }));
}

#[test]
fn another_brokers_failure_and_late_replicas_are_notes() {
    let not_reached = Some(ProbeNote::LeaderNotReached { partition: 4, by: 0 });
    for outcome in [None, Some(Err(ProbeFailure::Closed))] {
        let verdict = written(0, outcome);
        assert_eq!((verdict.reached, verdict.failure), (Some(ProbeLevel::Identity), None));
        assert_eq!(verdict.note, not_reached);
    }
    assert_eq!(written(1, Some(Err(ProbeFailure::Closed))).failure, Some(ProbeFailure::Closed));
    let late = Some(ProbeNote::ReplicasLate { partition: 4 });
    let verdict = written(1, Some(Ok(late.clone())));
    assert_eq!((verdict.reached, verdict.failure, verdict.note), (Some(ProbeLevel::Identity), None, late));
}

#[test]
fn a_broker_without_a_partition_is_told_why() {
    let failure = ProbeFailure::Topic { attempted: "add a partition to the probe's topic", code: 39 };
    let refused = Layout { refused: [(1, failure.clone())].into(), ..Layout::default() };
    for (layout, expected) in
        [(refused, (Some(failure), None)), (Layout::default(), (None, Some(ProbeNote::NoPartition)))]
    {
        let mut verdict = verdict(ProbePlace::Broker(1));
        Seen::default().judge_write(&mut verdict, (1, &layout));
        assert_eq!((verdict.failure, verdict.note), expected);
    }
}

#[test]
fn a_bootstrap_name_leads_to_the_cluster_of_the_brokers() {
    let judged = |clusters: &[(ProbePlace, &str)]| {
        let found = Some(ServerText::new("b.example.com:9094"));
        let seen = |(place, id): &(ProbePlace, &str)| (*place, (Some((*id).to_owned()), found.clone()));
        let seen = Seen { clusters: clusters.iter().map(seen).collect(), ..Seen::default() };
        let mut verdict = verdict(BOOTSTRAP);
        seen.judge_bootstrap(&mut verdict);
        (verdict.failed_at(), verdict.failure.is_none())
    };
    let [first, second] = [0, 1].map(ProbePlace::Broker);
    let fine = (None, true);
    assert_eq!(judged(&[(BOOTSTRAP, "a"), (first, "a"), (second, "a")]), fine);
    // One of the brokers' names leads astray, and its own verdict says so.
    assert_eq!(judged(&[(BOOTSTRAP, "a"), (first, "b"), (second, "a")]), fine);
    assert_eq!(judged(&[(BOOTSTRAP, "a")]), fine);
    let astray = (Some(ProbeLevel::Identity), false);
    assert_eq!(judged(&[(BOOTSTRAP, "b"), (first, "a"), (second, "a")]), astray);
}
