//! Edits that look harmless and would lose data, or access to it: the plan stops each and says what to do
//! instead.

use std::fs;

use crate::support::{Tree, approval_id, copy, examples, stable};

const ORDERS: &str = "acme/clusters/orders.yaml";
const FLEET: &str = "acme/fleets/eu.yaml";
const DOMAIN: &str = "acme/base-domains/kafka.acme.example.com.yaml";

struct Edit {
    what: &'static str,
    /// File, old text, new text; the settings file is [`SETTINGS`].
    edits: &'static [(&'static str, &'static str, &'static str)],
}

const SETTINGS: &str = "../config.toml";

/// Unit sizes spelled out, as in an installation with sizes of its own.
const UNITS: &str = "\
[units.standard]
brokers_per_unit = 3
controllers = 3
replication_factor = 3
min_insync_replicas = 2
ingress_bytes_per_second = 52428800
egress_bytes_per_second = 104857600
connections = 9000
connection_rate = 100
partitions = 1500
storage_gib = 1000
broker_cpu_millis = 2900
broker_memory_mib = 17408
broker_heap_mib = 6144
controller_cpu_millis = 500
controller_memory_mib = 2048
controller_heap_mib = 1024
controller_storage_gib = 20
";

const EDITS: &[Edit] = &[
    Edit { what: "shrink the disks", edits: &[(ORDERS, "size_gib: 400", "size_gib: 300")] },
    Edit { what: "change the storage class", edits: &[(ORDERS, "class: gp3", "class: io2")] },
    Edit { what: "rename the cluster", edits: &[(ORDERS, "identifier: orders", "identifier: sales")] },
    Edit {
        what: "drop the pool of controllers",
        edits: &[(SETTINGS, "\ncontrollers = 3", "\ncontrollers = 0")],
    },
    Edit { what: "have fewer controllers", edits: &[(SETTINGS, "\ncontrollers = 3", "\ncontrollers = 1")] },
    Edit { what: "go back to an older version", edits: &[(ORDERS, "version: 4.3.1", "version: 4.2.1")] },
    Edit {
        what: "turn off tiered storage",
        edits: &[(
            ORDERS,
            "  tiered_storage_bucket_name: acme-log\n  tiered_storage_provider: {cloud_account: minio}\n",
            "",
        )],
    },
    Edit {
        what: "change the tenancy of fleet and cluster",
        edits: &[(FLEET, "Shared", "Isolated"), (ORDERS, "Shared", "Isolated")],
    },
    Edit {
        what: "change the base domain's name",
        edits: &[
            (DOMAIN, "domain: kafka.acme.example.com", "domain: streams.acme.example.com"),
            (FLEET, "domain: kafka.acme.example.com", "domain: streams.acme.example.com"),
        ],
    },
    Edit {
        what: "give the fleet another base domain",
        edits: &[(FLEET, "domain: kafka.acme.example.com", "domain: stream.example.com")],
    },
    Edit {
        what: "move the cluster to another fleet",
        edits: &[(ORDERS, "infrastructure: eu", "infrastructure: us")],
    },
    // Other ways to the same result.
    Edit {
        what: "change the fleet's storage class",
        edits: &[(FLEET, "max_tenants: 5", "max_tenants: 5\nadvanced_config: {storage_class: io2}")],
    },
    Edit {
        what: "have smaller disks behind a unit",
        edits: &[(SETTINGS, "controller_storage_gib = 20", "controller_storage_gib = 10")],
    },
    Edit {
        what: "have fewer brokers behind a unit",
        edits: &[
            (SETTINGS, "brokers_per_unit = 3", "brokers_per_unit = 2"),
            (SETTINGS, "\nreplication_factor = 3", "\nreplication_factor = 2"),
            (SETTINGS, "min_insync_replicas = 2", "min_insync_replicas = 1"),
        ],
    },
    Edit { what: "have fewer units", edits: &[(ORDERS, "kafka_units: 2", "kafka_units: 1")] },
    Edit {
        what: "become a cluster to try things on",
        edits: &[
            (ORDERS, "kafka_units: 2", "kafka_units: 1"),
            (ORDERS, "  version: 4.3.1", "  version: 4.3.1\n  profile: dev"),
        ],
    },
    Edit { what: "use another bucket", edits: &[(ORDERS, "acme-log", "acme-log-2")] },
];

