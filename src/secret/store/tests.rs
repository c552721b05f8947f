use std::collections::BTreeMap;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::sync::Arc;

use secrecy::ExposeSecret as _;

use super::*;
use crate::names::{Kind, ResourceKey, SpecPath};
use crate::problem::{Location, Origin, Problem};
use crate::secret::{MAX_LENGTH, seal};
use crate::spec::{BaseDomain, CloudAccount, CloudProvider, Fleet, ParsedFile, SourceId, Spec};

struct Place {
    dir: tempfile::TempDir,
    recipient: String,
    store: SecretStore,
}

impl Place {
    fn new() -> Place {
        let dir = tempfile::tempdir().unwrap();
        for organization in ["acme", "rival", "a-b"] {
            std::fs::create_dir_all(dir.path().join("secrets").join(organization)).unwrap();
        }
        let keyring = Keyring::ephemeral().unwrap();
        let recipient = keyring.recipient();
        let environment = |name: &str| match name {
            "STREAMFLEET_SECRET_ACME__KEY" => Some(SecretString::from("acme's hunter2")),
            "STREAMFLEET_SECRET_A_B__KEY" => Some(SecretString::from("a-b's hunter2")),
            "STREAMFLEET_SECRET_RIVAL__KEY" => Some(SecretString::from("rival's hunter2")),
            "STREAMFLEET_SECRET_ACME__EMPTY" => Some(SecretString::from("")),
            "STREAMFLEET_SECRET_ACME__LARGE" => Some(SecretString::from("x".repeat(MAX_LENGTH + 1))),
            _ => None,
        };
        let secrets = camino::Utf8Path::from_path(dir.path()).unwrap().join("secrets");
        Place { store: SecretStore::new(secrets, environment, keyring), recipient, dir }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join("secrets").join(name)
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), content).unwrap();
    }

    fn sealed(&self, reference: &str) -> SecretValue {
        let reference = SecretRef::try_from(reference.to_owned()).unwrap();
        SecretValue::Encrypted(seal(&self.recipient, &reference, &"hunter2".into()).unwrap())
    }

    fn open(&self, organization: &str, value: SecretValue) -> OpenedSecret {
        let mut secrets = self.store.open_all(&documents(vec![base_domain(organization, value)]));
        secrets.opened.pop_first().unwrap().1
    }

    /// Describes the same, and checks that no message contains the secret.
    fn told(&self, organization: &str, value: SecretValue) -> String {
        let opened = self.open(organization, value);
        assert!(!format!("{opened:?}").contains("hunter2"), "a secret is in the Debug output");
        match opened {
            OpenedSecret::Value { value, .. } => format!("value: {}", value.expose_secret()),
            OpenedSecret::Unavailable { reason, .. } => format!("opaque: {reason}"),
            OpenedSecret::Refused(Problem { code, message, hint, .. }) => {
                format!("{code}: {message} ({})", hint.unwrap_or_default())
            }
        }
    }
}

const REFERENCE: &str = "BaseDomain/acme/k.example.com#tls_key";

fn document(key: ResourceKey, spec: Spec, pointer: &str) -> Document {
    let path: SpecPath = "specs.yaml".parse().unwrap();
    let location = Location { path: path.clone(), line: 7, column: 3, width: 4, text: "…".to_owned() };
    Document {
        key,
        spec,
        origin: Origin { path, line: 1 },
        fields: BTreeMap::from([(pointer.to_owned(), location)]).into(),
    }
}

fn base_domain(organization: &str, tls_key: SecretValue) -> Document {
    let organization = organization.parse().unwrap();
    let key = ResourceKey::new(Kind::BaseDomain, &organization, "k.example.com");
    let spec = BaseDomain {
        organization,
        domain: "k.example.com".parse().unwrap(),
        tls_cert: Some(String::new()),
        tls_key: Some(tls_key),
        dns_provider: crate::spec::DnsProvider::None,
        dns_base_domain: None,
        cloud_account: None,
    };
    document(key, Spec::BaseDomain(spec), "/tls_key")
}

