use std::time::Duration;

use super::*;
use crate::config::DeniedAddress;
use crate::names::{Identifier, Kind};

fn name(host: &str) -> PublicName {
    PublicName { host: format!("{host}.example.com"), port: 9094 }
}

fn cluster() -> ResourceKey {
    ResourceKey::new(Kind::Cluster, &Identifier::try_from("acme".to_owned()).unwrap(), "orders")
}

fn order(ids: &[u32]) -> ProbeOrder {
    ProbeOrder {
        cluster: cluster(),
        bootstrap: name("orders"),
        brokers: ids.iter().map(|id| (*id, name(&format!("broker-{id}--orders")))).collect(),
        trust: ProbeTrust::System,
        certificate: None,
        login: None,
    }
}

fn verdict(reached: Option<ProbeLevel>, failure: Option<ProbeFailure>) -> NameVerdict {
    NameVerdict {
        place: ProbePlace::Broker(2),
        name: name("broker-2--orders"),
        address: (reached >= Some(ProbeLevel::Resolve)).then(|| "203.0.113.7".parse().unwrap()),
        reached,
        failure,
        note: None,
        took: BTreeMap::new(),
    }
}

#[test]
fn replicas_are_a_ring_of_the_brokers_of_the_plan() {
    let order = order(&[0, 1, 2, 7]);
    assert_eq!(order.replication(), 3);
    assert_eq!(order.replicas(0, 3), [0, 1, 2]);
    assert_eq!(order.replicas(2, 3), [2, 7, 0]);
    assert_eq!(order.replicas(7, 3), [7, 0, 1]);
    assert_eq!(order.replicas(7, 9), [7, 0, 1, 2]);
    assert_eq!(self::order(&[4]).replication(), 1);
}

#[test]
fn a_resolver_without_an_answer_tells_nothing_about_a_name() {
    use ProbeFailure::{Late, Lookup, Silent};
    let five = Duration::from_secs(5);
    let is_hindered = |reached, failure| verdict(reached, Some(failure)).is_hindered();
    for failure in [Lookup(LookupFault::Failed(ServerText::new("no"))), Silent(five), Late(five)] {
        assert!(is_hindered(None, failure.clone()), "{failure:?}");
    }
    assert!(!is_hindered(None, Lookup(LookupFault::Missing)));
    for failure in [Silent(five), Late(five)] {
        assert!(!is_hindered(Some(ProbeLevel::Resolve), failure.clone()), "{failure:?}");
    }
    assert!(!verdict(None, None).is_hindered());
}

#[test]
fn tenants_do_not_learn_how_a_server_answers_that_is_not_the_clusters() {
    let text = ServerText::new;
    let denied = DeniedAddress { address: "127.0.0.1".parse().unwrap(), range: "a loopback address" };
    let names = CertificateFault::Names(vec![text("intranet.example.org")]);
    let (resolve, connect) = (Some(ProbeLevel::Resolve), Some(ProbeLevel::Connect));
    let told: Vec<String> = [
        (None, ProbeFailure::Denied(denied)),
        (resolve, ProbeFailure::Refused),
        (resolve, ProbeFailure::Silent(Duration::from_secs(5))),
        (connect, ProbeFailure::Handshake(text("the server speaks no TLS"))),
        (connect, ProbeFailure::Certificate(names)),
        (connect, ProbeFailure::Certificate(CertificateFault::NotGiven { until: None })),
        (connect, ProbeFailure::Late(Duration::from_secs(60))),
    ]
    .map(|(reached, failure)| verdict(reached, Some(failure)).for_tenants())
    .into();
    let expected = "broker 2: nothing with the cluster's certificate answers at \
                    broker-2--orders.example.com:9094; check its record in DNS, the load balancer, firewalls, and \
                    the base domain's certificate, or ask an administrator of this installation for the log of \
                    `serve`, which says more";
    assert_eq!(told, vec![expected; 7]);
    // Before there is a server, and of one that has the cluster's certificate, everything is told.
    for (reached, failure) in [
        (None, ProbeFailure::Lookup(LookupFault::Missing)),
        (Some(ProbeLevel::Login), ProbeFailure::AnotherBroker { node: Some(1) }),
    ] {
        let verdict = verdict(reached, Some(failure));
        assert_eq!(verdict.for_tenants(), verdict.whole_sentence());
    }
    let missing = verdict(None, Some(ProbeFailure::Lookup(LookupFault::Missing)));
    assert_eq!(
        missing.whole_sentence(),
        "broker 2: the name broker-2--orders.example.com has no address, at the level resolve; create its record in \
         DNS; a new one may take as long as the zone's negative answers are kept"
    );
}

