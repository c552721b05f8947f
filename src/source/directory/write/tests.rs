//! Tests of failing disks: the file is unchanged, or the error says that its state is unknown.

use std::cell::Cell;

use tempfile::TempDir;

use super::*;

struct World {
    folder: TempDir,
}

impl World {
    fn new(text: Option<&str>) -> Self {
        let world = World { folder: tempfile::tempdir().unwrap() };
        if let Some(text) = text {
            fs::write(world.root().join("a.yaml"), text).unwrap();
        }
        world
    }

    fn root(&self) -> &Utf8Path {
        Utf8Path::from_path(self.folder.path()).unwrap()
    }

    fn all(&self) -> Vec<(String, String)> {
        let mut all: Vec<_> = self.root().read_dir_utf8().unwrap().flatten().collect();
        all.sort_by_key(|entry| entry.file_name().to_owned());
        let text = |path: &Utf8Path| fs::read_to_string(path).unwrap_or_default();
        all.iter().map(|entry| (entry.file_name().to_owned(), text(entry.path()))).collect()
    }

    /// Makes an edit during which sync number `turn` fails, after a call of `meanwhile`.
    fn write(&self, path: &str, content: Option<&str>, turn: u32, meanwhile: impl Fn()) -> String {
        let edit = FileEdit {
            path: path.parse().unwrap(),
            content: content.map(|content| content.as_bytes().to_vec()),
        };
        let before = fs::read(self.root().join(path)).ok();
        let turns = Cell::new(0);
        let sync = |_: &Utf8Path| {
            turns.set(turns.get() + 1);
            if turns.get() != turn {
                return Ok(());
            }
            meanwhile();
            Err(io::Error::from(Errno::IO))
        };
        let error = write_with(self.root(), &edit, before.as_deref(), &sync).unwrap_err();
        format!("{error}\n  = {}", error.hint())
    }
}

const NOT_WRITTEN: &str = "cannot write `a.yaml` in the specs: Input/output error (os error 5)
  = let the user that runs streamfleet write to the files and folders of the specs, and try again";

const UNSURE: &str =
    "`a.yaml` was changed, but the change may not survive a power cut: Input/output error (os error 5)
  = check the disk of the specs, and read the file before you write it again";

fn file(text: &str) -> Vec<(String, String)> {
    vec![("a.yaml".to_owned(), text.to_owned())]
}

#[test]
fn what_was_there_comes_back() {
    let world = World::new(Some("old"));
    assert_eq!(world.write("a.yaml", Some("new"), 1, || {}), NOT_WRITTEN);
    assert_eq!(world.all(), file("old"));
    let removed = world.write("a.yaml", None, 1, || {});
    assert_eq!(removed, NOT_WRITTEN.replace("cannot write", "cannot remove"));
    assert_eq!(world.all(), file("old"));
}

#[test]
fn what_is_new_goes_with_its_folders() {
    let world = World::new(None);
    for turn in 1..=3 {
        let said = world.write("acme/clusters/a.yaml", Some("new"), turn, || {});
        assert_eq!(said, NOT_WRITTEN.replace("a.yaml", "acme/clusters/a.yaml"));
        assert_eq!(world.all(), []);
    }
}

#[test]
fn what_somebody_saved_meanwhile_stays_and_nobody_is_told_that_nothing_was_written() {
    let world = World::new(Some("old"));
    let place = world.root().join("a.yaml");
    let save = || fs::write(&place, "theirs").unwrap();
    assert_eq!(world.write("a.yaml", Some("new"), 1, save), UNSURE);
    assert_eq!(world.all(), file("theirs"));
    assert_eq!(world.write("a.yaml", None, 1, save), UNSURE);
    assert_eq!(world.all(), file("theirs"));
    fs::remove_file(&place).unwrap();
    assert_eq!(world.write("a.yaml", Some("new"), 1, save), UNSURE);
    assert_eq!(world.all(), file("theirs"));
}

#[test]
fn what_somebody_put_there_that_can_t_be_read_stays() {
    let world = World::new(Some("old"));
    let place = world.root().join("a.yaml");
    let link = || {
        let _ = fs::remove_file(&place);
        std::os::unix::fs::symlink("nowhere", &place).unwrap();
    };
    let path: SpecPath = "a.yaml".parse().unwrap();
    let found = FileLocation::find(world.root(), &path).unwrap();
    link();
    let of = FileWrite { path: &path, place: &found, sync: &|_| Ok(()) };
    assert_eq!(
        of.remove_durably(Some(b"old")).unwrap_err().to_string(),
        "cannot remove `a.yaml` in the specs: No such file or directory (os error 2)"
    );
    assert!(place.is_symlink());
    fs::remove_file(&place).unwrap();
    assert_eq!(world.write("a.yaml", Some("new"), 1, link), UNSURE);
    assert!(place.is_symlink());
    assert_eq!(world.all().len(), 1);
}

#[test]
fn what_somebody_saved_that_can_t_be_put_back_is_kept_and_told() {
    let world = World::new(Some("newer"));
    let path: SpecPath = "a.yaml".parse().unwrap();
    let found = FileLocation::find(world.root(), &path).unwrap();
    let of = FileWrite { path: &path, place: &found, sync: &|_| Ok(()) };
    let aside = of.aside().unwrap();
    fs::write(&aside, "theirs").unwrap();
    let error = of.put_back(aside).unwrap_err();
    let all = world.all();
    let (name, text) = &all[0];
    assert!(name.starts_with(KEPT) && text == "theirs" && all[1..] == file("newer"), "{all:?}");
    assert_eq!(
        format!("{error}\n  = {}", error.hint()).replace(name, "NAME"),
        "another program saved `a.yaml` at the same time; its version could not be restored, and is in `NAME`: File exists (os error 17)
  = rename it back, unless the new file is newer; then remove it"
    );
}
