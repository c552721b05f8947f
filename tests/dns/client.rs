//! Single names, on real DNS servers and in a zone of Route 53.

use std::net::{IpAddr, SocketAddr, TcpListener};

use jiff::{SignedDuration, Timestamp};
use streamfleet::component::dns_records::HostRecords;
use streamfleet::config::AddressRange;
use streamfleet::target::dns::{
    DnsLogin, DnsZones, KeptZone, RecordFault, Rfc2136Login, release, see, see_now, write,
};

use super::route53::service::Route53;
use crate::support::bind::Bind;
use crate::support::knot::{Knot, SECRET, key};

pub const HOST: &str = "orders.kafka.example.test";

fn login(server: SocketAddr, name: &str, secret: &str) -> Rfc2136Login {
    Rfc2136Login {
        host: "127.0.0.1".to_owned(),
        port: server.port(),
        key: key(name, secret).into(),
        allowed: AddressRange::ALL.to_vec(),
        clock: Timestamp::now,
    }
}

fn ours(knot: &Knot) -> Rfc2136Login {
    login(knot.address, "streamfleet", SECRET)
}

fn zones(login: Result<Rfc2136Login, String>) -> DnsZones {
    zones_of("example.test", login.map(DnsLogin::Rfc2136))
}

pub fn zones_of(zone: &str, login: Result<DnsLogin, String>) -> DnsZones {
    let domain = |text: &str| text.parse().unwrap();
    let kept = |login: &Result<DnsLogin, String>| KeptZone { zone: domain(zone), login: login.clone() };
    let domains = ["kafka.example.test", "www.example.test", "example.net"];
    DnsZones::new(domains.map(|it| (domain(it), kept(&login))).into())
}

pub fn address(last: u8) -> HostRecords {
    HostRecords { addresses: [IpAddr::from([192, 0, 2, last])].into(), alias: None }
}

/// What both kinds of zones do.
trait NameServer {
    fn zones(&self) -> DnsZones;
    fn records(&self, name: &str, kind: &str) -> Vec<String>;
    /// Deletes what there is, by hand.
    fn delete(&self, name: &str, kind: &str);
    /// It is another one after each change.
    fn state(&self) -> String;
}

impl NameServer for Knot {
    fn zones(&self) -> DnsZones {
        zones(Ok(ours(self)))
    }

    fn records(&self, name: &str, kind: &str) -> Vec<String> {
        self.answers(name, kind)
    }

    fn delete(&self, name: &str, kind: &str) {
        self.update(&format!("del {name}. {kind}"));
    }

    fn state(&self) -> String {
        self.serial()
    }
}

impl NameServer for Route53 {
    fn zones(&self) -> DnsZones {
        super::route53::zones(self)
    }

    fn records(&self, name: &str, kind: &str) -> Vec<String> {
        self.answers(name, kind)
    }

    fn delete(&self, name: &str, kind: &str) {
        self.remove(name, kind);
    }

    fn state(&self) -> String {
        self.serial().to_string()
    }
}

#[tokio::test]
async fn a_name_belongs_to_one_installation() {
    belongs_to_one(&Knot::start()).await;
    belongs_to_one(&Route53::start()).await;
}

async fn belongs_to_one(server: &impl NameServer) {
    let zones = server.zones();
    assert_eq!(see(&zones, HOST).await, Ok(None));
    write(&zones, HOST, &address(1), ("one", None)).await.unwrap();
    assert_eq!(server.records(HOST, "A"), ["192.0.2.1"]);
    assert_eq!(server.records(&format!("_streamfleet.{HOST}"), "TXT"), ["\"one\""]);
    let before = server.state();
    write(&zones, HOST, &address(1), ("one", None)).await.unwrap();
    assert_eq!(write(&zones, HOST, &address(2), ("two", None)).await, Err(RecordFault::Foreign));
    release(&zones, HOST, "two").await.unwrap();
    assert_eq!(server.state(), before);

    // From addresses to another name and back, in one step each.
    let mut both = address(4);
    both.addresses.insert("2001:db8::4".parse().unwrap());
    let alias = HostRecords { alias: Some("lb.example.net".to_owned()), ..HostRecords::default() };
    for records in [both, alias, address(5)] {
        write(&zones, HOST, &records, ("one", None)).await.unwrap();
        assert_eq!(see(&zones, HOST).await.unwrap().unwrap().records, records);
    }
    // Without its addresses, it is still ours.
    server.delete(HOST, "A");
    assert_eq!(see(&zones, HOST).await.unwrap().unwrap().owner.as_deref(), Some("one"));
    write(&zones, HOST, &address(6), ("one", None)).await.unwrap();
    release(&zones, HOST, "one").await.unwrap();
    assert_eq!(see(&zones, HOST).await, Ok(None));
    assert!(server.records(&format!("_streamfleet.{HOST}"), "TXT").is_empty());
}

