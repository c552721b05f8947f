//! Crashes, links, foreign files and damage.

use std::os::unix::fs::symlink;

use super::*;
use crate::target::Task;

#[tokio::test]
async fn a_foreign_file_is_reported_and_left_alone() {
    let place = place();
    let file = place.path("deploy/n/configmap-a.yaml");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    let (key, body) = config("a", "1");
    fs::write(&file, "theirs: true\n").unwrap();
    let seen = place.object(&key).unwrap();
    assert_eq!((seen.ours, seen.unchanged, seen.manifest), (false, false, None));

    for uid in [None, Some(seen.uid.as_str())] {
        let mut session = place.target.begin(intent([(key.clone(), body.clone())], &[])).unwrap();
        let error = session.apply(&key, uid).await.unwrap_err();
        assert!(matches!(error, TargetError::Foreign { .. }), "{error}");
        // As after a crash: the intent alone doesn't make the file ours.
        assert!(!place.object(&key).unwrap().ours);
        session.finish(|_| Some(mark(true))).await.unwrap();
        assert!(!place.object(&key).unwrap().ours);
    }
    let mut session = place.target.begin(intent([], &[&key])).unwrap();
    session.delete(&key, Some(&seen.uid)).await.unwrap();
    session.finish(|_| None).await.unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), "theirs: true\n");
}

#[tokio::test]
async fn links_are_never_followed() {
    let place = place();
    place.create([config("a", "1")]).await;
    let (key, _) = config("a", "1");
    let outside = place.output.parent().unwrap().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("file"), "theirs: true\n").unwrap();

    let file = place.path("deploy/n/configmap-a.yaml");
    let planned = place.object(&key).unwrap().uid;
    fs::remove_file(&file).unwrap();
    symlink(outside.join("file"), &file).unwrap();
    assert!(!place.object(&key).unwrap().ours);
    let mut session = place.target.begin(intent([config("a", "2")], &[])).unwrap();
    let error = session.apply(&key, Some(&planned)).await.unwrap_err();
    assert_eq!(error.to_string(), format!("cannot use `{file}`: it is a link or not a file"));
    session.finish(|_| Some(mark(true))).await.unwrap();
    let mut session = place.target.begin(intent([], &[&key])).unwrap();
    assert!(session.delete(&key, Some(&planned)).await.is_err());

    fs::remove_dir_all(place.path("deploy")).unwrap();
    symlink(&outside, place.path("deploy")).unwrap();
    assert_eq!(place.object(&key).unwrap().obstacle.as_deref(), Some("deploy"));
    let mut session = place.target.begin(intent([config("a", "2")], &[])).unwrap();
    let error = session.apply(&key, None).await.unwrap_err();
    let linked = place.path("deploy");
    assert_eq!(error.to_string(), format!("cannot use `{linked}`: it is a link or not a folder"));
    let names: Vec<_> = fs::read_dir(&outside).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["file"]);
    assert_eq!(fs::read_to_string(outside.join("file")).unwrap(), "theirs: true\n");
}

#[tokio::test]
async fn a_crash_between_writing_a_file_and_the_inventory_loses_nothing() {
    let place = place();
    let (key, _) = config("a", "1");
    let other = config("b", "1").0;
    let mut session = place.target.begin(intent([config("a", "1"), config("b", "1")], &[])).unwrap();
    session.apply(&key, None).await.unwrap();
    drop(session);
    let fleet = place.observe([key.clone(), other.clone()]);
    assert!(fleet.objects[&key].ours && fleet.objects[&key].unchanged);
    assert_eq!(fleet.inventory[&key].uid.as_ref(), Some(&fleet.objects[&key].uid));
    assert_eq!((fleet.objects.get(&other), &fleet.inventory[&other].uid), (None, &None));

    let uid = fleet.objects[&key].uid.clone();
    let leftover = place.path("deploy/n/.streamfleet-tmp-x1");
    fs::write(&leftover, "half").unwrap();
    let mut session = place.target.begin(intent([config("a", "2")], &[&other])).unwrap();
    assert!(!leftover.exists());
    session.apply(&key, Some(&uid)).await.unwrap();
    session.delete(&other, None).await.unwrap();
    drop(session);
    let fleet = place.observe([key.clone()]);
    assert_eq!(fleet.objects[&key].manifest, Some(config("a", "2").1.into()));
    assert_eq!(fleet.inventory.keys().collect::<Vec<_>>(), [&key]);

    let mut session = place.target.begin(intent([], &[&key])).unwrap();
    session.delete(&key, Some(&fleet.objects[&key].uid)).await.unwrap();
    drop(session);
    assert!(place.observe([]).inventory.is_empty(), "a deletion that is confirmed is forgotten");
    place.target.begin(Intent::default()).unwrap().finish(|_| None).await.unwrap();
    assert_eq!(place.tree(), "");
}

