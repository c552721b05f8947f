//! A branch of a git repository, fetched into a bare clone. Commits are read from it without a work tree.

mod branch_memory;
mod error;
pub mod history;
mod known_hosts;
mod locks;
mod login;
mod signed;
#[cfg(test)]
mod tests;
mod tree;
pub mod webhook;
pub mod write;

use std::fs::{self, DirBuilder};
use std::io::{self, ErrorKind};
use std::os::unix::fs::DirBuilderExt as _;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use git2::{
    AutotagOption, ErrorClass, ErrorCode, FetchOptions, FetchPrune, Oid, RemoteRedirect, Repository,
    RepositoryInitOptions,
};
use secrecy::SecretString;

use branch_memory::follows;
pub use error::GitError;
use locks::Lock;
use login::{DistrustReason, Login};
use signed::Signers;
use tree::Blobs;
pub use tree::checked_out;

use crate::config::{SourceConfig, Transport};
use crate::names::Digest;
use crate::parallel::locked;
use crate::spec::{Snapshot, SourceId};

const SIGNED_BY: &str = "source.signed_by";

/// The number of pack files at which a new clone is made. Each fetch with new objects leaves one, every
/// object access may open all of them, and a new clone has one.
const MAX_PACKS: usize = 200;

/// A branch of a repository, with a bare clone.
///
/// The last commit that was complete stays active until another one is: an unreachable remote, a missing
/// branch and an unreadable commit change nothing.
#[derive(Debug)]
pub struct Mirror {
    /// The folder of the clone. It can be fetched again, except for commits that the remote no longer has.
    place: Utf8PathBuf,
    url: String,
    branch: String,
    folder: Option<String>,
    timeout_seconds: u32,
    login: Login,
    /// The file of allowed signers; a commit must be signed by one of them.
    signed_by: Option<Utf8PathBuf>,
    signing_key: Option<Utf8PathBuf>,
    webhook_secret_file: Option<Utf8PathBuf>,
    /// The last commit that was read completely from the current clone, so that it needn't be read again, nor
    /// what the next commit has in common with it.
    whole: Mutex<Option<WholeCommit>>,
}

#[derive(Debug, Clone)]
struct WholeCommit {
    commit: Oid,
    snapshot: Arc<Snapshot>,
    blobs: Arc<Blobs>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    /// The commit that is active now.
    pub commit: String,
    /// Whether it differs from the previous one, or is the first.
    pub is_new: bool,
    /// Whether it doesn't descend from the previous one, as after a force push.
    pub rewritten: bool,
}

struct CloneRefs {
    prefix: String,
    /// The branch at the last fetch.
    fetched: String,
    /// The last commit that was complete.
    in_force: String,
}

impl Mirror {
    /// Returns the git source in the settings, cloned into a folder; none if they have none. A token from the
    /// environment takes precedence over one in a file.
    pub fn of(config: &SourceConfig, place: Utf8PathBuf, token: Option<SecretString>) -> Option<Mirror> {
        let given = config.git.as_ref()?;
        // Checked settings always have a valid transport.
        let transport = Transport::of(given).ok()?;
        // Absolute, so that the source doesn't depend on the working directory.
        let absolute = || {
            let path = std::path::absolute(given).ok()?;
            Some(path.to_str()?.trim_end_matches('/').to_owned())
        };
        let is_path = transport == Transport::Local && !given.contains("://");
        Some(Mirror {
            place,
            url: is_path.then(absolute).flatten().unwrap_or_else(|| given.clone()),
            branch: config.branch.clone(),
            folder: config.folder.clone(),
            timeout_seconds: config.timeout_seconds,
            login: Login::of(config, transport, token),
            signed_by: config.signed_by.clone(),
            signing_key: config.signing_key.clone(),
            webhook_secret_file: config.webhook_secret_file.clone(),
            whole: Mutex::default(),
        })
    }

