//! Organizations on one installation don't trust each other.

use crate::support::Tree;

const SECRET: &str = "[default]\naws_access_key_id = X\naws_secret_access_key = Y\n";

fn account(organization: &str, name: &str, credentials: &str) -> String {
    format!(
        "apiVersion: streamfleet/v1\nkind: CloudAccount\norganization: {organization}\nidentifier: {name}\nprovider: aws\n\
         credentials:\n{credentials}"
    )
}

#[test]
fn another_organizations_fleet_is_refused_like_one_that_does_not_exist() {
    let tree = Tree::example("two-organizations");
    tree.write("acme/fleets/private.yaml", tree.read("acme/fleets/main.yaml").replace("main", "private"));
    tree.edit("globex/clusters/events.yaml", "infrastructure: main", "infrastructure: private");
    let other = tree.run("validate tree").expect(1).says(&["globex/clusters/events.yaml:5", "`private`"]);
    tree.edit("globex/clusters/events.yaml", "infrastructure: private", "infrastructure: pravite");
    let missing = tree.run("validate tree").expect(1);
    assert_eq!(
        other.err.replace("private", "pravite"),
        missing.err,
        "the answer must not tell that it exists"
    );
}

#[test]
fn another_organizations_domain_is_refused() {
    let tree = Tree::example("quickstart");
    tree.write(
        "organizations.yaml",
        tree.read("organizations.yaml")
            + "---\napiVersion: streamfleet/v1\nkind: Organization\nidentifier: globex\n",
    );
    tree.write(
        "globex/fleets/main.yaml",
        "apiVersion: streamfleet/v1\nkind: Fleet\norganization: globex\nidentifier: main\ninfra_type: directory\n\
         domain: kafka.acme.example.com\ntenancy_mode: Shared\nmax_tenants: 1\nmax_kafka_units: 1\n",
    );
    tree.run("validate tree").expect(1).says(&["globex/fleets/main.yaml:6", "`kafka.acme.example.com`"]);
}

#[test]
fn a_document_in_another_organizations_folder_does_not_count() {
    let tree = Tree::example("two-organizations");
    tree.run("apply tree --yes").expect(0);
    let before = tree.output();
    tree.write(
        "globex/clusters/trespass.yaml",
        tree.read("acme/clusters/events.yaml").replace("kafka_units: 1", "kafka_units: 3"),
    );
    tree.run("apply tree --yes").expect(1).says(&["globex/clusters/trespass.yaml", "acme"]);
    assert_eq!(tree.output(), before);
    // Naming another organization's resources must not hold them either.
    tree.edit("acme/clusters/events.yaml", "kafka_units: 1", "kafka_units: 2");
    tree.run("apply tree --yes").expect(1);
    assert_ne!(tree.output(), before);
}

#[test]
fn a_broken_file_of_one_organization_does_not_hold_the_other() {
    let tree = Tree::example("two-organizations");
    tree.write(
        "acme/clusters/old.yaml",
        "apiVersion: streamfleet/v1\nkind: Cluster\norganization: acme\ninfrastructure: main\nidentifier: old\n\
         cluster_type: kafka\ntenancy_mode: Shared\nkafka_units: 1\ndeletion_protection: false\n\
         advanced_config:\n  version: 4.3.1\n  profile: dev\n",
    );
    tree.run("apply tree --yes").expect(0);
    tree.remove("acme/clusters/old.yaml");
    tree.write("globex/broken.yaml", "{");
    tree.run("apply tree --yes").expect(1);
    let left = tree.output().into_iter().any(|(path, _)| path.contains("/kafka-old"));
    assert!(!left, "acme's deletion does not wait");
}

