//! Changes every field of every kind by itself: the verdict of the plan is that of the field table, the
//! objects change by more than a label, and the difference is recorded for reviewers of a rendering.

mod cases;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::LazyLock;
use std::thread;

use serde_json::{Map, Value};
use streamfleet::catalog::Hold;
use streamfleet::config::{Config, ManifestsFile, OperatorRelease};
use streamfleet::names::{Digest, Kind};
use streamfleet::plan::field_effects::{FIELD_EFFECTS, FieldEffect, effect_of};
use streamfleet::plan::{Audience, Change, FieldChange, Plan, Step, Verdict, Waiting, display};
use streamfleet::problem;
use streamfleet::render::yaml::to_yaml;
use tokio::runtime::Builder;

use crate::pipeline::{Surroundings, converge, plan_round};
use crate::support::{Tree, examples, stable, without_own};
use cases::{CASES, Case};

/// The tree's documents: the name that cases use, a file, and the example's file that it starts as.
const DOCUMENTS: &[(&str, &str, &str)] = &[
    ("organization", "organizations.yaml", "quickstart/organizations.yaml"),
    ("domain", "acme/domain.yaml", "quickstart/acme/base-domains/kafka.acme.example.com.yaml"),
    ("stream", "acme/stream.yaml", "oauth/acme/base-domains/stream.example.com.yaml"),
    ("keycloak", "acme/keycloak.yaml", "oauth/acme/identity-providers/keycloak.yaml"),
    ("minio", "acme/minio.yaml", "tiered-storage/acme/cloud-accounts/minio.yaml"),
    ("dns", "acme/dns.yaml", "dedicated-tenancy/acme/cloud-accounts/dns.yaml"),
    ("eu", "acme/eu.yaml", "quickstart/acme/fleets/eu.yaml"),
    ("us", "acme/us.yaml", "tiered-storage/acme/fleets/eu.yaml"),
    ("orders", "acme/orders.yaml", "quickstart/acme/clusters/orders.yaml"),
    ("sandbox", "acme/sandbox.yaml", "quickstart/acme/clusters/sandbox.yaml"),
    ("payments", "acme/payments.yaml", "topics/acme/topics/orders/payments.events.v1.yaml"),
    ("billing", "acme/billing.yaml", "topics/acme/users/orders/billing.yaml"),
];

fn changed(kind: Kind) -> &'static str {
    match kind {
        Kind::Organization => "organization",
        Kind::BaseDomain => "domain",
        Kind::IdentityProvider => "keycloak",
        Kind::CloudAccount => "minio",
        Kind::Fleet => "eu",
        Kind::Cluster => "orders",
        Kind::Topic => "payments",
        Kind::User => "billing",
    }
}

/// Fields of the API that are only recorded: nothing at runtime depends on them.
const RECORDED_ONLY: &[(Kind, &str)] = &[
    (Kind::Cluster, "cloud_provider"),
    (Kind::Cluster, "region"),
    (Kind::Cluster, "tags"),
    (Kind::Cluster, "provisioner_name"),
    (Kind::Fleet, "placement_config"),
    (Kind::BaseDomain, "dns_base_domain"),
    (Kind::BaseDomain, "cloud_account"),
    (Kind::IdentityProvider, "token_endpoint"),
    (Kind::Organization, "display_name"),
    (Kind::Organization, "members"),
];

/// Limits and settings that permit later changes, each with the test that hits them.
const SHOWN_ELSEWHERE: &[(Kind, &str, &str, &str)] = &[
    (Kind::Organization, "quotas.fleets", CAPACITY, "1 of 0 quotas.fleets"),
    (Kind::Organization, "quotas.clusters", CAPACITY, "1 of 1 quotas.clusters"),
    (Kind::Organization, "quotas.kafka_units", CAPACITY, "2 of 2 quotas.kafka_units"),
    (Kind::Organization, "quotas.base_domains", CAPACITY, "1 of 1 quotas.base_domains"),
    (Kind::Organization, "quotas.identity_providers", CAPACITY, "1 of 1 quotas.identity_providers"),
    (Kind::Organization, "quotas.cloud_accounts", CAPACITY, "1 of 1 quotas.cloud_accounts"),
    (
        Kind::Organization,
        "domains",
        include_str!("../crates/core/src/catalog/tests/domains.rs"),
        "fn an_organization_may_have_what_its_domains_name_and_what_is_below",
    ),
    (
        Kind::Cluster,
        "advanced_config.scale_down_to",
        include_str!("../crates/core/src/plan/tests/decisions.rs"),
        "fn brokers_are_removed_where_the_spec_confirms_it",
    ),
    (
        Kind::Fleet,
        "advanced_config.monitoring.labels",
        MONITORING,
        "fn every_object_has_the_labels_of_the_fleet",
    ),
];
const MONITORING: &str = include_str!("../crates/core/src/component/monitoring/tests.rs");
const CAPACITY: &str = include_str!("../crates/core/src/catalog/tests/capacity.rs");