    /// Returns the secret that webhooks must show; none if webhooks are off.
    ///
    /// # Errors
    /// If its file can't be read, or is empty.
    pub fn webhook_secret(&self) -> Result<Option<SecretString>, GitError> {
        let file = self.webhook_secret_file.as_deref();
        file.map(|path| login::secret(path, "source.webhook_secret_file")).transpose()
    }

    pub fn source(&self) -> SourceId {
        let folder = self.folder.iter().map(|folder| format!(", folder {folder}")).collect::<String>();
        SourceId(format!("{} (branch {}{folder})", self.url, self.branch))
    }

    pub fn timeout(&self) -> Duration {
        Duration::from_secs(u64::from(self.timeout_seconds))
    }

    pub fn timeout_error(&self) -> GitError {
        GitError::Late { url: self.url.clone(), seconds: self.timeout_seconds }
    }

    /// Fetches the branch, and makes its commit active if all of its specs are there. It blocks, and a silent
    /// remote may block it for longer than the timeout.
    ///
    /// # Errors
    /// If the remote can't be reached or has no such branch or folder, the clone can't be kept, or another
    /// process is fetching into it. The active commit stays the same.
    pub fn fetch(&self) -> Result<Fetched, GitError> {
        let until = Instant::now() + self.timeout();
        let _alone = self.lock_for_writing()?;
        self.fetch_alone(until)
    }

    /// Locks the clone against changes by others until the result is dropped.
    fn lock_for_writing(&self) -> Result<Lock, GitError> {
        let around = self.place.parent().unwrap_or(&self.place);
        private_folder(around).map_err(|error| clone(around, &error))?;
        locks::alone(&self.place, &self.url, self.timeout())
    }

    fn fetch_alone(&self, until: Instant) -> Result<Fetched, GitError> {
        // Read before the first attempt, which may make a commit active that is still new to the caller.
        let before = self.commit();
        let anew = || self.fetch_anew(until, before.as_deref());
        let fetched = match self.fetch_into(&self.place, until, before.as_deref()) {
            // The damage may be in the clone or in the remote.
            Err(GitError::Damaged { .. } | GitError::Clone { .. }) => anew(),
            Err(GitError::Remote { error, .. }) if may_be_the_clones(&error) => anew(),
            Err(GitError::Remote { .. }) if matches!(self.snapshot(), Err(GitError::Damaged { .. })) => {
                anew()
            }
            Ok(fetched) if fetched.is_new && self.is_crowded() => anew().or(Ok(fetched)),
            done => done,
        }?;
        // If this fails, the record just stays longer: a branch with the lost commit isn't doubted anyway.
        let _ = self.in_order_again();
        Ok(fetched)
    }

    pub fn commit(&self) -> Option<String> {
        let _there = self.reading().ok()?;
        let repository = Repository::open_bare(&self.place).ok()?;
        Some(self.names().in_force(&repository)?.to_string())
    }

    /// Returns the specs of the active commit, all of it read from the clone.
    ///
    /// # Errors
    /// If there is none yet, or it can't be read.
    pub fn snapshot(&self) -> Result<Snapshot, GitError> {
        let read = |repository: &Repository, commit| self.read(repository, commit, &Blobs::default());
        Ok(Arc::unwrap_or_clone(self.read_in_force(read)?))
    }

    /// Returns the specs of the active commit. What was read before from the clone isn't read again.
    ///
    /// # Errors
    /// If there is none yet, or it can't be read.
    pub fn latest(&self) -> Result<Arc<Snapshot>, GitError> {
        self.read_in_force(|repository, commit| {
            let known = self.whole().clone();
            if let Some(known) = known.as_ref().filter(|known| known.commit == commit) {
                return Ok(known.clone());
            }
            let blobs = known.map(|known| known.blobs).unwrap_or_default();
            let read = self.read(repository, commit, &blobs)?;
            *self.whole() = Some(read.clone());
            Ok(read)
        })
    }

