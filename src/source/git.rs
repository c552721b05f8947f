//! A git repository: a branch of it is fetched into a bare clone, from which a commit is read without a work tree.

mod doubt;
mod error;
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
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use git2::{
    AutotagOption, ErrorClass, ErrorCode, FetchOptions, FetchPrune, Oid, RemoteRedirect, Repository,
    RepositoryInitOptions,
};
use secrecy::SecretString;

use doubt::follows;
pub use error::GitError;
use locks::Lock;
use login::{Login, Told};
use signed::Signers;
pub use tree::checked_out;

use crate::config::{SourceConfig, Transport};
use crate::names::Digest;
use crate::parallel::locked;
use crate::spec::{Snapshot, SourceId};

/// The setting that names the keys of those who sign.
const SIGNED_BY: &str = "source.signed_by";

/// How many fetches that brought something are kept as they came. Each leaves a file, every look at an object may open all
/// of them, and a clone made anew has one.
const MAX_PACKS: usize = 200;

/// A branch of a repository, and a bare clone of it.
///
/// The commit that was found whole last stays in force until another one is: a remote that is away, a branch that is gone
/// and a commit that can't be read change nothing.
#[derive(Debug)]
pub struct Mirror {
    /// The folder of the clone. Nothing is lost with it but what the remote no longer has.
    place: Utf8PathBuf,
    url: String,
    branch: String,
    folder: Option<String>,
    timeout_seconds: u32,
    login: Login,
    /// The file of the keys one of which has to have signed the last commit.
    signed_by: Option<Utf8PathBuf>,
    /// The file of the key that our own commits are signed with.
    signing_key: Option<Utf8PathBuf>,
    /// The file of the secret that is shown by who tells of a push.
    webhook_secret_file: Option<Utf8PathBuf>,
    /// The commit that was found whole last in the clone that is in place: to read all of it at each fetch takes long.
    whole: Mutex<Option<Oid>>,
}

/// What a fetch brought.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    /// The commit that is in force now.
    pub commit: String,
    /// Whether it is another one than before, or the first.
    pub is_new: bool,
    /// Whether it doesn't follow the one before: the branch was pushed by force.
    pub rewritten: bool,
}

/// The names under which a clone has the commits of one source.
struct Names {
    /// All of them begin with it.
    prefix: String,
    /// What the branch was at the last fetch.
    fetched: String,
    /// The last one that was found whole.
    in_force: String,
}

