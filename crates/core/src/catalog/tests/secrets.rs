use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;

use super::*;

const ACCOUNT: &str =
    "kind: CloudAccount\norganization: acme\nidentifier: s3\nprovider: aws\ncredentials: {from_env: S3}\n";
const FLEET: &str = "kind: Fleet\norganization: acme\nidentifier: real\ninfra_type: byok\ntenancy_mode: Shared\n\
                     max_tenants: 1\nmax_kafka_units: 1\nadvanced_config:\n  kubeconfig: {from_env: KUBE}\n";

fn account_of(world: &World) -> ResolvedSecret {
    let catalog = world.resolve();
    let resource = catalog.resources.values().find(|resource| resource.key.name == "s3").unwrap();
    resource.secrets["credentials"].clone()
}

#[test]
fn plain_secrets_are_refused_in_git_unless_they_are_allowed() {
    let mut world = World::new();
    world.git = true;
    world.remove("acme/base.yaml").remove("globex/base.yaml").remove("acme/orders.yaml");
    world.put("acme/s3.yaml", &ACCOUNT.replace("{from_env: S3}", "hunter2"));
    world.check(
        "error plain-secret acme/s3.yaml:5 [anyone who can read the repository can read it] `credentials` is a plain-text secret in a git repository
         = run `streamfleet secret seal TREE` on a checkout to seal it, and replace the secret if it was pushed; to accept plain-text secrets, set `secrets.allow_plain_in_git` in the settings
         held cloud account acme/s3: invalid (1)",
    );
    world.config.secrets.allow_plain_in_git = true;
    world.check("");
    assert!(!format!("{:?}", world.resolve()).contains("hunter2"));
}

#[test]
fn an_empty_secret_is_refused() {
    let mut world = World::new();
    world.environment.insert("S3".to_owned(), " \n".to_owned());
    world.put("acme/s3.yaml", ACCOUNT);
    world.check(
        "error empty-secret acme/s3.yaml:5 [empty] `credentials` is empty\n= put the value in the file, variable or block \
         that the document names\nheld cloud account acme/s3: invalid (1)",
    );
}

#[test]
fn a_kubeconfig_is_judged() {
    let mut world = World::new();
    world.put("acme/real.yaml", FLEET);
    world.environment.insert("KUBE".to_owned(), "users: []".to_owned());
    let catalog = world.resolve();
    assert!(!catalog.problems.is_empty());
    for problem in &catalog.problems {
        assert_eq!(problem.location.as_ref().unwrap().origin().to_string(), "acme/real.yaml:9");
        assert!(problem.code.starts_with("kubeconfig"), "{problem:?}");
    }
    world.environment.clear();
    world.check(
        "warning secret-not-at-hand acme/real.yaml:9 [] `kubeconfig` can't be opened here, so it isn't checked: no identity here opens it
         = resources that need it aren't applied from here; check again on the host that can open it",
    );
}

#[test]
fn a_kubeconfig_whose_server_is_not_connected_to_is_told() {
    let mut world = World::new();
    world.put("acme/real.yaml", FLEET);
    let kubeconfig = r#"{"apiVersion": "v1", "kind": "Config", "current-context": "a",
        "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
        "clusters": [{"name": "a", "cluster": {"server": "https://127.0.0.1:6443"}}],
        "users": [{"name": "a", "user": {"token": "t"}}]}"#;
    world.environment.insert("KUBE".to_owned(), kubeconfig.to_owned());
    world.check(
        "warning kubeconfig-address acme/real.yaml:9 [] streamfleet doesn't connect to the `server` of the `kubeconfig`: `127.0.0.1` is a loopback address of the host that Streamfleet runs on
         = use the address at which the API server is reached from elsewhere, or allow this one in the settings: `allow_addresses` under `[targets]`; a fleet on the Kubernetes cluster that Streamfleet runs in needs no kubeconfig with `in_cluster`",
    );
    world.config.targets.allow_addresses = vec!["127.0.0.0/8".to_owned().try_into().unwrap()];
    world.check("");
}

