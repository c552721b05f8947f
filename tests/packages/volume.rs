//! The state on a volume of Kubernetes, which belongs to root, and to the group of the pod if it has an `fsGroup`.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::Path;
use std::process::Command;

use crate::support::{Run, Tree, install, skipped};

/// The user of the image, and the `fsGroup` of the chart.
const USER: u32 = 65532;

const APPLY: [&str; 7] =
    ["apply", "tree", "--yes", "--output-dir", "volume/output", "--secrets-dir", "volume/secrets"];

struct Volume {
    tree: Tree,
}

impl Volume {
    /// A new volume; `None` unless the test may become another user.
    fn of(group: u32, mode: u32) -> Option<Volume> {
        if fs::metadata("/proc/self").unwrap().uid() != 0 {
            skipped("only root can be somebody else");
            return None;
        }
        let tree = Tree::example("quickstart");
        install(env!("CARGO_BIN_EXE_streamfleet"), &tree.beside("streamfleet"));
        fs::create_dir(tree.beside("volume")).unwrap();
        chown(tree.beside("volume"), Some(0), Some(group)).unwrap();
        for (path, mode) in [("", 0o755), ("volume", mode)] {
            fs::set_permissions(tree.beside(path), Permissions::from_mode(mode)).unwrap();
        }
        Some(Volume { tree })
    }

    fn apply(&self, state: &str) -> Run {
        let mut command = Command::new("setpriv");
        command.args([&format!("--reuid={USER}"), &format!("--regid={USER}"), "--clear-groups"]);
        command.arg(self.tree.beside("streamfleet")).args(APPLY).args(["--state-dir", state]);
        command.current_dir(self.tree.beside("")).output().unwrap().into()
    }

    /// What the kubelet does to a volume with `fsGroup` when it mounts it: SetVolumeOwnership of Kubernetes.
    fn mount_again(&self) {
        fn own(path: &Path) {
            let found = fs::symlink_metadata(path).unwrap();
            if found.is_symlink() {
                return;
            }
            std::os::unix::fs::lchown(path, None, Some(USER)).unwrap();
            let added = if found.is_dir() { 0o2770 } else { 0o660 };
            fs::set_permissions(path, Permissions::from_mode(found.mode() & 0o7777 | added)).unwrap();
            if found.is_dir() {
                fs::read_dir(path).unwrap().for_each(|entry| own(&entry.unwrap().path()));
            }
        }
        own(&self.tree.beside("volume"));
    }

    /// The permissions of the state folder and of each file in it.
    fn modes(&self) -> Vec<(String, u32)> {
        let state = self.tree.beside("volume/state");
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
        let files = fs::read_dir(&state).unwrap().map(|entry| entry.unwrap().path());
        let files = files.filter(|path| path.is_file() && !path.ends_with(".gitignore"));
        let mut modes: Vec<_> =
            files.map(|path| (path.file_name().unwrap().to_string_lossy().into(), mode(&path))).collect();
        modes.push(("state".to_owned(), mode(&state)));
        modes.sort();
        modes
    }
}

#[test]
fn a_volume_with_an_fs_group_holds_the_state_and_is_closed_again_when_a_mount_opened_it() {
    let Some(volume) = Volume::of(USER, 0o2775) else { return };
    volume.apply("volume/state").expect(0).says_nothing_of(&["warning"]);
    let closed = volume.modes();
    assert!(closed.iter().all(|(_, mode)| mode & 0o077 == 0), "{closed:?}");

    volume.mount_again();
    assert!(volume.modes().iter().all(|(_, mode)| mode & 0o060 == 0o060));
    volume.apply("volume/state").expect(0).says(&[
        "Nothing to do",
        "`volume/state` was readable or writable by other users of this host; it no longer is; rotate its keys if other \
         users may have read them: streamfleet secret rotate TREE",
    ]);
    let again = volume.modes();
    assert_eq!(again.iter().find(|(name, _)| name == "state").unwrap().1, 0o700);
    for name in ["identity.age-keys", "fingerprint.key", "registry.jsonl"] {
        assert_eq!(again.iter().find(|(found, _)| found == name), Some(&(name.to_owned(), 0o600)));
    }
}

#[test]
fn the_volume_itself_and_one_of_another_user_are_refused_with_what_to_do() {
    let Some(volume) = Volume::of(USER, 0o2775) else { return };
    assert_eq!(
        volume.apply("volume").expect(1).err,
        "error: cannot open the state in `volume`\n  because: cannot close to other users `volume`: Operation not permitted \
         (os error 1)\n  help: it belongs to another user: name a folder in it that streamfleet creates, such as \
         `volume/state`, with `state_dir`\n"
    );
    let Some(volume) = Volume::of(0, 0o755) else { return };
    assert_eq!(
        volume.apply("volume/state").expect(1).err,
        "error: cannot open the state in `volume/state`\n  because: cannot create the state folder `volume/state`: \
         Permission denied (os error 13)\n  help: let the user that runs streamfleet write there, or set another folder with \
         `state_dir`\n"
    );
}

/// Its files would be root's, and the service could not read them.
#[test]
fn root_writes_to_no_state_of_another_user() {
    let Some(volume) = Volume::of(USER, 0o2775) else { return };
    volume.apply("volume/state").expect(0);
    let folders = "--state-dir volume/state --output-dir volume/output";
    let refused = volume.tree.run(&format!("apply tree --yes {folders}")).expect(1);
    assert_eq!(
        refused.err,
        format!(
            "error: cannot open the state in `volume/state`\n  because: cannot use the state in `volume/state`: it belongs to \
             user {USER}, and this is root\n  help: root would leave files that this user can't read: sudo -u '#{USER}' \
             streamfleet …\n"
        )
    );
    volume.apply("volume/state").expect(0).says(&["Nothing to do"]);
}
