use super::*;

#[test]
fn a_sound_tree_has_no_problem_and_renders() {
    let mut world = World::new();
    world.edit("acme/orders.yaml", "  version", "  cluster_access: External\n  oauth: acme-sso\n  version");
    world.check("");
    let catalog = world.resolve();
    let cluster = catalog.clusters.values().next().unwrap();
    assert_eq!(
        cluster.domain.as_ref().unwrap().bootstrap_host(&cluster.spec.identifier),
        "orders.k.acme.com"
    );
    assert_eq!(cluster.identity_provider.as_ref().unwrap().identifier.as_str(), "acme-sso");
    assert_eq!((cluster.namespace.as_str(), cluster.spec.units()), ("kafka-acme--orders", 1));
    world.apply().check("");
}

#[test]
fn a_document_in_a_foreign_folder_touches_nothing() {
    let mut world = World::new();
    world.put("globex/stock.yaml", &cluster("globex", "stock", 1, "").replace("eu", "us"));
    world.apply();
    let refused = "
        error foreign-folder acme/evil.yaml:2 [not `acme`] `acme/` may contain only resources of organization `acme`
        = set `organization: acme`, or move the document out of `acme/`";
    // The resource's own document stays valid.
    world.put("acme/evil.yaml", &cluster("globex", "stock", 9, "").replace("eu", "us"));
    world.check(refused);
    assert_eq!(world.resolve().clusters.values().map(|cluster| cluster.spec.units()).sum::<u32>(), 2);
    // Without it, the refused document may be the misplaced original.
    world.remove("globex/stock.yaml");
    let suspicious = "held cluster globex/stock: absent, rendered
        absent cluster globex/stock: suspicious: acme/evil.yaml:1, which was refused, may be the same resource";
    world.check(&format!("{refused}\n{suspicious}"));
    // The same goes for an invalid document.
    world.put("acme/evil.yaml", "INVALID\nkind: Cluster\norganization: globex\nidentifier: stock\n");
    world.check(suspicious);
}

#[test]
fn organizations_are_the_administrators() {
    let mut world = World::new();
    world.apply();
    world.put("acme/organization.yaml", "kind: Organization\nidentifier: acme\nquotas: {clusters: 100}\n");
    world.check(
        "error organization-in-own-folder acme/organization.yaml:1 [in the folder of `acme`] organization `acme` \
         can't be described in the folder of an organization
         = move it to an administrator's file, outside of `acme/`: `organizations/acme.yaml`",
    );
    // The owners of one folder can't claim another folder for an organization.
    world.put("acme/organization.yaml", "kind: Organization\nidentifier: platform\n");
    world.put("platform/stock.yaml", &cluster("globex", "stock", 1, "").replace("eu", "us"));
    world.check(
        "error organization-in-own-folder acme/organization.yaml:1 [in the folder of `acme`] organization `platform` \
         can't be described in the folder of an organization
         = move it to an administrator's file, outside of `acme/`: `organizations/platform.yaml`",
    );
}

#[test]
fn an_organization_that_only_its_own_folder_describes_is_no_cascade() {
    let mut world = World::new();
    world.put("organizations.yaml", "kind: Organization\nidentifier: globex\n");
    world.put("acme/organization.yaml", "kind: Organization\nidentifier: acme\n");
    world.remove("acme/base.yaml");
    world.put("acme/orders.yaml", &base("acme", "eu", "k.acme.com"));
    world.check(
        "error organization-in-own-folder acme/organization.yaml:1 [in the folder of `acme`] organization `acme` \
         can't be described in the folder of an organization
         = move it to an administrator's file, outside of `acme/`: `organizations/acme.yaml`
         held base domain acme/k.acme.com: waits for organization acme
         held identity provider acme/acme-sso: waits for organization acme
         held cloud account acme/acme-s3: waits for organization acme
         held fleet acme/eu: waits for organization acme",
    );
}

#[test]
fn a_folder_that_becomes_an_organizations_deletes_nothing_of_others() {
    let mut world = World::new();
    world.remove("acme/orders.yaml");
    world.put("shared/orders.yaml", &cluster("acme", "orders", 1, ""));
    world.apply();
    world.put("more.yaml", "kind: Organization\nidentifier: shared\n");
    world.check(
        "error foreign-folder shared/orders.yaml:2 [not `shared`] `shared/` may contain only resources of organization `shared`
         = set `organization: shared`, or move the document out of `shared/`
         held cluster acme/orders: absent, rendered
         absent cluster acme/orders: suspicious: shared/orders.yaml, which contained it, had errors",
    );
}

#[test]
fn a_resource_described_twice_stays_as_it_was() {
    let mut world = World::new();
    let twice = "
        error duplicate-resource acme/twice.yaml:4 [second document] cluster acme/orders is described twice
        see acme/orders.yaml:4 [first document]
        = remove one of the two; until then it stays as it was last applied";
    world.put("acme/twice.yaml", &cluster("acme", "orders", 5, ""));
    world.check(&format!("{twice}\nheld cluster acme/orders: invalid (1)"));
    world.remove("acme/twice.yaml").apply();
    world.put("acme/twice.yaml", &cluster("acme", "orders", 5, ""));
    world.check(&format!("{twice}\nheld cluster acme/orders: invalid (1), rendered"));
    assert_eq!(world.resolve().clusters.values().next().unwrap().spec.units(), 1);
}

#[test]
fn an_organization_that_loses_its_last_admin_is_warned_of_it() {
    let mut world = World::new();
    let members = "acme\nmembers: [{email: ann@acme.com, role: admin}, {email: bob@acme.com, role: editor}]";
    world.edit("organizations.yaml", "acme", members).apply();
    let warned = |at: &str| {
        format!(
            "warning no-admin organizations.yaml:{at} [no admin among them] organization `acme` has no admin: only super users can change its members and approve its changes
             = set `role: admin` on a member, or ignore this if it is intended"
        )
    };
    world.clone().edit("organizations.yaml", "role: admin", "role: editor").check(&warned("3"));
    world.edit("organizations.yaml", members, "acme").check(&warned("1"));
    // Once applied, it causes no warning.
    world.apply().check("");
}

#[test]
fn a_folder_stays_closed_while_its_organization_is_in_doubt() {
    let stranger = "
        error foreign-folder old/orders.yaml:2 [not `old`] `old/` may contain only resources of organization `old`
        = set `organization: old`, or move the document out of `old/`";
    // The folder of a deleted organization still has its old owners.
    let mut world = World::new();
    world.remove("acme/orders.yaml").put("old/orders.yaml", &cluster("acme", "orders", 1, ""));
    world.check("");
    let gone = ResourceKey::organization(&"old".parse().unwrap());
    world.recorded.generations.insert(gone, 1);
    world.check(stranger);
    // The document of the organization is invalid.
    world.recorded = Recorded::default();
    world.put("old.yaml", "INVALID\nkind: Organization\nidentifier: old\n").check(stranger);
}
