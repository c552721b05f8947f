//! Refusals and their wording.

use super::*;
use crate::writing::refused::Shortage;

#[test]
fn what_is_wrong_with_a_body_is_told_by_its_fields() {
    let world = World::new();
    let with = |pointer: &str, value: Value| {
        let mut body = cluster("clicks", 1);
        body::put(&mut body, pointer, value);
        WriteAction::Create(body)
    };
    let key = "Cluster/acme/clicks";
    let said = [
        world.refuses(key, WriteAction::Create(json!(["no", "object"]))),
        world.refuses(key, WriteAction::Create(json!({}))),
        world.refuses(key, with("/kafka_unit", json!(1))),
        world.refuses(key, with("/kafka_units", json!("many"))),
        world.refuses(key, with("/kafka_units", json!(9000))),
        world.refuses(key, with("/advanced_config/storage/clas", json!("fast"))),
        world.refuses(key, with("/tags", json!([{"key": "a"}]))),
        world.refuses(key, with("/infrastructure", json!("us"))),
        world.refuses(key, with("/tenancy_mode", json!("Isolated"))),
        world.refuses(key, with("/organization", json!("globex"))),
        world.refuses(key, with("/identifier", json!(7))),
        world.refuses(key, with("/kind", json!("Fleet"))),
        world.refuses("Cluster/umbrella/clicks", with("/organization", json!("umbrella"))),
        world.refuses("Cluster/acme/../../x", with("/identifier", json!("../../x"))),
        world.refuses(
            "Cluster/acme/orders",
            WriteAction::Patch(json!({"kafka_units": null, "identifier": "x"})),
        ),
        world.refuses("Cluster/acme/orders", WriteAction::Patch(json!({"kafka_units": 0}))),
        world.refuses("Cluster/acme/nothing", WriteAction::Patch(json!({"kafka_units": 1}))),
    ];
    insta::assert_snapshot!(said.join(""));
}

#[test]
fn a_body_so_wrong_that_it_does_not_say_what_it_is_is_told_by_its_fields() {
    let world = World::new();
    let domain = |provider: Value| {
        let body = json!({"domain": "k.acme.com", "tls_cert": "x", "tls_key": "y", "dns_provider": provider});
        world.refuses("BaseDomain/acme/k.acme.com", WriteAction::Create(body))
    };
    for provider in [json!(5), json!("cloudflare"), json!({"a": "b"})] {
        let said = domain(provider.clone());
        assert!(said.contains("\n  /dns_provider") && !said.contains(".yaml"), "{provider}: {said}");
    }
}

#[test]
fn a_scale_down_that_is_done_is_taken_back_with_null() {
    let patch = json!({"kafka_units": 3, "advanced_config": {"scale_down_to": 1}});
    assert_eq!(
        World::new().refuses("Cluster/acme/orders", WriteAction::Patch(patch)),
        "422 invalid: `scale_down_to: 1` has no effect, because `kafka_units` is 3\n  /advanced_config/scale_down_to \
         `scale_down_to: 1` has no effect, because `kafka_units` is 3\n    = send null for \
         `advanced_config.scale_down_to` if the scale-down that it confirms is done; to scale down, set `kafka_units` to 1 \
         too\n"
    );
}