#[tokio::test]
async fn of_many_that_claim_a_name_at_once_one_has_it() {
    one_has_it(&Knot::start(), 100).await;
    one_has_it(&Route53::start(), 30).await;
}

async fn one_has_it(server: &impl NameServer, rounds: u8) {
    for round in 0..rounds {
        let host = format!("race-{round}.kafka.example.test");
        let claim = |owner: u8| {
            let (zones, host) = (server.zones(), host.clone());
            async move { write(&zones, &host, &address(owner), (&owner.to_string(), None)).await.is_ok() }
        };
        let won = futures_util::future::join_all((1..=4).map(claim)).await;
        assert_eq!(won.iter().filter(|won| **won).count(), 1, "{won:?}");
        let seen = see_now(&server.zones(), &host).await.unwrap().unwrap();
        assert_eq!(seen.records, address(seen.owner.unwrap().parse().unwrap()));
    }
}

#[tokio::test]
async fn each_refusal_is_told_apart() {
    let knot = Knot::start();
    let wrong = "YW5vdGhlci1zZWNyZXQtb2YtdGhlLXNhbWUtbGVuZ3RoISE=";
    let unknown = "the server doesn't know the key, or doesn't let it change this (BADKEY)";
    for (login, zone, host, expected) in [
        (login(knot.address, "nobody", SECRET), "example.test", HOST, unknown),
        (
            login(knot.address, "streamfleet", wrong),
            "example.test",
            HOST,
            "the key's secret isn't that of the server (BADSIG)",
        ),
        (ours(&knot), "example.test", "a.www.example.test", unknown),
        (ours(&knot), "example.net", "a.example.net", "the server refuses it (REFUSED)"),
    ] {
        let fault = write(&zones_of(zone, Ok(DnsLogin::Rfc2136(login))), host, &address(1), ("one", None))
            .await
            .unwrap_err();
        assert_eq!(fault.to_string(), expected, "{host}");
    }
    let late = Rfc2136Login { clock: || Timestamp::now() + SignedDuration::from_mins(10), ..ours(&knot) };
    let fault = write(&zones(Ok(late)), HOST, &address(1), ("one", None)).await.unwrap_err();
    assert!(fault.to_string().starts_with("it is 20"), "{fault}");
    assert!(fault.to_string().ends_with(" on the server (BADTIME)"), "{fault}");
    assert_eq!(see(&zones(Ok(ours(&knot))), HOST).await, Ok(None));
}

#[tokio::test]
async fn records_of_a_stranger_are_taken_over_only_as_they_were_planned_for() {
    taken_over_as_planned(&Knot::start()).await;
    taken_over_as_planned(&Route53::start()).await;
}