fn cloud_account(credentials: SecretValue) -> Document {
    let organization = "acme".parse().unwrap();
    let key = ResourceKey::new(Kind::CloudAccount, &organization, "s3");
    let identifier = "s3".parse().unwrap();
    let spec = CloudAccount {
        organization,
        identifier,
        provider: CloudProvider::S3,
        region: None,
        endpoint: None,
        credentials,
    };
    document(key, Spec::CloudAccount(spec), "/credentials")
}

fn fleet(kubeconfig: SecretValue) -> Document {
    let organization = "acme".parse().unwrap();
    let key = ResourceKey::new(Kind::Fleet, &organization, "eu");
    let mut spec: Fleet = serde_json::from_value(serde_json::json!({
        "organization": "acme", "identifier": "eu", "infra_type": "byok", "tenancy_mode": "Shared",
        "max_tenants": 1, "max_kafka_units": 1,
    }))
    .unwrap();
    spec.advanced_config.kubeconfig = Some(kubeconfig);
    document(key, Spec::Fleet(spec), "/advanced_config/kubeconfig")
}

fn documents(documents: Vec<Document>) -> Documents {
    let file = ParsedFile { documents, ..ParsedFile::default() };
    Documents {
        source: SourceId("/specs".to_owned()),
        revision: String::new(),
        commit: None,
        skipped: BTreeMap::new(),
        files: BTreeMap::from([("specs.yaml".parse().unwrap(), Arc::new(file))]),
    }
}

fn file(name: &str) -> SecretValue {
    SecretValue::FromFile(name.to_owned())
}

fn variable(name: &str) -> SecretValue {
    SecretValue::FromEnv(name.to_owned())
}

#[test]
fn every_form_gives_its_value_as_it_is_and_a_trace() {
    let place = Place::new();
    place.write("acme/key", "line\nhunter2\n");
    assert_eq!(place.told("acme", SecretValue::Plain("hunter2".into())), "value: hunter2");
    assert_eq!(place.told("acme", file("key")), "value: line\nhunter2\n");
    assert_eq!(place.told("acme", variable("KEY")), "value: acme's hunter2");
    let sealed = place.sealed(REFERENCE);
    let SecretValue::Encrypted(armour) = &sealed else { panic!("it was sealed") };
    let digest = sealed_digest(armour);
    let (OpenedSecret::Value { mark, .. }, OpenedSecret::Value { mark: plain, .. }) =
        (place.open("acme", sealed.clone()), place.open("acme", SecretValue::Plain("hunter2".into())))
    else {
        panic!("both can be opened")
    };
    assert_eq!(mark.fingerprint, plain.fingerprint, "the trace of a value doesn't depend on its form");
    assert_eq!((mark.sealed, plain.sealed), (digest, None));
}

#[test]
fn every_kind_of_secret_is_opened_and_its_problem_stands_at_its_field() {
    let place = Place::new();
    let all = vec![base_domain("acme", file("none")), cloud_account(file("none")), fleet(file("none"))];
    let secrets = place.store.open_all(&documents(all));
    let fields: Vec<_> = secrets.opened.keys().map(ToString::to_string).collect();
    assert_eq!(fields, [REFERENCE, "CloudAccount/acme/s3#credentials", "Fleet/acme/eu#kubeconfig"]);
    for opened in secrets.opened.values() {
        let OpenedSecret::Refused(problem) = opened else { panic!("there is no such file") };
        let location = problem.location.as_ref().unwrap();
        assert_eq!((location.line, location.column), (7, 3));
    }
}

