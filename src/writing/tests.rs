//! API writes on small trees in a folder, through every layer but HTTP.

mod given_back;
mod meanwhile;
mod refusals;
mod secrets;

use std::fs;

use jiff::Timestamp;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use super::*;
use crate::catalog::{self, CachedRecord, DurableRecord, LastGood, RecordedResource, Resource};
use crate::http::problem::{FieldError, ProblemDocument, code};
use crate::http::tags::Tags;
use crate::names::Kind;
use crate::problem::Problem;
use crate::record;
use crate::round::Installation;
use crate::secret::{Keyring, SecretStore};

const ORGANIZATIONS: &str = "\
# Who is there.
apiVersion: streamfleet/v1
kind: Organization
identifier: acme
quotas:
  clusters: 3
---
apiVersion: streamfleet/v1
kind: Organization
identifier: globex
";

const FLEET: &str = "\
apiVersion: streamfleet/v1
kind: Fleet
organization: acme
identifier: eu
infra_type: directory
tenancy_mode: Shared
max_tenants: 2
max_kafka_units: 6   # as many as there are nodes for
deletion_protection: false
";

const ORDERS: &str = "\
# What the shop writes.
apiVersion: streamfleet/v1
kind: Cluster
organization: acme
infrastructure: eu
identifier: orders
cluster_type: kafka
tenancy_mode: shared # as its fleet
kafka_units: 2       # Ada asked for these

# Nobody deletes it by mistake.
deletion_protection: false
advanced_config:
  version: '4.3.1'
  number_of_zones: 3
";

/// A tree with an organization, a fleet and a cluster, and its plan.
struct World {
    folder: TempDir,
    runtime: Runtime,
    writer: Writer,
    made: CurrentPlan,
}

impl World {
    fn new() -> Self {
        Self::with(&[
            ("organizations.yaml", ORGANIZATIONS),
            ("acme/fleets/eu.yaml", FLEET),
            ("acme/clusters/orders.yaml", ORDERS),
        ])
    }

