//! Writes specs to a repository in the way the API does.

use std::convert::Infallible;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use camino::Utf8PathBuf;
use streamfleet::config::SourceConfig;
use streamfleet::source::git::Mirror;
use streamfleet::source::git::write::{CommitResult, WriteError};
use streamfleet::source::{Author, FileEdit, SourceChange};
use streamfleet::spec::{Snapshot, SnapshotEntry};
use tempfile::TempDir;

use crate::support::install_script;
use crate::support::ssh::{Server, make_key};

/// A bare repository with a few files in the folder `specs`, and its parent folder.
pub struct BareRepository {
    folder: TempDir,
}

impl BareRepository {
    pub fn new() -> Self {
        let place = BareRepository { folder: tempfile::tempdir().unwrap() };
        place.git("init --quiet --bare --initial-branch=main remote.git");
        place.git("init --quiet --initial-branch=main work");
        for (path, text) in
            [("README.md", "hello\r\n"), ("specs/a.yaml", "a: 1\n"), ("specs/acme/b.yaml", "b: 1")]
        {
            fs::create_dir_all(place.file(path).parent().unwrap()).unwrap();
            fs::write(place.file(path), text).unwrap();
        }
        fs::set_permissions(place.file("specs/a.yaml"), fs::Permissions::from_mode(0o755)).unwrap();
        std::os::unix::fs::symlink("a.yaml", place.file("specs/link.yaml")).unwrap();
        place.push("first");
        place
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    fn file(&self, path: &str) -> PathBuf {
        self.path().join("work").join(path)
    }

    #[track_caller]
    pub fn git(&self, words: &str) -> String {
        let mut git = Command::new("git");
        git.args(["-c", "user.name=Bob", "-c", "user.email=bob@example.com", "-c", "commit.gpgsign=false"]);
        git.args(words.split_whitespace()).current_dir(self.path());
        git.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
        let output = git.output().unwrap();
        assert!(output.status.success(), "git {words}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
    }

    /// Another writer commits and pushes the work tree.
    fn push(&self, message: &str) -> String {
        self.git("-C work add --all");
        self.git(&format!("-C work commit --quiet --allow-empty --message={message}"));
        self.git("-C work push --quiet ../remote.git main");
        self.tip()
    }

    fn push_theirs(&self, path: &str, text: &str) {
        self.git("-C work fetch --quiet ../remote.git main");
        self.git("-C work reset --quiet --hard FETCH_HEAD");
        fs::write(self.file(path), text).unwrap();
        self.push("theirs");
    }

    pub fn tip(&self) -> String {
        self.git("-C remote.git rev-parse main")
    }

    fn show(&self, path: &str) -> String {
        self.git(&format!("-C remote.git show main:{path}"))
    }

    /// A source for the repository by its path, with a clone of this name.
    fn by_path(&self, clone: &str) -> Mirror {
        let remote = self.path().join("remote.git").to_str().unwrap().to_owned();
        self.mirror(clone, SourceConfig { git: Some(remote), ..SourceConfig::default() })
    }

    pub fn serve(&self, flags: &[&str]) -> Server {
        for name in ["host", "user"] {
            if !self.path().join(name).exists() {
                make_key(self.path(), name, "");
            }
        }
        let server = Server::start(self.path(), flags);
        fs::write(self.path().join("known_hosts"), server.known_as(self.path(), "host")).unwrap();
        server
    }

    pub fn by_ssh(&self, server: &Server, clone: &str) -> Mirror {
        let file = |name: &str| Utf8PathBuf::try_from(self.path().join(name)).ok();
        let (ssh_key, known_hosts) = (file("user"), file("known_hosts"));
        let git = Some(server.url("remote.git"));
        self.mirror(clone, SourceConfig { git, ssh_key, known_hosts, ..SourceConfig::default() })
    }

    fn mirror(&self, clone: &str, config: SourceConfig) -> Mirror {
        let config = SourceConfig { folder: Some("specs".to_owned()), ..config };
        let place = Utf8PathBuf::try_from(self.path().join("state").join(clone)).unwrap();
        Mirror::of(&config, place, None).unwrap()
    }

    pub fn hook(&self, name: &str, text: &str) {
        let hook = self.path().join("remote.git/hooks").join(name);
        install_script(&hook, text);
    }
}

pub fn put(path: &str, text: &str) -> FileEdit {
    FileEdit { path: path.parse().unwrap(), content: Some(text.as_bytes().to_vec()) }
}

fn remove(path: &str) -> FileEdit {
    FileEdit { path: path.parse().unwrap(), content: None }
}

fn ada() -> Author {
    Author { name: "Ada".to_owned(), email: "ada@example.com".to_owned() }
}

fn change(edit: FileEdit) -> SourceChange {
    SourceChange { message: "change".to_owned(), edits: vec![edit] }
}

pub fn write(mirror: &Mirror, edits: &[FileEdit]) -> Result<CommitResult, WriteError<Infallible>> {
    mirror.write(&ada(), |_| {
        Ok(SourceChange { message: "change\n\nby the API".to_owned(), edits: edits.to_vec() })
    })
}

fn text(snapshot: &Snapshot, path: &str) -> String {
    match &snapshot.entries[path] {
        SnapshotEntry::File { bytes, .. } => String::from_utf8(bytes.to_vec()).unwrap(),
        SnapshotEntry::Unreadable { message, .. } => panic!("{path}: {message}"),
    }
}

#[test]
fn a_commit_changes_what_it_is_to_change_and_nothing_else() {
    let place = BareRepository::new();
    let server = place.serve(&[]);
    for mirror in [place.by_path("path"), place.by_ssh(&server, "ssh")] {
        let first = place.tip();
        let edits = [put("a.yaml", "a: 2\n"), put("globex/c.yaml", "c: 1\n"), remove("acme/b.yaml")];
        let written = write(&mirror, &edits).unwrap();
        assert!(written.is_new && written.commit == place.tip() && written.commit != first);
        assert_eq!(mirror.commit(), Some(written.commit.clone()));
        let snapshot = mirror.snapshot().unwrap();
        assert_eq!(
            (text(&snapshot, "a.yaml"), text(&snapshot, "globex/c.yaml")),
            ("a: 2\n".into(), "c: 1\n".into())
        );
        assert_eq!(snapshot.commit.unwrap().author, "Ada <ada@example.com>");
        let changed = place.git(&format!("-C remote.git diff --raw --abbrev=4 {first} main"));
        let changed: Vec<&str> = changed.lines().map(|line| line.rsplit(' ').next().unwrap()).collect();
        assert_eq!(changed, ["M\tspecs/a.yaml", "D\tspecs/acme/b.yaml", "A\tspecs/globex/c.yaml"]);
        let modes = place.git("-C remote.git ls-tree -r -t --format=%(objectmode)=%(path) main");
        let expected = "100644=README.md 040000=specs 100755=specs/a.yaml 040000=specs/globex \
                        100644=specs/globex/c.yaml 120000=specs/link.yaml";
        assert_eq!(modes.replace('\n', " "), expected);
        let said = place.git("-C remote.git log -1 --format=%an,%cn,%P,%B main");
        assert_eq!(said, format!("Ada,streamfleet,{first},change\n\nby the API"));
        place.git("-C remote.git fsck --strict");

        // The same edit again writes nothing.
        let again = write(&mirror, &[put("a.yaml", "a: 2\n")]).unwrap();
        assert_eq!(again, CommitResult { commit: written.commit, is_new: false });
        write(&mirror, &[put("a.yaml", "a: 1\n"), put("acme/b.yaml", "b: 1"), remove("globex/c.yaml")])
            .unwrap();
    }
}

#[test]
fn what_stands_in_the_way_is_said() {
    let place = BareRepository::new();
    let (mirror, tip) = (place.by_path("clone"), place.tip());
    let refused = |edit: FileEdit| {
        let error = write(&mirror, &[edit]).unwrap_err();
        assert_eq!(place.tip(), tip);
        format!("{error}\n= {}", error.hint().unwrap())
    };
    let said =
        [put("link.yaml", ""), put("acme", ""), put("a.yaml/b.yaml", ""), remove("gone.yaml")].map(refused);
    insta::assert_snapshot!(said.join("\n"));
}

#[test]
fn many_who_write_at_once_lose_nothing() {
    let place = BareRepository::new();
    let server = place.serve(&[]);
    let [first, second] = [place.by_path("one"), place.by_ssh(&server, "two")];
    let third = place.by_ssh(&server, "two");
    let count = place.git("-C remote.git rev-list --count main").parse::<usize>().unwrap();
    std::thread::scope(|scope| {
        for (name, mirror) in [("first", &first), ("second", &second), ("third", &third)] {
            scope.spawn(move || {
                for number in 0..6 {
                    let edit = put(&format!("acme/{name}-{number}.yaml"), name);
                    // A writer that always loses the race retries, as an API client would.
                    while let Err(error) = write(mirror, std::slice::from_ref(&edit)) {
                        assert!(error.may_be_tried_again(), "{name} {number}: {error}");
                    }
                }
            });
        }
        // Meanwhile another writer pushes directly.
        for number in 0..6 {
            place.git("-C work fetch --quiet ../remote.git main");
            place.git("-C work reset --quiet --hard FETCH_HEAD");
            fs::write(place.file(&format!("specs/person-{number}.yaml")), "person").unwrap();
            place.git("-C work add --all");
            place.git("-C work commit --quiet --message=person");
            let mut git = Command::new("git");
            git.args(["-C", "work", "push", "--quiet", "../remote.git", "main"]).current_dir(place.path());
            while !git.output().unwrap().status.success() {
                place.git("-C work pull --quiet --rebase ../remote.git main");
            }
        }
    });
    let files = place.git("-C remote.git ls-tree -r --name-only main");
    for (name, number) in
        ["first", "second", "third"].iter().flat_map(|name| (0..6).map(move |number| (name, number)))
    {
        assert!(files.contains(&format!("specs/acme/{name}-{number}.yaml")), "{name} {number}\n{files}");
    }
    assert_eq!(files.matches("specs/person-").count(), 6);
    assert_eq!(place.git("-C remote.git rev-list --count --first-parent main"), (count + 24).to_string());
    place.git("-C remote.git fsck --strict");
}

#[test]
fn what_others_pushed_meanwhile_is_looked_at_first() {
    let place = BareRepository::new();
    let server = place.serve(&[]);
    for (name, mirror) in [("path", place.by_path("path")), ("ssh", place.by_ssh(&server, "ssh"))] {
        let mut seen = Vec::new();
        let written = mirror.write(&ada(), |snapshot| {
            seen.push(snapshot.revision.clone());
            if seen.len() == 1 {
                place.push_theirs("specs/theirs.yaml", name);
            }
            Ok::<_, Infallible>(change(put("ours.yaml", name)))
        });
        assert_eq!(seen.len(), 2);
        assert_eq!(place.tip(), written.unwrap().commit);
        assert_eq!(
            (place.show("specs/theirs.yaml"), place.show("specs/ours.yaml")),
            (name.into(), name.into())
        );
        assert_eq!(place.git("-C remote.git rev-parse main^"), seen[1]);

        // On the new head, the edit may be invalid.
        let refused = mirror.write(&ada(), |snapshot| {
            let taken = format!("taken-{name}.yaml");
            if snapshot.entries.contains_key(taken.as_str()) {
                return Err(format!("taken by {name}"));
            }
            place.push_theirs(&format!("specs/{taken}"), name);
            Ok(change(put(&taken, "ours")))
        });
        assert_eq!(refused.unwrap_err().to_string(), format!("taken by {name}"));
        assert_eq!(place.show(&format!("specs/taken-{name}.yaml")), name);

        // An edit that was reverted meanwhile isn't applied again.
        let back = place.git("-C remote.git rev-parse main^");
        let mut times = 0;
        let written = mirror.write(&ada(), |_| {
            times += 1;
            place.git(&format!("-C remote.git update-ref refs/heads/main {back}"));
            Ok::<_, Infallible>(change(put("after.yaml", name)))
        });
        assert_eq!((times, place.git("-C remote.git rev-parse main^")), (2, back));
        assert_eq!(written.unwrap().commit, place.tip());
    }
}

#[test]
fn a_branch_that_is_protected_is_told_from_one_that_others_push_to() {
    let place = BareRepository::new();
    let server = place.serve(&[]);
    let (mirror, tip) = (place.by_ssh(&server, "ssh"), place.tip());
    place.hook("pre-receive", "echo 'main is protected, ask Bob' >&2; exit 1");
    let mut said = Vec::new();
    for mirror in [&mirror, &place.by_path("path")] {
        let error = write(mirror, &[put("a.yaml", "a: 2")]).unwrap_err();
        assert!(matches!(error, WriteError::Protected { .. }) && !error.may_be_tried_again(), "{error}");
        said.push(format!("{error}\n= {}", error.hint().unwrap()));
        assert_eq!((place.tip(), mirror.commit()), (tip.clone(), Some(tip.clone())));
    }
    let said = said.join("\n").replace(place.path().to_str().unwrap(), "");
    insta::assert_snapshot!(said.replace(&server.port.to_string(), "PORT"));
}

#[test]
fn a_remote_that_dies_is_asked_whether_it_has_the_commit() {
    let place = BareRepository::new();
    let tip = place.tip();
    // The server accepted the commit, but the answer was lost.
    let server = place.serve(&["-dying"]);
    let mirror = place.by_ssh(&server, "first");
    let written = write(&mirror, &[put("a.yaml", "a: 2")]).unwrap();
    assert_eq!((place.tip(), mirror.commit()), (written.commit.clone(), Some(written.commit.clone())));
    assert_ne!(written.commit, tip);

    // The server disconnected before.
    let server = place.serve(&["-vanishing"]);
    let mirror = place.by_ssh(&server, "second");
    let error = write(&mirror, &[put("a.yaml", "a: 3")]).unwrap_err();
    // Its first message may be lost; then nothing was sent.
    let is_sent = matches!(error, WriteError::Unsure { .. });
    assert!(is_sent || error.to_string().starts_with("nothing was written: cannot push"), "{error}");
    assert_eq!(error.may_be_tried_again(), !is_sent);
    assert_eq!((place.tip(), mirror.commit()), (written.commit.clone(), Some(written.commit.clone())));
    assert_eq!(text(&mirror.snapshot().unwrap(), "a.yaml"), "a: 2");

    // The server doesn't exist.
    drop(server);
    let error = write(&mirror, &[put("a.yaml", "a: 3")]).unwrap_err();
    assert!(error.may_be_tried_again() && error.to_string().starts_with("nothing was written: cannot fetch"));
    assert_eq!(mirror.commit(), Some(written.commit.clone()));

    // The server accepts the commit, disconnects and stays away.
    let server = place.serve(&["-dying", "-last"]);
    let mirror = place.by_ssh(&server, "third");
    let error = write(&mirror, &[put("a.yaml", "a: 4")]).unwrap_err();
    assert!(!error.may_be_tried_again());
    let WriteError::Unsure { commit, .. } = &error else { panic!("{error}") };
    assert!(error.to_string().starts_with("whether ssh://"), "{error}");
    assert_eq!(place.tip(), *commit);
    assert_eq!(mirror.commit(), Some(written.commit));
}