/// A field that is remembered, on the target by an annotation, and decides what is deleted.
const PROTECTION: &str = "deletion_protection";

/// Fields whose change needs a Kubernetes cluster, with the test that makes it.
const NEEDS_KUBERNETES: &[(Kind, &str, &str, &str)] = &[
    (
        Kind::Fleet,
        "advanced_config.kubeconfig",
        include_str!("kubernetes/access.rs"),
        "fn a_client_certificate_does_as_well_as_a_token",
    ),
    (
        Kind::Fleet,
        "advanced_config.in_cluster",
        include_str!("packages/in_cluster.rs"),
        "fn a_fleet_on_the_own_cluster_is_applied_by_the_pods_account",
    ),
    (
        Kind::Fleet,
        "advanced_config.reachability",
        include_str!("watch/reachability.rs"),
        "fn a_cluster_whose_public_name_leads_nowhere_is_degraded_and_the_next_restart_waits_for_it",
    ),
    (
        Kind::Fleet,
        "advanced_config.monitoring.federate",
        include_str!("kubernetes/metrics.rs"),
        "fn metrics_are_passed_on_once_they_are_switched_on_and_the_right_is_given",
    ),
    (
        Kind::Topic,
        "on_delete",
        include_str!("kubernetes/topics.rs"),
        "fn a_topic_is_let_go_with_its_records_in_place",
    ),
    (Kind::Topic, "adopt", include_str!("kubernetes/topics.rs"), TAKEN_OVER),
    (Kind::User, "adopt", include_str!("kubernetes/topics.rs"), TAKEN_OVER),
    (Kind::Cluster, AUTO_UPGRADE, UPGRADE, "fn patch_releases_are_followed_as_far_as_the_operator_runs_them"),
    (Kind::Cluster, AUTO_UPGRADE, UPGRADE, "fn a_cluster_that_no_longer_follows_patch_releases"),
];
const TAKEN_OVER: &str = "fn what_others_made_is_taken_over_when_its_spec_says_so";
const AUTO_UPGRADE: &str = "advanced_config.auto_upgrade";
const UPGRADE: &str = include_str!("../crates/core/src/plan/tests/upgrade.rs");

struct Planned {
    case: &'static Case,
    row: &'static FieldEffect,
    plan: Plan,
}

static PLANNED: LazyLock<Vec<Planned>> = LazyLock::new(|| {
    let (first, second) = CASES.split_at(CASES.len() / 2);
    thread::scope(|scope| {
        let second = scope.spawn(|| plan_all(second));
        plan_all(first).into_iter().chain(second.join().unwrap()).collect()
    })
});

fn plan_all(cases: &'static [Case]) -> Vec<Planned> {
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    cases.iter().map(|case| runtime.block_on(planned(case))).collect()
}

async fn planned(case: &'static Case) -> Planned {
    let around = Surroundings { config: offers_operators(), ..Surroundings::default() };
    let tree = Tree::empty();
    let mut documents = documents();
    if !case.kind.is_on_cluster() {
        documents.retain(|name, _| !["payments", "billing"].contains(name));
    }
    for (name, patch) in yaml(case.given).as_object().unwrap() {
        merge(documents.get_mut(name.as_str()).unwrap(), patch);
    }
    let mut set = |value: &str, also: &str| {
        let document = documents.get_mut(changed(case.kind)).unwrap();
        merge(document, &yaml(also));
        merge(document, &patch(case, value));
        write(&tree, &documents);
    };
    if case.after_first {
        set(case.after, "{}");
        drop(converge(&tree, &around).await);
    }
    set(case.before, "{}");
    drop(converge(&tree, &around).await);
    set(case.after, case.also);
    let plan = plan_round(&tree, &around).await.plan;
    Planned { case, row: row(case), plan }
}

fn row(case: &Case) -> &'static FieldEffect {
    let [before, after] = [case.before, case.after].map(|text| value(case, text));
    let change = FieldChange { field: case.field.to_owned(), before, after };
    effect_of(case.kind, &change).unwrap_or_else(|| panic!("{}: no row", name(case)))
}

