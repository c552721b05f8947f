use git2::{ErrorClass, ErrorCode};

/// An error in fetching, reading or pushing to a repository. It never contains a token.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    #[error("cannot fetch {url}: {}", error.message())]
    Remote { url: String, error: git2::Error },
    #[error("cannot push to {url}: {}", error.message())]
    Push { url: String, error: git2::Error },
    /// The host key of the ssh server is not trusted.
    #[error("cannot fetch {url}: {why}")]
    Distrusted { url: String, why: String },
    /// The last commit isn't signed by an allowed signer.
    #[error("cannot use commit {commit} of {url}: it {why}")]
    Untrusted { url: String, commit: String, why: String },
    #[error("cannot fetch {url}: it is a SHA-256 repository, and only SHA-1 is supported")]
    Sha256 { url: String },
    #[error("cannot fetch {url}: {}", no_repository(*.is_folder))]
    NoRepository {
        url: String,
        /// Whether the path is a folder.
        is_folder: bool,
    },
    #[error("cannot fetch {url}: timed out after {seconds} s")]
    Late { url: String, seconds: u32 },
    #[error("cannot fetch {url}: it has no branch `{branch}`")]
    NoBranch { url: String, branch: String },
    #[error("cannot read commit {commit} of {url}: it has no folder `{folder}`")]
    NoFolder { url: String, commit: String, folder: String },
    #[error("cannot read {what} of {url}: {}", error.message())]
    Damaged { url: String, what: String, error: git2::Error },
    #[error("cannot find the commit of the checkout: {}", .0.message())]
    Checkout(git2::Error),
    #[error("cannot read {path} to check whether {url} was rewritten: {why}")]
    Kept { path: camino::Utf8PathBuf, url: String, why: String },
    #[error("cannot use {path} from `{setting}`: {why}")]
    File { path: camino::Utf8PathBuf, setting: &'static str, why: String },
    #[error("cannot keep a clone in {path}: {why}")]
    Clone { path: camino::Utf8PathBuf, why: String },
    #[error("cannot fetch {url}: {} has been fetching into {path} for a long time", holder_name(.holder))]
    Busy { url: String, path: camino::Utf8PathBuf, holder: Option<u32> },
    #[error("{url} has not been fetched yet")]
    Nothing { url: String },
}

fn no_repository(is_folder: bool) -> &'static str {
    if is_folder { "that folder is not a git repository" } else { "there is no such folder on this machine" }
}

const OWNER: &str = "run streamfleet as the owner of the repository, or add the repository to `safe.directory` with \
                     git config";

impl GitError {
    pub fn hint(&self) -> &'static str {
        match self {
            GitError::Remote { error, .. } => match (error.class(), error.code()) {
                (_, ErrorCode::Auth) | (ErrorClass::Http, _) => {
                    "check the address, and that the token or key is valid and may read the repository"
                }
                (ErrorClass::Ssl, _) | (_, ErrorCode::Certificate) => {
                    "check which server answers there; the variable SSL_CERT_FILE adds authorities for https"
                }
                (ErrorClass::Config, _) => OWNER,
                _ => "check `source.git` and the network",
            },
            GitError::Push { .. } => "check the network, and try again",
            GitError::Distrusted { .. } => "check which server answers there",
            GitError::Untrusted { .. } => {
                "push a commit signed by a key of `source.signed_by`: `git commit -S` with `gpg.format = ssh`"
            }
            GitError::Sha256 { .. } => {
                "push the specs to a repository created with `git init --object-format=sha1`, which is git's default"
            }
            GitError::NoRepository { is_folder: true, .. } => {
                "set `source.git` to a git repository; to read specs from a plain folder, remove `source.git` and give the \
                 folder on the command line"
            }
            GitError::NoRepository { is_folder: false, .. } => {
                "set `source.git` to the full path of a git repository on this machine, or to an address: https://…, \
                 ssh://… or user@host:path"
            }
            GitError::Late { .. } => "check the network, or raise `source.timeout_seconds`",
            GitError::NoBranch { .. } => "push the branch, or set another one in `source.branch`",
            GitError::NoFolder { .. } => "push the folder, or set another one in `source.folder`",
            GitError::Damaged { .. } => "check the repository with git fsck, and push the missing objects",
            GitError::File { setting: "source.ssh_key", .. } => {
                "set a private key file that the user that runs streamfleet can read"
            }
            GitError::File { .. } => {
                "check what is in the file, and that the user that runs streamfleet can read it"
            }
            GitError::Checkout(error) if error.code() == ErrorCode::Owner => OWNER,
            GitError::Checkout(_) => "check it with git fsck",
            GitError::Kept { .. } => {
                "let the user that runs streamfleet read it; if it is damaged, check that the branch was not force-pushed, \
                 and remove it"
            }
            GitError::Clone { .. } => "check the disk, and the folder's permissions",
            GitError::Busy { .. } => "try again when it has finished; if it hangs, end it",
            GitError::Nothing { .. } => "wait for a fetch, or find out why it failed",
        }
    }
}

fn holder_name(process: &Option<u32>) -> String {
    process.map_or_else(|| "another process".to_owned(), |process| format!("process {process}"))
}
