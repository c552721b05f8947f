//! A renewed certificate restarts the clusters of its domain in the maintenance window, one after the other, as the plan
//! said before. The authority, the DNS server and the brokers are real; the test plays the operator and the load balancers.

use std::fs;
use std::net::TcpStream;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, ClientConnection, RootCertStore};
use serde_json::json;

use super::{APPLY, KEY, PLAN, QUARTER, kept, manage, renewal, set};
use crate::dns::serve_in;
use crate::support::Tree;
use crate::support::control_plane::{ControlPlane, Lease};
use crate::support::kafka::{Broker, address};
use crate::support::knot::Knot;
use crate::support::pebble::Pebble;
use crate::support::serve::Serve;
use crate::watch::SERVE;
use crate::watch::health::{SimulatedOperator, broker, operator, two_clusters};
use crate::watch::renewal::{exposed, held};

const CLUSTERS: [&str; 2] = ["dev", "web"];

/// Renewals wait for a window of an hour that opens at this time of the day. Returns its words in plans.
fn opens(tree: &Tree, pebble: &Pebble, at: Timestamp) -> String {
    let from = at.strftime("%H:%M");
    let policy = format!(
        "[policy]\ncertificate_renewal = \"window\"\nmaintenance = [{{from = \"{from}\", hours = 1}}]\n"
    );
    set(tree, &(pebble.settings(pebble.address.port()) + &policy));
    format!("may begin from {at}, in the maintenance window (daily {from} for 1 h, UTC)")
}

/// The first full minute after so many seconds.
fn minute_after(seconds: i64) -> Timestamp {
    let later = Timestamp::now() + SignedDuration::from_secs(seconds);
    Timestamp::from_second((later.as_second() / 60 + 1) * 60).unwrap()
}

pub fn names(cluster: &str) -> [String; 2] {
    ["", "broker-0--"].map(|node| format!("{node}{cluster}.acme.kafka.example.test"))
}

fn leaf(chain: &str) -> CertificateDer<'static> {
    CertificateDer::from_pem_slice(chain.as_bytes()).unwrap()
}

/// The certificate that a client gets who finds the name in DNS and trusts the authority alone.
fn shown(knot: &Knot, pebble: &Pebble, name: &str) -> CertificateDer<'static> {
    let [found] = knot.answers(name, "A").try_into().unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(leaf(&pebble.root())).unwrap();
    let config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    let host = name.to_owned().try_into().unwrap();
    let mut client = ClientConnection::new(Arc::new(config), host).unwrap();
    let mut stream = TcpStream::connect(format!("{found}:9094")).unwrap();
    while client.is_handshaking() {
        client.complete_io(&mut stream).unwrap();
    }
    client.peer_certificates().unwrap()[0].clone().into_owned()
}

/// When the Secret of a cluster was last written.
fn written(plane: &ControlPlane, cluster: &str) -> Timestamp {
    let words = format!(
        "get secret {cluster}-tls --namespace=kafka-acme--{cluster} --show-managed-fields \
         --output=jsonpath={{.metadata.managedFields[*].time}}"
    );
    let times = plane.kubectl(&words, "").expect(0).out;
    times.split_whitespace().map(|time| time.parse().unwrap()).max().unwrap()
}

/// Two clusters that run, with their names in DNS and a managed certificate, in whose window nothing begins.
fn running(plane: &Lease, cast: &SimulatedOperator, knot: &Knot, pebble: &Pebble) -> Tree {
    let tree = manage(two_clusters(plane), knot, pebble);
    exposed(&tree);
    tree.run(APPLY).expect(3);
    tree.run(APPLY).expect(0).says(&["+ cluster dev", "+ cluster web"]);
    cast.make(&operator());
    for cluster in CLUSTERS {
        cast.play("broker-pod-killed", cluster);
        cast.show(cluster, &held(plane, cluster));
        for name in names(cluster) {
            serve_in(plane, &format!("kafka-acme--{cluster}"), &name, json!([{"ip": address().to_string()}]));
        }
    }
    tree.run(APPLY).expect(0).says(&["makes 2 DNS records"]);
    tree.run(PLAN).expect(0).says(&["Nothing to do"]);
    tree
}

