//! Pushes one commit on top of the current tip of a branch.

use std::cell::{Cell, RefCell};
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;
use std::time::Instant;

use git2::{ConfigLevel, ErrorClass, ErrorCode, Oid, PushOptions, RemoteRedirect, Repository};
use tempfile::NamedTempFile;

use super::PushOutcome;
use crate::config::Transport;
use crate::source::git::login::DistrustReason;
use crate::source::git::{GitError, Mirror};

const MAX_SAID: usize = 2048;

/// The hooks that can refuse or react to a push. Writing to a local path doesn't run them.
const HOOKS: [&str; 5] = ["pre-receive", "update", "proc-receive", "reference-transaction", "post-receive"];

/// Returns whether a refusal may be due to a concurrent push.
pub(super) fn is_race(why: &str) -> bool {
    ["lock", "expected", "fetch first", "non-fast-forward"].iter().any(|word| why.contains(word))
}

impl Mirror {
    /// Pushes a commit if the branch is still at the tip.
    pub(super) fn push(&self, repository: &Repository, tip: Oid, commit: Oid, until: Instant) -> PushOutcome {
        match self.login.transport() {
            Transport::Local => self.push_to_path(repository, tip, commit),
            Transport::Https | Transport::Ssh { .. } => self.push_to_server(repository, tip, commit, until),
        }
    }

    fn push_to_server(&self, repository: &Repository, tip: Oid, commit: Oid, until: Instant) -> PushOutcome {
        let (told, sent, overtaken) = (DistrustReason::default(), Cell::new(false), Cell::new(false));
        let (status, said) = (RefCell::new(None::<String>), RefCell::new(Vec::new()));
        let failed = |error: git2::Error| match told.take() {
            Some(why) => GitError::Distrusted { url: self.url.clone(), why },
            None if Instant::now() >= until => self.timeout_error(),
            None => GitError::Push { url: self.url.clone(), error },
        };
        let mut remote = match repository.remote_anonymous(&self.url) {
            Ok(remote) => remote,
            Err(error) => return PushOutcome::NotSent(failed(error)),
        };
        let mut callbacks = match self.login.callbacks(until, &told) {
            Ok(callbacks) => callbacks,
            Err(error) => return PushOutcome::NotSent(error),
        };
        callbacks
            .push_negotiation(|updates| {
                // If the branch was rewound meanwhile, this push must not bring the old commits back.
                if updates.iter().any(|update| update.src() != tip) {
                    overtaken.set(true);
                    return Err(git2::Error::from_str("another push came first"));
                }
                sent.set(true);
                Ok(())
            })
            .sideband_progress(|bytes| {
                let mut said = said.borrow_mut();
                let left = MAX_SAID.saturating_sub(said.len());
                said.extend(bytes.iter().take(left));
                Instant::now() < until
            })
            .push_update_reference(|_, why| {
                status.replace(why.map(str::to_owned));
                Ok(())
            });
        let mut options = PushOptions::new();
        options.remote_callbacks(callbacks).follow_redirects(RemoteRedirect::None);
        let done = remote.push(&[format!("{commit}:refs/heads/{}", self.branch)], Some(&mut options));
        drop(options);
        let rejected = |why: String| PushOutcome::Rejected(with_words(why, &said.borrow()));
        match (done, status.take()) {
            (_, Some(why)) => rejected(why),
            (Ok(()), None) => PushOutcome::Done,
            (Err(_), None) if overtaken.get() => rejected("fetch first".to_owned()),
            (Err(error), None) if error.code() == ErrorCode::NotFastForward => {
                rejected("non-fast-forward".to_owned())
            }
            // Fetching worked, so the denial is about pushing.
            (Err(error), None) if !sent.get() && is_denied(&error) => rejected(error.message().to_owned()),
            (Err(error), None) if sent.get() => PushOutcome::Cut(failed(error)),
            (Err(error), None) => PushOutcome::NotSent(failed(error)),
        }
    }