#[test]
fn an_organization_is_limited_by_super_users_and_keeps_an_admin() {
    let members = "domains: [acme.com]\nmembers:\n- email: ann@acme.com\n  role: admin\n- email: bob@acme.com\n  role: editor\n";
    let text = format!("apiVersion: streamfleet/v1\nkind: Organization\nidentifier: acme\n{members}");
    let world = World::with(&[("organizations.yaml", &text)]);
    let by = |may_limit: bool, patch: Value| {
        let request = request("Organization/acme/acme", WriteAction::Patch(patch));
        world.write(&WriteRequest { may_limit, ..request }).map_err(|refused| said(&refused))
    };
    for (patch, why) in [
        (
            json!({"domains": ["acme.com", "other.com"]}),
            "only super users may change the `domains` of an organization",
        ),
        (json!({"domains": null}), "only super users may change the `domains` of an organization"),
        (
            json!({"quotas": {"base_domains": 9}}),
            "only super users may change the `quotas` of an organization",
        ),
    ] {
        let said = by(false, patch).unwrap_err();
        assert_eq!(said, format!("403 forbidden: {why}\n  = send them unchanged, or ask a super user\n"));
    }
    for members in [json!(null), json!([{"email": "bob@acme.com", "role": "editor"}])] {
        assert_eq!(
            by(false, json!({"members": members})).unwrap_err(),
            "422 invalid: organization `acme` would have no admin\n  /members organization `acme` would have no admin\n    \
             = keep a member with the role `admin`, or ask a super user\n"
        );
    }
    let said = by(true, json!({"members": []})).unwrap_err();
    assert_eq!(
        said,
        "422 invalid: `members` is an empty list, which would lock everybody out\n  /members `members` is an empty list, \
         which would lock everybody out\n    = add a member, or send null for `members` if only super users manage the \
         organization\n"
    );
    by(false, json!({"members": [{"email": "ann@acme.com", "role": "admin"}]})).unwrap();
    by(true, json!({"domains": ["acme.com", "other.com"], "members": null})).unwrap();
}

#[test]
fn whose_a_domain_is_is_told_to_super_users_alone() {
    let folder = |organization: &str, domain: &str| {
        let pair = rcgen::generate_simple_self_signed([domain.to_owned(), format!("*.{domain}")]).unwrap();
        let (chain, key) = (pair.cert.pem(), pair.signing_key.serialize_pem());
        json!({"organization": organization, "domain": domain, "tls_cert": chain, "tls_key": key})
    };
    let mut world = World::new();
    let acme =
        |domain: &str| (format!("BaseDomain/acme/{domain}"), WriteAction::Create(folder("acme", domain)));
    let (key, what) = acme("free.com");
    assert_eq!(
        world.refuses(&key, what),
        "422 invalid: organization `acme` may not use `free.com`: its `domains` don't contain it\n  /domain organization \
         `acme` may not use `free.com`: its `domains` don't contain it\n    = add `\"domains\": [\"free.com\"]` to \
         organization `acme`; only super users can do that\n"
    );
    world.call("Organization/acme/acme", WriteAction::Patch(json!({"domains": ["both.com"]}))).unwrap();
    world.call("Organization/globex/globex", WriteAction::Patch(json!({"domains": ["both.com"]}))).unwrap();
    let (key, what) = acme("k.both.com");
    world.call(&key, what).unwrap();
    world.plan();
    world.applied(&key, |_| {});
    let said =
        world.refuses("BaseDomain/globex/k.both.com", WriteAction::Create(folder("globex", "k.both.com")));
    assert!(
        said.contains("`k.both.com` overlaps a domain of another organization") && !said.contains("acme"),
        "{said}"
    );
    // Super users may delegate through the API, and see problems elsewhere.
    world
        .call("Organization/globex/globex", WriteAction::Patch(json!({"domains": ["a.k.both.com"]})))
        .unwrap();
    world
        .call("BaseDomain/globex/a.k.both.com", WriteAction::Create(folder("globex", "a.k.both.com")))
        .unwrap();
    let narrower = |organization: &str, may_limit: bool| {
        let request = request(
            &format!("Organization/{organization}/{organization}"),
            WriteAction::Patch(json!({"domains": ["a.k.both.com"]})),
        );
        said_of(world.write(&WriteRequest { may_limit, ..request }))
    };
    let said = narrower("acme", true);
    assert!(
        said.contains("acme/base-domains/k.both.com.yaml:4 organization `acme` may not use `k.both.com`"),
        "{said}"
    );
}