#[tokio::test]
async fn what_cant_be_read_makes_the_fleet_unreachable_and_is_not_nothing() {
    let inventory = |place: &Place, text: &str| fs::write(place.path(inventory::FILE), text).unwrap();
    let stray = |place: &Place| {
        let text = fs::read_to_string(place.path(inventory::FILE)).unwrap();
        fs::write(place.path(inventory::FILE), text.replace("deploy/n/configmap-a.yaml", "../../x")).unwrap();
    };
    type Harm<'a> = &'a dyn Fn(&Place);
    let cases: [(Harm, &str); 5] = [
        (
            &|place| inventory(place, "{"),
            "cannot read the inventory `acme/eu/.streamfleet-inventory.json`: it is damaged (EOF while parsing an object \
             at line 1 column 1); restore the inventory from a backup or from version control; or stop what applies the fleet's \
             folder, move all of the folder's content away and apply again",
        ),
        (
            &|place| inventory(place, "{\"version\": 2, \"new\": {}}"),
            "cannot read the inventory `acme/eu/.streamfleet-inventory.json`: a newer version of streamfleet wrote \
             it (version 2, this one reads up to 1); install that version again",
        ),
        (
            &|place| inventory(place, "{\"version\": 1, \"fleet\": \"acme/us\"}"),
            "cannot use the inventory `acme/eu/.streamfleet-inventory.json`: it belongs to fleet acme/us; move the folder \
             back to its fleet's place, or empty it",
        ),
        (
            &stray,
            "cannot read the inventory `acme/eu/.streamfleet-inventory.json`: it is damaged (`../../x` leads out of the \
             folder); restore the inventory from a backup or from version control; or stop what applies the fleet's \
             folder, move all of the folder's content away and apply again",
        ),
        (
            &|place| {
                fs::remove_file(place.path(inventory::FILE)).unwrap();
                symlink("/dev/null", place.path(inventory::FILE)).unwrap();
            },
            "cannot use `acme/eu/.streamfleet-inventory.json`: it is a link or not a file; move it away; if it is a link, \
             put what it leads to in its place, because only `output_dir` itself may be a link; then apply again",
        ),
    ];
    for (harm, expected) in cases {
        let place = place();
        place.create([config("a", "1")]).await;
        harm(&place);
        let fleet = place.observe([config("a", "1").0]);
        let Reach::Unreachable { reason, hint, last_seen: None, .. } = fleet.reach else {
            panic!("{:?}", fleet.reach)
        };
        assert_eq!(format!("{reason}; {hint}").replace(place.output.as_str(), "OUT"), expected);
        assert!(fleet.objects.is_empty() && fleet.inventory.is_empty());
        assert!(place.target.begin(intent([config("a", "2")], &[])).is_err());
        let file = fs::read_to_string(place.path("deploy/n/configmap-a.yaml")).unwrap();
        assert!(file.contains("text: "), "{file}");
    }
}

#[tokio::test]
async fn names_that_lead_out_of_the_folder_are_refused() {
    let place = place();
    let names = [("n", "../../x"), ("..", "a"), ("n/m", "a"), (".git", "a"), ("n", "a\nb"), ("", "a")];
    for (namespace, name) in names {
        let key = key("ConfigMap", Some(namespace), name);
        let mut session = place.target.begin(intent([(key.clone(), json!({}))], &[])).unwrap();
        let error = session.apply(&key, None).await.unwrap_err();
        assert!(matches!(error, TargetError::UnsafeName { .. }), "{error}");
        session.finish(|_| None).await.unwrap();
        assert_eq!(place.tree(), "");
    }
    let long = key("ConfigMap", Some("n"), &"a".repeat(250));
    assert!(layout::file("deploy".into(), &long).is_err());
}

