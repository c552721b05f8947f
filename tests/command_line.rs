//! The binary as a program: exit codes, formats, colours, pipes.

use std::io::Read as _;
use std::process::Stdio;

use crate::support::Tree;

#[test]
fn usage_mistakes_exit_with_64() {
    let tree = Tree::empty();
    for words in
        ["", "plam", "plan --nonsense", "get nonsense tree", "secret", "plan --format xml", "approve"]
    {
        tree.run(words).expect(64);
    }
    tree.run("--help").expect(0).says(&["plan", "apply", "validate", "Exit codes"]);
    tree.run("--version").expect(0);
}

#[test]
fn what_is_no_approval_id_is_told_where_ids_are() {
    let run = Tree::empty().run("approve k").expect(64);
    let expected = "error: `k` is not the id of an approval\n  help: give the 12 hexadecimal digits that the plan \
                    prints after `streamfleet approve`, then the tree: streamfleet plan shows what waits\n";
    assert_eq!((run.out.as_str(), run.err.as_str()), ("", expected));
}

#[test]
fn an_empty_folder_is_left_empty() {
    let tree = Tree::empty();
    for words in ["apply tree", "apply tree --yes"] {
        tree.run(words).expect(0).says(&["Nothing to do: there are no resources."]);
        assert_eq!(std::fs::read_dir(tree.path()).unwrap().count(), 0, "{words}");
    }
}

#[test]
fn every_verb_explains_itself() {
    let tree = Tree::empty();
    let mut all = String::new();
    for verb in [
        "",
        "init",
        "validate",
        "plan",
        "apply",
        "status",
        "get",
        "client-properties",
        "why",
        "events",
        "approve",
        "forget",
        "backup",
        "restore",
        "role",
        "secret",
        "secret encrypt",
        "token",
        "token create",
        "token list",
        "token revoke",
        "ready",
        "sign-in",
        "explain",
        "schema",
        "config",
        "config show",
        "completions",
        "manual",
    ] {
        let run = tree.run_with(&format!("{verb} --help"), &[("COLUMNS", "100")], "").expect(0);
        all += &format!("$ streamfleet {verb} --help\n{}\n", run.out);
    }
    insta::assert_snapshot!("help", all);
}

#[test]
fn shells_and_man_know_every_verb() {
    let tree = Tree::empty();
    for words in ["completions bash", "completions zsh", "completions fish", "manual"] {
        tree.run(words).expect(0).says(&["streamfleet", "validate", "plan", "apply", "explain", "schema"]);
    }
    tree.run("completions cmd").expect(64).says(&["invalid value 'cmd'", "bash"]);
}

#[test]
fn apply_asks_first_and_without_a_terminal_it_refuses() {
    let tree = Tree::example("quickstart");
    tree.run("apply tree").expect(64).says(&[
        "--yes",
        "cannot ask for confirmation, because standard input is not a \
                                                       terminal",
    ]);
    assert!(tree.output().is_empty());
}

#[test]
fn plans_are_also_json_and_yaml() {
    let tree = Tree::example("quickstart");
    let json: serde_json::Value =
        serde_json::from_str(&tree.run("plan tree --format json").expect(2).out).unwrap();
    assert_eq!(json["summary"]["create"], 5);
    let yaml: serde_json::Value =
        serde_saphyr::from_str(&tree.run("plan tree --format yaml").expect(2).out).unwrap();
    assert_eq!(json["summary"], yaml["summary"]);
}

#[test]
fn clients_are_told_how_to_connect_as_soon_as_a_cluster_is_applied() {
    let tree = Tree::example("quickstart");
    tree.run("client-properties orders tree")
        .expect(1)
        .says(&["cluster acme/orders is unknown: it was not applied", "apply it first: streamfleet apply"]);
    tree.run("apply tree --yes").expect(0);
    tree.run("client-properties orders tree").expect(0).says(&[
        "bootstrap.servers=orders.kafka.acme.example.com:9094",
        "ssl.truststore.certificates=-----BEGIN CERTIFICATE-----\\n\\\n",
        "# To add: sasl.jaas.config, the value of `sasl.jaas.config` in the Secret kafka-acme--orders/orders-admin",
    ]);
    tree.run("client-properties acme/orders tree --listener tls")
        .expect(0)
        .says(&["bootstrap.servers=orders-kafka-bootstrap.kafka-acme--orders.svc:9093"]);
    tree.run("client-properties sandbox tree")
        .expect(0)
        .says(&["bootstrap.servers=sandbox-kafka-bootstrap.kafka-acme--sandbox.svc:9093"]);
    tree.run("client-properties sandbox tree --listener external")
        .expect(64)
        .says(&["cluster acme/sandbox has no listener `external`", "it has tls, admin"]);
    tree.run("client-properties sandbox tree --user billing").expect(1).says(&[
        "cluster acme/sandbox has no user `billing` that was applied",
        "describe a user in the specs, and apply it: streamfleet explain user",
    ]);
}

#[test]
fn a_user_of_a_cluster_is_told_where_its_own_login_is() {
    let tree = Tree::example("topics");
    tree.run("apply tree --yes").expect(0);
    tree.run("client-properties orders tree --user billing").expect(0).says(&[
        "bootstrap.servers=orders-kafka-bootstrap.kafka-acme--orders.svc:9093",
        "sasl.mechanism=SCRAM-SHA-512",
        "# To add: sasl.jaas.config, the value of `sasl.jaas.config` in the Secret kafka-acme--orders/billing\n",
    ]);
    tree.run("client-properties orders tree --user billing --listener admin")
        .expect(64)
        .says(&["cluster acme/orders has no listener `admin` for user billing", "it has tls"]);
    tree.run("client-properties orders tree --user Nobody\u{1b}[2J")
        .expect(1)
        .says(&["cluster acme/orders has no user `Nobody", "its users are auditor, billing"]);
}