/// Of two base domains that are written and not applied, the organization that comes first has it.
#[test]
fn what_would_break_another_organization_is_told_to_super_users_alone() {
    let mut world = World::new();
    let domain = || {
        let pair = rcgen::generate_simple_self_signed(["k.both.com".to_owned(), "*.k.both.com".to_owned()]);
        let pair = pair.unwrap();
        let (chain, key) = (pair.cert.pem(), pair.signing_key.serialize_pem());
        json!({"domain": "k.both.com", "tls_cert": chain, "tls_key": key})
    };
    for organization in ["acme", "globex"] {
        let key = format!("Organization/{organization}/{organization}");
        world.call(&key, WriteAction::Patch(json!({"domains": ["both.com"]}))).unwrap();
    }
    let create = |organization: &str, may_limit: bool| {
        let mut body = domain();
        body["organization"] = organization.into();
        let request = request(&format!("BaseDomain/{organization}/k.both.com"), WriteAction::Create(body));
        WriteRequest { may_limit, ..request }
    };
    world.write(&create("globex", true)).unwrap();
    world.plan();
    let told = said(&world.write(&create("acme", true)).unwrap_err());
    assert!(told.contains("globex"), "{told}");
    let told = said(&world.write(&create("acme", false)).unwrap_err());
    assert!(told.contains("the change would break resources of another organization"), "{told}");
    assert!(!told.contains("globex"), "{told}");
}

#[test]
fn documents_beyond_a_quota_are_refused_with_the_numbers() {
    let world = World::new();
    let organization = "Organization/acme/acme";
    let provider = |name: &str| {
        let body = json!({"identifier": name, "issuer": "https://id.example.com", "jwks_uri": "https://id.example.com/keys", "audience": "kafka"});
        (format!("IdentityProvider/acme/{name}"), WriteAction::Create(body))
    };
    world.call(organization, WriteAction::Patch(json!({"quotas": {"identity_providers": 1}}))).unwrap();
    let ((one, first), (two, second)) = (provider("one"), provider("two"));
    world.call(&one, first).unwrap();
    assert_eq!(
        world.refuses(&two, second),
        "409 capacity: not enough capacity for identity provider acme/two: 1 of 1 `quotas.identity_providers` of \
         organization acme are in use, and it needs 1 more\n  = raise the limit, or free capacity first\n"
    );
    assert_eq!(
        world.refuses(organization, WriteAction::Patch(json!({"quotas": {"identity_providers": 0}}))),
        "409 capacity: `quotas.identity_providers` of organization acme can't be 0: 1 are in use\n  = set the limit to at \
         least what is in use, or free capacity first\n  /quotas/identity_providers\n"
    );
}

fn said_of(written: Result<Arc<WriteResult>, WriteRefusal>) -> String {
    written.map_or_else(|refused| said(&refused), |_| String::new())
}

#[test]
fn what_there_is_no_room_for_is_told_with_the_numbers() {
    let mut world = World::new();
    let mut said = vec![
        world.refuses("Cluster/acme/clicks", WriteAction::Create(cluster("clicks", 5))),
        world.refuses("Cluster/acme/orders", WriteAction::Patch(json!({"kafka_units": 7}))),
    ];
    // Writes since the plan count, even of names that sort later.
    world.call("Cluster/acme/zebras", WriteAction::Create(cluster("zebras", 4))).unwrap();
    said.push(world.refuses("Cluster/acme/clicks", WriteAction::Create(cluster("clicks", 1))));
    said.push(world.refuses("Fleet/acme/eu", WriteAction::Patch(json!({"max_kafka_units": 5}))));
    said.push(
        world.refuses("Organization/acme/acme", WriteAction::Patch(json!({"quotas": {"clusters": 1}}))),
    );
    world.plan();
    world.applied("Fleet/acme/eu", |_| {});
    world.applied("Cluster/acme/orders", |_| {});
    world.applied("Cluster/acme/zebras", |_| {});
    said.push(world.refuses("Fleet/acme/eu", WriteAction::Patch(json!({"max_kafka_units": 5}))));
    said.push(
        world.refuses("Organization/acme/acme", WriteAction::Patch(json!({"quotas": {"kafka_units": 5}}))),
    );
    insta::assert_snapshot!(said.join(""));
    // A limit may be raised, or lowered to what is in use.
    world.call("Fleet/acme/eu", WriteAction::Patch(json!({"max_kafka_units": 9}))).unwrap();
    world.call("Fleet/acme/eu", WriteAction::Patch(json!({"max_kafka_units": 6}))).unwrap();
}