#[test]
fn an_organization_reaches_its_own_secrets_and_no_others() {
    let place = Place::new();
    place.write("rival/key", "rival's hunter2");
    let name = "(use a name of letters, digits, `-`, `_` and `.`, without folders and not starting with `.`)";
    for outside in ["../rival/key", "rival/key", "/etc/passwd", "..", ".", "", ".key", "-key", "a\\b", "a\0b"]
    {
        assert_eq!(
            place.told("acme", file(outside)),
            format!(
                "secret-file-name: `from_file` is `{outside}`, which is not the name of a file in the organization's \
                 folder {name}"
            )
        );
    }
    symlink(place.path("rival/key"), place.path("acme/link")).unwrap();
    symlink("../rival", place.path("acme/folder")).unwrap();
    assert_eq!(
        place.told("acme", file("link")),
        "secret-link-out-of-folder: `acme/link` in the secrets folder is a link out of the organization's folder (put a \
         copy of the file there)"
    );
    assert!(place.told("acme", file("folder")).starts_with("secret-link-out-of-folder: "));
    symlink("rival", place.path("mallory")).unwrap();
    assert!(place.told("mallory", file("key")).starts_with("secret-link-out-of-folder: "));

    assert_eq!(place.told("a-b", variable("KEY")), "value: a-b's hunter2");
    assert_eq!(
        place.told("a", variable("B__KEY")),
        "opaque: the environment has no variable STREAMFLEET_SECRET_A__B__KEY"
    );
    for name in ["_B__KEY", "key", "", "K-EY", "K=Y"] {
        assert_eq!(
            place.told("acme", variable(name)),
            format!(
                "secret-variable-name: `from_env` is `{name}`, which is not the end of a variable's name (use a name of \
                 upper-case letters, digits and `_`, starting with a letter)"
            )
        );
    }

    let lent = place.sealed("BaseDomain/rival/secret.example.com#tls_key");
    let told = place.told("acme", lent);
    assert_eq!(
        told,
        "secret-sealed-elsewhere: `tls_key` of base domain acme/k.example.com contains a block that was sealed for another \
         field or resource (seal the value again for this field, with `streamfleet secret encrypt`)"
    );
}

#[test]
fn a_link_within_the_folder_is_followed_as_mounted_secrets_have_them() {
    let place = Place::new();
    std::fs::create_dir(place.path("acme/..2026")).unwrap();
    place.write("acme/..2026/key", "hunter2");
    symlink("..2026", place.path("acme/..data")).unwrap();
    symlink("..data/key", place.path("acme/key")).unwrap();
    assert_eq!(place.told("acme", file("key")), "value: hunter2");
}

#[test]
fn what_is_not_here_is_opaque_and_what_is_wrong_is_refused() {
    let place = Place::new();
    place.write("acme/empty", "");
    place.write("acme/binary", [0xff, 0xfe]);
    place.write("acme/large", vec![b'x'; MAX_LENGTH + 1]);
    std::fs::create_dir(place.path("acme/folder")).unwrap();
    let there = "in the secrets folder";
    let as_text = "(put the secret itself there, as text)";
    let cases = [
        (file("none"), format!("secret-file-missing: there is no `acme/none` {there} (put the secret there, readable only \
                                for the user that runs streamfleet)")),
        (file("empty"), format!("secret-unusable: `acme/empty` {there} is empty {as_text}")),
        (file("binary"), format!("secret-unusable: `acme/binary` {there} is not a text in UTF-8 {as_text}")),
        (file("large"), format!("secret-unusable: `acme/large` {there} is not a file of at most 1 MiB {as_text}")),
        (file("folder"), format!("secret-unusable: `acme/folder` {there} is not a file of at most 1 MiB {as_text}")),
        (variable("EMPTY"), format!("secret-unusable: the variable STREAMFLEET_SECRET_ACME__EMPTY is empty {as_text}")),
        (variable("LARGE"), format!("secret-unusable: the variable STREAMFLEET_SECRET_ACME__LARGE is larger than 1 MiB {as_text}")),
        (variable("NONE"), "opaque: the environment has no variable STREAMFLEET_SECRET_ACME__NONE".to_owned()),
        (SecretValue::Encrypted("hunter2".to_owned()), "secret-damaged: the sealed block of `tls_key` of base domain acme/k.example.com is damaged: its BEGIN or END line is missing (copy the whole block again, or seal the value again with `streamfleet secret encrypt`)".to_owned()),
        (SecretValue::Redacted, "secret-redacted: `tls_key` of base domain acme/k.example.com is redacted, and its value \
                                 is unknown (set the value again)".to_owned()),
    ];
    for (value, expected) in cases {
        assert_eq!(place.told("acme", value), expected);
    }
    std::fs::remove_file(place.path("acme/large")).unwrap();
    symlink("large", place.path("acme/large")).unwrap();
    let told = place.told("acme", file("large"));
    assert!(
        told.starts_with("secret-file-unreadable: `acme/large` in the secrets folder can't be read: "),
        "{told}"
    );
    assert!(told.ends_with(" (make it readable for the user that runs streamfleet)"), "{told}");
    std::fs::remove_dir_all(place.path("")).unwrap();
    let folder = place.path("");
    let folder = folder.to_str().unwrap().trim_end_matches('/');
    let expected = format!("opaque: there is no secrets folder `{folder}` here");
    assert_eq!(place.told("acme", file("key")), expected);
}

