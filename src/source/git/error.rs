//! Why a repository could not be fetched or read.

use git2::{ErrorClass, ErrorCode};

/// Why a repository could not be fetched or read. None of it holds a token.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// The remote could not be reached, or didn't let us in.
    #[error("could not fetch {url}: {}", error.message())]
    Remote {
        /// The repository.
        url: String,
        /// What git says.
        error: git2::Error,
    },
    /// The remote could not be pushed to.
    #[error("could not push to {url}: {}", error.message())]
    Push {
        /// The repository.
        url: String,
        /// What git says.
        error: git2::Error,
    },
    /// An ssh server is not one that is trusted.
    #[error("could not fetch {url}: {why}")]
    Distrusted {
        /// The repository.
        url: String,
        /// What is wrong with its key, and what to do.
        why: String,
    },
    /// Nobody signed the last commit who has to.
    #[error("could not take commit {commit} of {url}: it {why}")]
    Untrusted {
        /// The repository.
        url: String,
        /// The commit.
        commit: String,
        /// What is wrong with it.
        why: String,
    },
    /// It has objects of another form.
    #[error("could not fetch {url}: it is a SHA-256 repository, and only SHA-1 ones can be read")]
    Sha256 {
        /// The repository.
        url: String,
    },
    /// There is no repository at a path of this machine.
    #[error("could not fetch {url}: {}", no_repository(*.is_folder))]
    NoRepository {
        /// The path.
        url: String,
        /// Whether there is a folder all the same.
        is_folder: bool,
    },
    /// The deadline passed.
    #[error("could not fetch {url}: it took longer than {seconds} s")]
    Late {
        /// The repository.
        url: String,
        /// How long it had.
        seconds: u32,
    },
    /// The repository has no such branch, or is empty.
    #[error("could not fetch {url}: it has no branch `{branch}`")]
    NoBranch {
        /// The repository.
        url: String,
        /// The branch.
        branch: String,
    },
    /// The commit has no such folder.
    #[error("could not read commit {commit} of {url}: it has no folder `{folder}`")]
    NoFolder {
        /// The repository.
        url: String,
        /// The commit.
        commit: String,
        /// The folder.
        folder: String,
    },
    /// Something of a commit is missing or broken.
    #[error("could not read {what} of {url}: {}", error.message())]
    Damaged {
        /// The repository.
        url: String,
        /// What could not be read.
        what: String,
        /// What git says.
        error: git2::Error,
    },
    /// A checkout can't be looked at.
    #[error("could not tell which commit it is of: {}", .0.message())]
    Checkout(
        /// What git says.
        git2::Error,
    ),
    /// What is kept of the commit in force can't be read.
    #[error("could not tell from {path} whether {url} was rewritten: {why}")]
    Kept {
        /// The file.
        path: camino::Utf8PathBuf,
        /// The repository.
        url: String,
        /// What is wrong with it.
        why: String,
    },
    /// A file that is needed to fetch can't be used.
    #[error("could not use {path}, which `{setting}` names: {why}")]
    File {
        /// The file.
        path: camino::Utf8PathBuf,
        /// The setting.
        setting: &'static str,
        /// What is wrong with it.
        why: String,
    },
    /// The clone can't be kept.
    #[error("could not keep a clone in {path}: {why}")]
    Clone {
        /// Its folder.
        path: camino::Utf8PathBuf,
        /// What is wrong.
        why: String,
    },
    /// Somebody else fetches into the clone.
    #[error("could not fetch {url}: {} is fetching into {path}, and takes long", holder_name(.holder))]
    Busy {
        /// The repository.
        url: String,
        /// The clone.
        path: camino::Utf8PathBuf,
        /// The number of the process, where it is known.
        holder: Option<u32>,
    },
    /// There is nothing to go by yet.
    #[error("nothing of {url} was fetched yet")]
    Nothing {
        /// The repository.
        url: String,
    },
}

fn no_repository(is_folder: bool) -> &'static str {
    if is_folder { "that folder is no git repository" } else { "there is no such folder on this machine" }
}

/// What to do about a repository of another user.
const OWNER: &str = "let its owner run this, or list it as `safe.directory` with git config";

impl GitError {
    /// What to do next.
    pub fn hint(&self) -> &'static str {
        match self {
            GitError::Remote { error, .. } => match (error.class(), error.code()) {
                (_, ErrorCode::Auth) | (ErrorClass::Http, _) => {
                    "check the address, and that the token or key is valid and may read the repository"
                }
                (ErrorClass::Ssl, _) | (_, ErrorCode::Certificate) => {
                    "check who answers there; the variable SSL_CERT_FILE names authorities for https"
                }
                (ErrorClass::Config, _) => OWNER,
                _ => "check `source.git` and the network",
            },
            GitError::Push { .. } => "check the network, and try again",
            GitError::Distrusted { .. } => "check who answers there",
            GitError::Untrusted { .. } => {
                "push a commit that is signed by a key of `source.signed_by`: `git commit -S` with `gpg.format = ssh`"
            }
            GitError::Sha256 { .. } => {
                "push the specs to a repository made with `git init --object-format=sha1`, which is git's default"
            }
            GitError::NoRepository { is_folder: true, .. } => {
                "name a git repository as `source.git`; to read specs from a folder that is none, leave `source.git` out \
                 and name the folder on the command line"
            }
            GitError::NoRepository { is_folder: false, .. } => {
                "name a folder of this machine that holds a git repository as `source.git`, best by its whole path, or an \
                 address: https://…, ssh://… or user@host:path"
            }
            GitError::Late { .. } => "check the network, or raise `source.timeout_seconds`",
            GitError::NoBranch { .. } => "push the branch, or name another as `source.branch`",
            GitError::NoFolder { .. } => "push the folder, or name another as `source.folder`",
            GitError::Damaged { .. } => "check the repository with git fsck, and push what is missing",
            GitError::File { setting: "source.ssh_key", .. } => {
                "name the file of a private key that the user that runs this can read"
            }
            GitError::File { .. } => "name a file that the user that runs this can read",
            GitError::Checkout(error) if error.code() == ErrorCode::Owner => OWNER,
            GitError::Checkout(_) => "check it with git fsck",
            GitError::Kept { .. } => {
                "let the user that runs this read it; if it is damaged, see that nobody pushed the branch by force, and remove it"
            }
            GitError::Clone { .. } => "check the disk, and the folder's permissions",
            GitError::Busy { .. } => "try again when it is done; if it is hung, end it",
            GitError::Nothing { .. } => "wait for a fetch, or see why there was none",
        }
    }
}

fn holder_name(process: &Option<u32>) -> String {
    process.map_or_else(|| "another process".to_owned(), |process| format!("process {process}"))
}