#[test]
fn what_is_guarded_or_needed_stays() {
    let mut world = World::new();
    let orders = "Cluster/acme/orders";
    let mut said = vec![
        world.refuses("Fleet/acme/eu", WriteAction::Delete),
        world.refuses("Organization/acme/acme", WriteAction::Delete),
    ];
    for guard in ["deletion_protection", "suspend"] {
        world.call(orders, WriteAction::Patch(json!({guard: true}))).unwrap();
        said.push(world.refuses(orders, WriteAction::Delete));
        world.call(orders, WriteAction::Patch(json!({guard: false}))).unwrap();
    }
    world.plan();
    world.applied(orders, |record| record.durable.protected = true);
    said.push(world.refuses(orders, WriteAction::Delete));
    world.applied(orders, |record| record.durable.suspended = true);
    said.push(world.refuses(orders, WriteAction::Delete));
    // The fleet has to wait for a cluster that is being deleted.
    world.applied(orders, |record| record.durable.deleting = true);
    world.call(orders, WriteAction::Delete).unwrap();
    said.push(world.refuses("Fleet/acme/eu", WriteAction::Delete));
    said.push(world.refuses(orders, WriteAction::Create(cluster("orders", 2))));
    insta::assert_snapshot!(said.join(""));
}

#[test]
fn others_that_refer_to_it_are_named() {
    let mut world = World::new();
    let provider = json!({"identifier": "sso", "issuer": "https://id.example.com", "jwks_uri": "https://id.example.com/keys", "audience": "kafka"});
    world.call("IdentityProvider/acme/sso", WriteAction::Create(provider)).unwrap();
    world
        .call("Cluster/acme/orders", WriteAction::Patch(json!({"advanced_config": {"oauth": "sso"}})))
        .unwrap();
    world.plan();
    let said = world.refuses("IdentityProvider/acme/sso", WriteAction::Delete);
    assert_eq!(
        said,
        "409 not_empty: identity provider acme/sso can't be deleted: cluster acme/orders needs it\n  = delete these first, \
         and wait until they are deleted\n"
    );
    world
        .call("Cluster/acme/orders", WriteAction::Patch(json!({"advanced_config": {"oauth": null}})))
        .unwrap();
    world.call("IdentityProvider/acme/sso", WriteAction::Delete).unwrap();
}

#[test]
fn what_was_wrong_before_keeps_nobody_from_anything_else() {
    let mut world = World::new();
    world.put(
        "acme/clusters/broken.yaml",
        &ORDERS.replace("orders", "broken").replace("kafka_units: 2", "kafka_unit: 2"),
    );
    world.put("acme/clusters/half.yaml", "kind: [\n");
    let fleet = FLEET.replace("max_tenants: 2", "max_tenants: 9");
    world.put(
        "acme/fleets/eu.yaml",
        &format!("{fleet}---\n{}", fleet.replace("eu", "us").replace("Shared", "Open")),
    );
    world.plan();
    world.call("Cluster/acme/clicks", WriteAction::Create(cluster("clicks", 1))).unwrap();
    // Also within one file, where line numbers shift.
    world.call("Fleet/acme/eu", WriteAction::Patch(json!({"placement_config": {"a": "b"}}))).unwrap();
    let mut said = vec![
        // An invalid document counts as existing.
        world.refuses("Cluster/acme/broken", WriteAction::Create(cluster("broken", 1))),
        world.refuses("Cluster/acme/broken", WriteAction::Patch(json!({"region": "eu"}))),
        world.refuses("Cluster/acme/half", WriteAction::Create(cluster("half", 1))),
        // The edit of the fleet would make its cluster invalid.
        world.refuses("Fleet/acme/eu", WriteAction::Patch(json!({"tenancy_mode": "Isolated"}))),
    ];
    // A patch that removes the mistake is accepted.
    world
        .call("Cluster/acme/broken", WriteAction::Patch(json!({"kafka_unit": null, "kafka_units": 1})))
        .unwrap();
    world.put("more.yaml", &world.file("acme/clusters/orders.yaml"));
    world.plan();
    said.push(world.refuses("Cluster/acme/orders", WriteAction::Patch(json!({"region": "eu"}))));
    insta::assert_snapshot!(said.join(""));
}

