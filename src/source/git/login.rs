//! How a remote is told who asks, and how it has to show who it is.

use std::cell::Cell;
use std::io::Read as _;
use std::time::Instant;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use camino::{Utf8Path, Utf8PathBuf};
use git2::cert::{Cert, CertHostkey};
use git2::{CertificateCheckStatus, Cred, CredentialType, Error, ErrorClass, ErrorCode, RemoteCallbacks};
use secrecy::{ExposeSecret as _, SecretString};

use super::GitError;
use super::known_hosts::{Judgement, judge};
use crate::config::{SourceConfig, Transport};

/// The largest file of a token or of host keys that is read, in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// What settings say of logging in. Files are read at each fetch, so that what is in them may change.
#[derive(Debug)]
pub(super) struct Login {
    transport: Transport,
    username: String,
    /// The token of the environment.
    token: Option<SecretString>,
    token_file: Option<Utf8PathBuf>,
    ssh_key: Option<Utf8PathBuf>,
    known_hosts: Option<Utf8PathBuf>,
}

/// What is shown to a remote.
enum Credentials {
    None,
    Token(SecretString),
    Key(Utf8PathBuf),
}

impl Login {
    pub(super) fn of(config: &SourceConfig, transport: Transport, token: Option<SecretString>) -> Self {
        Login {
            username: match &transport {
                Transport::Ssh { user, .. } => user.clone(),
                _ => config.username.clone(),
            },
            transport,
            token,
            token_file: config.token_file.clone(),
            ssh_key: config.ssh_key.clone(),
            known_hosts: config.known_hosts.clone(),
        }
    }

    /// What git asks while it fetches, until a deadline.
    ///
    /// # Errors
    /// When a file that is needed can't be read.
    pub(super) fn callbacks(&self, until: Instant) -> Result<RemoteCallbacks<'_>, GitError> {
        let credentials = self.credentials()?;
        let known_hosts = match &self.known_hosts {
            Some(path) if matches!(self.transport, Transport::Ssh { .. }) => {
                read(path, "source.known_hosts")?
            }
            _ => String::new(),
        };
        let in_time = move || Instant::now() < until;
        let asked = Cell::new(false);
        let mut callbacks = RemoteCallbacks::new();
        callbacks
            .transfer_progress(move |_| in_time())
            .sideband_progress(move |_| in_time())
            .credentials(move |_, _, kinds| {
                let is_username_only = kinds == CredentialType::USERNAME;
                // Who is refused is asked again.
                if !is_username_only && asked.replace(true) {
                    return Err(refused("the server refuses the token or key"));
                }
                self.answer(&credentials, kinds)
            })
            .certificate_check(move |certificate, host| match (&self.transport, certificate.as_hostkey()) {
                (Transport::Ssh { port, .. }, Some(key)) => check_host_key(&known_hosts, host, *port, key),
                (Transport::Ssh { .. }, None) => Err(distrusted("the server shows no host key".to_owned())),
                _ => refuse_host_key(certificate),
            });
        Ok(callbacks)
    }

    fn credentials(&self) -> Result<Credentials, GitError> {
        match (&self.transport, &self.token, &self.token_file, &self.ssh_key) {
            (Transport::Https, Some(token), ..) => Ok(Credentials::Token(token.clone())),
            (Transport::Https, None, Some(path), _) => {
                let token = SecretString::from(read(path, "source.token_file")?.trim());
                if token.expose_secret().is_empty() {
                    return Err(unusable(path, "source.token_file", "it is empty"));
                }
                Ok(Credentials::Token(token))
            }
            (Transport::Ssh { .. }, .., Some(key)) => Ok(Credentials::Key(key.clone())),
            _ => Ok(Credentials::None),
        }
    }

    fn answer(&self, credentials: &Credentials, kinds: CredentialType) -> Result<Cred, Error> {
        match credentials {
            _ if kinds == CredentialType::USERNAME => Cred::username(&self.username),
            Credentials::Token(token) if kinds.contains(CredentialType::USER_PASS_PLAINTEXT) => {
                Cred::userpass_plaintext(&self.username, token.expose_secret())
            }
            Credentials::Key(key) if kinds.contains(CredentialType::SSH_KEY) => {
                Cred::ssh_key(&self.username, None, key.as_std_path(), None)
            }
            Credentials::None => Err(refused("the server asks who is there, and no token is given")),
            _ => Err(refused("the server takes neither a token nor a key")),
        }
    }
}

/// A certificate over https is checked by what git is built with, and what that says holds.
fn refuse_host_key(certificate: &Cert<'_>) -> Result<CertificateCheckStatus, Error> {
    match certificate.as_hostkey() {
        None => Ok(CertificateCheckStatus::CertificatePassthrough),
        Some(_) => Err(distrusted("the server shows a key instead of a certificate".to_owned())),
    }
}

fn check_host_key(
    known_hosts: &str,
    host: &str,
    port: u16,
    key: &CertHostkey<'_>,
) -> Result<CertificateCheckStatus, Error> {
    let Some(bytes) = key.hostkey() else {
        return Err(distrusted(format!("the key of {host} can't be read")));
    };
    let kind = key.hostkey_type().map_or("unknown", |kind| kind.name());
    let shown = key.hash_sha256().map(|hash| STANDARD_NO_PAD.encode(hash)).unwrap_or_default();
    let shown = format!("the key that {host} shows, {kind} SHA256:{shown},");
    match judge(known_hosts, host, port, bytes) {
        Judgement::Known => Ok(CertificateCheckStatus::CertificateOk),
        Judgement::Other => {
            Err(distrusted(format!("{shown} is not one that `source.known_hosts` has of it")))
        }
        Judgement::Unknown => {
            Err(distrusted(format!("{shown} is not known: `source.known_hosts` doesn't name the server")))
        }
        Judgement::Revoked => Err(distrusted(format!("{shown} is revoked in `source.known_hosts`"))),
    }
}

fn refused(why: &str) -> Error {
    Error::new(ErrorCode::Auth, ErrorClass::Callback, why)
}

fn distrusted(why: String) -> Error {
    Error::new(ErrorCode::Certificate, ErrorClass::Callback, why)
}

fn read(path: &Utf8Path, setting: &'static str) -> Result<String, GitError> {
    let mut text = String::new();
    let read = std::fs::File::open(path).and_then(|file| file.take(MAX_BYTES + 1).read_to_string(&mut text));
    match read {
        Err(error) => Err(unusable(path, setting, &error.to_string())),
        Ok(_) if text.len() as u64 > MAX_BYTES => Err(unusable(path, setting, "it is larger than 1 MiB")),
        Ok(_) => Ok(text),
    }
}

fn unusable(path: &Utf8Path, setting: &'static str, why: &str) -> GitError {
    GitError::File { path: path.to_owned(), setting, why: why.to_owned() }
}