fn name(case: &Case) -> String {
    format!("{} {}: {} → {}", case.kind.noun(), case.field, case.before, case.after)
}

fn documents() -> BTreeMap<&'static str, Value> {
    let read = |&(name, _, example): &(&'static str, &str, &str)| {
        let text = std::fs::read_to_string(examples().join(example)).unwrap();
        (name, serde_saphyr::from_str(&text).unwrap())
    };
    let mut documents: BTreeMap<&str, Value> = DOCUMENTS.iter().map(read).collect();
    merge(documents.get_mut("us").unwrap(), &yaml("{identifier: us}"));
    merge(documents.get_mut("organization").unwrap(), &yaml("{domains: [example.com]}"));
    documents
}

fn write(tree: &Tree, documents: &BTreeMap<&str, Value>) {
    for (name, file, _) in DOCUMENTS {
        if let Some(document) = documents.get(name) {
            tree.write(file, to_yaml(document));
        }
    }
}

fn offers_operators() -> Config {
    let mut config = Config::default();
    for version in ["1.2.0", "1.3.0"] {
        let manifests = include_str!("../crates/core/src/config/release/strimzi.yaml");
        let manifests = manifests.replace("operator:1.2.0", &format!("operator:{version}"));
        let release = OperatorRelease {
            manifests: format!("strimzi-{version}.yaml"),
            sha256: Digest::of(&manifests).as_str().to_owned(),
            images: vec!["quay.io/strimzi/".to_owned()],
            content: ManifestsFile::of(Ok(manifests.into_bytes())),
        };
        config.operators.strimzi.insert(version.to_owned(), release);
    }
    let image = format!("quay.io/apicurio/apicurio-registry@sha256:{}", "0a".repeat(32));
    config.images.schema_registry = Some(image);
    config.images.console = Some(format!("quay.io/streamshub/console-api@sha256:{}", "0c".repeat(32)));
    config.images.prometheus = Some(format!("quay.io/prometheus/prometheus@sha256:{}", "0b".repeat(32)));
    config
}