#[test]
fn a_sealed_block_of_another_organization_is_refused() {
    let tree = Tree::example("two-organizations");
    let sealed =
        tree.run_with("secret encrypt CloudAccount/acme/store#credentials tree", &[], SECRET).expect(0).out;
    let block = sealed.strip_prefix("credentials:\n").unwrap();
    tree.write("acme/cloud-accounts/store.yaml", account("acme", "store", block));
    tree.run("validate tree").expect(0);
    tree.write("globex/cloud-accounts/store.yaml", account("globex", "store", block));
    tree.run("validate tree").expect(1).says(&["globex/cloud-accounts/store.yaml:6", "sealed for"]);
    tree.remove("globex/cloud-accounts/store.yaml");
    tree.write("acme/cloud-accounts/other.yaml", account("acme", "other", block));
    tree.run("validate tree").expect(1).says(&["acme/cloud-accounts/other.yaml:6", "sealed for"]);
}

#[test]
fn a_secret_file_of_another_organization_is_refused() {
    let tree = Tree::example("two-organizations");
    tree.write(".streamfleet/secrets/acme/store.ini", SECRET);
    tree.write(".streamfleet/secrets/globex/own.ini", SECRET);
    tree.write("globex/cloud-accounts/store.yaml", account("globex", "store", "  from_file: own.ini\n"));
    tree.run("validate tree").expect(0);
    for name in ["store.ini", "../acme/store.ini", "/etc/passwd"] {
        tree.write(
            "globex/cloud-accounts/store.yaml",
            account("globex", "store", &format!("  from_file: {name}\n")),
        );
        tree.run("validate tree").expect(1).says(&["globex/cloud-accounts/store.yaml"]);
    }
    std::os::unix::fs::symlink(
        tree.path().join(".streamfleet/secrets/acme/store.ini"),
        tree.path().join(".streamfleet/secrets/globex/link.ini"),
    )
    .unwrap();
    tree.write("globex/cloud-accounts/store.yaml", account("globex", "store", "  from_file: link.ini\n"));
    tree.run("validate tree").expect(1).says(&["link"]);
}

#[test]
fn a_variable_of_another_organization_is_out_of_reach() {
    let tree = Tree::example("two-organizations");
    tree.write("globex/cloud-accounts/store.yaml", account("globex", "store", "  from_env: STORE\n"));
    let variables = [("STREAMFLEET_SECRET_ACME__STORE", SECRET), ("STORE", SECRET)];
    tree.run_with("validate tree", &variables, "").expect(0).says(&["STREAMFLEET_SECRET_GLOBEX__STORE"]);
    tree.write(
        "globex/cloud-accounts/store.yaml",
        account("globex", "store", "  from_env: ../ACME__STORE\n"),
    );
    tree.run_with("validate tree", &variables, "").expect(1);
}

#[test]
fn a_folder_that_can_not_be_looked_into_is_unknown_and_not_empty() {
    use std::os::unix::fs::PermissionsExt as _;
    let tree = Tree::example("two-organizations");
    tree.run_bound("apply tree --yes").expect(0);
    let set_mode = |mode| {
        let mode = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(tree.path().join("acme"), mode).unwrap();
    };
    // Names can be listed, but entries can't be opened.
    set_mode(0o644);
    let run = tree.run_bound("plan tree");
    set_mode(0o755);
    run.expect(1)
        .says(&["cannot tell whether this is a file or a folder: Permission denied"])
        .says_nothing_of(&["DELETE", "delete cluster"]);
    tree.run_bound("plan tree").expect(0);
}

#[test]
fn a_link_shows_nothing_of_another_organization() {
    use std::os::unix::fs::symlink;
    let tree = Tree::example("two-organizations");
    tree.write(".streamfleet/secrets/acme/pw", "hunter2: hunter2\n");
    for (target, link) in [("../.streamfleet/secrets/acme/pw", "pw.yaml"), ("../.streamfleet", "sf")] {
        symlink(target, tree.path().join("globex").join(link)).unwrap();
        let run = tree.run("validate tree").expect(1).says_nothing_of(&["hunter2"]);
        run.says(&[&format!("globex/{link}"), "leads out of its top folder"]);
    }
}
