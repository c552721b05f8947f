mod looks;
mod trouble;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use camino::{Utf8Path, Utf8PathBuf};
use serde_json::{Value, json};
use tempfile::TempDir;
use uuid::Uuid;

use super::*;
use crate::catalog::RecordedFleet;
use crate::names::{Digest, Json, Kind, ObjectKey, ResourceKey};
use crate::plan::{ObservedFleet, ObservedObject, Reach};
use crate::render::{Manifest, Stage};
use crate::target::{Intent, ObjectWrite, ResourceMark};

struct Place {
    _dir: TempDir,
    output: Utf8PathBuf,
    target: DirectoryTarget,
}

fn fleet() -> FleetKey {
    "acme/eu".to_owned().try_into().unwrap()
}

fn place() -> Place {
    let dir = tempfile::tempdir().unwrap();
    let output = Utf8PathBuf::from_path_buf(dir.path().join("output")).unwrap();
    let target = DirectoryTarget::new(output.clone(), fleet(), "deploy".into(), Uuid::nil());
    Place { _dir: dir, output, target }
}

fn owner() -> ResourceKey {
    ResourceKey::new(Kind::Cluster, &"acme".parse().unwrap(), "orders")
}

fn key(kind: &str, namespace: Option<&str>, name: &str) -> ObjectKey {
    ObjectKey {
        namespace: namespace.map(str::to_owned),
        kind: kind.into(),
        name: name.into(),
        api_version: "v1".into(),
    }
}

fn config(name: &str, text: &str) -> (ObjectKey, Value) {
    let key = key("ConfigMap", Some("n"), name);
    let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "n"}, "data": {"text": text}});
    (key, body)
}

fn secret() -> (ObjectKey, Value) {
    let key = key("Secret", Some("n"), "tls");
    let body = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "tls", "namespace": "n"},
        "data": {"tls.key": "aHVudGVyMg=="},
    });
    (key, body)
}

fn write((key, filled): (ObjectKey, Value)) -> ObjectWrite {
    ObjectWrite {
        key,
        owner: owner(),
        applied: Digest::of_json(&filled),
        filled,
        uid: None,
        recreate: false,
        adopts: false,
    }
}

fn intent(writes: impl IntoIterator<Item = (ObjectKey, Value)>, deletes: &[&ObjectKey]) -> Intent {
    Intent {
        writes: writes.into_iter().map(write).collect(),
        deletes: deletes.iter().map(|&key| key.clone()).collect(),
        marks: [(owner(), mark(true))].into(),
    }
}

fn mark(protected: bool) -> ResourceMark {
    ResourceMark { id: Uuid::from_u128(7), protected }
}

impl Place {
    async fn create(&self, objects: impl IntoIterator<Item = (ObjectKey, Value)>) {
        let objects: Vec<_> = objects.into_iter().collect();
        let mut session = self.target.begin(intent(objects.clone(), &[])).unwrap();
        for (key, _) in &objects {
            session.apply(key, None).await.unwrap();
        }
        session.finish(|_| Some(mark(true))).await.unwrap();
    }

    fn observe(&self, wanted: impl IntoIterator<Item = ObjectKey>) -> ObservedFleet {
        let manifest = |key: ObjectKey| {
            (key.clone(), Manifest { key, owner: owner(), stage: Stage::Custom, body: Value::Null.into() })
        };
        let wanted = wanted.into_iter().map(manifest).collect();
        FolderLook::once(&self.target).observe(&RecordedFleet::default(), Some(&wanted)).0
    }

    fn object(&self, key: &ObjectKey) -> Option<ObservedObject> {
        self.observe([key.clone()]).objects.remove(key)
    }

    fn path(&self, path: &str) -> Utf8PathBuf {
        self.output.join("acme/eu").join(path)
    }

    fn tree(&self) -> String {
        let mut lines = Vec::new();
        list(&self.output, &self.output, &mut lines);
        lines.sort();
        lines.join("\n")
    }
}

fn list(root: &Utf8Path, folder: &Utf8Path, lines: &mut Vec<String>) {
    for entry in folder.read_dir_utf8().into_iter().flatten().flatten() {
        let path = entry.path();
        let metadata = fs::symlink_metadata(path).unwrap();
        let slash = if metadata.is_dir() { "/" } else { "" };
        // Other users' permissions depend on the umask, except where we remove them.
        let closed = if metadata.permissions().mode() & 0o077 == 0 { " closed" } else { "" };
        lines.push(format!("{}{slash}{closed}", path.strip_prefix(root).unwrap()));
        if metadata.is_dir() {
            list(root, path, lines);
        }
    }
}