#[test]
fn a_kubeconfig_that_expires_is_warned_of() {
    let mut world = World::new();
    world.put("acme/real.yaml", FLEET);
    let warned = |world: &mut World, user: &str| {
        let kubeconfig = format!(
            "current-context: a\ncontexts: [{{name: a, context: {{cluster: a, user: a}}}}]\n\
             clusters: [{{name: a, cluster: {{server: 'https://k.example.com'}}}}]\nusers: [{{name: a, user: {user}}}]\n"
        );
        world.environment.insert("KUBE".to_owned(), kubeconfig);
        let catalog = world.resolve();
        let said = catalog.problems.iter().map(|it| format!("{} {}", it.code, it.message));
        said.collect::<Vec<_>>().join("; ")
    };
    let token = |end: &str| {
        let end: Timestamp = end.parse().unwrap();
        let claims = URL_SAFE_NO_PAD.encode(format!("{{\"exp\":{}}}", end.as_second()));
        format!("{{token: e30.{claims}.c2ln}}")
    };
    assert_eq!(
        warned(&mut world, &token("2027-05-31T12:00:00Z")),
        "kubeconfig-expiry the token of the kubeconfig expires on 2027-05-31 12:00 UTC, and then the fleet becomes \
         Unreachable"
    );
    assert_eq!(
        warned(&mut world, &token("2026-05-31T23:59:00Z")),
        "kubeconfig-expiry the token of the kubeconfig expired on 2026-05-31 23:59 UTC"
    );
    for forever in ["{token: e30.e30.c2ln}", "{token: abc}", "{token: e30.%%%.c2ln}"] {
        assert_eq!(warned(&mut world, forever), "", "{forever}");
    }
}

#[test]
fn a_secret_that_cannot_be_opened_keeps_its_recorded_trace_while_its_sealed_form_does() {
    let mut world = World::new();
    world.put("acme/s3.yaml", ACCOUNT).apply();
    let found = account_of(&world);
    assert_eq!(found.unavailable.as_deref(), Some("no identity here opens it"));
    assert_eq!(found.mark.fingerprint, None);
    let key = found.reference.resource.clone();
    let record = world.recorded.resources.get_mut(&key).unwrap();
    record.cached.secrets.get_mut("credentials").unwrap().fingerprint = Some("f1".to_owned());
    assert_eq!(account_of(&world).mark.fingerprint.as_deref(), Some("f1"));
    world.recorded.resources.get_mut(&key).unwrap().cached.secrets.get_mut("credentials").unwrap().sealed =
        None;
    assert_eq!(account_of(&world).mark.fingerprint, None);
}

#[test]
fn a_secret_of_the_record_is_at_hand_only_where_a_document_still_gives_it() {
    let mut world = World::new();
    world.environment.insert("S3".to_owned(), "value".to_owned());
    world.put("acme/s3.yaml", ACCOUNT).apply();
    let mark = account_of(&world).mark;
    world.put("acme/twice.yaml", ACCOUNT);
    assert_eq!((account_of(&world).mark, account_of(&world).unavailable), (mark.clone(), None));
    world
        .remove("acme/twice.yaml")
        .put("acme/s3.yaml", "INVALID\nkind: CloudAccount\norganization: acme\nidentifier: s3\n");
    let found = account_of(&world);
    assert_eq!((found.mark, found.unavailable.as_deref()), (mark, Some("only its fingerprint is recorded")));
}

#[test]
fn a_refused_secret_is_reported_where_it_stands() {
    let mut world = World::new();
    world.put("acme/s3.yaml", ACCOUNT);
    let documents = world.documents();
    let mut secrets = world.open(&documents);
    let reference: SecretRef = "CloudAccount/acme/s3#credentials".to_owned().try_into().unwrap();
    let problem = Problem::error("sealed-elsewhere", "the secret was sealed for another field");
    secrets.opened.insert(reference, OpenedSecret::Refused(problem));
    let catalog = resolve(
        &documents,
        &world.recorded,
        &secrets,
        &Arc::new(world.config.clone()),
        &host_names(),
        world.now.parse().unwrap(),
    );
    assert_eq!(
        describe(&catalog),
        "error sealed-elsewhere acme/s3.yaml:5 [] the secret was sealed for another field\n\
         held cloud account acme/s3: invalid (1)"
    );
}