fn applied() -> Tree {
    let tree = Tree::example("quickstart");
    tree.edit("organizations.yaml", "  - acme.example.com", "  - example.com");
    copy(&examples().join("tiered-storage/acme/cloud-accounts"), &tree.path().join("acme/cloud-accounts"));
    let other =
        fs::read_to_string(examples().join("oauth/acme/base-domains/stream.example.com.yaml")).unwrap();
    tree.write("acme/base-domains/stream.example.com.yaml", other);
    tree.write("acme/fleets/us.yaml", tree.read(FLEET).replace("identifier: eu", "identifier: us"));
    tree.edit(ORDERS, "kafka_units: 1", "kafka_units: 2");
    // Any number of brokers fits one zone.
    tree.edit(ORDERS, "number_of_zones: 3", "number_of_zones: 1");
    let more = "  tiered_storage_bucket_name: acme-log\n  tiered_storage_provider: {cloud_account: minio}\n  \
                storage:\n    class: gp3\n    size_gib: 400\n";
    tree.write(ORDERS, tree.read(ORDERS) + more);
    tree.write(SETTINGS, UNITS);
    tree.run("apply tree --yes --config config.toml").expect(0);
    tree
}

#[test]
fn each_is_stopped_in_the_plan_with_what_to_do_instead() {
    let tree = applied();
    let before = tree.output();
    let mut all = String::new();
    for Edit { what, edits } in EDITS {
        let mut kept = Vec::new();
        for (file, from, to) in *edits {
            kept.push(tree.read(file));
            tree.edit(file, from, to);
        }
        let plan = tree.run("plan tree --config config.toml").expect(1);
        assert_eq!(plan.err.matches("= help: ").count(), plan.err.matches("error: ").count(), "{what}");
        tree.run("apply tree --yes --config config.toml").expect(1);
        assert_eq!(tree.output(), before, "{what}");
        all += &format!("=== {what}\n\n{}\n{}\n", stable(&plan.out), plan.err);
        // In reverse, since a file may be edited twice.
        edits.iter().zip(kept).rev().for_each(|((file, ..), text)| tree.write(file, text));
        tree.run("plan tree --config config.toml").expect(0);
    }
    insta::assert_snapshot!("stopped", all);
}

/// Broker options that delete records can't be refused, since that is their purpose: they need approval.
#[test]
fn a_shorter_retention_deletes_records_only_when_a_person_says_so() {
    let tree = applied();
    tree.write(ORDERS, tree.read(ORDERS) + "  config: {log.retention.ms: 2592000000}\n");
    tree.run("apply tree --yes --config config.toml").expect(0);
    let before = tree.output();
    tree.edit(ORDERS, "2592000000", "3600000");
    let plan = tree.run("plan tree --config config.toml").expect(3);
    let plan = plan.says(&[
        "on hold for approval: it permanently deletes data that the cluster keeps now",
        "records older than 1 hour are deleted, in topics without a `retention.ms` of their own (30 days before)",
    ]);
    tree.run("apply tree --yes --config config.toml").expect(3);
    assert_eq!(tree.output(), before, "nobody has said so yet");
    tree.run(&format!("approve {} tree --config config.toml", approval_id(&plan.out))).expect(0);
    tree.run("apply tree --yes --config config.toml").expect(0);
    assert_ne!(tree.output(), before);
}

/// An option set by hand also counts as protecting records, even one that no spec may set.
#[test]
fn undoing_a_longer_retention_deletes_records_only_when_a_person_says_so() {
    let tree = applied();
    let kafka = ".streamfleet/output/acme/eu/kafka-acme--orders/kafka-orders.yaml";
    tree.edit(kafka, "      auto.create", "      log.retention.hours: 87600\n      auto.create");
    let before = tree.output();
    let plan = tree.run("plan tree --config config.toml").expect(3);
    let plan = plan.says(&[
        "on hold for approval: it permanently deletes data that the cluster keeps now",
        "records older than 7 days are deleted, in topics without a `retention.ms` of their own (3650 days before; Kafka's \
         default applies now)",
    ]);
    tree.run("apply tree --yes --config config.toml").expect(3);
    assert_eq!(tree.output(), before, "nobody has said so yet");
    tree.run(&format!("approve {} tree --config config.toml", approval_id(&plan.out))).expect(0);
    tree.run("apply tree --yes --config config.toml").expect(0);
    assert_ne!(tree.output(), before);
}