impl Mirror {
    /// The source that settings name, cloned into a folder; none where they name none. The token of the environment goes
    /// before that of a file.
    pub fn of(config: &SourceConfig, place: Utf8PathBuf, token: Option<SecretString>) -> Option<Mirror> {
        let given = config.git.as_ref()?;
        // Settings that were checked have no other.
        let transport = Transport::of(given).ok()?;
        // One path, wherever it is run from.
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

    /// The secret that is shown by who tells of a push; none where nobody may.
    ///
    /// # Errors
    /// When its file can't be read, or is empty.
    pub fn webhook_secret(&self) -> Result<Option<SecretString>, GitError> {
        let file = self.webhook_secret_file.as_deref();
        file.map(|path| login::secret(path, "source.webhook_secret_file")).transpose()
    }

    /// Which tree it is.
    pub fn source(&self) -> SourceId {
        let folder = self.folder.iter().map(|folder| format!(", folder {folder}")).collect::<String>();
        SourceId(format!("{} (branch {}{folder})", self.url, self.branch))
    }

    /// How long a fetch may take.
    pub fn timeout(&self) -> Duration {
        Duration::from_secs(u64::from(self.timeout_seconds))
    }

    /// What is wrong when a fetch takes longer.
    pub fn late(&self) -> GitError {
        GitError::Late { url: self.url.clone(), seconds: self.timeout_seconds }
    }

    /// Fetches the branch, and puts its commit in force if all of its specs are there. It blocks, and a remote that is
    /// silent may hold it up for longer than the timeout.
    ///
    /// # Errors
    /// When the remote can't be reached or has no such branch or folder, the clone can't be kept, or another process is
    /// fetching into it. What was in force stays so.
    pub fn fetch(&self) -> Result<Fetched, GitError> {
        let until = Instant::now() + self.timeout();
        let _alone = self.alone()?;
        self.fetch_alone(until)
    }

    /// Nobody else changes the clone until the result is dropped.
    fn alone(&self) -> Result<Lock, GitError> {
        let around = self.place.parent().unwrap_or(&self.place);
        private_folder(around).map_err(|error| clone(around, &error))?;
        locks::alone(&self.place, &self.url, self.timeout())
    }

    fn fetch_alone(&self, until: Instant) -> Result<Fetched, GitError> {
        // A first attempt may put a commit in force that is new all the same.
        let before = self.commit();
        let anew = || self.fetch_anew(until, before.as_deref());
        let fetched = match self.fetch_into(&self.place, until, before.as_deref()) {
            // It may be the clone that lacks something, or the remote.
            Err(GitError::Damaged { .. } | GitError::Clone { .. }) => anew(),
            Err(GitError::Remote { error, .. }) if may_be_the_clones(&error) => anew(),
            Err(GitError::Remote { .. }) if matches!(self.snapshot(), Err(GitError::Damaged { .. })) => {
                anew()
            }
            Ok(fetched) if fetched.is_new && self.is_crowded() => anew().or(Ok(fetched)),
            done => done,
        }?;
        // Where that fails it is only kept for longer, and what has the lost commit is not doubted.
        let _ = self.in_order_again();
        Ok(fetched)
    }

    /// The commit in force; none where there is none yet.
    pub fn commit(&self) -> Option<String> {
        let _there = self.reading().ok()?;
        let repository = Repository::open_bare(&self.place).ok()?;
        Some(self.names().in_force(&repository)?.to_string())
    }

    /// The specs of the commit in force.
    ///
    /// # Errors
    /// When there is none yet, or it can't be read.
    pub fn snapshot(&self) -> Result<Snapshot, GitError> {
        let snapshot = self.read_in_force();
        if snapshot.is_err() {
            // The next fetch looks at everything, and finds what is missing.
            *self.whole() = None;
        }
        snapshot
    }

    fn read_in_force(&self) -> Result<Snapshot, GitError> {
        let _there = self.reading()?;
        // Both before and after, since somebody may be putting another commit in force.
        let earlier = self.kept()?;
        let nothing = || GitError::Nothing { url: self.url.clone() };
        let repository = Repository::open_bare(&self.place).map_err(|_| nothing())?;
        let commit = self.names().in_force(&repository).ok_or_else(nothing)?;
        let mut snapshot = self.read(&repository, commit)?;
        let mut lost = [earlier, self.kept()?].into_iter().flatten().filter_map(|kept| kept.lost);
        if let Some(read) = &mut snapshot.commit {
            read.rewrote = lost.find(|lost| !follows(&repository, commit, lost));
        }
        Ok(snapshot)
    }

    /// The clone stays where it is until the result is dropped.
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
        self.trust(&repository, found)?;
        if names.in_force(&repository) != Some(found) || *self.whole() != Some(found) {
            // It may have been put there by a remote that has lost half of it.
            self.read(&repository, found)?;
        }
        let follows_last = self.keep(&repository, found)?;
        names.put_in_force(&repository, found).map_err(|error| clone(place, &error))?;
        *self.whole() = Some(found);
        let is_new = before != Some(found.to_string().as_str());
        let follows_it = before.is_none_or(|before| follows(&repository, found, before));
        Ok(Fetched { commit: found.to_string(), is_new, rewritten: is_new && !(follows_last && follows_it) })
    }

    /// Fetches everything into a new clone, which takes the place of the old one when it is whole.
    fn fetch_anew(&self, until: Instant, before: Option<&str>) -> Result<Fetched, GitError> {
        let (fresh, old) = (self.beside("new"), self.beside("old"));
        remove(&fresh).map_err(|error| clone(&fresh, &error))?;
        remove(&old).map_err(|error| clone(&old, &error))?;
        let fetched = self.fetch_into(&fresh, until, before)?;
        let _nobody_reads = locks::swapping(&self.place).map_err(|error| clone(&self.place, &error))?;
        // Whoever is killed in between leaves two of them, one of which is adopted.
        let moved = fs::rename(&self.place, &old).and_then(|()| fs::rename(&fresh, &self.place));
        moved.map_err(|error| clone(&self.place, &error))?;
        // Where that fails, the next one does it.
        let _ = remove(&old);
        Ok(fetched)
    }

