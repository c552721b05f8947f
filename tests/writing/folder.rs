use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use streamfleet::source::directory::write::FileWriteError;
use streamfleet::source::directory::{Watch, scan};
use streamfleet::source::{FileEdit, directory};

use super::*;
use crate::state_faults::namespace;
use crate::support::Tree;

const ORDERS: &str = "acme/clusters/orders.yaml";
const CHANGED: &str = "the file was not changed: another program keeps changing it";

fn root(tree: &Tree) -> Utf8PathBuf {
    Utf8PathBuf::from_path_buf(tree.path()).unwrap()
}

fn made(world: &World, tree: &Tree, writer: &Writer) -> CurrentPlan {
    let writes = writer.mark();
    world.plan(&scan(&root(tree)).unwrap(), writes)
}

fn start(tree: &Tree) -> (World, Writer) {
    let world = World::new(&tree.beside("installation"));
    let writer = world.writer(SpecStore::Folder(root(tree)));
    (world, writer)
}

#[test]
fn what_a_call_made_is_recorded_with_the_time_of_its_answer() {
    let tree = Tree::example("quickstart");
    let (world, writer) = start(&tree);
    let first = made(&world, &tree, &writer);
    let written =
        call(&writer, &first, "Cluster/acme/clicks", WriteAction::Create(sandbox("clicks"))).unwrap();
    assert_eq!(written.path.as_str(), "acme/clusters/clicks.yaml");
    let later = made(&world, &tree, &writer);
    let state = world.installation.state.as_deref().unwrap();
    let recorder = streamfleet::round::Recorder { state, clock: &Timestamp::now, actor: "test" };
    let report = world.runtime.block_on(later.round.execute(recorder, &mut |_| {}));
    assert!(report.failed.is_empty(), "{:?}", report.failed.first().map(ToString::to_string));
    let record = state.recorded_resource(&written.key).unwrap().unwrap();
    assert_eq!(
        (record.durable.created_at, record.cached.updated_at, record.durable.id),
        (written.at, written.at, written.id)
    );
    // Existing clusters were created when they were first applied.
    let orders = state.recorded_resource(&"Cluster/acme/orders".to_owned().try_into().unwrap()).unwrap();
    assert!(orders.unwrap().durable.created_at > written.at);
    // Later changes don't alter it.
    let next = made(&world, &tree, &writer);
    call(&writer, &next, "Cluster/acme/clicks", WriteAction::Patch(json!({"region": "eu"}))).unwrap();
    let next = made(&world, &tree, &writer);
    world.runtime.block_on(next.round.execute(recorder, &mut |_| {}));
    let record = state.recorded_resource(&written.key).unwrap().unwrap();
    assert!(record.durable.created_at == written.at && record.cached.updated_at > written.at);
}

#[test]
fn no_secret_is_anywhere_in_the_clear() {
    let tree = Tree::example("quickstart");
    let (world, writer) = start(&tree);
    let first = made(&world, &tree, &writer);
    call(&writer, &first, "CloudAccount/acme/s3", WriteAction::Create(account())).unwrap();
    call(&writer, &first, "CloudAccount/acme/s3", WriteAction::Patch(json!({"region": "eu"}))).unwrap();
    made(&world, &tree, &writer);
    assert!(tells(SECRET_TEXT.as_bytes()), "it would be found");
    for (path, bytes) in everything(tree.path().parent().unwrap()) {
        assert!(!tells(&bytes), "{path}");
    }
}

