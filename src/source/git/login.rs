//! Credentials for a remote, and checks of the remote's identity.

use std::cell::{Cell, RefCell};
use std::io::Read as _;
use std::time::Instant;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use camino::{Utf8Path, Utf8PathBuf};
use git2::cert::{Cert, CertHostkey};
use git2::{CertificateCheckStatus, Cred, CredentialType, Error, ErrorClass, ErrorCode, RemoteCallbacks};
use secrecy::{ExposeSecret as _, SecretString};
use zeroize::Zeroizing;

use super::GitError;
use super::known_hosts::{HostKeyJudgement, judge};
use crate::config::{SourceConfig, Transport};

/// The largest file of a token or of host keys, in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// The credentials in the settings. Files are read at each fetch, so that their content may change.
#[derive(Debug)]
pub(super) struct Login {
    transport: Transport,
    username: String,
    token: Option<SecretString>,
    token_file: Option<Utf8PathBuf>,
    ssh_key: Option<Utf8PathBuf>,
    known_hosts: Option<Utf8PathBuf>,
}

/// Why a server isn't trusted, kept here since libgit2 drops the message for ssh servers.
pub(super) type DistrustReason = RefCell<Option<String>>;

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

    pub(super) fn transport(&self) -> &Transport {
        &self.transport
    }

    /// Returns the callbacks of a fetch or push, which also enforce its deadline.
    ///
    /// # Errors
    /// If a file that is needed can't be read.
    pub(super) fn callbacks<'a>(
        &'a self,
        until: Instant,
        told: &'a DistrustReason,
    ) -> Result<RemoteCallbacks<'a>, GitError> {
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
                // libgit2 asks again after rejected credentials.
                if !is_username_only && asked.replace(true) {
                    return Err(refused("the server refuses the token or key"));
                }
                self.answer(&credentials, kinds)
            })
            .certificate_check(move |certificate, host| match (&self.transport, certificate.as_hostkey()) {
                (Transport::Ssh { port, .. }, Some(key)) => check_host_key(&known_hosts, host, *port, key)
                    .map_err(|why| {
                        told.replace(Some(why.clone()));
                        distrusted(why)
                    }),
                (Transport::Ssh { .. }, None) => Err(distrusted("the server has no host key".to_owned())),
                _ => refuse_host_key(certificate),
            });
        Ok(callbacks)
    }

    fn credentials(&self) -> Result<Credentials, GitError> {
        match (&self.transport, &self.token, &self.token_file, &self.ssh_key) {
            (Transport::Https, Some(token), ..) => Ok(Credentials::Token(token.clone())),
            (Transport::Https, None, Some(path), _) => {
                secret(path, "source.token_file").map(Credentials::Token)
            }
            (Transport::Ssh { .. }, .., Some(path)) => {
                match unfit_key(read(path, "source.ssh_key")?.into()) {
                    None => Ok(Credentials::Key(path.clone())),
                    Some(why) => Err(unusable(path, "source.ssh_key", &why)),
                }
            }
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
            Credentials::None => Err(refused("the server requires a login, and no token is set")),
            _ => Err(refused("the server accepts neither a token nor a key")),
        }
    }
}

/// Certificates of https are checked by the TLS library of libgit2, and its result is kept.
fn refuse_host_key(certificate: &Cert<'_>) -> Result<CertificateCheckStatus, Error> {
    match certificate.as_hostkey() {
        None => Ok(CertificateCheckStatus::CertificatePassthrough),
        Some(_) => Err(distrusted("the server presents a key instead of a certificate".to_owned())),
    }
}

fn check_host_key(
    known_hosts: &str,
    host: &str,
    port: u16,
    key: &CertHostkey<'_>,
) -> Result<CertificateCheckStatus, String> {
    let Some(bytes) = key.hostkey() else { return Err(format!("the key of {host} can't be read")) };
    let kind = key.hostkey_type().map_or("unknown", |kind| kind.name());
    let shown = key.hash_sha256().map(|hash| STANDARD_NO_PAD.encode(hash)).unwrap_or_default();
    let shown = format!("the key of {host}, {kind} SHA256:{shown},");
    match judge(known_hosts, host, port, bytes) {
        HostKeyJudgement::Known => Ok(CertificateCheckStatus::CertificateOk),
        HostKeyJudgement::Other => Err(format!(
            "{shown} doesn't match `source.known_hosts`: another server may answer; if the server's owner confirms the new \
             key, replace its line there"
        )),
        HostKeyJudgement::Unknown => Err(format!(
            "{shown} is unknown: `source.known_hosts` doesn't list the server; if the server's owner confirms the key, add \
             the output of `ssh-keyscan -p {port} {host}` to that file"
        )),
        HostKeyJudgement::Revoked => Err(format!("{shown} is revoked in `source.known_hosts`")),
    }
}

/// Returns why a private key can't be used; none if it can.
fn unfit_key(text: SecretString) -> Option<String> {
    let text = text.expose_secret();
    if !text.contains("PRIVATE KEY-----") {
        return Some("it contains no private key".to_owned());
    }
    let is_locked =
        ["Proc-Type: 4,ENCRYPTED", "BEGIN ENCRYPTED PRIVATE KEY"].iter().any(|mark| text.contains(mark))
            || openssh_cipher(text).is_some_and(|cipher| cipher != b"none");
    is_locked.then(|| {
        "it has a passphrase, which Streamfleet can't enter; use a key of its own without one: `ssh-keygen -t ed25519 -N \
         ''`"
            .to_owned()
    })
}

/// Returns the cipher of a private key in OpenSSH's own format (its `PROTOCOL.key`).
fn openssh_cipher(text: &str) -> Option<Vec<u8>> {
    let lines =
        text.lines().map(str::trim).skip_while(|line| *line != "-----BEGIN OPENSSH PRIVATE KEY-----").skip(1);
    let body: String = lines.take_while(|line| !line.starts_with("-----")).collect();
    let body = Zeroizing::new(STANDARD.decode(body).ok()?);
    let (length, rest) = body.strip_prefix(b"openssh-key-v1\0")?.split_first_chunk::<4>()?;
    Some(rest.get(..usize::try_from(u32::from_be_bytes(*length)).ok()?)?.to_vec())
}

fn refused(why: &str) -> Error {
    Error::new(ErrorCode::Auth, ErrorClass::Callback, why)
}

fn distrusted(why: String) -> Error {
    Error::new(ErrorCode::Certificate, ErrorClass::Callback, why)
}

pub(super) fn secret(path: &Utf8Path, setting: &'static str) -> Result<SecretString, GitError> {
    let secret = SecretString::from(read(path, setting)?.trim());
    match secret.expose_secret().is_empty() {
        true => Err(unusable(path, setting, "it is empty")),
        false => Ok(secret),
    }
}

pub(super) fn read(path: &Utf8Path, setting: &'static str) -> Result<String, GitError> {
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