#[test]
fn every_failure_has_its_sentence() {
    let text = ServerText::new;
    let second = |text: &str| text.parse().unwrap();
    let certificate = ProbeFailure::Certificate;
    let denied = DeniedAddress { address: "127.0.0.1".parse().unwrap(), range: "a loopback address" };
    let (resolve, connect) = (ProbeLevel::Resolve, ProbeLevel::Connect);
    let (tls, login, identity) = (ProbeLevel::Tls, ProbeLevel::Login, ProbeLevel::Identity);
    let five = Duration::from_secs(5);
    let said: Vec<String> = [
        (None, ProbeFailure::Lookup(LookupFault::Missing)),
        (None, ProbeFailure::Lookup(LookupFault::Failed(text("Temporary failure in name resolution")))),
        (None, ProbeFailure::Denied(denied)),
        (None, ProbeFailure::Silent(five)),
        (Some(resolve), ProbeFailure::Refused),
        (Some(resolve), ProbeFailure::Unconnected(text("No route to host"))),
        (Some(resolve), ProbeFailure::Silent(five)),
        (Some(connect), certificate(CertificateFault::Names(vec![text("other.example.com")]))),
        (Some(connect), certificate(CertificateFault::Names(["a", "b", "c", "d", "e"].map(text).into()))),
        (Some(connect), certificate(CertificateFault::Names(Vec::new()))),
        (Some(connect), certificate(CertificateFault::Expired(second("2026-11-01T00:00:00Z")))),
        (Some(connect), certificate(CertificateFault::Early(second("2026-12-01T00:00:00Z")))),
        (Some(connect), certificate(CertificateFault::Issuer(text("CN=Somebody")))),
        (
            Some(connect),
            certificate(CertificateFault::NotGiven { until: Some(second("2026-12-01T00:00:00Z")) }),
        ),
        (Some(connect), certificate(CertificateFault::Unusable(text("its signature is wrong")))),
        (Some(connect), ProbeFailure::Handshake(text("the server speaks no TLS"))),
        (Some(connect), ProbeFailure::Closed),
        (
            Some(tls),
            ProbeFailure::LoginRefused { user: "orders-probe".into(), says: text("invalid credentials.") },
        ),
        (Some(tls), ProbeFailure::Mechanism { offered: text("PLAIN") }),
        (Some(tls), ProbeFailure::Unproven),
        (Some(tls), ProbeFailure::NoToken(text("401 Unauthorized"))),
        (Some(tls), ProbeFailure::Unusable(text("the key is no PEM"))),
        (Some(tls), ProbeFailure::Silent(five)),
        (Some(tls), ProbeFailure::Oversized(64 << 10)),
        (Some(tls), ProbeFailure::Garbled),
        (Some(login), ProbeFailure::Version { request: "Fetch" }),
        (Some(login), ProbeFailure::Advertised { found: PublicName::told("10.0.0.1", 9092) }),
        (Some(login), ProbeFailure::AnotherBroker { node: Some(1) }),
        (Some(login), ProbeFailure::AnotherBroker { node: None }),
        (Some(login), ProbeFailure::AnotherCluster { found: Some(PublicName::told("b.example.net", 9094)) }),
        (Some(login), ProbeFailure::AnotherCluster { found: None }),
        (Some(login), ProbeFailure::Unlisted),
        (Some(login), ProbeFailure::Late(Duration::from_secs(30))),
        (Some(identity), ProbeFailure::Topic { attempted: "create the probe's topic", code: 29 }),
        (Some(identity), ProbeFailure::Leaderless { partition: 2 }),
        (Some(identity), ProbeFailure::WriteRefused { partition: 2, code: 19 }),
        (Some(identity), ProbeFailure::ReadRefused { partition: 2, code: 777 }),
        (Some(identity), ProbeFailure::Lost { partition: 2 }),
    ]
    .into_iter()
    .map(|(reached, failure)| {
        let verdict = verdict(reached, Some(failure));
        format!("{verdict}\n    {}", verdict.hint().unwrap())
    })
    .collect();
    insta::assert_snapshot!(said.join("\n"));
}