    /// Writes durably to a local repository. libgit2's own push to a path would overwrite the branch,
    /// whatever its tip is by then.
    fn push_to_path(&self, repository: &Repository, tip: Oid, commit: Oid) -> PushOutcome {
        let failed = |error| PushOutcome::NotSent(GitError::Push { url: self.url.clone(), error });
        let path = self.url.strip_prefix("file://").unwrap_or(&self.url);
        let remote = match Repository::open(path) {
            Ok(remote) => remote,
            Err(error) => return failed(error),
        };
        let branch = format!("refs/heads/{}", self.branch);
        if let Some(why) = unwritable(&remote) {
            return PushOutcome::Rejected(why);
        }
        let send = || {
            let mut walk = repository.revwalk()?;
            walk.push(commit)?;
            walk.hide(tip)?;
            let mut pack = repository.packbuilder()?;
            pack.insert_walk(&mut walk)?;
            let folder = remote.commondir().join("objects/pack");
            pack.write(&folder, 0)?;
            let name = pack.name().map_err(|error| git2::Error::from_str(&error.to_string()))?;
            let kept = keep_pack(&folder, name.unwrap_or_default());
            kept.and_then(|()| make_way(remote.commondir(), &branch)).map_err(|error| of_system(&error))
        };
        // Must live until the branch is written.
        let _settings = match send().and_then(|()| write_durably(&remote)) {
            Ok(settings) => settings,
            Err(error) => return failed(error),
        };
        // Compares and sets under the lock of the branch.
        match remote.reference_matching(&branch, commit, true, tip, "push by streamfleet") {
            Ok(_) => PushOutcome::Done,
            Err(error)
                if matches!(error.code(), ErrorCode::Modified | ErrorCode::NotFound | ErrorCode::Locked) =>
            {
                PushOutcome::Rejected("fetch first".to_owned())
            }
            Err(error) => failed(error),
        }
    }
}

/// Makes a pack, its index and their names durable, since no branch may refer to missing objects.
fn keep_pack(folder: &Path, name: &str) -> io::Result<()> {
    for ending in ["pack", "idx"] {
        File::open(folder.join(format!("pack-{name}.{ending}")))?.sync_all()?;
    }
    File::open(folder)?.sync_all()
}

/// Makes libgit2 sync every reference that it writes in a repository while the returned settings live.
/// Otherwise a power cut may leave an empty reference.
fn write_durably(repository: &Repository) -> Result<NamedTempFile, git2::Error> {
    let written = || {
        let mut settings = NamedTempFile::new()?;
        settings.write_all(b"[core]\n\tfsyncObjectFiles = true\n")?;
        Ok(settings)
    };
    let settings = written().map_err(|error: io::Error| of_system(&error))?;
    repository.config()?.add_file(settings.path(), ConfigLevel::App, true)?;
    Ok(settings)
}

/// Creates the folders of a branch's reference durably; a packed reference has none.
fn make_way(repository: &Path, branch: &str) -> io::Result<()> {
    let file = repository.join(branch);
    let mut folders = file.ancestors().skip(1).take_while(|folder| *folder != repository).peekable();
    folders.peek().map_or(Ok(()), fs::create_dir_all)?;
    folders.try_for_each(|folder| File::open(folder)?.sync_all())
}

fn of_system(error: &io::Error) -> git2::Error {
    git2::Error::new(ErrorCode::GenericError, ErrorClass::Os, error.to_string())
}

/// Returns why a local repository is not written to; none if it is.
fn unwritable(remote: &Repository) -> Option<String> {
    if !remote.is_bare() {
        return Some(
            "it has a work tree, which would no longer match; use the path of a bare repository".to_owned(),
        );
    }
    let hooks = configured_hooks(remote).unwrap_or_else(|| remote.path().join("hooks"));
    let hook = HOOKS.iter().find(|hook| hooks.join(hook).exists())?;
    Some(format!(
        "it has the hook `{hook}`, which doesn't run for a path; set its https:// or ssh:// address in `source.git`"
    ))
}

fn configured_hooks(remote: &Repository) -> Option<std::path::PathBuf> {
    let path = remote.config().ok()?.get_path("core.hooksPath").ok()?;
    Some(remote.path().join(Path::new(&path)))
}

fn is_denied(error: &git2::Error) -> bool {
    let is_said = || ["401", "403"].iter().any(|status| error.message().contains(status));
    error.code() == ErrorCode::Auth || (error.class() == ErrorClass::Http && is_said())
}

fn with_words(why: String, said: &[u8]) -> String {
    let said = String::from_utf8_lossy(said);
    let words: Vec<String> = said
        .lines()
        .map(|line| line.chars().filter(|letter| !letter.is_control()).collect::<String>().trim().to_owned())
        .filter(|line| !line.is_empty())
        .collect();
    if words.is_empty() { why } else { format!("{why} ({})", words.join("; ")) }
}