#[test]
fn a_block_that_no_identity_opens_is_known_by_its_sealed_form() {
    let (place, stranger) = (Place::new(), Place::new());
    let sealed = stranger.sealed(REFERENCE);
    assert_eq!(place.told("acme", sealed.clone()), "opaque: no identity here opens it");
    let SecretValue::Encrypted(armour) = &sealed else { panic!("it was sealed") };
    let expected = SecretMark { fingerprint: None, sealed: sealed_digest(armour) };
    let OpenedSecret::Unavailable { mark, .. } = place.open("acme", sealed.clone()) else {
        panic!("it is opaque")
    };
    assert_eq!(mark, expected);
    assert!(mark.sealed.is_some());
}

#[test]
fn of_two_documents_for_one_resource_the_first_counts() {
    let place = Place::new();
    let twice = vec![
        base_domain("acme", SecretValue::Plain("first".into())),
        base_domain("acme", SecretValue::Plain("second".into())),
    ];
    let mut secrets = place.store.open_all(&documents(twice));
    let Some((_, OpenedSecret::Value { value, .. })) = secrets.opened.pop_first() else {
        panic!("plain values open")
    };
    assert_eq!(value.expose_secret(), "first");
}

#[test]
fn debug_output_holds_no_key_and_no_variable() {
    let place = Place::new();
    let debug = format!("{:?}", place.store);
    assert!(
        debug.starts_with("SecretStore { secrets_dir: ")
            && debug.ends_with("keyring: Keyring(1 identities), .. }"),
        "{debug}"
    );
}

#[test]
fn a_service_finds_files_among_its_credentials() {
    let dir = tempfile::tempdir().unwrap();
    let folder = camino::Utf8PathBuf::try_from(dir.path().to_owned()).unwrap();
    for (name, text) in [("secrets_acme_tls.key", "acme's hunter2"), ("secrets_a-b_tls.key", "a-b's hunter2")]
    {
        std::fs::write(folder.join(name), text).unwrap();
    }
    let named = folder.clone();
    let environment = move |name: &str| (name == "CREDENTIALS_DIRECTORY").then(|| named.as_str().into());
    let store = SecretStore::new(folder.join("secrets"), environment, Keyring::ephemeral().unwrap());
    let place = Place { recipient: String::new(), store, dir };
    assert_eq!(place.told("acme", file("tls.key")), "value: acme's hunter2");
    assert_eq!(place.told("a-b", file("tls.key")), "value: a-b's hunter2");
    assert_eq!(
        place.told("a", file("tls.key")),
        "secret-file-missing: there is no credential `secrets_a_tls.key` (put the secret there, readable only for the user \
         that runs streamfleet)"
    );
    assert!(place.told("acme", file("../x")).starts_with("secret-file-name: "));
}

#[test]
fn what_another_process_seals_to_a_key_that_it_adds_opens_at_once() {
    let place = Place::new();
    let dir = Utf8PathBuf::from_path_buf(place.dir.path().join("state")).unwrap();
    let store =
        SecretStore::new(place.store.secrets_dir.clone(), |_| None, Keyring::load_or_create(&dir).unwrap());
    let mut other = Keyring::load(&dir).unwrap().unwrap();
    drop(other.add_identity().unwrap());
    let place = Place { recipient: other.recipient(), store, ..place };
    assert_eq!(place.told("acme", place.sealed(REFERENCE)), "value: hunter2");
    assert_eq!(place.store.keyring().recipient(), other.recipient());
    // Without readable keys, the old ones stay in use.
    std::fs::remove_file(dir.join("identity.age-keys")).unwrap();
    assert_eq!(place.told("acme", place.sealed(REFERENCE)), "value: hunter2");
}
