//! DNS records of clusters, on a real DNS server and a real control plane. The tests play the operator and the load
//! balancers.

mod client;
mod route53;

use std::fs;

use serde_json::json;

use crate::gateway::{route, with_gateways};
use crate::kubernetes::{FLEET, SANDBOX, on, reached_with};
use crate::rights::tenant;
use crate::support::control_plane::ControlPlane;
use crate::support::door::{Door, Moment};
use crate::support::knot::{Knot, SECRET};
use crate::support::names::{ACCOUNT, DOMAIN, certificate, fields, keep};
use crate::support::serve::Serve;
use crate::support::{Tree, approval_id, copy, memory_folder, one_in};

const PLAN: &str = "plan tree --config config.toml";
const APPLY: &str = "apply tree --yes --config config.toml";
const ORDERS: &str = "acme/clusters/orders.yaml";
const BOOTSTRAP: &str = "orders.acme.kafka.example.test";
const NAMESPACE: &str = "kafka-acme--orders";

/// The base domain's names, with a certificate of its own.
fn keep_records(tree: &Tree, knot: &Knot) {
    let own = certificate(&["acme.kafka.example.test", "*.acme.kafka.example.test"]);
    keep(tree, knot, &fields(&own));
}

fn described(plane: &ControlPlane, knot: &Knot) -> Tree {
    let tree = on(plane);
    keep_records(&tree, knot);
    tree
}

fn broker(number: u8) -> String {
    format!("broker-{number}--{BOOTSTRAP}")
}

const INSTALLATION: &str = "00000000-0000-4000-8000-000000000000";

/// Plays the operator, which makes a Service for a host name, and the load balancer, which has this address.
fn serve(plane: &ControlPlane, host: &str, ingress: serde_json::Value) {
    serve_in(plane, NAMESPACE, host, ingress);
}

pub fn serve_in(plane: &ControlPlane, namespace: &str, host: &str, ingress: serde_json::Value) {
    let name = host.split('.').next().unwrap();
    let service = json!({"apiVersion": "v1", "kind": "Service",
        "metadata": {"name": name, "namespace": namespace, "labels": {"strimzi.io/kind": "Kafka"},
            "annotations": {"streamfleet.io/host": host}},
        "spec": {"type": "LoadBalancer", "ports": [{"port": 9094}]}});
    plane.kubectl("apply --server-side --force-conflicts -f -", &service.to_string()).expect(0);
    let ingress = json!({"loadBalancer": {"ingress": ingress}});
    plane.set_status(&format!("service {name} --namespace={namespace}"), &ingress);
}

fn at(plane: &ControlPlane, host: &str, address: &str) {
    serve(plane, host, json!([{"ip": address}]));
}

fn serve_all(plane: &ControlPlane) {
    at(plane, BOOTSTRAP, "192.0.2.10");
    for number in 0..3 {
        at(plane, &broker(number), &format!("192.0.2.1{}", number + 1));
    }
}

