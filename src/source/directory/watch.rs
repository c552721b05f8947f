//! Notifies of changes below a folder, with inotify. A notification is only a hint: the caller scans after
//! it, and also now and then without one.
//!
//! If inotify is unavailable, because a limit is reached or the files are on a network file system, the
//! tree's metadata is polled instead.

mod change_counter;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{CreateFlags, ReadFlags, Reader, WatchFlags, add_watch, init, remove_watch};
use rustix::io::Errno;

use super::{MAX_FOLDERS, TEMPORARY, TreeStamp, is_spec, read_tree_stamp};
use crate::names::SpecPath;
use crate::parallel::locked;

pub use change_counter::ChangeCounter;

/// The debounce: how long the tree must be quiet before a change is reported. Saves often come in groups.
const SAVE_DEBOUNCE: Duration = Duration::from_millis(100);

/// The limit of that wait.
const MAX_SAVE_DEBOUNCE: Duration = Duration::from_secs(1);

/// How often all folders are listed again, to find those without an event, such as below a new mount point.
const RELIST_INTERVAL: Duration = Duration::from_secs(30);

/// The interval of polling a tree without inotify. A tree that takes long to list is polled less often.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// How long after the last write a file counts as complete if no close was seen.
const ABANDONED: Duration = Duration::from_secs(30);

/// The minimum of the polling interval, as a multiple of the time that one listing takes.
const POLL_SLOWDOWN: u32 = 10;

/// How many links are followed on the path to a tree: as many as the kernel follows.
const MAX_LINKS: usize = 40;

/// The watched events. Listing a folder or reading a file causes none of them.
const EVENTS: WatchFlags = WatchFlags::CLOSE_WRITE
    .union(WatchFlags::MODIFY)
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::CREATE)
    .union(WatchFlags::DELETE)
    .union(WatchFlags::DELETE_SELF)
    .union(WatchFlags::MOVE)
    .union(WatchFlags::MOVE_SELF)
    .union(WatchFlags::ONLYDIR)
    .union(WatchFlags::DONT_FOLLOW);

/// File systems that can change without this host's kernel knowing, by their `statfs` number.
const REMOTE: [(u32, &str); 16] = [
    (0x6969, "NFS"),
    (0x517b, "SMB"),
    (0xfe53_4d42, "SMB"),
    (0xff53_4d42, "CIFS"),
    (0x6573_5546, "FUSE"),
    (0x0102_1997, "9p"),
    (0x00c3_6400, "Ceph"),
    (0x5346_414f, "AFS"),
    (0x6b41_4653, "AFS"),
    (0x7375_7245, "Coda"),
    (0x0116_1970, "GFS2"),
    (0x7461_636f, "OCFS2"),
    (0x0bd0_0bd0, "Lustre"),
    (0x4750_4653, "GPFS"),
    (0x786f_4256, "a shared folder of VirtualBox"),
    (0xbacb_acbc, "a shared folder of VMware"),
];

pub struct Watch {
    root: Utf8PathBuf,
    inotify: Option<Arc<OwnedFd>>,
    /// The watched folders, by watch descriptor.
    folders: BTreeMap<i32, PathBuf>,
    /// The folders of links on the path to the root, with the names of these links: changing such a link
    /// switches to another tree.
    links: BTreeMap<i32, BTreeSet<OsString>>,
    /// Whether there may be folders that aren't watched yet.
    is_stale: bool,
    /// Why the tree is polled; none if inotify suffices.
    polls: Option<PollReason>,
    /// The last logged value of `polls`.
    logged_polls: Option<PollReason>,
    glance: Option<TreeStamp>,
    listing_duration: Duration,
    unfinished: UnfinishedFiles,
    shared_change_counter: ChangeCounter,
}

/// Files with writes and no close yet, as far as inotify reports: their content is incomplete. Each has the
/// time of its last write.
#[derive(Debug, Clone, Default)]
pub struct UnfinishedFiles(Arc<Mutex<BTreeMap<PathBuf, Instant>>>);

impl UnfinishedFiles {
    pub(super) fn files(&self) -> Vec<PathBuf> {
        let mut files = self.lock();
        // A file may be written without being opened (as by a truncation), so that no close follows.
        files.retain(|_, last| last.elapsed() < ABANDONED);
        files.keys().cloned().collect()
    }

    pub fn has(&self, root: &Utf8Path, path: &SpecPath) -> bool {
        let files = self.files();
        let place = (!files.is_empty()).then(|| fs::canonicalize(root.join(path.as_str())).ok()).flatten();
        place.is_some_and(|place| files.contains(&place))
    }