    fn read_in_force(
        &self,
        read: impl FnOnce(&Repository, Oid) -> Result<WholeCommit, GitError>,
    ) -> Result<Arc<Snapshot>, GitError> {
        let snapshot = self.read_commit_in_force(read);
        if snapshot.is_err() {
            // Makes the next fetch read everything and find what is missing.
            *self.whole() = None;
        }
        snapshot
    }

    fn read_commit_in_force(
        &self,
        read: impl FnOnce(&Repository, Oid) -> Result<WholeCommit, GitError>,
    ) -> Result<Arc<Snapshot>, GitError> {
        let _there = self.reading()?;
        // Read before and after, since another process may be making another commit active.
        let earlier = self.kept()?;
        let nothing = || GitError::Nothing { url: self.url.clone() };
        let repository = Repository::open_bare(&self.place).map_err(|_| nothing())?;
        let commit = self.names().in_force(&repository).ok_or_else(nothing)?;
        let WholeCommit { mut snapshot, .. } = read(&repository, commit)?;
        let mut lost = [earlier, self.kept()?].into_iter().flatten().filter_map(|kept| kept.lost);
        if let Some(lost) = lost.find(|lost| !follows(&repository, commit, lost))
            && let Some(read) = &mut Arc::make_mut(&mut snapshot).commit
        {
            read.rewrote = Some(lost);
        }
        Ok(snapshot)
    }

    /// Locks the clone against being replaced until the result is dropped.
    fn reading(&self) -> Result<Lock, GitError> {
        if !self.place.exists() {
            self.adopt();
        }
        locks::reading(&self.place).map_err(|error| match error.kind() {
            ErrorKind::NotFound => GitError::Nothing { url: self.url.clone() },
            _ => clone(&self.place, &error),
        })
    }

    fn fetch_into(
        &self,
        place: &Utf8Path,
        until: Instant,
        before: Option<&str>,
    ) -> Result<Fetched, GitError> {
        let repository = self.open(place)?;
        let names = self.names();
        let found = self.download(&repository, &names, until)?;
        self.check_commit_signature(&repository, found)?;
        let known = self.whole().clone().filter(|_| place == self.place);
        let is_whole = names.in_force(&repository) == Some(found)
            && known.as_ref().is_some_and(|known| known.commit == found);
        let whole = match known {
            Some(known) if is_whole => known,
            // Another process may have set the reference from a remote that has lost some of its objects.
            known => self.read(&repository, found, &known.map(|known| known.blobs).unwrap_or_default())?,
        };
        let follows_last = self.keep(&repository, found)?;
        names.put_in_force(&repository, found).map_err(|error| clone(place, &error))?;
        *self.whole() = Some(whole);
        let is_new = before != Some(found.to_string().as_str());
        let follows_it = before.is_none_or(|before| follows(&repository, found, before));
        Ok(Fetched { commit: found.to_string(), is_new, rewritten: is_new && !(follows_last && follows_it) })
    }

    /// Fetches everything into a new clone, which replaces the old one once it is complete.
    fn fetch_anew(&self, until: Instant, before: Option<&str>) -> Result<Fetched, GitError> {
        let (fresh, old) = (self.beside("new"), self.beside("old"));
        remove(&fresh).map_err(|error| clone(&fresh, &error))?;
        remove(&old).map_err(|error| clone(&old, &error))?;
        let fetched = self.fetch_into(&fresh, until, before)?;
        let _nobody_reads = locks::swapping(&self.place).map_err(|error| clone(&self.place, &error))?;
        // If the process is killed between the two renames, both clones are left, and one of them is adopted.
        let moved = fs::rename(&self.place, &old).and_then(|()| fs::rename(&fresh, &self.place));
        moved.map_err(|error| clone(&self.place, &error))?;
        // If this fails, the next such fetch does it.
        let _ = remove(&old);
        Ok(fetched)
    }

