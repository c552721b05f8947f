use git2::{ErrorClass, ErrorCode};

/// An error in fetching, reading or pushing to a repository. It never contains a token.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    #[error("could not fetch {url}: {}", error.message())]
    Remote { url: String, error: git2::Error },
    #[error("could not push to {url}: {}", error.message())]
    Push { url: String, error: git2::Error },
    /// The host key of the ssh server is not trusted.
    #[error("could not fetch {url}: {why}")]
    Distrusted { url: String, why: String },
    /// The last commit isn't signed by an allowed signer.
    #[error("could not take commit {commit} of {url}: it {why}")]
    Untrusted { url: String, commit: String, why: String },
    #[error("could not fetch {url}: it is a SHA-256 repository, and only SHA-1 ones can be read")]
    Sha256 { url: String },
    #[error("could not fetch {url}: {}", no_repository(*.is_folder))]
    NoRepository {
        url: String,
        /// Whether the path is a folder.
        is_folder: bool,
    },
    #[error("could not fetch {url}: it took longer than {seconds} s")]
    Late { url: String, seconds: u32 },
    #[error("could not fetch {url}: it has no branch `{branch}`")]
    NoBranch { url: String, branch: String },
    #[error("could not read commit {commit} of {url}: it has no folder `{folder}`")]
    NoFolder { url: String, commit: String, folder: String },
    #[error("could not read {what} of {url}: {}", error.message())]
    Damaged { url: String, what: String, error: git2::Error },
    #[error("could not tell which commit it is of: {}", .0.message())]
    Checkout(git2::Error),
    #[error("could not tell from {path} whether {url} was rewritten: {why}")]
    Kept { path: camino::Utf8PathBuf, url: String, why: String },
    #[error("could not use {path}, which `{setting}` names: {why}")]
    File { path: camino::Utf8PathBuf, setting: &'static str, why: String },
    #[error("could not keep a clone in {path}: {why}")]
    Clone { path: camino::Utf8PathBuf, why: String },
    #[error("could not fetch {url}: {} is fetching into {path}, and takes long", holder_name(.holder))]
    Busy { url: String, path: camino::Utf8PathBuf, holder: Option<u32> },
    #[error("nothing of {url} was fetched yet")]
    Nothing { url: String },
}

fn no_repository(is_folder: bool) -> &'static str {
    if is_folder { "that folder is no git repository" } else { "there is no such folder on this machine" }
}

const OWNER: &str = "let its owner run this, or list it as `safe.directory` with git config";

impl GitError {
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