#[tokio::test]
async fn each_object_is_a_file_and_secrets_are_their_owners_only() {
    let place = place();
    let namespace = (key("Namespace", None, "n"), json!({"apiVersion": "v1", "kind": "Namespace"}));
    place.create([config("a", "1"), secret(), namespace]).await;
    insta::assert_snapshot!(place.tree(), @"
    acme/
    acme/eu/
    acme/eu/.streamfleet-inventory.json
    acme/eu/deploy/
    acme/eu/deploy/_cluster/
    acme/eu/deploy/_cluster/namespace-n.yaml
    acme/eu/deploy/n/
    acme/eu/deploy/n/configmap-a.yaml
    acme/eu/deploy/n/secrets/ closed
    acme/eu/deploy/n/secrets/.gitignore closed
    acme/eu/deploy/n/secrets/secret-tls.yaml closed
    ");
    insta::assert_snapshot!(fs::read_to_string(place.path("deploy/n/configmap-a.yaml")).unwrap(), @r#"
    # Written by streamfleet for cluster acme/orders. Edits count as drift and are undone.
    apiVersion: v1
    data:
      text: "1"
    kind: ConfigMap
    metadata:
      name: a
      namespace: "n"
    "#);
    let text = fs::read_to_string(place.path("deploy/n/secrets/secret-tls.yaml")).unwrap();
    let random = text.lines().nth(1).unwrap().rsplit(' ').next().unwrap();
    assert_eq!(random.len(), 32);
    assert_eq!(fs::read_to_string(place.path("deploy/n/secrets/.gitignore")).unwrap(), "*\n");
    let inventory = fs::read_to_string(place.path(inventory::FILE)).unwrap();
    assert!(!inventory.contains("aHVudGVyMg"), "{inventory}");
}

#[tokio::test]
async fn what_was_written_is_seen_as_ours_and_unchanged() {
    let place = place();
    assert_eq!(place.observe([]).reach, Reach::Reached);
    assert_eq!(place.object(&config("a", "1").0), None);
    assert!(!place.output.exists(), "looking leaves nothing behind");
    place.create([config("a", "1"), secret()]).await;
    let (key, body) = config("a", "1");
    let seen = place.object(&key).unwrap();
    assert!(seen.ours && seen.unchanged);
    assert_eq!(seen.manifest, Some(body.clone().into()));
    let fleet = place.observe([]);
    let known = &fleet.inventory[&key];
    assert_eq!((&known.owner, known.uid.as_ref()), (&owner(), Some(&seen.uid)));
    assert_eq!(known.applied, Digest::of_json(&body));
}

#[tokio::test]
async fn a_hand_edit_is_drift_and_never_shows_a_secret() {
    let place = place();
    place.create([config("a", "1"), secret()]).await;
    let file = place.path("deploy/n/secrets/secret-tls.yaml");
    let edited = "apiVersion: v1\nkind: Secret\nmetadata:\n  name: tls\n  annotations: {last: hunter2}\n\
                  data: {tls.key: aHVudGVyMg==, more: aHVudGVyMg==}\nstringdata: hunter2\n";
    fs::write(&file, edited).unwrap();
    let seen = place.object(&secret().0).unwrap();
    assert!(seen.ours && !seen.unchanged);
    let trace = json!({"$secret": {"present": true}});
    let expected = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "tls", "annotations": {"last": trace}},
        "data": {"tls.key": trace, "more": trace},
        "stringdata": trace,
    });
    assert_eq!(seen.manifest, Some(Json::from(expected)));

    fs::write(place.path("deploy/n/configmap-a.yaml"), "a: [").unwrap();
    let seen = place.object(&config("a", "1").0).unwrap();
    assert_eq!((seen.ours, seen.unchanged, seen.manifest), (true, false, None));
}

#[tokio::test]
async fn a_change_replaces_the_file_that_was_planned_for_and_no_other() {
    let place = place();
    place.create([config("a", "1")]).await;
    let (key, _) = config("a", "1");
    let planned = place.object(&key).unwrap().uid;
    let file = place.path("deploy/n/configmap-a.yaml");
    fs::write(&file, "edited: true\n").unwrap();

    let mut session = place.target.begin(intent([config("a", "2")], &[])).unwrap();
    let error = session.apply(&key, Some(&planned)).await.unwrap_err();
    assert!(matches!(error, TargetError::Changed { .. }), "{error}");
    session.finish(|_| Some(mark(true))).await.unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), "edited: true\n");

    let edited = place.object(&key).unwrap().uid;
    let mut session = place.target.begin(intent([config("a", "2")], &[])).unwrap();
    let uid = session.apply(&key, Some(&edited)).await.unwrap();
    session.finish(|_| Some(mark(true))).await.unwrap();
    let seen = place.object(&key).unwrap();
    assert_eq!((seen.unchanged, seen.uid, seen.manifest), (true, uid, Some(config("a", "2").1.into())));
}