    /// Restores a clone that a killed process left beside its place. If that fails, everything is fetched.
    fn adopt(&self) {
        let Ok(_nobody_reads) = locks::swapping(&self.place) else { return };
        let is_whole = |clone: &Utf8PathBuf| {
            Repository::open_bare(clone).is_ok_and(|found| self.names().in_force(&found).is_some())
        };
        let found = [self.beside("new"), self.beside("old")].into_iter().find(is_whole);
        if let Some(found) = found.filter(|_| !self.place.exists())
            && let Err(error) = fs::rename(&found, &self.place)
        {
            tracing::debug!(%error, clone = %found, "cannot restore the clone; everything is fetched again");
        }
    }

    fn beside(&self, end: &str) -> Utf8PathBuf {
        Utf8PathBuf::from(format!("{}.{end}", self.place))
    }

    fn open(&self, place: &Utf8Path) -> Result<Repository, GitError> {
        match Repository::open_bare(place) {
            Ok(repository) => return Ok(repository),
            Err(error) if error.code() != ErrorCode::NotFound || place.exists() => {
                return Err(clone(place, &error));
            }
            Err(_) => {}
        }
        private_folder(place).map_err(|error| clone(place, &error))?;
        let mut options = RepositoryInitOptions::new();
        options.bare(true).external_template(false);
        Repository::init_opts(place, &options).map_err(|error| clone(place, &error))
    }

    fn download(&self, repository: &Repository, names: &CloneRefs, until: Instant) -> Result<Oid, GitError> {
        let url = || self.url.clone();
        self.look_for_local()?;
        let told = DistrustReason::default();
        let failed = |error: git2::Error| match told.take() {
            Some(why) => GitError::Distrusted { url: url(), why },
            None if Instant::now() >= until => self.timeout_error(),
            None if error.message().contains("object format") => GitError::Sha256 { url: url() },
            None => GitError::Remote { url: url(), error },
        };
        let mut remote = repository.remote_anonymous(&self.url).map_err(failed)?;
        let mut options = FetchOptions::new();
        options
            .remote_callbacks(self.login.callbacks(until, &told)?)
            // Another host might get the token.
            .follow_redirects(RemoteRedirect::None)
            .download_tags(AutotagOption::None)
            .prune(FetchPrune::Off)
            .update_fetchhead(false);
        // Fetching a missing branch is no error for libgit2, so the reference is deleted first to detect it.
        names.forget_fetched(repository).map_err(|error| clone(&self.place, &error))?;
        let refspec = format!("+refs/heads/{}:{}", self.branch, names.fetched);
        remote.fetch(&[refspec], Some(&mut options), None).map_err(failed)?;
        repository
            .refname_to_id(&names.fetched)
            .map_err(|_| GitError::NoBranch { url: url(), branch: self.branch.clone() })
    }

