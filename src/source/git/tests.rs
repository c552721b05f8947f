mod doubt;
mod history;
mod signatures;

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};

use git2::build::TreeUpdateBuilder;
use git2::{FileMode, Signature, Tree};
use tempfile::TempDir;

use super::*;
use crate::spec::SnapshotEntry;

const BRANCH: &str = "refs/heads/main";

struct Place {
    folder: TempDir,
    repository: Repository,
}

enum Put<'a> {
    File(&'a str),
    Link(&'a str),
    Submodule,
    Nothing,
}

impl Place {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let repository = Repository::init_bare(folder.path().join("remote.git")).unwrap();
        Place { folder, repository }
    }

    fn path(&self, name: &str) -> Utf8PathBuf {
        Utf8PathBuf::try_from(self.folder.path().join(name)).unwrap()
    }

    fn commit(&self, parent: Option<Oid>, puts: &[(&str, Put<'_>)]) -> Oid {
        let parent = parent.map(|parent| self.repository.find_commit(parent).unwrap());
        let mut changes = TreeUpdateBuilder::new();
        for (path, put) in puts {
            let blob = |text: &str| self.repository.blob(text.as_bytes()).unwrap();
            match put {
                Put::File(text) => changes.upsert(*path, blob(text), FileMode::Blob),
                Put::Link(to) => changes.upsert(*path, blob(to), FileMode::Link),
                Put::Submodule => {
                    let other = "0123456789012345678901234567890123456789".parse().unwrap();
                    changes.upsert(*path, other, FileMode::Commit)
                }
                Put::Nothing => changes.remove(*path),
            };
        }
        let tree = match &parent {
            Some(parent) => parent.tree().unwrap(),
            None => self.empty(),
        };
        let tree = changes.create_updated(&self.repository, &tree).unwrap();
        let tree = self.repository.find_tree(tree).unwrap();
        let author = Signature::now("Ada\u{1b}", "ada@example.com").unwrap();
        let parents: Vec<_> = parent.iter().collect();
        self.repository.commit(None, &author, &author, "change", &tree, &parents).unwrap()
    }

    fn empty(&self) -> Tree<'_> {
        let id = self.repository.treebuilder(None).unwrap().write().unwrap();
        self.repository.find_tree(id).unwrap()
    }

    fn push(&self, commit: Oid) -> String {
        self.repository.reference(BRANCH, commit, true, "push").unwrap();
        commit.to_string()
    }

    fn mirror(&self, folder: Option<&str>) -> Mirror {
        let config = SourceConfig {
            git: Some(self.path("remote.git").into_string()),
            folder: folder.map(str::to_owned),
            ..SourceConfig::default()
        };
        Mirror::of(&config, self.path("clone"), Some(SecretString::from("hunter2"))).unwrap()
    }

    #[track_caller]
    fn refused(&self, fetched: Result<Fetched, GitError>) -> String {
        let error = fetched.unwrap_err();
        let said = format!("{error}\n= {}", error.hint());
        said.replace(self.folder.path().to_str().unwrap(), "")
    }
}

#[test]
fn a_commit_is_read_by_the_rules_of_a_folder() {
    let place = Place::new();
    let spec = "apiVersion: streamfleet/v1\nkind: Cluster\n";
    let large = "#".repeat(2 << 20);
    let commit = place.commit(
        None,
        &[
            ("README.md", Put::File("hello")),
            ("specs/acme/orders.yaml", Put::File(spec)),
            ("specs/acme/large.yml", Put::File(&large)),
            ("specs/acme/Shouted.YAML", Put::File(spec)),
            ("specs/acme/orders.yaml.bak", Put::File(spec)),
            ("specs/acme/notes.txt", Put::File("nothing")),
            ("specs/acme/linked.yaml", Put::Link("orders.yaml")),
            ("specs/acme/notes.md", Put::Link("./notes.txt")),
            ("specs/acme/outside", Put::Link("../../..")),
            ("specs/acme/sub", Put::Submodule),
            ("specs/acme/folder.yaml/a.yaml", Put::File(spec)),
            ("specs/.hidden/b.yaml", Put::File(spec)),
            ("specs/.streamfleet/c.yaml", Put::File(spec)),
        ],
    );
    let id = place.push(commit);
    let mirror = place.mirror(Some("specs"));
    assert_eq!(mirror.fetch().unwrap(), Fetched { commit: id.clone(), is_new: true, rewritten: false });
    let snapshot = mirror.snapshot().unwrap();
    assert_eq!(snapshot.revision, id);
    assert_eq!(snapshot.commit.unwrap().author, "Ada <ada@example.com>");
    let shown = |(path, entry): (&_, &SnapshotEntry)| match entry {
        SnapshotEntry::File { bytes, .. } => format!("{path} {} bytes", bytes.len()),
        SnapshotEntry::Unreadable { code, message, .. } => format!("{path} {code}: {message}"),
    };
    let entries: Vec<String> = snapshot.entries.iter().map(shown).collect();
    insta::assert_snapshot!(entries.join("\n"), @r"
    acme/Shouted.YAML miscased-name: its name doesn't end in `.yaml` or `.yml`, in lower case
    acme/folder.yaml folder-named-as-file: a folder has the name of a YAML file
    acme/large.yml file-too-large: the file is larger than 1 MiB
    acme/linked.yaml link-in-git: this is a link, and links in a git repository are not followed
    acme/orders.yaml 41 bytes
    acme/outside link-in-git: this is a link, and links in a git repository are not followed
    acme/sub submodule: this is a submodule, which is not fetched
    ");
    let skipped: Vec<_> = snapshot.skipped.keys().map(ToString::to_string).collect();
    assert_eq!(skipped, [".hidden/b.yaml", "acme/Shouted.YAML", "acme/orders.yaml.bak"]);
}

#[test]
fn what_is_pushed_is_in_force_when_it_is_fetched_and_rewritten_history_is_told() {
    let place = Place::new();
    let mirror = place.mirror(None);
    let first = place.commit(None, &[("a.yaml", Put::File("a"))]);
    let fetched = |commit: String, is_new, rewritten| Fetched { commit, is_new, rewritten };
    let id = place.push(first);
    assert_eq!(mirror.fetch().unwrap(), fetched(id.clone(), true, false));
    assert_eq!(mirror.fetch().unwrap(), fetched(id, false, false));
    let second = place.push(place.commit(Some(first), &[("b.yaml", Put::File("b"))]));
    assert_eq!(mirror.fetch().unwrap(), fetched(second.clone(), true, false));
    assert_eq!(mirror.commit(), Some(second));
    let other = place.push(place.commit(None, &[("c.yaml", Put::File("c"))]));
    assert_eq!(mirror.fetch().unwrap(), fetched(other, true, true));
    assert_eq!(mirror.snapshot().unwrap().entries.len(), 1);
    // Emptying the branch is deliberate; the planner judges the deletions.
    let empty = place.push(place.commit(Some(first), &[("a.yaml", Put::Nothing)]));
    assert_eq!(mirror.fetch().unwrap(), fetched(empty, true, true));
    assert!(mirror.snapshot().unwrap().entries.is_empty());
}

#[test]
fn what_cannot_be_fetched_leaves_the_last_commit_in_force() {
    let place = Place::new();
    let mirror = place.mirror(Some("specs"));
    insta::assert_snapshot!(place.refused(mirror.fetch()), @r"
    cannot fetch /remote.git: it has no branch `main`
    = push the branch, or set another one in `source.branch`
    ");
    assert_eq!(mirror.commit(), None);
    assert!(matches!(mirror.snapshot(), Err(GitError::Nothing { .. })));

    let first = place.commit(None, &[("specs/a.yaml", Put::File("a"))]);
    let id = place.push(first);
    mirror.fetch().unwrap();
    let stays = || {
        assert_eq!(mirror.commit(), Some(id.clone()));
        assert_eq!(mirror.snapshot().unwrap().entries.len(), 1);
    };

    let without =
        place.push(place.commit(Some(first), &[("specs/a.yaml", Put::Nothing), ("b.yaml", Put::File("b"))]));
    let said = place.refused(mirror.fetch()).replace(&without, "COMMIT");
    insta::assert_snapshot!(said, @r"
    cannot read commit COMMIT of /remote.git: it has no folder `specs`
    = push the folder, or set another one in `source.folder`
    ");
    stays();

    place.repository.reference("refs/heads/other", first, true, "push").unwrap();
    place.repository.find_reference(BRANCH).unwrap().delete().unwrap();
    insta::assert_snapshot!(place.refused(mirror.fetch()), @r"
    cannot fetch /remote.git: it has no branch `main`
    = push the branch, or set another one in `source.branch`
    ");
    stays();

    fs::rename(place.path("remote.git"), place.path("away.git")).unwrap();
    insta::assert_snapshot!(place.refused(mirror.fetch()), @r"
    cannot fetch /remote.git: there is no such folder on this machine
    = set `source.git` to the full path of a git repository on this machine, or to an address: https://…, ssh://… or user@host:path
    ");
    stays();
}

#[test]
fn a_remote_that_lost_half_of_a_commit_changes_nothing_and_a_damaged_clone_is_made_anew() {
    let place = Place::new();
    let mirror = place.mirror(None);
    let first = place.commit(None, &[("a.yaml", Put::File("a"))]);
    let id = place.push(first);
    mirror.fetch().unwrap();

    let blob = place.repository.blob(b"lost").unwrap().to_string();
    place.push(place.commit(Some(first), &[("b.yaml", Put::File("lost"))]));
    let (folder, file) = blob.split_at(2);
    fs::remove_file(place.path("remote.git/objects").join(folder).join(file)).unwrap();
    mirror.fetch().unwrap_err();
    assert_eq!(mirror.commit(), Some(id.clone()));
    assert_eq!(mirror.snapshot().unwrap().entries.len(), 1);

    place.push(first);
    fs::remove_dir_all(place.path("clone/objects/pack")).unwrap();
    assert!(matches!(mirror.snapshot(), Err(GitError::Damaged { .. })));
    assert_eq!(mirror.fetch().unwrap(), Fetched { commit: id, is_new: false, rewritten: false });
    assert_eq!(mirror.snapshot().unwrap().entries.len(), 1);
}

/// Removes all blobs from a clone.
fn lose_blobs(clone: &Utf8Path) {
    let read = Repository::open_bare(clone).unwrap();
    let (odb, mut kept) = (read.odb().unwrap(), vec![]);
    odb.foreach(|id| {
        let object = odb.read(*id).unwrap();
        kept.push((object.kind(), object.data().to_vec()));
        true
    })
    .unwrap();
    fs::remove_dir_all(clone.join("objects/pack")).unwrap();
    let written = Repository::open_bare(clone).unwrap();
    let odb = written.odb().unwrap();
    for (kind, data) in kept.iter().filter(|(kind, _)| *kind != git2::ObjectType::Blob) {
        odb.write(*kind, data).unwrap();
    }
}

#[test]
fn only_blobs_that_differ_are_read_from_the_next_commit() {
    let place = Place::new();
    let files = [("a.yaml", Put::File("a")), ("b.yaml", Put::File("b")), ("notes", Put::File("n"))];
    let first = place.commit(None, &files);
    place.push(first);
    let mirror = place.mirror(None);
    mirror.fetch().unwrap();
    let before = mirror.latest().unwrap();
    assert!(Arc::ptr_eq(&before, &mirror.latest().unwrap()));
    let known = mirror.whole().clone().unwrap().blobs;
    // The name of a file doesn't matter.
    let files = [("a.yaml", Put::File("new")), ("b.yaml", Put::Nothing), ("c.yaml", Put::File("b"))];
    let second = place.commit(Some(first), &files);
    place.push(second);
    mirror.fetch().unwrap();
    lose_blobs(&place.path("clone"));
    let clone = Repository::open_bare(place.path("clone")).unwrap();
    assert!(mirror.read(&clone, second, &known).is_err());
    clone.blob(b"new").unwrap();
    let read = mirror.read(&clone, second, &known).unwrap();
    let text = |entry: &SnapshotEntry| match entry {
        SnapshotEntry::File { bytes, .. } => String::from_utf8(bytes.to_vec()).unwrap(),
        SnapshotEntry::Unreadable { message, .. } => message.clone(),
    };
    let texts = read.snapshot.entries.iter().map(|(path, entry)| format!("{path}: {}", text(entry)));
    assert_eq!(texts.collect::<Vec<_>>(), ["a.yaml: new", "c.yaml: b"]);
    assert!(matches!(mirror.snapshot(), Err(GitError::Damaged { .. })), "it reads everything");
}

#[test]
fn what_is_in_force_and_was_found_whole_is_read_again_only_when_somebody_finds_it_damaged() {
    let place = Place::new();
    let first = place.commit(None, &[("a.yaml", Put::File("a"))]);
    place.push(first);
    let mirror = place.mirror(None);
    mirror.fetch().unwrap();
    lose_blobs(&place.path("clone"));
    let same = Fetched { commit: first.to_string(), is_new: false, rewritten: false };
    assert_eq!(mirror.fetch().unwrap(), same);
    assert!(matches!(mirror.snapshot(), Err(GitError::Damaged { .. })), "nobody looked for it");
    assert_eq!(mirror.fetch().unwrap(), same);
    assert_eq!(mirror.snapshot().unwrap().entries.len(), 1);
}

#[test]
fn a_clone_that_was_being_replaced_when_somebody_was_killed_is_adopted() {
    let place = Place::new();
    let first = place.push(place.commit(None, &[("a.yaml", Put::File("a"))]));
    place.mirror(None).fetch().unwrap();
    let (clone, old, new) = (place.path("clone"), place.path("clone.old"), place.path("clone.new"));
    let commit = || place.mirror(None).commit();
    for aside in [&old, &new] {
        fs::rename(&clone, aside).unwrap();
        assert_eq!(commit(), Some(first.clone()));
        assert!(clone.exists() && !aside.exists());
    }
    // An incomplete clone isn't adopted.
    fs::rename(&clone, &old).unwrap();
    Repository::init_bare(&new).unwrap();
    assert_eq!(commit(), Some(first.clone()));
    let mirror = place.mirror(None);
    mirror.fetch_anew(Instant::now() + mirror.timeout(), None).unwrap();
    assert!(!new.exists() && !old.exists());
    assert_eq!(mirror.snapshot().unwrap().entries.len(), 1);
    remove(&clone).unwrap();
    assert_eq!(commit(), None);
}

#[test]
fn a_lock_that_a_killed_process_left_in_the_clone_holds_nothing_up() {
    let place = Place::new();
    place.push(place.commit(None, &[("a.yaml", Put::File("a"))]));
    let mirror = place.mirror(None);
    mirror.fetch().unwrap();
    let references = place.path("clone").join("refs/streamfleet");
    for name in ["fetched", "in-force"] {
        let source = fs::read_dir(&references).unwrap().next().unwrap().unwrap().path();
        fs::write(source.join(name).with_extension("lock"), "").unwrap();
        if name == "fetched" {
            // The reference is deleted before it is written.
            fs::remove_file(source.join(name)).unwrap();
        }
        let id = place.push(place.commit(None, &[(&format!("{name}.yaml"), Put::File("b"))]));
        assert_eq!(mirror.fetch().unwrap().commit, id, "{name}");
    }
}

#[test]
fn a_source_sees_nothing_of_what_another_fetched_and_shows_no_token() {
    let place = Place::new();
    place.push(place.commit(None, &[("specs/a.yaml", Put::File("a"))]));
    let (whole, part) = (place.mirror(None), place.mirror(Some("specs")));
    whole.fetch().unwrap();
    assert_eq!(part.commit(), None);
    part.fetch().unwrap();
    assert!(part.commit().is_some() && whole.commit().is_none());
    let shown = part.source().0.replace(place.folder.path().to_str().unwrap(), "");
    assert_eq!(shown, "/remote.git (branch main, folder specs)");
    assert!(!format!("{part:?}").contains("hunter2"));
}

#[test]
fn whoever_fetches_holds_others_off_but_not_those_who_read() {
    let place = Place::new();
    let mut mirror = place.mirror(None);
    let id = place.push(place.commit(None, &[("a.yaml", Put::File("a"))]));
    mirror.fetch().unwrap();
    mirror.timeout_seconds = 1;
    let held = locks::alone(&mirror.place, &mirror.url, mirror.timeout()).unwrap();
    let said = place.refused(mirror.fetch()).replace(&std::process::id().to_string(), "NUMBER");
    insta::assert_snapshot!(said, @r"
    cannot fetch /remote.git: process NUMBER has been fetching into /clone for a long time
    = try again when it has finished; if it hangs, end it
    ");
    assert_eq!(mirror.snapshot().unwrap().revision, id);
    drop(held);
    assert!(!mirror.fetch().unwrap().is_new);
}

#[test]
fn a_clone_is_read_whole_while_others_fetch_into_it_and_put_another_in_its_place() {
    let place = Place::new();
    let mut tip = place.commit(None, &[("0.yaml", Put::File("0"))]);
    place.push(tip);
    let (writer, other) = (place.mirror(None), place.mirror(None));
    writer.fetch().unwrap();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                let alone = writer.lock_for_writing().unwrap();
                writer.fetch_anew(Instant::now() + writer.timeout(), None).unwrap();
                drop(alone);
                // Gives the waiting thread time to see it.
                std::thread::sleep(Duration::from_millis(50));
            }
        });
        for number in 1..20 {
            tip = place.commit(Some(tip), &[(&format!("{number}.yaml"), Put::File("spec"))]);
            place.push(tip);
            assert!(other.snapshot().unwrap().entries.len() >= number);
            other.fetch().unwrap();
            assert_eq!(other.snapshot().unwrap().entries.len(), number + 1);
        }
        is_over.store(true, Ordering::Relaxed);
    });
    assert_eq!(other.commit(), Some(tip.to_string()));
}

#[test]
fn a_branch_that_lost_its_commit_is_doubted_until_that_is_settled() {
    let place = Place::new();
    let mirror = place.mirror(None);
    let first = place.commit(None, &[("a.yaml", Put::File("a"))]);
    let second = place.commit(Some(first), &[("b.yaml", Put::File("b"))]);
    let rewrote = || mirror.snapshot().unwrap().commit.unwrap().rewrote;
    place.push(second);
    mirror.fetch().unwrap();
    assert_eq!(rewrote(), None);

    // The rewrite is reported even if the process ends and the clone is lost.
    place.push(first);
    assert!(mirror.fetch().unwrap().rewritten);
    assert_eq!(rewrote(), Some(second.to_string()));
    assert_eq!(place.mirror(None).snapshot().unwrap().commit.unwrap().rewrote, Some(second.to_string()));
    fs::remove_dir_all(place.path("clone/objects/pack")).unwrap();
    mirror.fetch().unwrap();
    assert_eq!(rewrote(), Some(second.to_string()));

    // It also applies to later commits, and not to other sources.
    let third = place.commit(Some(first), &[("c.yaml", Put::File("c"))]);
    place.push(third);
    mirror.fetch().unwrap();
    mirror.settle_rewrite(&first.to_string());
    assert_eq!(rewrote(), Some(second.to_string()));
    mirror.settle_rewrite(&third.to_string());
    assert_eq!(rewrote(), None);

    // Restoring the lost commit settles the rewrite.
    place.push(second);
    assert!(mirror.fetch().unwrap().rewritten);
    assert_eq!(rewrote(), Some(third.to_string()));
    place.push(third);
    mirror.fetch().unwrap();
    assert_eq!(rewrote(), None);
}

#[test]
fn a_clone_with_any_file_damaged_is_never_read_as_less_and_is_made_whole_by_a_fetch() {
    let place = Place::new();
    let first = place.commit(None, &[("acme/a.yaml", Put::File("a")), ("acme/b.yaml", Put::File("b"))]);
    place.push(first);
    let files = |folder: &Utf8Path| {
        let mut found = vec![];
        let mut folders = vec![folder.to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in folder.read_dir_utf8().unwrap().map(Result::unwrap) {
                let path = entry.path().to_owned();
                if entry.file_type().unwrap().is_dir() { folders.push(path) } else { found.push(path) }
            }
        }
        found.sort();
        found
    };
    let zeros = |bytes: Vec<u8>| vec![0_u8; bytes.len()];
    let half = |mut bytes: Vec<u8>| {
        bytes.truncate(bytes.len() / 2);
        bytes
    };
    let whole = |mirror: &Mirror| mirror.snapshot().map(|snapshot| snapshot.entries.len());
    let clone = place.path("clone");
    for (name, damage) in
        [("zeros", &zeros as &dyn Fn(Vec<u8>) -> Vec<u8>), ("half", &half), ("none", &|_| vec![])]
    {
        remove(&clone).unwrap();
        place.mirror(None).fetch().unwrap();
        let count = files(&clone).len();
        assert!(count > 5);
        for number in 0..count {
            remove(&clone).unwrap();
            let mirror = place.mirror(None);
            mirror.fetch().unwrap();
            let file = files(&clone).swap_remove(number);
            let bytes = fs::read(&file).unwrap();
            fs::remove_file(&file).unwrap();
            fs::write(&file, damage(bytes)).unwrap();
            assert!(whole(&mirror).is_ok_and(|count| count == 2) || whole(&mirror).is_err(), "{name} {file}");
            // A remote without new commits may have to send everything again.
            let fetched = mirror.fetch();
            assert!(fetched.is_ok(), "{name} {file}: {fetched:?}");
            assert_eq!(whole(&mirror).unwrap(), 2, "{name} {file}");
        }
    }
}

#[test]
fn a_repository_with_objects_of_another_form_is_refused() {
    let place = Place::new();
    let mut git = std::process::Command::new("git");
    git.args(["init", "--quiet", "--bare", "--object-format=sha256", "remote256.git"]);
    assert!(git.current_dir(place.folder.path()).status().unwrap().success());
    let mut mirror = place.mirror(None);
    mirror.url = place.path("remote256.git").into_string();
    insta::assert_snapshot!(place.refused(mirror.fetch()), @r"
    cannot fetch /remote256.git: it is a SHA-256 repository, and only SHA-1 is supported
    = push the specs to a repository created with `git init --object-format=sha1`, which is git's default
    ");
}