    fn with(files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| Utf8PathBuf::from_path_buf(folder.path().join(name)).unwrap();
        for (file, text) in files {
            let path = path("tree").join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let secrets = SecretStore::new(path("secrets"), |_| None, Keyring::ephemeral().unwrap());
        let installation = Installation {
            state: None,
            secrets: Arc::new(secrets),
            config: Arc::default(),
            output_dir: path("output"),
            software: "1".to_owned(),
            proposed: false,
        };
        let runtime = Runtime::new().unwrap();
        let made = planned(&path("tree"), Arc::new(installation), &runtime);
        let writer = Writer::new(SpecStore::Folder(path("tree")), Arc::default(), || {});
        World { folder, runtime, writer, made }
    }

    fn tree(&self) -> Utf8PathBuf {
        Utf8PathBuf::from_path_buf(self.folder.path().join("tree")).unwrap()
    }

    fn file(&self, path: &str) -> String {
        fs::read_to_string(self.tree().join(path)).unwrap()
    }

    fn put(&self, path: &str, text: &str) {
        fs::write(self.tree().join(path), text).unwrap();
    }

    fn plan(&mut self) {
        let installation = Arc::clone(&self.made.installation);
        let mark = self.writer.mark();
        let CurrentPlan { installation, documents, round, .. } =
            planned(&self.tree(), installation, &self.runtime);
        self.made = CurrentPlan::new(installation, documents, round, mark);
    }

    fn applied(&mut self, key: &str, change: impl FnOnce(&mut RecordedResource)) {
        let mut record = self.applied_record(key);
        change(&mut record);
        let round = Arc::get_mut(&mut self.made.round).unwrap();
        let ResolvedTree { mut recorded, secrets, .. } = ResolvedTree::clone(&round.checked);
        recorded.resources.insert(key.to_owned().try_into().unwrap(), record);
        let (documents, installation) = (&self.made.documents, &self.made.installation);
        let tree = installation.resolve(documents, recorded, secrets, Timestamp::now(), None);
        round.checked = Arc::new(tree);
    }

    fn applied_record(&self, key: &str) -> RecordedResource {
        let key: ResourceKey = key.to_owned().try_into().unwrap();
        let Resource { id, spec, origin, .. } = &*self.made.round.checked.catalog.resources[&key];
        RecordedResource {
            durable: DurableRecord {
                protected: false,
                immutable: catalog::immutable_fields(key.kind, &spec.redacted()),
                path: Some(origin.path.clone()),
                ..DurableRecord::new(*id, Timestamp::UNIX_EPOCH)
            },
            cached: CachedRecord {
                last_good: Some(LastGood::new(spec.redacted().into(), origin.clone())),
                ..CachedRecord::lost(Timestamp::UNIX_EPOCH)
            },
        }
    }

    fn call(&self, key: &str, what: WriteAction) -> Result<Arc<WriteResult>, WriteRefusal> {
        self.write(&request(key, what))
    }

    /// Checks that a refused call changes nothing.
    fn write(&self, request: &WriteRequest) -> Result<Arc<WriteResult>, WriteRefusal> {
        let before = listing(&self.tree());
        let author = Author { name: "Ada".to_owned(), email: "ada@example.com".to_owned() };
        let proposed = self.writer.propose(&self.made, request);
        assert!(listing(&self.tree()) == before, "a proposal was written");
        let written = self.writer.write(&self.made, request, &author);
        match &written {
            Err(refused) => {
                assert!(listing(&self.tree()) == before, "{refused}");
                assert_eq!(proposed.unwrap_err().to_string(), refused.to_string());
            }
            Ok(written) => assert_eq!(proposed.unwrap().1.message, written.message),
        }
        assert!(
            !listing(&self.tree()).iter().any(|(path, _)| path.contains("/.streamfleet-tmp-")),
            "something was left"
        );
        written
    }

    #[track_caller]
    fn refuses(&self, key: &str, what: WriteAction) -> String {
        said(&self.call(key, what).expect_err("it should be refused"))
    }

    fn record(&self, key: &str) -> Value {
        let key: ResourceKey = key.to_owned().try_into().unwrap();
        let checked = &self.made.round.checked;
        let standing = self.made.round.standing(&key);
        let sources = record::RecordSources::default();
        record::Record::new(&checked.catalog.resources[&key], &standing, &checked.recorded, sources).to_json()
    }
}

fn planned(tree: &Utf8Path, installation: Arc<Installation>, runtime: &Runtime) -> CurrentPlan {
    let documents = Arc::new(spec::read(&scan(tree).unwrap(), None));
    let round = installation.plan(&documents, Timestamp::now(), runtime.handle(), None);
    CurrentPlan::new(installation, documents, Arc::new(round.ok().unwrap()), WriteMark::default())
}

fn request(key: &str, what: WriteAction) -> WriteRequest {
    WriteRequest {
        key: key.to_owned().try_into().unwrap(),
        what,
        if_match: None,
        may_limit: true,
        record: None,
    }
}

fn said(refused: &WriteRefusal) -> String {
    let problem = ProblemDocument::from(refused.clone());
    let mut said = format!("{} {}: {}", problem.kind.status, problem.kind.word, problem.detail);
    said.extend(problem.hint.map(|hint| format!("\n  = {hint}")));
    if problem.kind == &code::CAPACITY {
        said.extend(
            problem.errors.iter().filter_map(|error| Some(format!("\n  {}", error.pointer.as_ref()?))),
        );
    }
    if problem.kind == &code::INVALID {
        for FieldError { pointer, detail, hint, file, line } in problem.errors {
            let place = file.as_ref().map(|file| format!(" {file}:{}", line.unwrap_or(0)));
            let (pointer, place) = (pointer.as_deref().unwrap_or("-"), place.unwrap_or_default());
            said.push_str(&format!(
                "\n  {pointer}{place} {detail}\n    = {}",
                hint.as_deref().unwrap_or("-")
            ));
        }
    }
    said + "\n"
}

fn listing(root: &Utf8Path) -> Vec<(String, Vec<u8>)> {
    fn walk(folder: &Utf8Path, found: &mut Vec<(String, Vec<u8>)>) {
        for entry in folder.read_dir_utf8().unwrap() {
            let path = entry.unwrap().path().to_owned();
            let is_link = path.is_symlink();
            found.push((path.to_string(), fs::read(&path).unwrap_or_default()));
            if path.is_dir() && !is_link {
                walk(&path, found);
            }
        }
    }
    let mut found = Vec::new();
    walk(root, &mut found);
    found.sort();
    found
}

fn cluster(name: &str, units: u32) -> Value {
    json!({
        "identifier": name, "cluster_type": "kafka", "kafka_units": units, "provisioner_name": "",
        "tenancy_mode": "Shared", "advanced_config": {"version": "4.3.1", "number_of_zones": "1", "oauth": null},
        "tags": [{"key": "team", "value": "shop"}], "organization": "acme", "cloud_provider": null,
        "region": "eu-central-1", "infrastructure": "eu", "deletion_protection": false,
    })
}

#[test]
fn what_is_made_is_written_as_a_person_would() {
    let world = World::new();
    let written = world.call("Cluster/acme/clicks", WriteAction::Create(cluster("clicks", 1))).unwrap();
    assert_eq!(
        world.file("acme/clusters/clicks.yaml"),
        "\
apiVersion: streamfleet/v1
kind: Cluster
organization: acme
infrastructure: eu
identifier: clicks
cluster_type: kafka
tenancy_mode: Shared
kafka_units: 1
region: eu-central-1
tags:
  - key: team
    value: shop
provisioner_name: \"\"
advanced_config:
  number_of_zones: \"1\"
  version: 4.3.1
deletion_protection: false
"
    );
    assert_eq!(written.message, "Create cluster acme/clicks");
    assert_eq!(written.origin.to_string(), "acme/clusters/clicks.yaml:1");
    assert_eq!(written.id, world.made.round.checked.recorded.id_of(&written.key));
    assert!(written.is_new && written.is_created && written.commit.is_none());
    assert_eq!(written.resource.as_ref().unwrap().hold, None);
    assert_eq!(written.at.as_nanosecond() % 1000, 0);
    // Visible at once, before the next plan.
    assert!(
        world
            .refuses("Cluster/acme/clicks", WriteAction::Create(cluster("clicks", 1)))
            .contains("409 duplicate")
    );
    assert_eq!(world.writer.pending(&world.made)[&written.key].etag, written.etag);
    let written = world.call("Cluster/acme/clicks", WriteAction::Patch(json!({"kafka_units": 2}))).unwrap();
    assert_eq!(written.message, "Set kafka_units of cluster acme/clicks to 2");
}

#[test]
fn every_kind_has_a_place_of_its_own() {
    let mut world = World::new();
    for (key, body, path) in [
        ("Organization/umbrella/umbrella", json!({"identifier": "umbrella"}), "umbrella.yaml"),
        (
            "Fleet/acme/us",
            json!({"identifier": "us", "infra_type": "directory", "tenancy_mode": "Shared", "max_tenants": 1, "max_kafka_units": 1}),
            "acme/fleets/us.yaml",
        ),
        (
            "CloudAccount/acme/s3",
            json!({"identifier": "s3", "provider": "aws", "credentials": "key"}),
            "acme/cloud-accounts/s3.yaml",
        ),
        (
            "IdentityProvider/acme/sso",
            json!({"identifier": "sso", "issuer": "https://id.example.com", "jwks_uri": "https://id.example.com/keys", "audience": "kafka"}),
            "acme/identity-providers/sso.yaml",
        ),
    ] {
        let written = world.call(key, WriteAction::Create(body)).unwrap();
        assert_eq!(written.path.as_str(), path);
        assert!(world.file(path).contains(&format!("\nkind: {}\n", written.key.kind)));
    }
    world.plan();
    assert!(world.writer.pending(&world.made).is_empty(), "they were read");
    assert!(!world.made.round.plan.problems.iter().any(Problem::is_error));
    // Appended to a file that already has another document.
    let path = "acme/clusters/clicks.yaml";
    world.put(path, &ORDERS.replace("identifier: orders", "identifier: others"));
    world.plan();
    world.call("Cluster/acme/clicks", WriteAction::Create(cluster("clicks", 1))).unwrap_err();
    world.call("Fleet/acme/eu", WriteAction::Patch(json!({"max_tenants": 3}))).unwrap();
    world.call("Cluster/acme/clicks", WriteAction::Create(cluster("clicks", 1))).unwrap();
    let text = world.file(path);
    assert!(text.contains("identifier: others") && text.contains("---\napiVersion"), "{text}");
}

#[test]
fn the_key_of_what_is_made_is_what_its_body_says() {
    let acme: crate::names::Identifier = "acme".parse().unwrap();
    let key = |kind, organization, body: Value| key_of(kind, organization, &body).map(String::from);
    let named = json!({"organization": "acme", "identifier": "orders"});
    assert_eq!(key(Kind::Cluster, None, named.clone()).unwrap(), "Cluster/acme/orders");
    assert_eq!(key(Kind::Fleet, Some(&acme), json!({"identifier": "eu"})).unwrap(), "Fleet/acme/eu");
    assert_eq!(key(Kind::Organization, None, named).unwrap(), "Organization/orders/orders");
    let domain = |provider: &str| json!({"domain": "K.example.com", "dns_provider": provider});
    for (provider, expected) in
        [("None", "k.example.com"), ("external-dns", "acme.k.example.com"), ("", "k.example.com")]
    {
        let found = key(Kind::BaseDomain, Some(&acme), domain(provider)).unwrap();
        assert_eq!(found, format!("BaseDomain/acme/{expected}"));
    }
    let refused = [
        key_of(Kind::Cluster, None, &json!([])),
        key_of(Kind::Cluster, None, &json!({"identifier": "orders"})),
        key_of(Kind::Cluster, Some(&acme), &json!({"identifier": "../orders"})),
        key_of(Kind::BaseDomain, Some(&acme), &json!({"domain": "com"})),
    ];
    insta::assert_snapshot!(refused.map(|refused| said(&refused.unwrap_err())).join(""));
}

#[test]
fn a_change_is_one_line_in_the_file() {
    let world = World::new();
    let orders = |what| world.call("Cluster/acme/orders", what).unwrap();
    let written = orders(WriteAction::Patch(json!({"kafka_units": 3})));
    let expected = ORDERS.replace("kafka_units: 2       # Ada", "kafka_units: 3       # Ada");
    assert_eq!(world.file("acme/clusters/orders.yaml"), expected);
    assert_eq!(written.message, "Set kafka_units of cluster acme/orders to 3");
    let same = json!({"kafka_units": 3, "tenancy_mode": "Shared", "advanced_config": {"number_of_zones": "3"}, "region": null});
    let written = orders(WriteAction::Patch(same));
    assert!(!written.is_new && world.file("acme/clusters/orders.yaml") == expected);

    let patch =
        json!({"kafka_units": 2, "tags": [{"key": "a", "value": "b"}], "advanced_config": {"storage": {}}});
    assert_eq!(
        orders(WriteAction::Patch(patch)).message,
        "Change kafka_units and tags of cluster acme/orders"
    );
    assert_eq!(
        orders(WriteAction::Patch(json!({"tags": null}))).message,
        "Remove tags of cluster acme/orders"
    );
    assert_eq!(world.file("acme/clusters/orders.yaml"), ORDERS);
}

#[test]
fn what_was_read_may_be_given_back_changed() {
    let world = World::new();
    let mut record = world.record("Cluster/acme/orders");
    record["kafka_units"] = json!(3);
    let put = |body: &Value, record: Option<Value>| {
        world.write(&WriteRequest {
            record,
            ..request("Cluster/acme/orders", WriteAction::Replace(body.clone()))
        })
    };
    let known = Some(world.record("Cluster/acme/orders"));
    assert_eq!(put(&record, known.clone()).unwrap().message, "Set kafka_units of cluster acme/orders to 3");
    let expected = ORDERS.replace("kafka_units: 2       # Ada", "kafka_units: 3       # Ada");
    assert_eq!(world.file("acme/clusters/orders.yaml"), expected);
    // Omitted fields return to their defaults.
    let fields = record.as_object_mut().unwrap();
    fields.remove("deletion_protection");
    fields["advanced_config"].as_object_mut().unwrap().remove("number_of_zones");
    put(&record, known.clone()).unwrap();
    let text = world.file("acme/clusters/orders.yaml");
    assert!(!text.contains("deletion_protection") && !text.contains("number_of_zones"), "{text}");
    // Outdated outputs are accepted, but never another id.
    record["status"] = json!("Failed");
    record["id"] = json!("another");
    record["metadata"] = json!({});
    let refused = [put(&record, known), put(&record, None)].map(|refused| said(&refused.unwrap_err()));
    insta::assert_snapshot!(refused.join(""));
}

#[test]
fn every_field_of_a_record_is_either_given_or_told() {
    let world = World::new();
    for key in ["Organization/acme/acme", "Fleet/acme/eu", "Cluster/acme/orders"] {
        let record = world.record(key);
        let key: ResourceKey = key.to_owned().try_into().unwrap();
        let spec = world.made.round.checked.catalog.resources[&key].spec.redacted();
        let told = record::output_fields(key.kind);
        for name in record.as_object().unwrap().keys() {
            assert_ne!(spec.get(name).is_some(), told.contains(name), "{name} of {key}");
        }
    }
}

#[test]
fn a_stale_tag_is_refused() {
    let mut world = World::new();
    let tag = |world: &World| {
        let checked = &world.made.round.checked;
        let key = "Cluster/acme/orders".to_owned().try_into().unwrap();
        etag(find(&world.made.documents, &checked.recorded, &key).unwrap(), &checked.secrets)
    };
    let first = tag(&world);
    let patch = |world: &World, units: u32, tag: &crate::names::Digest| {
        let what = WriteAction::Patch(json!({"kafka_units": units}));
        world.write(&WriteRequest {
            if_match: Some(Tags::These(vec![tag.clone()])),
            ..request("Cluster/acme/orders", what)
        })
    };
    let written = patch(&world, 3, &first).unwrap();
    let second = written.etag.clone().unwrap();
    assert_ne!(first, second);
    // Compared with the file, not with the last plan.
    let refused = said(&patch(&world, 2, &first).unwrap_err());
    assert!(refused.starts_with("412 stale: "), "{refused}");
    world.plan();
    assert_eq!(tag(&world), second);
    // Formatting doesn't change the tag.
    world.put(
        "acme/clusters/orders.yaml",
        &world.file("acme/clusters/orders.yaml").replace("'4.3.1'", "4.3.1"),
    );
    assert!(patch(&world, 2, &second).unwrap().is_new);
    world.put("acme/clusters/orders.yaml", "kind: Cluster\n");
    assert!(matches!(patch(&world, 1, &second), Err(WriteRefusal::NotThere(_))));
    // Moved to another file that no plan has read yet.
    world.put("moved.yaml", &ORDERS.replace("kafka_units: 2", "kafka_units: 3"));
    assert_eq!(patch(&world, 1, &second).unwrap().path.as_str(), "moved.yaml");
}

#[test]
fn a_document_goes_and_the_file_with_the_last_one() {
    let world = World::new();
    let both = format!("{FLEET}---\n{ORDERS}");
    world.put("acme/fleets/eu.yaml", &both);
    fs::remove_file(world.tree().join("acme/clusters/orders.yaml")).unwrap();
    let mut world = World { made: world.made, ..world };
    world.plan();
    let written = world.call("Cluster/acme/orders", WriteAction::Delete).unwrap();
    assert_eq!(written.message, "Delete cluster acme/orders");
    assert!(written.resource.is_none() && written.etag.is_none());
    assert_eq!(world.file("acme/fleets/eu.yaml"), FLEET);
    world.call("Fleet/acme/eu", WriteAction::Delete).unwrap();
    assert!(!world.tree().join("acme/fleets/eu.yaml").exists());
    assert!(
        world
            .refuses("Fleet/acme/eu", WriteAction::Delete)
            .starts_with("404 not_found: there is no fleet acme/eu\n")
    );
}