    /// libgit2 reports a path without a repository as an unknown protocol.
    fn look_for_local(&self) -> Result<(), GitError> {
        let path = match self.url.split_once("://") {
            Some(("file", path)) => path,
            Some(_) => return Ok(()),
            None if Transport::of(&self.url) == Ok(Transport::Local) => &self.url,
            None => return Ok(()),
        };
        let is_folder = fs::metadata(path).map(|found| found.is_dir());
        match is_folder {
            Ok(true) if Repository::open(path).is_err_and(|error| error.code() == ErrorCode::NotFound) => {
                Err(GitError::NoRepository { url: self.url.clone(), is_folder: true })
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {
                Err(GitError::NoRepository { url: self.url.clone(), is_folder: false })
            }
            // Other errors are reported by git.
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// Checks that a commit is signed by an allowed signer, if that is required.
    fn check_commit_signature(&self, repository: &Repository, commit: Oid) -> Result<(), GitError> {
        let Some(path) = &self.signed_by else { return Ok(()) };
        let signers = Signers::parse(&login::read(path, SIGNED_BY)?).map_err(|why| GitError::File {
            path: path.clone(),
            setting: SIGNED_BY,
            why,
        })?;
        let untrusted =
            |why: String| GitError::Untrusted { url: self.url.clone(), commit: commit.to_string(), why };
        match repository.extract_signature(&commit, None) {
            Ok((signature, signed)) => signers.judge(&signature, &signed).map_err(untrusted),
            Err(error) if error.code() == ErrorCode::NotFound => {
                Err(untrusted("has no signature".to_owned()))
            }
            Err(error) => {
                let what = format!("the signature of commit {commit}");
                Err(GitError::Damaged { url: self.url.clone(), what, error })
            }
        }
    }

    fn read(&self, repository: &Repository, commit: Oid, known: &Blobs) -> Result<WholeCommit, GitError> {
        let reader =
            tree::CommitReader { repository, url: &self.url, commit, folder: self.folder.as_deref() };
        let (snapshot, blobs) = reader.read(self.source(), known)?;
        Ok(WholeCommit { commit, snapshot: Arc::new(snapshot), blobs: Arc::new(blobs) })
    }

    /// Returns the commit that was active before signatures were required, and is not used now.
    pub fn unsigned(&self) -> Option<String> {
        self.signed_by.as_ref()?;
        let _there = self.reading().ok()?;
        let repository = Repository::open_bare(&self.place).ok()?;
        Some(self.names_for("").in_force(&repository)?.to_string())
    }

    fn names(&self) -> CloneRefs {
        // Commits that were active before signatures were required are no longer active.
        self.names_for(if self.signed_by.is_some() { " signed" } else { "" })
    }

    fn names_for(&self, kind: &str) -> CloneRefs {
        let digest = Digest::of(format!("{}{kind}", self.source().0));
        let prefix: String =
            "refs/streamfleet/".chars().chain(digest.as_str().chars().take(16)).chain(['/']).collect();
        CloneRefs { fetched: format!("{prefix}fetched"), in_force: format!("{prefix}in-force"), prefix }
    }

    fn whole(&self) -> MutexGuard<'_, Option<WholeCommit>> {
        // A poisoned lock is safe to use: the value is assigned as a whole.
        locked(&self.whole)
    }

    fn is_crowded(&self) -> bool {
        let packs = fs::read_dir(self.place.join("objects/pack")).into_iter().flatten().flatten();
        packs.filter(|file| file.file_name().to_string_lossy().ends_with(".pack")).count() > MAX_PACKS
    }
}

impl CloneRefs {
    fn digest(&self) -> &str {
        self.prefix.rsplit('/').nth(1).unwrap_or_default()
    }

    fn in_force(&self, repository: &Repository) -> Option<Oid> {
        repository.refname_to_id(&self.in_force).ok()
    }

    fn forget_fetched(&self, repository: &Repository) -> Result<(), git2::Error> {
        match repository.find_reference(&self.fetched) {
            Ok(mut reference) => reference.delete(),
            Err(_) => Ok(()),
        }
    }

    /// Also deletes the references of other settings.
    fn put_in_force(&self, repository: &Repository, commit: Oid) -> Result<(), git2::Error> {
        for reference in repository.references()? {
            let mut reference = reference?;
            if !reference.name().is_ok_and(|name| name.starts_with(&self.prefix)) {
                reference.delete()?;
            }
        }
        // Set last, so that on an error no new commit is active.
        repository.reference(&self.in_force, commit, true, "fetched completely")?;
        Ok(())
    }
}

/// Returns whether an error while fetching may be caused by the clone.
fn may_be_the_clones(error: &git2::Error) -> bool {
    use ErrorClass::{Config, FetchHead, Indexer, Object, Odb, Reference, Tree, Zlib};
    // No other process fetches now, so a lock is that of a process that was killed. libgit2 has no code for it here.
    error.message().starts_with("failed to lock file")
        || matches!(error.class(), Config | FetchHead | Indexer | Object | Odb | Reference | Tree | Zlib)
}

/// Creates a folder that only its owner can enter, since specs may be confidential.
fn private_folder(path: &Utf8Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

fn remove(folder: &Utf8Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn clone(place: &Utf8Path, error: &dyn std::error::Error) -> GitError {
    GitError::Clone { path: place.to_owned(), why: error.to_string() }
}
