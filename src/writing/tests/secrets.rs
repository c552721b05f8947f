use super::*;

const SECRET: &str = "[default]\naws_secret_access_key = Hush/0000000000\n";

fn account(credentials: Value) -> Value {
    json!({"identifier": "s3", "provider": "aws", "region": "eu", "credentials": credentials})
}

#[test]
fn a_secret_is_sealed_before_it_is_written() {
    let mut world = World::new();
    let path = "acme/cloud-accounts/s3.yaml";
    let key = "CloudAccount/acme/s3";
    let written = world.call(key, WriteAction::Create(account(json!(SECRET)))).unwrap();
    let first = world.file(path);
    assert!(
        first.contains("credentials:\n  encrypted: |\n    -----BEGIN AGE ENCRYPTED FILE-----\n"),
        "{first}"
    );
    assert!(!listing(&world.tree()).iter().any(|(_, bytes)| String::from_utf8_lossy(bytes).contains("Hush")));
    assert!(!format!("{written:?}").contains("Hush"));
    world.plan();
    assert!(!world.made.round.plan.problems.iter().any(Problem::is_error));

    // A secret is kept when it is left out, or sent as shown, as in the file, or with the same value.
    let stands = first.split_once("encrypted: |\n").unwrap().1.replace("    -", "-").replace("\n    ", "\n");
    let stands = stands.trim_start().to_owned();
    for body in [
        json!({"identifier": "s3", "provider": "aws", "region": "eu"}),
        account(json!({"redacted": true})),
        account(Value::Null),
        account(json!(SECRET)),
        account(json!({"encrypted": stands})),
    ] {
        let written = world.call(key, WriteAction::Replace(body.clone())).unwrap();
        assert!(!written.is_new && world.file(path) == first, "{body}");
    }
    let same = world.call(key, WriteAction::Patch(json!({"credentials": SECRET}))).unwrap();
    assert!(!same.is_new);
    let other = world.call(key, WriteAction::Patch(json!({"credentials": "another"}))).unwrap();
    assert!(other.is_new && other.etag != written.etag);
    assert_eq!(other.message, "Change credentials of cloud account acme/s3");
    assert_eq!(world.file(path).lines().next(), first.lines().next());
    let back = world.call(key, WriteAction::Patch(json!({"credentials": SECRET}))).unwrap();
    assert_eq!(back.etag, written.etag, "the same value, whatever its sealed form");
}

#[test]
fn no_caller_says_where_a_secret_is_found() {
    let mut world = World::new();
    let key = "CloudAccount/acme/s3";
    let mut said: Vec<String> = [
        json!({"from_file": "id_rsa"}),
        json!({"from_env": "TOKEN"}),
        json!({"encrypted": "-----BEGIN AGE ENCRYPTED FILE-----"}),
        json!({"redacted": true}),
        json!({"redacted": false}),
        json!(["a"]),
        Value::Null,
    ]
    .into_iter()
    .map(|given| world.refuses(key, WriteAction::Create(account(given))))
    .collect();
    world.put(
        "more.yaml",
        "apiVersion: streamfleet/v1\nkind: CloudAccount\norganization: acme\nidentifier: s3\nprovider: aws\ncredentials: {from_file: s3}\n",
    );
    world.plan();
    for given in [json!({"from_file": "id_rsa"}), json!({"from_file": "s3", "from_env": "A"})] {
        said.push(world.refuses(key, WriteAction::Patch(json!({"credentials": given}))));
    }
    said.push(world.refuses(key, WriteAction::Patch(json!({"credentials": null}))));
    insta::assert_snapshot!(said.join(""));
    // A value that is equal to the file's is accepted.
    let same = world
        .call(key, WriteAction::Patch(json!({"credentials": {"from_file": "s3"}, "region": "eu"})))
        .unwrap();
    assert!(world.file("more.yaml").contains("credentials: {from_file: s3}"), "{}", same.message);
}

#[test]
fn a_wrong_secret_is_told_by_its_field_and_quoted_nowhere() {
    let world = World::new();
    let fleet = |kubeconfig: &str| {
        json!({"identifier": "us", "infra_type": "byok", "tenancy_mode": "Shared", "max_tenants": 1, "max_kafka_units": 1,
               "advanced_config": {"kubeconfig": kubeconfig}})
    };
    let refused = world
        .call("Fleet/acme/us", WriteAction::Create(fleet("apiVersion: v1\nkind: Config\ntoken: Hush\n")));
    let refused = refused.unwrap_err();
    assert!(!format!("{refused:?}").contains("Hush"));
    let domain = json!({"domain": "k.example.com", "tls_cert": "no certificate", "tls_key": "Hush"});
    let other = world.call("BaseDomain/acme/k.example.com", WriteAction::Create(domain)).unwrap_err();
    assert!(!format!("{other:?}").contains("Hush"));
    insta::assert_snapshot!([refused, other].map(|refused| said(&refused)).join(""));
}

#[test]
fn a_secret_goes_with_the_object_that_has_it() {
    let fleet = "apiVersion: streamfleet/v1\nkind: Fleet\norganization: acme\nidentifier: us\ninfra_type: directory\n\
                 tenancy_mode: Shared\nmax_tenants: 1\nmax_kafka_units: 1\nadvanced_config:\n  monitoring:\n    \
                 prometheus: own\n    own: {password: long enough for it}\n";
    let bare = json!({"identifier": "us", "infra_type": "directory", "tenancy_mode": "Shared", "max_tenants": 1,
                      "max_kafka_units": 1});
    let monitoring =
        |monitoring: Value| WriteAction::Patch(json!({"advanced_config": {"monitoring": monitoring}}));
    for what in [
        monitoring(Value::Null),
        monitoring(json!({"prometheus": "none", "own": null})),
        monitoring(json!({"prometheus": "existing", "own": null})),
        WriteAction::Replace(bare),
    ] {
        let mut world = World::new();
        world.put("acme/us.yaml", fleet);
        world.plan();
        world.call("Fleet/acme/us", what).unwrap();
        let file = world.file("acme/us.yaml");
        assert!(!file.contains("own") && !file.contains("long enough"), "{file}");
    }
}
