//! The records of a run, their order, and those that it leaves as they were.

use std::fs;

use super::outcome::{done, texts};
use super::*;
use crate::catalog::{Approval, OrganizationCapacity};
use crate::names::ObjectKey;
use crate::plan::{OrganizationPlan, Verb};
use crate::problem::Origin;
use crate::spec::{Commit, SourceId};
use crate::state::JournalEntry;

fn domain() -> ResourceKey {
    ResourceKey::new(Kind::BaseDomain, &"acme".parse().unwrap(), "k.example.com")
}

fn organization() -> ResourceKey {
    ResourceKey::at(Kind::Organization, "acme").unwrap()
}

/// A plan for a cluster on fleet `eu`, with changes of what lives on no fleet.
async fn with_organizations(
    place: &Place,
    state: &State,
    specs: &TestSpecs,
    changes: &[(ResourceKey, Verb)],
) -> Plan {
    let (mut plan, ..) = place.plan(state, specs).await;
    let (model, ..) = place.plan(state, &TestSpecs::new(&[("model", "eu", "1")])).await;
    let model = model.fleets[0].changes.iter().find(|change| change.resource == cluster("model")).unwrap();
    let changes = changes.iter().map(|(resource, verb)| {
        let record = model.record.clone().filter(|_| *verb != Verb::Delete);
        let record = record.map(|mut record| {
            record.durable.immutable.clear();
            record
        });
        Change { resource: resource.clone(), verb: *verb, steps: vec![], record, ..model.clone() }
    });
    plan.organizations = vec![OrganizationPlan {
        organization: "acme".parse().unwrap(),
        capacity: OrganizationCapacity::default(),
        changes: changes.collect(),
    }];
    plan
}

const BOTH: fn(Verb) -> [(ResourceKey, Verb); 2] = |verb| [(domain(), verb), (organization(), verb)];

fn named(report: &ExecutionReport) -> Vec<String> {
    report.done.iter().map(|done| format!("{} {}", done.verb, done.resource)).collect()
}

#[tokio::test]
async fn what_others_refer_to_is_made_first_and_goes_last() {
    let place = Place::new();
    let (state, specs) = (place.state(), TestSpecs::new(&[("a", "eu", "1")]));
    let mut plan = with_organizations(&place, &state, &specs, &BOTH(Verb::Create)).await;
    let waiting = Change {
        resource: ResourceKey::at(Kind::IdentityProvider, "acme/sso").unwrap(),
        waiting: vec![Waiting::Protected],
        ..plan.organizations[0].changes[0].clone()
    };
    plan.organizations[0].changes.push(waiting);
    let report = place.execute(&plan, &state, &specs.secrets()).await;
    assert_eq!(
        named(&report),
        ["create organization acme", "create base domain acme/k.example.com", "create cluster acme/a"]
    );
    assert_eq!(state.recorded().unwrap().resources.len(), 3);

    let nothing = TestSpecs::new(&[]);
    let plan = with_organizations(&place, &state, &nothing, &BOTH(Verb::Delete)).await;
    let report = place.execute(&plan, &state, &Secrets::default()).await;
    assert_eq!(
        named(&report),
        ["delete cluster acme/a", "delete base domain acme/k.example.com", "delete organization acme"]
    );
    assert!(state.recorded().unwrap().resources.is_empty());
}

#[tokio::test]
async fn beside_fleets_nothing_is_deleted_that_one_under_way_may_need() {
    let place = Place::new();
    let (state, specs) = (place.state(), TestSpecs::new(&[("a", "eu", "1")]));
    let targets = place.targets();
    let recorded = Recorded::default();
    let beside = async |plan: &Plan, under_way: &BTreeSet<FleetKey>| {
        let (state, targets, recorded, secrets) = (&state, &targets, &recorded, &Secrets::default());
        let context = RunContext {
            plan,
            recorded,
            targets,
            state,
            secrets,
            keyring: keyring(),
            clock: &now,
            actor: "ann",
        };
        named(&execute_beside_fleets(context, under_way, &mut |_| {}).await)
    };
    let mut plan = with_organizations(&place, &state, &specs, &[(domain(), Verb::Create)]).await;
    assert_eq!(beside(&plan, &BTreeSet::new()).await, ["create base domain acme/k.example.com"]);
    assert_eq!(state.recorded().unwrap().source, Some(SourceId("/specs".into())));
    assert_eq!(place.files(), [], "the fleets' part is done by others");

    plan = with_organizations(
        &place,
        &state,
        &specs,
        &[(organization(), Verb::Create), (domain(), Verb::Delete)],
    )
    .await;
    plan.inputs.source = SourceId("/elsewhere".into());
    assert_eq!(beside(&plan, &[fleet("us")].into()).await, ["create organization acme"]);
    assert_eq!(state.recorded().unwrap().source, Some(SourceId("/specs".into())));
    plan.organizations[0].changes.retain(|change| change.verb == Verb::Delete);
    assert_eq!(beside(&plan, &BTreeSet::new()).await, ["delete base domain acme/k.example.com"]);
}