#[test]
fn callers_and_an_editor_on_one_file_lose_nothing_of_each_other() {
    let tree = Tree::example("quickstart");
    // All in one file, each caller on a document of its own.
    let others = ["one", "two", "three"].map(|name| {
        let text = tree
            .read("acme/clusters/sandbox.yaml")
            .replace("identifier: sandbox", &format!("identifier: {name}"));
        format!("---\n{text}")
    });
    let text = tree.read(ORDERS) + &others.join("");
    tree.write(ORDERS, text);
    let (world, writer) = start(&tree);
    let first = made(&world, &tree, &writer);
    let (file, is_over) = (tree.path().join(ORDERS), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let callers: Vec<_> = ["one", "two", "three"]
            .into_iter()
            .map(|name| {
                let (writer, first) = (&writer, &first);
                scope.spawn(move || {
                    for number in 0..8 {
                        let what = || WriteAction::Patch(json!({"region": format!("{name}-{number}")}));
                        // A caller that always loses the race gets an error and retries.
                        while let Err(refused) = call(writer, first, &format!("Cluster/acme/{name}"), what())
                        {
                            assert_eq!(refused.to_string(), CHANGED);
                        }
                    }
                })
            })
            .collect();
        let editor = scope.spawn(|| {
            let (mut saved, mut seen) = (Vec::new(), 0);
            while !is_over.load(Ordering::Relaxed) {
                if writer.mark().writes == seen {
                    std::thread::yield_now();
                    continue;
                }
                seen = writer.mark().writes;
                // As editors save: written beside it, and renamed over it. Their version may be outdated by
                // then.
                let line = format!("# note {}", saved.len());
                let text = fs::read_to_string(&file).unwrap();
                fs::write(tree.beside("saved"), format!("{line}\n{text}")).unwrap();
                fs::rename(tree.beside("saved"), &file).unwrap();
                saved.push(line);
            }
            saved
        });
        let done: Vec<_> = callers.into_iter().map(|caller| caller.join()).collect();
        is_over.store(true, Ordering::Relaxed);
        let saved = editor.join().unwrap();
        assert!(done.into_iter().all(|done| done.is_ok()));
        let text = tree.read(ORDERS);
        for line in &saved {
            assert!(text.lines().any(|found| found == line), "{line} is lost of {}", saved.len());
        }
    });
    let after = made(&world, &tree, &writer);
    assert!(!after.round.plan.problems.iter().any(|problem| problem.is_error()), "{}", tree.read(ORDERS));
    let left: Vec<String> = everything(&tree.path()).into_iter().map(|(path, _)| path).collect();
    assert!(!left.iter().any(|path| path.contains("streamfleet-tmp")), "{left:?}");
}

#[test]
fn what_is_saved_in_the_last_moment_is_not_lost() {
    let tree = Tree::example("quickstart");
    let (root, path) = (root(&tree), ORDERS.parse().unwrap());
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let editor = scope.spawn(|| {
            for number in 0..3000 {
                fs::write(tree.beside("saved"), format!("# saved {number}\n")).unwrap();
                fs::rename(tree.beside("saved"), tree.path().join(ORDERS)).unwrap();
            }
            is_over.store(true, Ordering::Relaxed);
        });
        while !is_over.load(Ordering::Relaxed) {
            let before = directory::write::read(&root, &path).unwrap().unwrap();
            let saved: u32 = super::number(&before);
            let content = Some(format!("# saved {saved}\n# and ours\n").into_bytes());
            match directory::write::write(&root, &FileEdit { path: path.clone(), content }, Some(&before)) {
                Ok(()) => {}
                Err(error) => assert!(matches!(error, FileWriteError::Changed { .. }), "{error}"),
            }
            // An earlier version never returns.
            assert!(super::number(tree.read(ORDERS).as_bytes()) >= saved);
        }
        editor.join().unwrap();
    });
    assert_eq!(super::number(tree.read(ORDERS).as_bytes()), 2999);
}