#[test]
fn records_have_every_field_of_the_interface() {
    let tree = Tree::example("quickstart");
    tree.run("apply tree --yes").expect(0);
    let record = |what: &str| -> serde_json::Value {
        serde_json::from_str(&tree.run(&format!("get {what} tree --format json")).expect(0).out).unwrap()
    };
    let expect = |record: &serde_json::Value, fields: &str| {
        for field in fields.split_whitespace() {
            assert!(record.get(field).is_some(), "{field} is missing in {record}");
        }
    };
    let cluster = record("cluster/acme/orders");
    expect(
        &cluster,
        "id organization infrastructure identifier cluster_type tenancy_mode kafka_units cloud_provider region tags \
         advanced_config provisioner_name destroyer_name version_updater_name console_url client_properties new_version \
         storage_manifests_file_path status created_at updated_at",
    );
    assert_eq!(cluster["status"], "Written");
    assert_eq!(cluster["advanced_config"]["number_of_zones"], "3");
    expect(
        &cluster["advanced_config"],
        "number_of_zones cluster_access private_access version oauth tiered_storage_bucket_name \
         tiered_storage_provider tiered_storage_create_bucket",
    );
    let fleet = record("fleet/acme/eu");
    expect(
        &fleet,
        "id organization identifier infra_type domain tenancy_mode max_tenants max_kafka_units advanced_config \
         placement_config advanced_properties metadata provisioner_name destroyer_name kubeconfig kubeconfig_str \
         metrics_endpoint cost_endpoint logs_endpoint loadbalancer_dns network status created_at updated_at",
    );
    let created = fleet["created_at"].as_str().unwrap();
    assert_eq!(created.len(), "2026-01-01T00:00:00.000000Z".len(), "{created}");
    let domain = record("base-domain/acme/kafka.acme.example.com");
    expect(
        &domain,
        "id organization domain tls_cert tls_key dns_provider dns_base_domain created_at updated_at",
    );
    assert_eq!(domain["dns_base_domain"], domain["domain"]);
    assert!(domain.get("cloud_account").is_none());
    tree.run("get cluster/acme/nothing tree")
        .expect(1)
        .says(&["there is no cluster acme/nothing", "acme/orders"]);
}

#[test]
fn status_says_how_everything_stands() {
    let tree = Tree::example("quickstart");
    tree.run("status tree").expect(0).says(&["Pending", "Nothing has been applied yet."]);
    tree.run("apply tree --yes").expect(0);
    insta::assert_snapshot!("status", tree.run("status tree").expect(0).out);
    assert_eq!(tree.run("get clusters tree").expect(0).out, "acme/orders   Written\nacme/sandbox  Written\n");
    assert_eq!(tree.run("get organizations tree").expect(0).out, "acme\nroot\n");
}

#[test]
fn a_cluster_whose_file_is_gone_is_still_in_the_status_while_it_is_there() {
    let tree = Tree::example("quickstart");
    tree.run("apply tree --yes").expect(0);
    tree.remove("acme/clusters/orders.yaml");
    tree.run("status tree")
        .expect(0)
        .says(&["cluster acme/orders   Written       spec file missing: deletion protection is on"]);
}

#[test]
fn colours_are_for_terminals_and_can_be_asked_for_or_refused() {
    let tree = Tree::example("quickstart");
    let plain = tree.run("plan tree").expect(2);
    assert!(!plain.out.contains('\u{1b}') && !plain.err.contains('\u{1b}'));
    let forced = tree.run_with("plan tree", &[("CLICOLOR_FORCE", "1")], "").expect(2);
    assert!(forced.out.contains('\u{1b}'));
    let refused = tree.run_with("plan tree", &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")], "").expect(2);
    assert!(!refused.out.contains('\u{1b}'));
}

#[test]
fn a_reader_that_goes_away_is_no_panic() {
    let tree = Tree::example("quickstart");
    let mut child = tree
        .command("plan tree --format json")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let mut errors = String::new();
    child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(141), "{errors}");
    assert!(!errors.contains("panicked"), "{errors}");
}

#[test]
fn what_waits_is_told_as_it_runs_and_its_spec_as_far_as_it_holds() {
    let tree = Tree::example("quickstart");
    tree.run("apply tree --yes").expect(0);
    let settings = tree.beside("settings.toml");
    std::fs::write(&settings, "[policy]\nmode = \"approve\"\n").unwrap();
    let orders = "acme/clusters/orders.yaml";
    tree.edit(orders, "kafka_units: 1", "kafka_units: 2");
    let line = || {
        let status = tree.run("status tree --config settings.toml").expect(0).out;
        let line = status.lines().find(|line| line.contains("acme/orders")).unwrap().trim().to_owned();
        line.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(
        line(),
        "cluster acme/orders Written change on hold for approval: the settings require approval for every plan: \
         `policy.mode` is `approve`"
    );
    tree.write(orders, tree.read(orders) + "suspend: true\n");
    assert_eq!(line(), "cluster acme/orders Suspended suspend is true on cluster acme/orders");
    let record = tree.run("get cluster/acme/orders tree --config settings.toml --format json").expect(0).out;
    let record: serde_json::Value = serde_json::from_str(&record).unwrap();
    assert_eq!((&record["status"], &record["suspend"]), (&"Suspended".into(), &true.into()), "{record}");
}

#[test]
fn init_names_the_current_folder_where_nobody_named_one() {
    let tree = Tree::empty();
    let said = tree.run("init").expect(0);
    assert_eq!(
        said.err,
        format!("writing to the current folder, `{}`\n", tree.beside("").display()).replace("/`", "`")
    );
    assert!(tree.run("init other").expect(0).err.is_empty());
}