    /// Puts a clone in its place that was there, or about to be, when somebody was killed. It goes without where that fails:
    /// everything is fetched then.
    fn adopt(&self) {
        let Ok(_nobody_reads) = locks::swapping(&self.place) else { return };
        let is_whole = |clone: &Utf8PathBuf| {
            Repository::open_bare(clone).is_ok_and(|found| self.names().in_force(&found).is_some())
        };
        let found = [self.beside("new"), self.beside("old")].into_iter().find(is_whole);
        if let Some(found) = found.filter(|_| !self.place.exists())
            && let Err(error) = fs::rename(&found, &self.place)
        {
            tracing::debug!(%error, clone = %found, "could not put it in its place");
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

    /// Fetches the branch, and gives its commit.
    fn download(&self, repository: &Repository, names: &Names, until: Instant) -> Result<Oid, GitError> {
        let url = || self.url.clone();
        self.look_for_local()?;
        let told = Told::default();
        let failed = |error: git2::Error| match told.take() {
            Some(why) => GitError::Distrusted { url: url(), why },
            None if Instant::now() >= until => self.late(),
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
        // A branch that is gone is fetched without an error, so its absence is told by what it leaves.
        names.forget_fetched(repository).map_err(|error| clone(&self.place, &error))?;
        let refspec = format!("+refs/heads/{}:{}", self.branch, names.fetched);
        remote.fetch(&[refspec], Some(&mut options), None).map_err(failed)?;
        repository
            .refname_to_id(&names.fetched)
            .map_err(|_| GitError::NoBranch { url: url(), branch: self.branch.clone() })
    }

    /// Of a path where there is no repository, libgit2 says that it doesn't know the protocol.
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
            // What else is wrong there, git says.
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// Whether somebody signed a commit who has to.
    fn trust(&self, repository: &Repository, commit: Oid) -> Result<(), GitError> {
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

    fn read(&self, repository: &Repository, commit: Oid) -> Result<Snapshot, GitError> {
        tree::Reader { repository, url: &self.url, commit, folder: self.folder.as_deref() }
            .read(self.source())
    }

    /// The commit that was in force before signatures were asked for, and is not used now; none where there is none.
    pub fn unsigned(&self) -> Option<String> {
        self.signed_by.as_ref()?;
        let _there = self.reading().ok()?;
        let repository = Repository::open_bare(&self.place).ok()?;
        Some(self.names_for("").in_force(&repository)?.to_string())
    }

    fn names(&self) -> Names {
        // What was in force before signatures were asked for is not in force any more.
        self.names_for(if self.signed_by.is_some() { " signed" } else { "" })
    }

    fn names_for(&self, kind: &str) -> Names {
        let digest = Digest::of(format!("{}{kind}", self.source().0));
        let prefix: String =
            "refs/streamfleet/".chars().chain(digest.as_str().chars().take(16)).chain(['/']).collect();
        Names { fetched: format!("{prefix}fetched"), in_force: format!("{prefix}in-force"), prefix }
    }

    fn whole(&self) -> MutexGuard<'_, Option<Oid>> {
        // It is one value, which nobody leaves half written.
        locked(&self.whole)
    }

    fn is_crowded(&self) -> bool {
        let packs = fs::read_dir(self.place.join("objects/pack")).into_iter().flatten().flatten();
        packs.filter(|file| file.file_name().to_string_lossy().ends_with(".pack")).count() > MAX_PACKS
    }
}

impl Names {
    /// The part that tells sources apart.
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

    /// Also forgets what other settings fetched.
    fn put_in_force(&self, repository: &Repository, commit: Oid) -> Result<(), git2::Error> {
        for reference in repository.references()? {
            let mut reference = reference?;
            if !reference.name().is_ok_and(|name| name.starts_with(&self.prefix)) {
                reference.delete()?;
            }
        }
        // Last, so that an error says that nothing new is in force.
        repository.reference(&self.in_force, commit, true, "it was found whole")?;
        Ok(())
    }
}

/// Whether an error while fetching may be about what is kept here.
fn may_be_the_clones(error: &git2::Error) -> bool {
    use ErrorClass::{Config, FetchHead, Indexer, Object, Odb, Reference, Tree, Zlib};
    matches!(error.class(), Config | FetchHead | Indexer | Object | Odb | Reference | Tree | Zlib)
}

/// Makes a folder where there is none. Specs may be nobody else's business.
fn private_folder(path: &Utf8Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Removes a folder that may not be there.
fn remove(folder: &Utf8Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn clone(place: &Utf8Path, error: &dyn std::error::Error) -> GitError {
    GitError::Clone { path: place.to_owned(), why: error.to_string() }
}