#[test]
fn callers_alone_on_one_file_all_come_through() {
    let tree = Tree::example("quickstart");
    let (world, writer) = start(&tree);
    let first = made(&world, &tree, &writer);
    std::thread::scope(|scope| {
        for name in ["a", "b", "c", "d"] {
            let (writer, first) = (&writer, &first);
            scope.spawn(move || {
                for number in 0..10 {
                    let tags = json!({"tags": [{"key": name, "value": number.to_string()}]});
                    call(writer, first, "Cluster/acme/orders", WriteAction::Patch(tags)).unwrap();
                }
            });
        }
        for name in ["p", "q"] {
            let (writer, first) = (&writer, &first);
            scope.spawn(move || {
                call(writer, first, &format!("Cluster/acme/{name}"), WriteAction::Create(sandbox(name)))
                    .unwrap();
                call(writer, first, &format!("Cluster/acme/{name}"), WriteAction::Delete).unwrap();
            });
        }
    });
    assert_eq!(writer.mark().writes, 44);
    assert!(writer.pending(&first)[&"Cluster/acme/p".to_owned().try_into().unwrap()].resource.is_none());
    assert!(writer.pending(&made(&world, &tree, &writer)).is_empty());
}

#[test]
fn permissions_links_and_folders_stay_as_they_are() {
    let tree = Tree::example("quickstart");
    let real = tree.path().join("acme/shared/orders.yaml");
    fs::create_dir(real.parent().unwrap()).unwrap();
    fs::rename(tree.path().join(ORDERS), &real).unwrap();
    symlink("../shared/orders.yaml", tree.path().join(ORDERS)).unwrap();
    fs::remove_file(tree.path().join(ORDERS)).unwrap();
    symlink("../shared", tree.path().join("acme/clusters/more")).unwrap();
    fs::rename(&real, real.with_extension("yml")).unwrap();
    let real = real.with_extension("yml");
    fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
    let _ = std::os::unix::fs::chown(&real, Some(12345), Some(54321));
    let before = fs::metadata(&real).unwrap();
    // Through the link, the same file is described twice, so one path has to go.
    fs::remove_file(tree.path().join("acme/clusters/more")).unwrap();
    symlink("../shared/orders.yml", tree.path().join(ORDERS)).unwrap();
    fs::create_dir(tree.path().join("acme/.kept")).unwrap();
    let (world, writer) = start(&tree);
    let edit = |content: &str| FileEdit {
        path: ORDERS.parse().unwrap(),
        content: Some(content.as_bytes().to_vec()),
    };
    let text = directory::write::read(&root(&tree), &ORDERS.parse().unwrap()).unwrap().unwrap();
    let new = String::from_utf8(text.clone()).unwrap() + "# one more\n";
    directory::write::write(&root(&tree), &edit(&new), Some(&text)).unwrap();
    let after = fs::metadata(&real).unwrap();
    assert_eq!((after.mode(), after.uid(), after.gid()), (before.mode(), before.uid(), before.gid()));
    assert!(fs::symlink_metadata(tree.path().join(ORDERS)).unwrap().is_symlink());
    assert_eq!(super::text(&real), new);
    // The version that was read is no longer there.
    let error = directory::write::write(&root(&tree), &edit("x"), Some(&text)).unwrap_err();
    assert!(matches!(error, FileWriteError::Changed { .. }), "{error}");
    let error = directory::write::write(&root(&tree), &edit("x"), None).unwrap_err();
    assert!(matches!(error, FileWriteError::Changed { .. }), "{error}");
    drop((world, writer));
}

#[test]
fn what_is_written_is_told_at_once_and_never_as_unfinished() {
    let tree = Tree::example("quickstart");
    let (world, writer) = start(&tree);
    let first = made(&world, &tree, &writer);
    let mut watch = Watch::new(&root(&tree));
    let mut scanner = directory::Scanner::of(&watch);
    call(&writer, &first, "Cluster/acme/sandbox", WriteAction::Patch(json!({"region": "eu"}))).unwrap();
    watch.changed();
    let snapshot = scanner.scan(&root(&tree)).unwrap();
    assert!(snapshot.skipped.is_empty());
    let after = world.plan(&snapshot, writer.mark());
    assert!(!after.round.plan.problems.iter().any(|problem| problem.is_error()));
}