    fn hear(&self, file: PathBuf, flags: ReadFlags) {
        let is_over =
            ReadFlags::CLOSE_WRITE | ReadFlags::DELETE | ReadFlags::MOVED_FROM | ReadFlags::MOVED_TO;
        if flags.intersects(is_over) {
            self.lock().remove(&file);
        } else if flags.contains(ReadFlags::MODIFY) {
            self.lock().insert(file, Instant::now());
        }
    }

    fn forget(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<PathBuf, Instant>> {
        locked(&self.0)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum PollReason {
    /// The tree doesn't exist, which its reader reports.
    Missing,
    /// inotify failed.
    Refused { why: String, hint: String },
    /// The tree is on a file system that others can change.
    Remote { path: PathBuf, kind: &'static str },
}

impl Watch {
    /// Starts watching a tree: [`Watch::changed`] reports all changes from now on.
    pub fn new(root: &Utf8Path) -> Self {
        let mut watch = Watch {
            root: root.to_owned(),
            inotify: None,
            folders: BTreeMap::new(),
            links: BTreeMap::new(),
            is_stale: true,
            polls: None,
            logged_polls: None,
            glance: None,
            listing_duration: Duration::ZERO,
            unfinished: UnfinishedFiles::default(),
            shared_change_counter: ChangeCounter::default(),
        };
        watch.update_watches();
        if watch.polls.is_some() {
            watch.tree_stamp_changed();
        }
        watch
    }

    pub fn unfinished(&self) -> UnfinishedFiles {
        self.unfinished.clone()
    }

    pub fn heard(&self) -> ChangeCounter {
        self.shared_change_counter.clone()
    }

    /// Waits until something may have changed and the tree is quiet again. By then, all of it is watched.
    pub fn changed(&mut self) {
        let mut covered = Instant::now();
        loop {
            let pause = if self.polls.is_some() {
                POLL_INTERVAL.max(self.listing_duration * POLL_SLOWDOWN)
            } else {
                RELIST_INTERVAL
            };
            if self.wait_for_event(pause) && self.read_events() {
                let begin = Instant::now();
                // Until new folders are watched, each scan has to walk all of the tree.
                if self.is_stale {
                    self.update_watches();
                }
                let goes_on = |watch: &Self| {
                    watch.wait_for_event(SAVE_DEBOUNCE) || !watch.unfinished.files().is_empty()
                };
                while begin.elapsed() < MAX_SAVE_DEBOUNCE && goes_on(self) {
                    self.read_events();
                }
                if self.is_stale {
                    self.update_watches();
                }
                return;
            }
            if self.is_stale
                || covered.elapsed() >= RELIST_INTERVAL
                || self.polls == Some(PollReason::Missing)
            {
                self.update_watches();
                covered = Instant::now();
            }
            if self.polls.is_some() && self.tree_stamp_changed() {
                return;
            }
        }
    }

    /// Reads what the kernel told, without waiting.
    #[cfg(test)]
    pub(super) fn hear(&mut self) {
        self.read_events();
        if self.is_stale {
            self.update_watches();
        }
    }

    fn wait_for_event(&self, pause: Duration) -> bool {
        let Some(inotify) = &self.inotify else {
            std::thread::sleep(pause);
            return false;
        };
        let mut fds = [PollFd::new(inotify, PollFlags::IN)];
        // A pause beyond the kernel's range means no timeout.
        let pause = Timespec::try_from(pause).ok();
        match poll(&mut fds, pause.as_ref()) {
            Ok(number) => number > 0,
            // Interrupted by a signal.
            Err(_) => false,
        }
    }

    /// Reads all pending events, and returns whether any of them matters.
    fn read_events(&mut self) -> bool {
        let Some(inotify) = self.inotify.clone() else { return false };
        // The counter stays locked until these events are counted.
        let heard = self.shared_change_counter.clone();
        let mut ear = heard.lock_count();
        let mut buffer = [MaybeUninit::uninit(); 16 * 1024];
        let mut reader = Reader::new(&*inotify, &mut buffer);
        let mut matters = false;
        loop {
            let event = match reader.next() {
                Ok(event) => event,
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => break,
                Err(error) => {
                    tracing::debug!(specs = %self.root, %error, "cannot read inotify events; watching starts again");
                    (self.inotify, self.is_stale) = (None, true);
                    self.unfinished.forget();
                    matters = true;
                    break;
                }
            };
            let flags = event.events();
            let name = event.file_name().map(|name| name.to_bytes());
            if !self.folders.contains_key(&event.wd())
                && let Some(links) = self.links.get(&event.wd())
                && let Some(name) = name
            {
                // Other files beside the tree don't matter.
                let is_link = links.iter().any(|link| link.as_bytes() == name);
                (self.is_stale, matters) = (self.is_stale || is_link, matters || is_link);
                continue;
            }
            let lost = ReadFlags::QUEUE_OVERFLOW;
            let own = ReadFlags::DELETE_SELF | ReadFlags::MOVE_SELF | ReadFlags::IGNORED | ReadFlags::UNMOUNT;
            if flags.intersects(lost | own | ReadFlags::ISDIR) {
                self.is_stale = true;
            }
            let changed = self.folders.get(&event.wd()).zip(name).filter(|_| !flags.intersects(lost | own));
            if let Some((folder, name)) = changed {
                let file = folder.join(OsStr::from_bytes(name));
                if std::str::from_utf8(name).is_ok_and(is_spec) {
                    self.unfinished.hear(file.clone(), flags);
                }
                if flags.intersects(ReadFlags::MOVED_FROM | ReadFlags::MOVED_TO) {
                    ear.count_rename(event.cookie(), flags.contains(ReadFlags::MOVED_FROM));
                }
                if !name.starts_with(TEMPORARY.as_bytes()) {
                    ear.name(Some(file));
                }
            } else {
                ear.name(None);
                if flags.intersects(lost | own) {
                    self.unfinished.forget();
                }
            }
            matters |= flags.intersects(lost | own) || name.is_none_or(is_spec_or_volume);
        }
        if matters {
            ear.count_change();
        }
        if self.is_stale {
            // A new folder reports no events until it is watched.
            ear.mark_incomplete();
        }
        matters
    }

    fn update_watches(&mut self) {
        let was_stale = std::mem::take(&mut self.is_stale);
        let (before, polled) = (self.folders.clone(), self.polls.is_some());
        self.polls = self.watch_all_folders().err();
        if was_stale || polled || self.polls.is_some() || self.folders != before {
            self.shared_change_counter.set_inotify(self.inotify.as_ref().filter(|_| self.polls.is_none()));
        }
        match (&self.polls, &self.logged_polls) {
            (polls, told) if polls == told => return,
            (Some(PollReason::Missing), _) => return,
            (None, _) => tracing::info!(specs = %self.root, "the specs are watched again"),
            (Some(PollReason::Refused { why, hint }), _) => tracing::warn!(
                specs = %self.root,
                hint,
                "{why}, so streamfleet checks the specs once a second instead"
            ),
            (Some(PollReason::Remote { path, kind }), _) => tracing::warn!(
                folder = %path.display(),
                "{kind} doesn't report changes by other hosts, so streamfleet also checks the specs once a second"
            ),
        }
        self.logged_polls.clone_from(&self.polls);
    }

    fn watch_all_folders(&mut self) -> Result<(), PollReason> {
        let inotify = match self.inotify.take() {
            Some(inotify) => inotify,
            None => {
                (self.folders, self.links) = Default::default();
                Arc::new(init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).map_err(refused)?)
            }
        };
        let mut cover = WatchWalk { inotify: &inotify, folders: BTreeMap::new(), device: None, remote: None };
        // Watched before the tree, so that a link changed meanwhile causes an event.
        let mut links: BTreeMap<i32, BTreeSet<OsString>> = BTreeMap::new();
        for (folder, link) in links_to(self.root.as_std_path()) {
            // A folder that can't be watched is covered by the regular listing.
            if let Ok(watch) = add_watch(&inotify, &folder, EVENTS) {
                links.entry(watch).or_default().insert(link);
            }
        }
        let root = fs::canonicalize(&self.root).unwrap_or_else(|_| self.root.clone().into());
        let covered = cover.folder(&root, 0);
        let WatchWalk { folders, remote, .. } = cover;
        let is_watched = |watch: &i32| folders.contains_key(watch) || links.contains_key(watch);
        for watch in self.folders.keys().chain(self.links.keys()).filter(|watch| !is_watched(watch)) {
            // This fails if the folder is gone, and its watch with it.
            let _ = remove_watch(&inotify, *watch);
        }
        let is_missing = folders.is_empty();
        (self.inotify, self.folders, self.links) = (Some(inotify), folders, links);
        match (covered, remote) {
            (Err(error), _) => Err(refused(error)),
            (Ok(()), _) if is_missing => Err(PollReason::Missing),
            (Ok(()), Some((path, kind))) => Err(PollReason::Remote { path, kind }),
            (Ok(()), None) => Ok(()),
        }
    }

    fn tree_stamp_changed(&mut self) -> bool {
        let begin = Instant::now();
        let now = self.root.canonicalize_utf8().ok().and_then(|root| read_tree_stamp(&root).ok());
        self.listing_duration = begin.elapsed();
        let differs = now != self.glance;
        self.glance = now;
        differs
    }
}

/// Returns the links on the path to a folder, each with the folder that contains it.
fn links_to(path: &Path) -> Vec<(PathBuf, OsString)> {
    let mut links = Vec::new();
    let mut here = PathBuf::from("/");
    let mut left: Vec<PathBuf> = parts(path);
    while let Some(part) = left.pop() {
        match fs::read_link(here.join(&part)) {
            // The kernel follows no more links either.
            Ok(target) if links.len() < MAX_LINKS => {
                links.push((here.clone(), part.into_os_string()));
                left.extend(parts(&target));
            }
            _ if part == Path::new("..") => drop(here.pop()),
            // An absolute target replaces the path.
            _ => here.push(part),
        }
    }
    links
}

/// Returns the components of a path, last one first.
fn parts(path: &Path) -> Vec<PathBuf> {
    path.components().rev().map(|part| PathBuf::from(part.as_os_str())).collect()
}

struct WatchWalk<'a> {
    inotify: &'a OwnedFd,
    folders: BTreeMap<i32, PathBuf>,
    /// The device of the previous folder, to call `statfs` only when it changes.
    device: Option<u64>,
    remote: Option<(PathBuf, &'static str)>,
}

impl WatchWalk<'_> {
    /// Watches a folder and its subfolders. A folder that is gone or can't be listed is skipped: its parent's
    /// watch reports when that changes.
    fn folder(&mut self, path: &Path, depth: usize) -> Result<(), Errno> {
        // Watched before it is listed, so that later additions cause events.
        let watch = match add_watch(self.inotify, path, EVENTS) {
            Ok(watch) => watch,
            Err(Errno::NOENT | Errno::NOTDIR | Errno::ACCESS | Errno::LOOP) => return Ok(()),
            Err(error) => return Err(error),
        };
        self.folders.insert(watch, path.to_owned());
        self.judge(path);
        if depth > MAX_FOLDERS {
            return Ok(());
        }
        for entry in fs::read_dir(path).into_iter().flatten().flatten() {
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            let is_hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
            if is_folder && !is_hidden {
                self.folder(&entry.path(), depth + 1)?;
            }
        }
        Ok(())
    }

    /// Records the first folder on a file system that others can change.
    fn judge(&mut self, path: &Path) {
        let device = fs::metadata(path).ok().map(|data| data.dev());
        if device == self.device || self.remote.is_some() {
            return;
        }
        self.device = device;
        let Ok(found) = rustix::fs::statfs(path) else { return };
        self.remote = remote(found.f_type as u64).map(|kind| (path.to_owned(), kind));
    }
}

/// Returns the name of a file system that others can change. `statfs` numbers have 32 bits, but some hosts
/// sign-extend them.
fn remote(number: u64) -> Option<&'static str> {
    let is_it = |(known, _): &&(u32, &str)| u64::from(*known) == number & u64::from(u32::MAX);
    REMOTE.iter().find(is_it).map(|(_, kind)| *kind)
}

/// Returns whether a name can be that of a spec, a folder, or a Kubernetes volume (`..data`). Temporary files
/// of editors begin with a single dot.
fn is_spec_or_volume(name: &[u8]) -> bool {
    !name.starts_with(b".") || name.starts_with(b"..")
}

fn refused(error: Errno) -> PollReason {
    let limit = |what: &str, key: &str| {
        let hint = format!("raise it: sysctl fs.inotify.{key}");
        PollReason::Refused { why: format!("this user may not have more inotify {what}"), hint }
    };
    match error {
        Errno::NOSPC => limit("watches", "max_user_watches"),
        Errno::MFILE | Errno::NFILE => limit("instances", "max_user_instances"),
        error => {
            let error = io::Error::from(error);
            let hint = "check inotify on this host".to_owned();
            PollReason::Refused { why: format!("the kernel doesn't report changes: {error}"), hint }
        }
    }
}