async fn taken_over_as_planned(server: &impl NameServer) {
    let (zones, theirs) = (server.zones(), "theirs.kafka.example.test");
    let seen = see(&zones, theirs).await.unwrap().unwrap();
    assert_eq!((&seen.records, &seen.owner), (&address(99), &None));
    assert_eq!(write(&zones, theirs, &address(1), ("one", None)).await, Err(RecordFault::Foreign));
    assert_eq!(write(&zones, theirs, &address(1), ("one", Some("another"))).await, Err(RecordFault::Foreign));
    assert_eq!(see(&zones, theirs).await.unwrap(), Some(seen.clone()));
    write(&zones, theirs, &address(1), ("one", Some(&seen.identity()))).await.unwrap();
    let seen = see(&zones, theirs).await.unwrap().unwrap();
    assert_eq!((seen.records, seen.owner.as_deref()), (address(1), Some("one")));
    // What another has by now isn't deleted.
    release(&zones, theirs, "two").await.unwrap();
    assert!(see(&zones, theirs).await.unwrap().is_some());
    release(&zones, theirs, "one").await.unwrap();
    assert_eq!(see(&zones, theirs).await.unwrap(), None);
}

#[tokio::test]
async fn a_server_that_does_not_answer_is_not_asked_again_for_a_plan() {
    let mut knot = Knot::start();
    let login = ours(&knot);
    knot.stop();
    let silent = zones(Ok(login.clone()));
    let fault = see(&silent, HOST).await.unwrap_err();
    assert_eq!(fault.to_string(), "its server can't be reached");
    assert!(fault.hint().contains("`endpoint`"), "{}", fault.hint());
    knot.start_again();
    assert_eq!(see(&silent, HOST).await, Err(fault));
    assert_eq!(see(&zones(Ok(login.clone())), HOST).await, Ok(None));

    let denied = zones(Ok(Rfc2136Login { allowed: Vec::new(), ..login }));
    let fault = see(&denied, HOST).await.unwrap_err();
    assert!(fault.to_string().contains("127.0.0.1 is a loopback address"), "{fault}");
    assert!(fault.hint().contains("`allow_addresses`"), "{}", fault.hint());
    let none = zones(Err("cloud account dns isn't in the specs".to_owned()));
    let fault = see(&none, HOST).await.unwrap_err();
    assert_eq!(fault.to_string(), "cloud account dns isn't in the specs");
    let elsewhere = see(&none, "orders.example.test").await.unwrap_err();
    assert_eq!(
        elsewhere.to_string(),
        "no spec describes its base domain with `dns_provider: rfc2136` or `route53`"
    );

    // A server of something else.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let says = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        std::io::Write::write_all(&mut stream, b"\0\x05hello").unwrap();
        stream
    });
    let other = zones(Ok(Rfc2136Login { port, ..ours(&knot) }));
    assert_eq!(see(&other, HOST).await.unwrap_err().to_string(), "the answer can't be read");
    drop(says.join());
}

/// It signs its refusals, and Knot DNS doesn't.
#[tokio::test]
async fn bind_does_the_same() {
    let bind = Bind::start();
    let zones = |name, secret| zones(Ok(login(bind.address, name, secret)));
    let ours = zones("streamfleet", SECRET);
    write(&ours, HOST, &address(1), ("one", None)).await.unwrap();
    assert_eq!(write(&ours, HOST, &address(2), ("two", None)).await, Err(RecordFault::Foreign));
    write(&ours, HOST, &address(3), ("one", None)).await.unwrap();
    let seen = see(&ours, HOST).await.unwrap().unwrap();
    assert_eq!((seen.records, seen.owner.as_deref()), (address(3), Some("one")));
    release(&ours, HOST, "one").await.unwrap();
    assert_eq!(see(&ours, HOST).await, Ok(None));
    let refused = write(&ours, "a.www.example.test", &address(1), ("one", None)).await.unwrap_err();
    assert_eq!(refused.to_string(), "the server refuses it (REFUSED)");
    let wrong = "YW5vdGhlci1zZWNyZXQtb2YtdGhlLXNhbWUtbGVuZ3RoISE=";
    let unknown = see(&zones("nobody", SECRET), HOST).await.unwrap_err();
    assert_eq!(
        unknown.to_string(),
        "the server doesn't know the key, or doesn't let it change this (BADKEY)"
    );
    let wrong = see(&zones("streamfleet", wrong), HOST).await.unwrap_err();
    assert_eq!(wrong.to_string(), "the key's secret isn't that of the server (BADSIG)");
}