#[test]
fn a_file_that_somebody_is_writing_is_left_to_them() {
    use std::io::Write as _;
    let tree = Tree::example("quickstart");
    let (world, writer) = start(&tree);
    let first = made(&world, &tree, &writer);
    let mut watch = Watch::new(&root(&tree));
    writer.use_watch(&watch, Arc::default());
    let text = tree.read(ORDERS);
    let mut file = fs::File::create(tree.path().join(ORDERS)).unwrap();
    // A complete document, but not the complete file.
    file.write_all(text.as_bytes()).unwrap();
    watch.changed();
    let refused = call(&writer, &first, "Cluster/acme/orders", units(2)).unwrap_err();
    assert_eq!((refused.status(), refused.code()), (409, "not_editable"));
    assert_eq!(refused.to_string(), CHANGED);
    assert_eq!(refused.hint().unwrap(), "try again when no other program writes to it");
    file.write_all(b"# and more\n").unwrap();
    drop(file);
    watch.changed();
    call(&writer, &first, "Cluster/acme/orders", units(2)).unwrap();
    assert_eq!(tree.read(ORDERS), text.replace("kafka_units: 1", "kafka_units: 2") + "# and more\n");
}

/// Set in the process that runs on a small file system, to its folder.
const SMALL: &str = "STREAMFLEET_TEST_SMALL_DISK";

#[test]
fn a_full_disk_leaves_nothing_of_a_call() {
    if let Some(folder) = std::env::var_os(SMALL) {
        return on_a_full_disk(Path::new(&folder));
    }
    let Some(namespace) = namespace() else {
        eprintln!("skipped: a small file system can't be mounted here");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let script = "mount -t tmpfs -o size=256k,nr_inodes=100 tmpfs \"$1\" && shift && exec \"$@\"";
    let mut command = Command::new(namespace[0]);
    command.args(&namespace[1..]).args(["bash", "-c", script, "bash"]).arg(folder.path());
    command.arg(std::env::current_exe().unwrap()).args(["--exact", "--nocapture"]);
    command.arg("writing::folder::a_full_disk_leaves_nothing_of_a_call").env(SMALL, folder.path());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn on_a_full_disk(folder: &Path) {
    let tree = Tree::example("quickstart");
    let small = folder.join("tree");
    crate::support::copy(&tree.path(), &small);
    let root = Utf8PathBuf::from_path_buf(small.clone()).unwrap();
    let world = World::new(&tree.beside("installation"));
    let writer = world.writer(SpecStore::Folder(root.clone()));
    let first = world.plan(&scan(&root).unwrap(), WriteMark::default());
    let fill = folder.join("fill");
    let mut length = 512 * 1024;
    fs::File::create(&fill).unwrap();
    while length > 0 {
        use std::io::Write as _;
        let mut file = fs::OpenOptions::new().append(true).open(&fill).unwrap();
        if file.write_all(&vec![b'x'; length]).is_err() {
            length /= 2;
        }
    }
    let before = everything(&small);
    let folders = || fs::read_dir(small.join("acme")).unwrap().count();
    let there = folders();
    for (key, what) in [
        ("Cluster/acme/orders", WriteAction::Patch(json!({"region": "x".repeat(90)}))),
        ("CloudAccount/acme/s3", WriteAction::Create(account())),
    ] {
        let refused = call(&writer, &first, key, what).unwrap_err();
        assert_eq!((refused.status(), refused.code()), (507, "disk_full"), "{refused}");
        let said = refused.to_string();
        assert!(
            said.starts_with("cannot ")
                && said.ends_with(" in the specs: No space left on device (os error 28)"),
            "{said}"
        );
        assert_eq!(refused.hint().unwrap(), "free some space on the disk of the specs, and try again");
        assert!(everything(&small) == before && folders() == there);
    }
    fs::remove_file(fill).unwrap();
    call(&writer, &first, "CloudAccount/acme/s3", WriteAction::Create(account())).unwrap();
}