#[tokio::test]
async fn who_reads_plans_and_records_hears_nothing_of_where_the_output_folder_is() {
    use crate::target::{Session, Target};
    let place = place();
    let (key, body) = config("a", "1");
    let elsewhere = place.output.parent().unwrap().join("elsewhere");
    fs::create_dir_all(&elsewhere).unwrap();
    fs::create_dir_all(&place.output).unwrap();
    symlink(&elsewhere, place.output.join("acme")).unwrap();
    let expected = "cannot use `acme`: it is a link or not a folder";
    let Reach::Unreachable { reason, .. } = place.observe([key.clone()]).reach else { panic!() };
    assert_eq!(reason, expected);
    let target = Target::Directory(place.target.clone());
    let begin = async || target.begin(intent([(key.clone(), body.clone())], &[])).await;
    assert_eq!(begin().await.err().unwrap().to_string(), expected);

    fs::remove_file(place.output.join("acme")).unwrap();
    let mut session = begin().await.unwrap();
    fs::create_dir(place.path("deploy")).unwrap();
    symlink(&elsewhere, place.path("deploy/n")).unwrap();
    session.prepare([&key]).await.unwrap();
    session.start(0, Task { object: key.clone(), uid: None, deletes: false });
    let (_, taken) = session.next().await.unwrap();
    let told = taken.unwrap_err().to_string();
    assert_eq!(told, "cannot use `acme/eu/deploy/n`: it is a link or not a folder");
    assert!(matches!(session, Session::Directory(_)));

    let at = |path: &Utf8Path, error: std::io::Error| TargetError::io("write", path)(error);
    let twice = std::io::Error::new(ErrorKind::PermissionDenied, format!("denied at path {}", place.output));
    let told = at(&place.path("n/a.yaml"), twice).below(&place.output).to_string();
    assert_eq!(told, "cannot write `acme/eu/n/a.yaml`: permission denied");
    let told = at(&place.output, std::io::Error::from_raw_os_error(13)).below(&place.output).to_string();
    assert_eq!(told, "cannot write `output_dir`: Permission denied (os error 13)");

    // The same failure of the next attempt, with another temporary file, is not logged again.
    let failed = |name: &str| {
        let denied = std::io::Error::new(ErrorKind::PermissionDenied, format!("denied at path {name}"));
        at(&place.path("n/a.yaml"), denied).below(&place.output)
    };
    assert!(place.target.is_new(&failed("tmp-1")) && !place.target.is_new(&failed("tmp-2")));
}

#[test]
fn errors_say_what_was_attempted_why_it_failed_and_what_to_do() {
    let path = || Utf8PathBuf::from("out/acme/eu/n/configmap-a.yaml");
    let io_of =
        |attempted, code| TargetError::io(attempted, &path())(std::io::Error::from_raw_os_error(code));
    let io = |code| io_of("write", code);
    let object = key("ConfigMap", Some("n"), "../a");
    let cases = [
        (
            io(28),
            "cannot write `out/acme/eu/n/configmap-a.yaml`: No space left on device (os error 28)",
            "free some space and apply again; finished steps are not repeated",
        ),
        (
            io(13),
            "cannot write `out/acme/eu/n/configmap-a.yaml`: Permission denied (os error 13)",
            "let the user that runs streamfleet write there, or set another folder with `output_dir`",
        ),
        (
            io(30),
            "cannot write `out/acme/eu/n/configmap-a.yaml`: Read-only file system (os error 30)",
            "mount the file system writable, or set another folder with `output_dir`",
        ),
        (
            io_of("read", 13),
            "cannot read `out/acme/eu/n/configmap-a.yaml`: Permission denied (os error 13)",
            "let the user that runs streamfleet read it and the folders on the way there, or set another folder with \
             `output_dir`; then plan again",
        ),
        (
            io_of("look for", 5),
            "cannot look for `out/acme/eu/n/configmap-a.yaml`: Input/output error (os error 5)",
            "check the disk and the permissions of the folders on the way there, then plan again",
        ),
        (
            TargetError::Foreign { path: path() },
            "cannot write `out/acme/eu/n/configmap-a.yaml`: a file that streamfleet did not create is there",
            "move it away if it isn't needed, then apply again",
        ),
        (
            TargetError::Changed { attempted: "delete", path: path() },
            "cannot delete `out/acme/eu/n/configmap-a.yaml`: it changed since the plan was made",
            "plan again and check the difference",
        ),
        (
            TargetError::NotPlain { path: path(), expected: "file" },
            "cannot use `out/acme/eu/n/configmap-a.yaml`: it is a link or not a file",
            "move it away; if it is a link, put what it leads to in its place, because only `output_dir` itself may be a \
             link; then apply again",
        ),
        (
            TargetError::UnsafeName { object, part: "configmap-../a.yaml".into() },
            "cannot name a file after ConfigMap n/../a: `configmap-../a.yaml` is not a plain file name",
            "this is a bug in streamfleet; report it",
        ),
    ];
    for (error, message, hint) in cases {
        assert_eq!((error.to_string().as_str(), error.hint()), (message, hint));
    }
}