#[tokio::test]
async fn what_a_plan_found_out_is_recorded_though_nothing_can_be_done() {
    let place = Place::new();
    place.apply(&TestSpecs::new(&[("a", "eu", "1")])).await;
    let state = place.state();
    let (mut plan, recorded, _) = place.plan(&state, &TestSpecs::new(&[("a", "eu", "2")])).await;
    let change = &mut plan.fleets[0].changes[0];
    change.waiting = vec![Waiting::Approval { id: "guard".into(), why: "it is so wanted".into() }];
    let mut found = recorded.resources[&cluster("a")].clone();
    found.durable.suspicion = Some("its folder was emptied".into());
    plan.remember.insert(cluster("a"), found.clone());
    let void = Approval { fleet: fleet("eu"), id: "void".into(), by: "ann".into(), at: now() };
    state.approve(void).unwrap();
    plan.fleets[0].void_approvals = vec!["void".into()];
    // An update that waits is no deletion that waits.
    plan.inputs.source = SourceId("/elsewhere".into());
    assert_eq!(place.execute(&plan, &state, &Secrets::default()).await, ExecutionReport::default());
    let after = state.recorded().unwrap();
    assert_eq!(after.resources[&cluster("a")].durable.suspicion, found.durable.suspicion);
    assert_eq!(after.approvals, []);
    assert_eq!(after.source, Some(SourceId("/elsewhere".into())));
}

/// What guarded a resource when the plan was made is the plan's to take back; what came later is not.
#[tokio::test]
async fn a_spec_takes_back_the_protection_that_its_plan_knew_of() {
    let place = Place::new();
    let mut protected = true;
    for text in ["1", "2"] {
        let specs = TestSpecs::new(&[("a", "eu", text)]);
        let state = place.state();
        let (mut plan, ..) = place.plan(&state, &specs).await;
        plan.fleets[0].changes[0].record.as_mut().unwrap().durable.protected = protected;
        assert_eq!(place.execute(&plan, &state, &specs.secrets()).await.failed, []);
        let (_, recorded, observed) = place.plan(&state, &specs).await;
        assert_eq!(recorded.resources[&cluster("a")].durable.protected, protected);
        assert_eq!(observed.protected().contains(&cluster("a")), protected, "its target knows");
        protected = false;
    }
}

/// A state that was restored may have forgotten it.
#[tokio::test]
async fn a_target_goes_on_to_protect_what_is_not_done() {
    for (waiting, kept) in [(vec![Waiting::Protected], true), (vec![], false)] {
        let place = Place::new();
        let (state, specs) = (place.state(), TestSpecs::new(&[("a", "eu", "1")]));
        let (mut plan, ..) = place.plan(&state, &specs).await;
        plan.fleets[0].changes[0].record.as_mut().unwrap().durable.protected = true;
        place.execute(&plan, &state, &specs.secrets()).await;
        let mut known = state.recorded().unwrap().resources.remove(&cluster("a")).unwrap();
        known.durable.protected = false;
        state.put_resources([(&cluster("a"), &known)]).unwrap();
        let later = TestSpecs::new(&[("a", "eu", "2")]);
        let (mut plan, ..) = place.plan(&state, &later).await;
        plan.fleets[0].changes[0].waiting = waiting;
        assert_eq!(place.execute(&plan, &state, &later.secrets()).await.failed, []);
        let (.., observed) = place.plan(&state, &later).await;
        assert_eq!(observed.protected().contains(&cluster("a")), kept);
    }
}

#[tokio::test]
async fn the_commit_that_asked_for_it_is_in_the_audit_trail() {
    let place = Place::new();
    let (state, specs) = (place.state(), TestSpecs::new(&[("a", "eu", "1")]));
    let (mut plan, ..) = place.plan(&state, &specs).await;
    let author = "Ada <ada@example.com>".to_owned();
    let commit = Commit { id: "c0ffee".into(), author, is_edited: false, rewrote: None };
    plan.inputs.commit = Some(commit);
    place.execute(&plan, &state, &specs.secrets()).await;
    let audit = fs::read_to_string(place.root.join("state/audit.jsonl")).unwrap();
    assert!(audit.contains("c0ffee"), "{audit}");
}