fn yaml(text: &str) -> Value {
    serde_saphyr::from_str(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// `a.b: value` as a patch of the document.
fn patch(case: &Case, value: &str) -> Value {
    // Names of options contain dots.
    let around = if case.kind == Kind::Topic { "config." } else { "advanced_config.config." };
    let names: Vec<&str> = match case.field.strip_prefix(around) {
        Some(option) => around.split_terminator('.').chain([option]).collect(),
        None => case.field.split('.').collect(),
    };
    let around = |value: Value, key: &str| Value::Object(Map::from_iter([(key.to_owned(), value)]));
    names.into_iter().rev().fold(self::value(case, value), around)
}

/// A value of a case. `$certificate NAME` stands for one of `certificates.yaml`, or its key.
fn value(case: &Case, text: &str) -> Value {
    match text.strip_prefix("$certificate ") {
        Some(name) => certificate(name)[if case.field == "tls_key" { "tls_key" } else { "tls_cert" }].clone(),
        None => yaml(text),
    }
}

fn certificate(name: &str) -> Value {
    yaml(include_str!("field_changes/certificates.yaml"))[name].clone()
}

/// RFC 7396, except that a list or an empty mapping replaces the old value; `$certificate` stands for its
/// fields.
fn merge(target: &mut Value, patch: &Value) {
    let (Value::Object(fields), Value::Object(patch)) = (&mut *target, patch) else {
        *target = patch.clone();
        return;
    };
    for (key, value) in patch {
        match (key.as_str(), value) {
            ("$certificate", Value::String(name)) => {
                fields.extend(certificate(name).as_object().unwrap().clone());
            }
            (_, Value::Null) => drop(fields.remove(key)),
            (_, Value::Object(inner)) if !inner.is_empty() => {
                merge(fields.entry(key).or_insert_with(|| Value::Object(Map::new())), value);
            }
            _ => drop(fields.insert(key.clone(), value.clone())),
        }
    }
}

/// `Refused` if anything is, otherwise the worst verdict of the plan.
fn verdict(plan: &Plan) -> Verdict {
    let stopped = plan.problems.iter().any(|problem| problem.is_error())
        || plan.changes().flat_map(|change| &change.waiting).any(is_refusal);
    let worst = plan.changes().map(|change| change.verdict).max();
    if stopped { Verdict::Refused } else { worst.unwrap_or(Verdict::NoOp) }
}

fn is_refusal(waiting: &Waiting) -> bool {
    matches!(waiting, Waiting::Refused { .. } | Waiting::Absence { .. } | Waiting::Held(Hold::Invalid { .. }))
}

fn is_functional(step: &Step) -> bool {
    let (Some(before), Some(after)) = (&step.before, &step.after) else { return true };
    let [before, after] = [before, &after.body].map(|body| {
        let mut body = body.value();
        // Clouds read the annotations of a load balancer.
        let ignored: &[&str] =
            if step.object.kind == "Service" { &["labels"] } else { &["labels", "annotations"] };
        for &section in ignored {
            body["metadata"].as_object_mut().unwrap().remove(section);
        }
        body
    });
    before != after
}

#[test]
fn what_the_table_says_of_a_field_is_what_the_plan_comes_to() {
    let wrong: Vec<String> = PLANNED
        .iter()
        .filter(|planned| verdict(&planned.plan) != planned.row.verdict)
        .map(|Planned { case, row, plan }| {
            format!("{}: the table says {:?}, the plan {:?}", name(case), row.verdict, verdict(plan))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_row_of_the_table_is_planned() {
    let missing: Vec<String> = FIELD_EFFECTS
        .iter()
        .filter(|row| !PLANNED.iter().any(|planned| planned.row == *row))
        .filter(|row| {
            !NEEDS_KUBERNETES.iter().any(|(kind, field, ..)| (*kind, *field) == (row.kind, row.field))
        })
        .map(|row| format!("{} {} {}", row.kind.noun(), row.field, row.when.words()))
        .collect();
    assert!(missing.is_empty(), "without a line in tests/field_changes/cases.rs:\n{}", missing.join("\n"));
    for (_, field, file, test) in NEEDS_KUBERNETES.iter().chain(SHOWN_ELSEWHERE) {
        assert!(file.contains(test), "{field} is no longer shown by `{test}`");
    }
}

/// No field is accepted and ignored: each changes what runs, is refused, or changes what is permitted, and
/// the plan shows it.
#[test]
fn every_field_that_is_not_only_recorded_does_something() {
    let fields: BTreeSet<(Kind, &str)> = CASES.iter().map(|case| (case.kind, case.field)).collect();
    for field in fields {
        let cases = || PLANNED.iter().filter(move |planned| (planned.case.kind, planned.case.field) == field);
        let steps = |planned: &Planned| {
            planned.plan.changes().flat_map(|change| change.steps.clone()).collect::<Vec<_>>()
        };
        if RECORDED_ONLY.contains(&field) {
            assert!(
                cases().all(|planned| steps(planned).is_empty()),
                "{field:?} is said to be recorded only"
            );
            continue;
        }
        let does = |planned: &Planned| {
            let held = planned
                .plan
                .changes()
                .any(|change| change.waiting.iter().any(|it| matches!(it, Waiting::Held(_))));
            let told = planned.plan.fleets.iter().any(|fleet| !fleet.conditions.is_empty());
            let steps = steps(planned);
            let protects =
                |change: &Change| change.record.as_ref().map(|record| record.durable.protected.to_string());
            let protected = field.1 == PROTECTION
                && planned
                    .plan
                    .changes()
                    .any(|change| protects(change).as_deref() == Some(planned.case.after));
            let makes = planned.plan.changes().any(|change| change.bucket.is_some());
            steps.iter().any(is_functional)
                || makes
                || protected
                || held
                || told
                || verdict(&planned.plan) == Verdict::Refused
        };
        let elsewhere = SHOWN_ELSEWHERE.iter().any(|(kind, name, ..)| (*kind, *name) == field);
        assert!(elsewhere || cases().any(does), "{field:?} has no effect");
    }
}

#[test]
fn the_difference_that_each_field_makes_is_recorded() {
    for kind in Kind::ALL {
        let mut all = String::new();
        for Planned { case, plan, .. } in PLANNED.iter().filter(|planned| planned.case.kind == kind) {
            let reader = Audience { color: false, width: 100, tree: "tree" };
            let errors: Vec<_> = plan.problems.iter().filter(|problem| problem.is_error()).cloned().collect();
            let page = display(plan, reader) + "\n" + &problem::render(&errors, false);
            let page = without_own(&stable(&page));
            writeln!(all, "=== {} ({})\n\n{}\n", name(case), verdict(plan).words(), page.trim_end()).unwrap();
        }
        insta::assert_snapshot!(format!("changes_{}", kind.singular()), all);
    }
}