#[test]
fn what_is_fine_is_told_with_what_is_worth_knowing() {
    let mut fine = verdict(Some(ProbeLevel::Write), None);
    assert_eq!((fine.failed_at(), fine.hint()), (None, None));
    assert_eq!(
        fine.to_string(),
        "broker 2: broker-2--orders.example.com:9094 is reachable (from 203.0.113.7)"
    );
    let said = [
        ProbeNote::Led { partition: 2, by: 0 },
        ProbeNote::LeaderNotReached { partition: 2, by: 0 },
        ProbeNote::ReplicasLate { partition: 2 },
        ProbeNote::NoPartition,
    ]
    .map(|note| {
        fine.note = Some(note);
        fine.to_string()
    });
    insta::assert_snapshot!(said.join("\n"));
}

#[test]
fn the_first_failure_is_the_one_at_the_lowest_level() {
    let mut bootstrap = verdict(Some(ProbeLevel::Tls), Some(ProbeFailure::Closed));
    bootstrap.place = ProbePlace::Bootstrap;
    let closed = verdict(Some(ProbeLevel::Resolve), Some(ProbeFailure::Refused));
    let mut fine = verdict(Some(ProbeLevel::Write), None);
    fine.place = ProbePlace::Broker(3);
    fine.took = [(ProbeLevel::Tls, Duration::from_millis(20))].into();
    let report = ProbeReport {
        cluster: cluster(),
        verdicts: vec![bootstrap, closed.clone(), fine.clone()],
        took: Duration::ZERO,
    };
    assert!(!report.is_reachable());
    assert_eq!(report.first_failure(), Some(&closed));
    assert_eq!(closed.failed_at(), Some(ProbeLevel::Connect));
    assert_eq!(report.slowest(ProbeLevel::Tls), Some(Duration::from_millis(20)));
    assert_eq!(report.slowest(ProbeLevel::Write), None);
    let report = ProbeReport { verdicts: vec![fine], ..report };
    assert!(report.is_reachable() && report.first_failure().is_none());
}

#[test]
fn no_secret_is_printed_and_no_text_of_a_server_runs_on() {
    let secret = || SecretString::from("open-sesame".to_owned());
    let request = TokenRequest {
        token_endpoint: "https://idp.example.com/token".to_owned(),
        client_id: "probe".to_owned(),
        client_secret: secret(),
        scope: None,
        authorities: None,
    };
    for login in [
        ProbeLogin::Scram { user: "orders-probe".to_owned(), password: secret() },
        ProbeLogin::Mtls { certificate: String::new(), key: secret() },
        ProbeLogin::OAuth(request),
    ] {
        let order = ProbeOrder { login: Some(login), ..order(&[0]) };
        assert!(!format!("{order:?}").contains("sesame"));
    }
    let text = ServerText::new(&"a\u{1b}[2J\n".repeat(100_000));
    assert!(text.as_str().len() < 1_000 && !text.as_str().contains(['\u{1b}', '\n']), "{text}");
    assert!(PublicName::told(&"x".repeat(1_000_000), 1).as_str().ends_with("…:1"));
}

#[test]
fn the_authority_that_clients_are_told_to_trust_is_trusted() {
    let own = rcgen::generate_simple_self_signed(["k.example.com".to_owned()]).unwrap().cert.pem();
    assert_eq!(ProbeTrust::of_chain(&own), ProbeTrust::Certificates(own));
    assert_eq!(ProbeTrust::of_chain(""), ProbeTrust::System);
}