#[tokio::test]
async fn a_failure_says_where_the_spec_stands_that_asks_for_it() {
    let place = Place::new();
    let (state, specs) = (place.state(), TestSpecs::new(&[("a", "eu", "1")]));
    let mut plan = with_organizations(&place, &state, &specs, &[(domain(), Verb::Create)]).await;
    let origin = |line| Some(Origin { path: "acme/specs.yaml".parse().unwrap(), line });
    let steps = plan.fleets[0].changes[0].steps.clone();
    let of_organization = &mut plan.organizations[0].changes[0];
    (of_organization.steps, of_organization.origin) = (steps, origin(7));
    plan.fleets[0].changes[0].origin = origin(9);
    let report = place.execute(&plan, &state, &Secrets::default()).await;
    assert_eq!(
        texts(&report),
        [
            "base domain acme/k.example.com (acme/specs.yaml:7): cannot change base domain acme/k.example.com: it has \
             objects but no fleet; plan again",
            "cluster acme/a (acme/specs.yaml:9): `tls_key` of cluster acme/a is not available: no spec contains it any \
             more; apply on a host that can open the secret",
        ]
    );
    assert!(state.recorded().unwrap().resources.is_empty(), "nothing of it has begun");
}

#[tokio::test]
async fn a_fleet_with_nothing_to_do_was_seen_all_the_same() {
    let place = Place::new();
    let specs = TestSpecs::new(&[("a", "eu", "1")]);
    place.apply(&specs).await;
    let seen = |name: &str| {
        let recorded = place.state().recorded().unwrap();
        recorded.fleets.get(&fleet(name)).and_then(|fleet| fleet.observed_at)
    };
    assert_eq!((seen("eu"), seen("us")), (Some(now()), Some(now())));
}

#[tokio::test]
async fn a_fleet_is_forgotten_when_it_goes_and_not_with_one_of_its_clusters() {
    let place = Place::new();
    place.apply(&TestSpecs::new(&[("a", "eu", "1"), ("b", "eu", "1")])).await;
    let state = place.state();
    let (mut plan, ..) = place.plan(&state, &TestSpecs::new(&[("b", "eu", "1")])).await;
    plan.created_at = now() + jiff::SignedDuration::from_hours(1);
    let report = place.execute(&plan, &state, &Secrets::default()).await;
    assert_eq!(named(&report), ["delete cluster acme/a"]);
    let eu = state.recorded().unwrap().fleets.remove(&fleet("eu")).unwrap();
    assert_eq!((eu.objects.len(), eu.observed_at), (3, Some(plan.created_at)));

    let (mut plan, ..) = place.plan(&state, &TestSpecs::new(&[])).await;
    let cluster = plan.fleets[0].changes[0].clone();
    let gone = Change { resource: fleet("eu").resource(), steps: vec![], ..cluster };
    plan.fleets[0].changes.push(gone);
    let report = place.execute(&plan, &state, &Secrets::default()).await;
    assert_eq!(named(&report), ["delete cluster acme/b", "delete fleet acme/eu"]);
    let recorded = state.recorded().unwrap();
    assert!(!recorded.fleets.contains_key(&fleet("eu")), "{:?}", recorded.fleets);
    assert_eq!(recorded.fleets[&fleet("us")].observed_at, Some(now()));
}

/// The records of the objects on fleet `eu`, apart from what can't be had back from files.
fn objects(state: &State) -> Vec<(ObjectKey, Option<String>, crate::names::Digest)> {
    let objects = state.objects(&fleet("eu")).unwrap().into_iter();
    objects.filter(|(key, _)| key.kind != "Secret").map(|(key, it)| (key, it.uid, it.applied)).collect()
}

/// A kill may come between what is done to an object and its record.
#[tokio::test]
async fn after_a_kill_the_record_of_objects_is_what_the_target_knows() {
    let place = Place::new();
    let specs = TestSpecs::new(&[("a", "eu", "1"), ("b", "eu", "1")]);
    place.apply(&specs).await;
    let state = place.state();
    let known = state.objects(&fleet("eu")).unwrap();
    let expected = objects(&state);
    let of = |kind: &str, namespace: &str| {
        let found = known
            .iter()
            .find(|(key, _)| key.kind == kind && key.namespace.as_deref().unwrap_or(&key.name) == namespace);
        let (key, object) = found.unwrap();
        (key.clone(), object.clone())
    };
    let (eu, other) = (fleet("eu"), || crate::names::Digest::of("other"));
    // One object of another uid, one of another content, one that is missing, and one that the target doesn't know.
    let (key, mut object) = of("ConfigMap", "kafka-a");
    object.uid = Some("other".into());
    state.put_object(&eu, &key, &object).unwrap();
    let (key, mut object) = of("ConfigMap", "kafka-b");
    object.applied = other();
    state.put_object(&eu, &key, &object).unwrap();
    state.remove_object(&eu, &of("Namespace", "kafka-a").0).unwrap();
    let (key, object) = of("Namespace", "kafka-b");
    state.put_object(&eu, &ObjectKey { name: "kafka-c".into(), ..key }, &object).unwrap();
    assert_eq!(objects(&state).len(), expected.len());
    let entry =
        JournalEntry { plan: "p".into(), fleet: eu, step: 0, description: "update".into(), at: now() };
    state.journal_begin(&entry).unwrap();

    let (plan, ..) = place.plan(&state, &specs).await;
    let report = place.execute(&plan, &state, &specs.secrets()).await;
    assert_eq!((report.steps, report.failed), (0, vec![]), "the objects themselves are as they should be");
    assert_eq!(objects(&state), expected);
    assert_eq!(state.journal_unfinished().unwrap(), []);
}