#[test]
fn names_follow_the_load_balancers_and_go_with_their_cluster() {
    let mut plane = ControlPlane::lease();
    plane.run_controllers();
    let mut knot = Knot::start();
    let tree = described(&plane, &knot);
    let first = knot.serial();
    tree.run(APPLY).expect(0).says_nothing_of(&[SECRET]);
    tree.run(PLAN).expect(0).says(&["Nothing to do"]);

    // A load balancer without an address has no record.
    serve(&plane, BOOTSTRAP, json!([]));
    tree.run(PLAN).expect(0).says(&["Nothing to do"]);
    assert_eq!(knot.serial(), first);
    serve_all(&plane);
    tree.run(PLAN).expect(2).says(&[
        "because its load balancers have other addresses",
        "makes 4 DNS records",
        "+ DnsRecord kafka-acme--orders/orders.acme.kafka.example.test",
    ]);
    assert_eq!(knot.serial(), first);
    tree.run(APPLY).expect(0).says_nothing_of(&[SECRET]);
    assert_eq!(knot.answers(BOOTSTRAP, "A"), ["192.0.2.10"]);
    assert_eq!(knot.answers(&broker(2), "A"), ["192.0.2.13"]);
    let owner = knot.answers(&format!("_streamfleet.{BOOTSTRAP}"), "TXT");
    assert!(owner[0].contains("resource=acme/orders"), "{owner:?}");
    let serial = knot.serial();
    tree.run(APPLY).expect(0);
    tree.run(PLAN).expect(0).says(&["Nothing to do"]);
    fs::remove_dir_all(tree.path().join(".streamfleet/state/cache-v1")).unwrap();
    tree.run(PLAN).expect(0).says(&["Nothing to do"]);
    assert_eq!(knot.serial(), serial);

    // One moves; one gets a name instead of an address.
    at(&plane, BOOTSTRAP, "192.0.2.20");
    serve(&plane, &broker(0), json!([{"hostname": "lb-1.example.net"}]));
    tree.run(PLAN).expect(2).says(&[
        "~ DnsRecord kafka-acme--orders/orders.acme.kafka.example.test",
        "-   - \"192.0.2.10\"",
        "+   - \"192.0.2.20\"",
        "orders.acme.kafka.example.test leads to another address, which clients use within a minute",
    ]);
    tree.run(APPLY).expect(0);
    assert_eq!(knot.answers(BOOTSTRAP, "A"), ["192.0.2.20"]);
    assert_eq!(knot.answers(&broker(0), "CNAME"), ["lb-1.example.net."]);

    // What somebody changes is changed back; what isn't known stays.
    knot.update(&format!("del {BOOTSTRAP}. A\nadd {BOOTSTRAP}. 60 A 192.0.2.66"));
    tree.run(PLAN)
        .expect(2)
        .says(&["because the target differs from what was applied", "-   - \"192.0.2.66\""]);
    tree.run(APPLY).expect(0);
    assert_eq!(knot.answers(BOOTSTRAP, "A"), ["192.0.2.20"]);
    let serial = knot.serial();
    serve(&plane, BOOTSTRAP, json!([]));
    tree.run(APPLY).expect(0);
    plane.kubectl(&format!("delete services --all --namespace={NAMESPACE}"), "").expect(0);
    tree.run(APPLY).expect(0);
    assert_eq!(knot.serial(), serial);
    at(&plane, BOOTSTRAP, "192.0.2.20");

    // The operator removed a broker.
    tree.run(APPLY)
        .expect(0)
        .says(&["- DnsRecord kafka-acme--orders/broker-2--orders.acme.kafka.example.test"]);
    assert!(knot.answers(&broker(2), "A").is_empty());
    serve_all(&plane);
    tree.run(APPLY).expect(0);

    // A server that doesn't answer holds up nothing else, and its records stay.
    knot.stop();
    tree.edit("acme/clusters/sandbox.yaml", "deletion_protection: false", "deletion_protection: true");
    tree.run(APPLY).expect(0).says(&[
        "! DnsFailing: the DNS records of example.test can't be read, and stay as they are: its server can't be reached",
        "check `endpoint` of the cloud account",
    ]);
    knot.start_again();
    tree.run(PLAN).expect(0);

    // The records of a cluster that is deleted go first, and only they.
    tree.edit(ORDERS, "identifier: orders", "identifier: orders\ndeletion_protection: false");
    tree.run(APPLY).expect(0);
    tree.remove(ORDERS);
    tree.run(APPLY).expect(0);
    for host in [BOOTSTRAP, &broker(0), &broker(1), &broker(2)] {
        assert!(knot.answers(host, "A").is_empty(), "{host}");
        assert!(knot.answers(&format!("_streamfleet.{host}"), "TXT").is_empty(), "{host}");
    }
    assert_eq!(knot.answers("theirs.kafka.example.test", "A"), ["192.0.2.99"]);
}