#[tokio::test]
async fn deleting_takes_our_files_and_our_empty_folders_and_nothing_else() {
    let place = place();
    place.create([config("a", "1"), config("b", "1"), secret()]).await;
    let theirs = place.path("deploy/n/README.md");
    fs::write(&theirs, "mine").unwrap();
    let keys = [config("a", "1").0, config("b", "1").0, secret().0];
    let uids: Vec<String> = keys.iter().map(|key| place.object(key).unwrap().uid).collect();
    fs::write(place.path("deploy/n/configmap-b.yaml"), "edited: true\n").unwrap();

    let mut session = place.target.begin(intent([], &keys.each_ref())).unwrap();
    session.delete(&keys[0], Some(&uids[0])).await.unwrap();
    let error = session.delete(&keys[1], Some(&uids[1])).await.unwrap_err();
    assert!(matches!(error, TargetError::Changed { .. }), "{error}");
    session.delete(&keys[2], Some(&uids[2])).await.unwrap();
    session.delete(&config("never", "made").0, None).await.unwrap();
    session.finish(|_| Some(mark(true))).await.unwrap();
    insta::assert_snapshot!(place.tree(), @"
    acme/
    acme/eu/
    acme/eu/.streamfleet-inventory.json
    acme/eu/deploy/
    acme/eu/deploy/n/
    acme/eu/deploy/n/README.md
    acme/eu/deploy/n/configmap-b.yaml
    ");

    let edited = place.object(&keys[1]).unwrap();
    let mut session = place.target.begin(intent([], &[&keys[1]])).unwrap();
    session.delete(&keys[1], Some(&edited.uid)).await.unwrap();
    session.finish(|_| None).await.unwrap();
    assert_eq!(fs::read_to_string(&theirs).unwrap(), "mine");
    fs::remove_file(&theirs).unwrap();
    place.target.begin(intent([], &[])).unwrap().finish(|_| None).await.unwrap();
    assert_eq!(place.tree(), "", "once it is empty, our folder goes too");
}

#[tokio::test]
async fn when_the_path_of_the_fleet_changes_its_files_move() {
    let mut place = place();
    place.create([config("a", "1"), config("b", "1")]).await;
    place.target = DirectoryTarget::new(place.output.clone(), fleet(), "elsewhere/deep".into(), Uuid::nil());
    let (key, _) = config("a", "1");
    let seen = place.object(&key).unwrap();
    assert!(seen.ours && !seen.unchanged);
    let other = config("b", "1").0;
    let other_uid = place.object(&other).unwrap().uid;
    let mut session = place.target.begin(intent([config("a", "1")], &[&other])).unwrap();
    session.apply(&key, Some(&seen.uid)).await.unwrap();
    session.delete(&other, Some(&other_uid)).await.unwrap();
    session.finish(|_| Some(mark(true))).await.unwrap();
    assert!(place.object(&key).unwrap().unchanged);
    insta::assert_snapshot!(place.tree(), @"
    acme/
    acme/eu/
    acme/eu/.streamfleet-inventory.json
    acme/eu/elsewhere/
    acme/eu/elsewhere/deep/
    acme/eu/elsewhere/deep/n/
    acme/eu/elsewhere/deep/n/configmap-a.yaml
    ");
}

#[tokio::test]
async fn an_object_in_another_version_of_its_api_is_the_same_object() {
    let place = place();
    let (old, body) = config("a", "1");
    let old = ObjectKey { api_version: "example.com/v1beta2".into(), ..old };
    let new = ObjectKey { api_version: "example.com/v1".into(), ..old.clone() };
    place.create([(old.clone(), body.clone())]).await;
    let fleet = place.observe([new.clone()]);
    assert_eq!(fleet.objects.keys().collect::<Vec<_>>(), [&old], "it is not foreign to itself");
    let mut session = place.target.begin(intent([(new.clone(), body)], &[])).unwrap();
    session.apply(&new, Some(&fleet.objects[&old].uid)).await.unwrap();
    session.delete(&old, Some("another")).await.unwrap_err();
    session.finish(|_| Some(mark(true))).await.unwrap();
    assert_eq!(place.observe([]).inventory.keys().collect::<Vec<_>>(), [&new]);
}

#[tokio::test]
async fn ids_and_protection_are_in_the_folder_too() {
    let place = place();
    place.create([config("a", "1")]).await;
    let read = || place.target.marks().unwrap()[&owner()];
    assert_eq!(read(), mark(true));
    // Protection lasts until the round that lifts it has finished.
    let lifting = Intent { marks: [(owner(), mark(false))].into(), ..Intent::default() };
    let session = place.target.begin(lifting).unwrap();
    assert!(read().protected);
    session.finish(|_| Some(mark(false))).await.unwrap();
    assert!(!read().protected);
}