/// A plan for clusters `a` and `b` on fleet `eu`, and a file of somebody else where one of `a` is to be.
async fn with_obstacle(place: &Place, state: &State, path: &str) -> (Plan, TestSpecs) {
    let specs = TestSpecs::new(&[("a", "eu", "1"), ("b", "eu", "1")]);
    let (plan, ..) = place.plan(state, &specs).await;
    let foreign = place.output().join(path);
    fs::create_dir_all(foreign.parent().unwrap()).unwrap();
    fs::write(&foreign, "theirs: true\n").unwrap();
    (plan, specs)
}

#[tokio::test]
async fn nothing_is_put_into_a_namespace_that_could_not_be_made() {
    let place = Place::new();
    let state = place.state();
    let (mut plan, specs) = with_obstacle(&place, &state, "acme/eu/_cluster/namespace-kafka-a.yaml").await;
    // `b` has its objects in the namespace of `a`.
    let b = &mut plan.fleets[0].changes[1];
    b.steps.retain(|step| step.object.kind != "Namespace");
    for step in &mut b.steps {
        step.object.namespace = Some("kafka-a".into());
        step.object.name += "-b";
        step.after.as_mut().unwrap().key = step.object.clone();
    }
    let report = place.execute(&plan, &state, &specs.secrets()).await;
    assert_eq!(
        texts(&report),
        [
            "cluster acme/a: cannot write `acme/eu/_cluster/namespace-kafka-a.yaml`: a file that streamfleet did not \
             create is there; move it away if it isn't needed, then apply again",
            "cluster acme/b: cannot create Secret kafka-a/tls-b: its namespace could not be created; resolve the problem \
             of the namespace first",
        ]
    );
    assert!(!place.files().iter().any(|(path, _)| path.ends_with("-b.yaml")));
}

#[tokio::test]
async fn what_fails_under_the_name_of_a_namespace_stops_nothing_in_it() {
    let place = Place::new();
    let state = place.state();
    let (mut plan, specs) = with_obstacle(&place, &state, "acme/eu/kafka-a/configmap-kafka-b.yaml").await;
    let a = &mut plan.fleets[0].changes[0];
    let secret = a.steps.iter_mut().find(|step| step.object.kind == "Secret").unwrap();
    secret.object.kind = "ConfigMap".into();
    secret.object.name = "kafka-b".into();
    let manifest = secret.after.as_mut().unwrap();
    manifest.key = secret.object.clone();
    let report = place.execute(&plan, &state, &specs.secrets()).await;
    assert_eq!(done(&report), [(Verb::Create, "b".into())], "{:?}", texts(&report));
    assert_eq!(report.failed.len(), 1);
}

/// The inventory is written last, and what it still names is not forgotten.
#[tokio::test]
async fn what_the_target_could_not_settle_is_told_of_what_goes_or_else_of_the_fleet() {
    for (specs, told) in [
        (TestSpecs::new(&[("b", "eu", "1")]), "cluster acme/a: "),
        (TestSpecs::new(&[("a", "eu", "2"), ("b", "eu", "1")]), "fleet acme/eu: "),
    ] {
        let place = Place::new();
        place.apply(&TestSpecs::new(&[("a", "eu", "1"), ("b", "eu", "1")])).await;
        let (state, targets, secrets) = (place.state(), place.targets(), specs.secrets());
        let (plan, recorded, _) = place.plan(&state, &specs).await;
        let inventory = place.output().join("acme/eu/.streamfleet-inventory.json");
        // Something else is where it is to be written.
        let mut progress = |progress: ExecutionProgress<'_>| {
            if matches!(progress, ExecutionProgress::StepEnded { .. }) && inventory.is_file() {
                fs::remove_file(&inventory).unwrap();
                fs::create_dir_all(inventory.join("theirs")).unwrap();
            }
        };
        let (plan, recorded, targets, secrets) = (&plan, &recorded, &targets, &secrets);
        let context = RunContext {
            plan,
            recorded,
            targets,
            state: &state,
            secrets,
            keyring: keyring(),
            clock: &now,
            actor: "ann",
        };
        let report = execute(context, &mut progress).await;
        let texts = texts(&report);
        assert!(texts.len() == 1 && texts[0].starts_with(told), "{texts:?}");
        assert!(state.recorded().unwrap().resources.contains_key(&cluster("a")));
    }
}
