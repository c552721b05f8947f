//! The exact output of `explain` for fields.

use crate::support::Tree;

#[test]
fn fields_are_explained() {
    let mut all = String::new();
    for field in [
        "cluster.advanced_config.storage",
        "cluster.advanced_config.storage.size_gib",
        "cluster.advanced_config.version",
        "cluster.advanced_config.config.min.insync.replicas",
        "cluster.message.max.bytes",
        "clusters.tenancy_mode",
        "Cluster.identifier",
        "cluster.tags",
        "cluster.tags.key",
        "base-domain",
        "fleet.kind",
        "fleet.advanced_config.kubeconfig",
        "config.policy.approval_hours",
        "fleet.network",
        "fleet.logs_endpoint",
        "cluster.console_url",
        "cluster.metrics_endpoint",
        "cluster.client_properties",
        "topic.config.retention.ms",
        "topic.partitions",
        "topic.on_delete",
        "user.produce",
        "user.rules.operations",
    ] {
        let page = Tree::empty().run(&format!("explain {field}")).expect(0).out;
        all += &format!("$ streamfleet explain {field}\n{page}\n");
    }
    insta::assert_snapshot!("explain", all);
}

#[test]
fn what_is_not_there_is_said_with_what_was_likely_meant() {
    for (words, message, hint) in [
        ("explain clustre", "there is no kind, field or setting `clustre`", "did you mean `cluster`?"),
        (
            "explain kafka_units",
            "`kafka_units` doesn't say of which kind it is a field",
            "did you mean `cluster.kafka_units`?",
        ),
        (
            "explain storage.size_gib",
            "`storage.size_gib` doesn't say of which kind it is a field",
            "did you mean `cluster.advanced_config.storage.size_gib`?",
        ),
        (
            "explain queue",
            "there is no kind, field or setting `queue`",
            "known: organization, base-domain, identity-provider, cloud-account, fleet, cluster, topic, user, config",
        ),
        (
            "explain cluster.kafka_unit",
            "`cluster` has no field `kafka_unit`",
            "did you mean `cluster.kafka_units`?",
        ),
        (
            "explain cluster.oauth",
            "`cluster` has no field `oauth`",
            "did you mean `cluster.advanced_config.oauth`?",
        ),
        (
            "explain cluster.version",
            "`cluster` has no field `version`",
            "did you mean `cluster.advanced_config.version`?",
        ),
        (
            "explain fleet.strimzi",
            "`fleet` has no field `strimzi`",
            "did you mean `fleet.advanced_config.components.strimzi`?",
        ),
        (
            "explain cluster.advanced_config.storage.colour",
            "`cluster.advanced_config.storage` has no field `colour`",
            "its fields are class, on_delete, size_gib",
        ),
        (
            "explain cluster.kafka_units.min",
            "`cluster.kafka_units` has no field `min`",
            "it has no fields: streamfleet explain cluster.kafka_units",
        ),
        ("explain cluster.", "`cluster` has no field ``", "its fields are"),
        ("schema fleat", "there is no schema for `fleat`", "did you mean `fleet`?"),
        (
            "schema queue",
            "there is no schema for `queue`",
            "known: organization, base-domain, identity-provider, cloud-account, fleet, cluster, topic, user, config, plan",
        ),
    ] {
        let run = Tree::empty().run(words).expect(64);
        assert_eq!(run.out, "");
        let expected = format!("error: {message}\n  help: {hint}");
        assert!(run.err.starts_with(&expected), "{words}\n{}\n{expected}", run.err);
    }
}

#[test]
fn every_field_has_a_meaning() {
    fn walk(tree: &Tree, field: &str, seen: &mut usize) {
        let page = tree.run(&format!("explain {field}")).expect(0).out;
        assert!(page.lines().nth(2).is_some_and(|text| text.ends_with('.')), "{page}");
        *seen += 1;
        let lists = page.split("\nFields").skip(1).flat_map(|fields| fields.lines().skip(1));
        for line in lists.filter(|line| !line.is_empty()) {
            let name = line.split_whitespace().next().unwrap().trim_end_matches('*');
            walk(tree, &format!("{field}.{name}"), seen);
        }
    }
    let mut seen = 0;
    let tree = Tree::empty();
    for root in
        ["organization", "base-domain", "identity-provider", "cloud-account", "fleet", "cluster", "config"]
    {
        walk(&tree, root, &mut seen);
    }
    assert!(seen > 100, "{seen}");
}