#[test]
fn what_somebody_else_has_is_left_and_taken_over_only_with_approval() {
    let plane = ControlPlane::lease();
    let knot = Knot::start();
    let tree = described(&plane, &knot);
    tree.run(APPLY).expect(0);
    knot.update(&format!("add {BOOTSTRAP}. 60 A 192.0.2.66"));
    let text = format!("v=1 installation={INSTALLATION} resource=other/orders");
    let theirs = broker(1);
    knot.update(&format!("add {theirs}. 60 A 192.0.2.67\nadd _streamfleet.{theirs}. 60 TXT \"{text}\""));
    serve_all(&plane);

    // The other names don't wait.
    tree.run(APPLY).expect(0).says(&[
        "makes 2 DNS records",
        "the DNS name orders.acme.kafka.example.test leads to 192.0.2.66 already, by a record that streamfleet didn't make: it \
         is left as it is",
        "the DNS name broker-1--orders.acme.kafka.example.test leads to 192.0.2.67 already; it belongs to another: `v=1 \
         installation=00000000-0000-4000-8000-000000000000",
    ]);
    assert_eq!(knot.answers(&broker(0), "A"), ["192.0.2.11"]);
    let serial = knot.serial();
    let plan = tree.run(APPLY).expect(3);
    let plan = plan.says(&[
        "somebody made a DNS record by hand, and it would lead to the cluster instead",
        "takes over DnsRecord kafka-acme--orders/orders.acme.kafka.example.test, which streamfleet didn't make",
        "~ DnsRecord kafka-acme--orders/orders.acme.kafka.example.test: adopted",
        "to approve: streamfleet approve",
    ]);
    assert_eq!(knot.serial(), serial);
    // It isn't what was approved any more.
    tree.run(&format!("approve {} tree --config config.toml", approval_id(&plan.out))).expect(0);
    knot.update(&format!("add {BOOTSTRAP}. 60 A 192.0.2.68"));
    let serial = knot.serial();
    let plan = tree.run(APPLY).expect(3);
    assert_eq!(knot.serial(), serial);
    tree.run(&format!("approve {} tree --config config.toml", approval_id(&plan.out))).expect(0);
    tree.run(APPLY).says(&["Applied 1 resource"]);
    assert_eq!(knot.answers(BOOTSTRAP, "A"), ["192.0.2.10"]);

    tree.run(APPLY).expect(3).says(&[
        "the DNS name broker-1--orders.acme.kafka.example.test leads to 192.0.2.67 already",
        "to continue: remove the record of broker-1--orders.acme.kafka.example.test on its DNS server, or give the cluster \
         another name",
    ]);
    assert_eq!(knot.answers(&theirs, "A"), ["192.0.2.67"]);
    knot.update(&format!("del {theirs}.\ndel _streamfleet.{theirs}."));
    tree.run(APPLY).expect(0);
    assert_eq!(knot.answers(&theirs, "A"), ["192.0.2.12"]);
    tree.run(PLAN).expect(0).says(&["Nothing to do"]);
}