#[test]
fn a_document_where_it_may_not_be_says_nothing_of_what_it_names() {
    let mut world = World::new();
    fs::create_dir(world.tree().join("globex")).unwrap();
    world.put("globex/theirs.yaml", &ORDERS.replace("orders", "clicks"));
    world.plan();
    world.call("Cluster/acme/clicks", WriteAction::Create(cluster("clicks", 1))).unwrap();
    assert_eq!(world.file("globex/theirs.yaml"), ORDERS.replace("orders", "clicks"));
    world.call("Cluster/acme/clicks", WriteAction::Delete).unwrap();
}

#[test]
fn a_file_that_can_t_be_edited_rightly_is_left_to_people() {
    let mut world = World::new();
    let anchored = ORDERS.replace("kafka_units: 2 ", "kafka_units: &units 2 ") + "  scale_down_to: *units\n";
    world.put("acme/clusters/orders.yaml", &anchored);
    world.plan();
    let mut said = vec![world.refuses("Cluster/acme/orders", WriteAction::Patch(json!({"kafka_units": 3})))];
    // An unused anchor is fine, and so are edits of other fields in the file.
    world.put("acme/clusters/orders.yaml", &anchored.replace("  scale_down_to: *units\n", ""));
    world.plan();
    world.call("Cluster/acme/orders", WriteAction::Patch(json!({"kafka_units": 3}))).unwrap();
    assert!(world.file("acme/clusters/orders.yaml").contains("kafka_units: &units 3       # Ada"));
    world.put("acme/clusters/orders.yaml", &anchored);
    world.plan();
    world.call("Cluster/acme/orders", WriteAction::Patch(json!({"region": "eu"}))).unwrap();
    // Another program moved the document meanwhile.
    world.put("acme/clusters/orders.yaml", "# It is elsewhere.\n");
    said.push(world.refuses("Cluster/acme/orders", WriteAction::Patch(json!({"kafka_units": 3}))));
    // A symbolic link doesn't lead out of the tree.
    fs::remove_file(world.tree().join("acme/clusters/orders.yaml")).unwrap();
    std::os::unix::fs::symlink("/etc/hostname", world.tree().join("acme/clusters/orders.yaml")).unwrap();
    said.push(world.refuses("Cluster/acme/orders", WriteAction::Patch(json!({"kafka_units": 3}))));
    std::os::unix::fs::symlink(world.folder.path(), world.tree().join("acme/identity-providers")).unwrap();
    let provider = json!({"identifier": "sso", "issuer": "https://id.example.com", "jwks_uri": "https://id.example.com/keys", "audience": "kafka"});
    said.push(world.refuses("IdentityProvider/acme/sso", WriteAction::Create(provider)));
    insta::assert_snapshot!(said.join(""));
}

#[test]
fn what_would_be_too_long_a_file_is_refused() {
    let world = World::new();
    // The body has fewer bytes than the YAML.
    let list = json!({"a": vec![0; 200_000]});
    assert_eq!(
        world.refuses("Fleet/acme/eu", WriteAction::Patch(json!({"placement_config": list}))),
        "409 not_editable: the file was not changed: the file would become larger than 1 MiB\n  = shorten it, or move \
         other documents of the file to files of their own\n"
    );
    let fleet = json!({"identifier": "us", "infra_type": "directory", "tenancy_mode": "Shared", "max_tenants": 1,
                       "max_kafka_units": 1, "placement_config": list});
    assert_eq!(
        world.refuses("Fleet/acme/us", WriteAction::Create(fleet)),
        "422 invalid: the file would become larger than 1 MiB\n  - the file would become larger than 1 MiB\n    = shorten \
         it\n"
    );
}

#[test]
fn a_cluster_that_lacks_room_for_its_topics_has_no_field_that_says_so() {
    let key: ResourceKey = "Cluster/acme/orders".to_owned().try_into().unwrap();
    let what = "partitions".to_owned();
    let shortage = Shortage { limited_by: key.clone(), key, what, used: 1_600, wanted: 0, limit: 1_500 };
    assert_eq!(ProblemDocument::from(WriteRefusal::from(shortage)).errors, []);
}