/// A manifest file without a manifest says nothing about the cluster's disks.
#[test]
fn a_file_that_cannot_be_read_is_no_way_around() {
    let tree = applied();
    let pool = ".streamfleet/output/acme/eu/kafka-acme--orders/kafkanodepool-broker.yaml";
    let before = tree.read(pool);
    tree.write(pool, "{");
    fs::remove_dir_all(tree.path().join(".streamfleet/state/cache-v1")).unwrap();
    tree.edit(ORDERS, "size_gib: 400", "size_gib: 300");
    tree.run("plan tree --config config.toml").expect(3).says(&[
        "on hold for approval: KafkaNodePool kafka-acme--orders/broker can't be read and its earlier content is unknown, \
         so the change may delete data",
        "can't be read, and what was applied last is unknown: it is rewritten",
    ]);
    tree.run("apply tree --yes --config config.toml").expect(3);
    assert_eq!(tree.read(pool), "{", "nobody has said so");

    // If the spec restores the old size, what was applied last tells what it was.
    tree.edit(ORDERS, "size_gib: 300", "size_gib: 400");
    let plan = tree.run("plan tree --config config.toml").expect(2);
    plan.says(&["can't be read: it is compared with what was applied last, and rewritten"]);
    tree.run("apply tree --yes --config config.toml").expect(0);
    assert_eq!(tree.read(pool), before);

    tree.write(pool, "{");
    tree.edit(ORDERS, "class: gp3", "class: io2");
    tree.run("plan tree --config config.toml").expect(1);
    tree.edit(ORDERS, "class: io2", "class: gp3");
    tree.run("apply tree --yes --config config.toml").expect(0);
    assert_eq!(tree.read(pool), before);
}

/// A Secret removed from a folder also disappears from Kubernetes if the folder is applied with pruning.
#[test]
fn secrets_leave_a_folder_only_when_a_person_says_so() {
    let tree = applied();
    let before = tree.output();
    tree.write(SETTINGS, format!("{UNITS}\n[secrets]\nwrite_to_output = false\n"));
    let plan = tree.run("plan tree --config config.toml").expect(3);
    let plan = plan.says(&[
        "on hold for approval: Secrets are removed from the folder, and brokers can't start without them unless you keep \
         them in Kubernetes",
        "removed from the folder, because `secrets.write_to_output` is false. Keep them in Kubernetes first, by other \
         means: the tool that deletes what the folder no longer contains deletes them too, and then brokers can't start",
    ]);
    tree.run("apply tree --yes --config config.toml").expect(3);
    assert_eq!(tree.output(), before, "nobody has said so yet");
    tree.run(&format!("approve {} tree --config config.toml", approval_id(&plan.out))).expect(0);
    tree.run("apply tree --yes --config config.toml").expect(0);
    assert!(!tree.output().iter().any(|(path, _)| path.contains("/secret-")));
}

/// A directory target can't tell whether older log segments were moved to tiered storage.
#[test]
fn another_place_for_the_older_part_of_the_log_waits_for_a_person() {
    let tree = applied();
    let before = tree.output();
    tree.edit("acme/cloud-accounts/minio.yaml", "endpoint: https://", "endpoint: https://new.");
    let plan = tree.run("plan tree --config config.toml").expect(3);
    let plan = plan.says(&[
        "on hold for approval: brokers look for the older part of the log in another place, and can't read it unless it is \
         there already",
    ]);
    tree.run("apply tree --yes --config config.toml").expect(3);
    assert_eq!(tree.output(), before, "nobody has said so yet");
    tree.run(&format!("approve {} tree --config config.toml", approval_id(&plan.out))).expect(0);
    tree.run("apply tree --yes --config config.toml").expect(0);
    assert_ne!(tree.output(), before);
}

/// Settings that keep all existing data but make new writes less safe: the plan says what that means.
#[test]
fn fewer_copies_behind_a_unit_are_said_to_be_fewer() {
    let tree = applied();
    for (from, to) in [
        ("\nreplication_factor = 3", "\nreplication_factor = 2"),
        ("min_insync_replicas = 2", "min_insync_replicas = 1"),
    ] {
        tree.edit(SETTINGS, from, to);
    }
    tree.run("plan tree --config config.toml").expect(2).says(&[
        "new topics get 2 copies instead of 3, so fewer failures can lose their records; existing topics keep theirs",
        "a write with `acks=all` is acknowledged with 1 copy instead of 2: it is lost, though acknowledged, if that one is \
         lost",
    ]);
}
