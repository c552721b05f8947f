use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde_json::Value;

use super::{Place, config, owner, place, secret};
use crate::catalog::RecordedFleet;
use crate::names::{Digest, ObjectKey};
use crate::plan::ObservedFleet;
use crate::render::{Manifest, Stage};
use crate::target::directory::{FolderLook, FolderView};

const FILE: &str = "acme/eu/deploy/n/configmap-a.yaml";

fn look(place: &Place, last: Option<FolderView>, now: SystemTime) -> (ObservedFleet, FolderView) {
    let look = FolderLook::after(&place.target, last.map(Arc::new), now);
    let (fleet, view) = look.observe(&RecordedFleet::default(), None);
    (fleet, view.unwrap())
}

/// Has the file change after it was read, in a way that doesn't show in its metadata.
fn replace_unseen(view: &mut FolderView) {
    let (folder, name) = FILE.rsplit_once('/').unwrap();
    let file = view.files.get_mut(folder).and_then(|files| files.get_mut(name));
    file.unwrap().digest = Digest::of("before");
}

#[tokio::test]
async fn a_young_file_is_read_again_since_its_metadata_may_hide_a_change() {
    let (place, now) = (place(), SystemTime::now());
    place.create([config("a", "1")]).await;
    let (_, mut view) = look(&place, None, now);
    assert!(view.holds(&place.target, false, now));
    assert_eq!(view.kept(FILE), None);
    replace_unseen(&mut view);
    let later = now + Duration::from_secs(60);
    for time in [now, later, later] {
        assert!(!view.holds(&place.target, false, time));
        assert!(view.holds(&place.target, true, time), "it is trusted");
    }
    let (fleet, _) = look(&place, Some(view), later);
    assert!(fleet.objects[&config("a", "1").0].unchanged);
}

#[tokio::test]
async fn an_older_file_is_known_by_its_metadata() {
    let (place, now) = (place(), SystemTime::now());
    place.create([config("a", "1"), config("b", "1")]).await;
    let later = now + Duration::from_secs(60);
    let (_, view) = look(&place, None, now);
    assert!(view.holds(&place.target, false, later));
    assert_eq!(view.kept(FILE), None, "a plan for another time makes no file older");
    while view.kept(FILE).is_none() {
        assert!(view.holds(&place.target, false, SystemTime::now()));
    }

    let (_, mut view) = look(&place, None, later);
    replace_unseen(&mut view);
    assert!(view.holds(&place.target, false, later));
    let (fleet, view) = look(&place, Some(view), later);
    assert!(fleet.objects[&config("a", "1").0].unchanged, "what differs is read before it is told");
    let kept = view.kept(FILE).unwrap();
    let (_, view) = look(&place, Some(view), later);
    assert_eq!(view.kept(FILE), Some(kept));

    fs::write(place.output.join(FILE), "other").unwrap();
    assert!(!view.holds(&place.target, false, later));
    let (fleet, _) = look(&place, Some(view), later);
    assert!(!fleet.objects[&config("a", "1").0].unchanged);
    assert!(fleet.objects[&config("b", "1").0].unchanged);
}

#[tokio::test]
async fn a_look_that_missed_a_file_or_was_at_another_folder_holds_for_nothing() {
    let (place, now) = (place(), SystemTime::now() + Duration::from_secs(60));
    place.create([config("a", "1")]).await;
    let (_, view) = look(&place, None, now);
    let other = super::place();
    assert!(!view.holds(&other.target, true, now));
    fs::remove_file(place.output.join(FILE)).unwrap();
    assert!(!view.holds(&place.target, false, now));
    let (fleet, view) = look(&place, Some(view), now);
    assert!(fleet.objects.is_empty());
    assert!(!view.holds(&place.target, true, now));
}

#[tokio::test]
async fn what_was_applied_is_known_without_a_record_while_it_is_still_wanted() {
    let place = place();
    place.create([config("a", "1"), secret()]).await;
    let applied = |wanted: [(ObjectKey, Value); 2]| {
        let manifest = |(key, body): (ObjectKey, Value)| {
            (key.clone(), Manifest { key, owner: owner(), stage: Stage::Custom, body: body.into() })
        };
        let wanted = wanted.into_iter().map(manifest).collect();
        let (fleet, _) = FolderLook::once(&place.target).observe(&RecordedFleet::default(), Some(&wanted));
        [config("a", "").0, secret().0].map(|key| fleet.inventory[&key].manifest.clone())
    };
    let [(_, body), (_, hidden)] = [config("a", "1"), secret()];
    assert_eq!(applied([config("a", "1"), secret()]), [Some(body.into()), Some(hidden.clone().into())]);
    assert_eq!(applied([config("a", "2"), secret()]), [None, Some(hidden.into())]);
}

/// The files in it are the same by their metadata.
#[tokio::test]
async fn a_folder_that_became_a_link_is_looked_at_again_and_so_is_one_with_other_rights() {
    let (place, later) = (place(), SystemTime::now() + Duration::from_secs(60));
    place.create([config("a", "1")]).await;
    let (_, view) = look(&place, None, later);
    assert!(view.holds(&place.target, false, later));
    let folder = place.output.join(FILE).parent().unwrap().to_owned();
    let moved = folder.with_file_name("moved");
    fs::rename(&folder, &moved).unwrap();
    symlink(&moved, &folder).unwrap();
    assert!(!view.holds(&place.target, false, later));
    fs::remove_file(&folder).unwrap();
    fs::rename(&moved, &folder).unwrap();
    assert!(view.holds(&place.target, false, later));
    fs::set_permissions(&folder, Permissions::from_mode(0o700)).unwrap();
    assert!(!view.holds(&place.target, false, later));
}