#[test]
fn no_mistake_deletes_a_record() {
    let plane = ControlPlane::lease();
    let knot = Knot::start();
    let tree = described(&plane, &knot);
    tree.edit(ORDERS, "identifier: orders", "identifier: orders\ndeletion_protection: false");
    fs::write(
        tree.beside("config.toml"),
        "[targets]\nallow_addresses = [\"127.0.0.0/8\"]\n[policy]\ncluster_deletions_per_hour = 0\n",
    )
    .unwrap();
    tree.run(APPLY).expect(0);
    serve_all(&plane);
    tree.run(APPLY).expect(0);
    let serial = knot.serial();
    let whole = memory_folder();
    copy(&tree.path(), whole.path());
    type Mistake = (&'static str, fn(&Tree));
    let mistakes: [Mistake; 10] = [
        ("an emptied folder", |tree| fs::remove_dir_all(tree.path().join("acme")).unwrap()),
        ("an unreadable file", |tree| tree.write(ORDERS, "{{{")),
        ("a renamed cluster", |tree| tree.edit(ORDERS, "identifier: orders", "identifier: order")),
        ("a moved file", |tree| {
            let text = tree.read(ORDERS);
            tree.remove(ORDERS);
            tree.write("acme/moved.yaml", text);
        }),
        ("a removed organization", |tree| tree.remove("organizations.yaml")),
        ("a removed cluster", |tree| tree.remove(ORDERS)),
        ("a removed fleet", |tree| tree.remove(FLEET)),
        ("a removed base domain", |tree| tree.remove(DOMAIN)),
        ("a removed cloud account", |tree| tree.remove(ACCOUNT)),
        ("another zone", |tree| {
            tree.edit(DOMAIN, "dns_base_domain: example.test", "dns_base_domain: kafka.example.test");
        }),
    ];
    for (what, make) in mistakes {
        make(&tree);
        let said = tree.run(APPLY);
        assert_eq!(knot.serial(), serial, "{what}\n{}\n{}", said.out, said.err);
        // The state is in the tree's folder, too.
        for entry in fs::read_dir(tree.path()).unwrap().flatten() {
            let path = entry.path();
            match path.is_dir() {
                _ if path.ends_with(".streamfleet") => {}
                true => fs::remove_dir_all(path).unwrap(),
                false => fs::remove_file(path).unwrap(),
            }
        }
        copy(&whole.path().join("acme"), &tree.path().join("acme"));
        tree.write("organizations.yaml", fs::read(whole.path().join("organizations.yaml")).unwrap());
        tree.run(APPLY).expect(0);
        tree.run(PLAN).expect(0).says(&["Nothing to do"]);
        assert_eq!(knot.serial(), serial, "after {what}");
    }
    // Another installation with the same domain, on a Kubernetes cluster of its own.
    let other = ControlPlane::lease();
    let stranger = described(&other, &knot);
    stranger.run(APPLY).expect(0);
    serve_all(&other);
    stranger.run(APPLY).expect(3).says(&["it belongs to another: `v=1 installation="]);
    assert_eq!(knot.serial(), serial);
}

/// Names of the cluster `sandbox`, which has a single broker.
const NAMES: [&str; 2] = ["sandbox.acme.kafka.example.test", "broker-0--sandbox.acme.kafka.example.test"];

const INSIDE: &str = "cluster_access: Internal\n";
const OUTSIDE: &str = "cluster_access: External\n";

/// A tree whose cluster `sandbox` has load balancers and no records yet. The DNS server is asked through a door.
fn about_to_have_records(plane: &ControlPlane, knot: &Knot, door: &Door) -> Tree {
    let tree = described(plane, knot);
    tree.remove(ORDERS);
    tree.edit(ACCOUNT, &knot.address.port().to_string(), &door.port.to_string());
    tree.edit(SANDBOX, INSIDE, OUTSIDE);
    tree.run(APPLY).expect(0);
    for (host, address) in NAMES.iter().zip(["192.0.2.1", "192.0.2.2"]) {
        serve_in(plane, "kafka-acme--sandbox", host, json!([{"ip": address}]));
    }
    tree
}

#[test]
fn killed_at_any_message_a_later_run_leaves_the_records_that_no_kill_would_have() {
    let mut plane = ControlPlane::lease();
    plane.run_controllers();
    let knot = Knot::start();
    let door = Door::before(knot.address);
    let tree = about_to_have_records(&plane, &knot, &door);
    tree.run(APPLY).expect(0);
    let mut killed = 0;
    for message in (1..).step_by(one_in(4)) {
        let mut is_over = true;
        for is_answered in [false, true] {
            for is_deleted in [true, false] {
                match is_deleted {
                    true => tree.edit(SANDBOX, OUTSIDE, INSIDE),
                    false => tree.edit(SANDBOX, INSIDE, OUTSIDE),
                }
                let is_killed = door.kills(|| tree.start(APPLY), Moment { message, is_answered });
                killed += usize::from(is_killed);
                is_over &= !is_killed;
                tree.run(APPLY).expect(0);
                tree.run(PLAN).expect(0).says(&["Nothing to do"]);
                for (host, address) in NAMES.iter().zip(["192.0.2.1", "192.0.2.2"]) {
                    let (addresses, owners) =
                        (knot.answers(host, "A"), knot.answers(&format!("_streamfleet.{host}"), "TXT").len());
                    match is_deleted {
                        true => {
                            assert_eq!((addresses.len(), owners), (0, 0), "{host} {message} {is_answered}")
                        }
                        false => {
                            assert_eq!((addresses, owners), (vec![address.to_owned()], 1), "{host} {message}")
                        }
                    }
                }
            }
        }
        if is_over {
            break;
        }
    }
    assert!(killed > 6, "only {killed} runs were killed");
}

/// A run is killed after a record was made and before that is known, and then the cluster goes while the server is away.
#[test]
fn a_record_of_which_nothing_is_known_goes_with_its_cluster() {
    let mut plane = ControlPlane::lease();
    plane.run_controllers();
    let mut knot = Knot::start();
    let door = Door::before(knot.address);
    let tree = about_to_have_records(&plane, &knot, &door);
    let records = |knot: &Knot| NAMES.iter().map(|host| knot.answers(host, "A").len()).sum::<usize>();
    for message in 1.. {
        let is_killed = door.kills(|| tree.start(APPLY), Moment { message, is_answered: false });
        assert!(is_killed, "no run was killed between two records");
        if records(&knot) > 0 {
            break;
        }
    }
    knot.stop();
    tree.remove(SANDBOX);
    tree.run(APPLY).expect(1).says(&["can't be reached"]);
    knot.start_again();
    tree.run(APPLY).expect(0);
    tree.run(PLAN).expect(0).says(&["Nothing to do"]);
    assert_eq!(records(&knot), 0);
    for host in NAMES {
        assert!(knot.answers(&format!("_streamfleet.{host}"), "TXT").is_empty(), "{host}");
    }
}

/// The rights that `streamfleet role` prints are enough, and a daemon follows by itself.
#[test]
fn behind_a_gateway_all_names_lead_to_it_and_follow_it_by_themselves() {
    let plane = with_gateways();
    let knot = Knot::start();
    let tree = reached_with(&tenant(&plane, "--gateway"));
    keep_records(&tree, &knot);
    route(&tree);
    let serve = Serve::start(&tree, "serve --specs tree --config config.toml");
    serve.until("the Gateway is there", || {
        (plane.kubectl("get gateway kafka --namespace=streamfleet-gateway", "").code == 0).then_some(())
    });
    let pool = format!("kafkanodepool broker --namespace={NAMESPACE}");
    serve.until("the brokers are there", || {
        (plane.kubectl(&format!("get {pool}"), "").code == 0).then_some(())
    });
    let patch = |object: &str, status: serde_json::Value| {
        let status = json!({"status": status}).to_string();
        plane.kubectl(&format!("patch {object} --subresource=status --type=merge -p {status}"), "").expect(0);
    };
    let gateway = "gateway kafka --namespace=streamfleet-gateway";
    patch(&pool, json!({"nodeIds": [0, 1, 2], "observedGeneration": 1}));
    patch(gateway, json!({"addresses": [{"type": "IPAddress", "value": "192.0.2.40"}]}));
    for host in [BOOTSTRAP, &broker(0), &broker(1), &broker(2)] {
        serve.until("the name leads to the Gateway", || {
            (knot.answers(host, "A") == ["192.0.2.40"]).then_some(())
        });
    }
    serve.says(&["its load balancers have other addresses"]);
    patch(gateway, json!({"addresses": [{"type": "IPAddress", "value": "192.0.2.41"}]}));
    serve.until("the name follows", || (knot.answers(&broker(2), "A") == ["192.0.2.41"]).then_some(()));
    let log = serve.log();
    assert!(!log.contains(SECRET) && !log.contains("Forbidden"), "{log}");
    serve.stop();
}