/// Waits until one more plan is made.
fn plans_again(serve: &Serve<'_>) {
    let before = serve.rounds();
    fs::create_dir(serve.tree.path().join(format!("acme/folder-{before}"))).unwrap();
    serve.until("another plan is made", || (serve.rounds() > before).then_some(()));
}

#[test]
fn a_renewal_restarts_one_cluster_after_the_other_in_the_window_as_the_plan_said() {
    let plane = ControlPlane::lease();
    let knot = Knot::start();
    let pebble = Pebble::start(knot.address, QUARTER);
    let cast = SimulatedOperator::on(&plane);
    let tree = running(&plane, &cast, &knot, &pebble);
    let before = held(&plane, "dev");
    assert_eq!(held(&plane, "web"), before);

    // Outside of the window the certificate is renewed, and nothing restarts for it.
    let later = opens(&tree, &pebble, minute_after(2 * 3600));
    pebble.renews_now(&before);
    renewal::ask_again(&tree);
    tree.run(PLAN).expect(2).says(&[
        "because its certificate is due",
        "renews the certificate for *.acme.kafka.example.test at ",
        "brokers restart for it with the plans that follow",
    ]);
    tree.run(APPLY).expect(0);
    assert_eq!(pebble.orders(), 2);
    let after = kept(&tree)["certificates"][KEY]["issued"]["chain"].as_str().unwrap().to_owned();
    assert_ne!(leaf(&after), leaf(&before));
    let plan = tree.run(PLAN).expect(3).says(&[
        "2 clusters restart their brokers with the new certificate, one cluster after another, each when the one before is \
         Healthy",
        &format!("! cluster dev        waiting: {later}"),
        &format!("! cluster web        waiting: {later}"),
        "its only broker restarts with the new certificate",
    ]);
    assert!(plan.out.find("cluster dev") < plan.out.find("cluster web"), "{}", plan.out);
    tree.run(APPLY).expect(3);
    tree.run(APPLY).expect(3).says(&[&later]);
    assert_eq!(CLUSTERS.map(|cluster| held(&plane, cluster)), [before.clone(), before.clone()]);

    // A window opens while the daemon runs.
    let window = minute_after(60);
    let soon = opens(&tree, &pebble, window);
    let serve = Serve::start(&tree, SERVE);
    for cluster in CLUSTERS {
        serve.says(&[&format!("cluster acme/{cluster}"), &format!("waiting: {soon}")]);
    }
    let has_new = |cluster: &str| leaf(&held(&plane, cluster)) == leaf(&after);
    for (number, cluster) in CLUSTERS.into_iter().enumerate() {
        let resource = format!("cluster acme/{cluster}");
        serve.until("it has the next certificate", || has_new(cluster).then_some(()));
        assert!(written(&plane, cluster) >= window, "{}", serve.log());
        let alone = || {
            plans_again(&serve);
            let others = CLUSTERS[number + 1..].iter().filter(|other| has_new(other));
            assert_eq!(others.count(), 0, "{}", serve.log());
            assert!(CLUSTERS[..=number].iter().all(|cluster| has_new(cluster)), "{}", serve.log());
        };
        serve.says(&[" is ", &resource, "to=Updating", "doesn't use the new certificate yet"]);
        if number == 0 {
            let turn = "one disruption at a time; cluster acme/dev is first";
            serve.says(&["cluster acme/web", "waiting: ", turn]);
        }
        alone();

        // The operator replaces the broker's pod, whose listener then has the certificate, and tells it last.
        cast.remove(&broker(cluster));
        serve.says(&[" is ", &resource, &format!("{cluster}-dual-0")]);
        alone();
        let running = Broker::start(&plane, &format!("kafka-acme--{cluster}"), &[], &[]);
        for name in names(cluster) {
            assert_eq!(shown(&knot, &pebble, &name), leaf(&after), "{name}");
        }
        cast.make(&broker(cluster));
        alone();
        cast.reconciles(&plane, cluster, running.with_status()["status"]["listeners"].clone());
        serve.says(&[" is ", &resource, "from=Updating", "to=Healthy"]);
    }
    assert_eq!(serve.stop(), Some(0));
    tree.run(PLAN).expect(0).says(&["Nothing to do"]);
    assert_eq!(pebble.orders(), 2);
}
