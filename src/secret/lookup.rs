//! Reads secrets from files and the environment. Each organization can reach only its own.

use std::io::{ErrorKind, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use camino::Utf8Path;
use secrecy::{ExposeSecret as _, SecretString};
use zeroize::Zeroizing;

use super::{MAX_LENGTH, SecretError};
use crate::names::Identifier;

const OTHERS_READ: u32 = 0o004;
const OTHERS_ENTER: u32 = 0o001;

pub(super) enum SecretLookup {
    Value(SecretString),
    /// The secret isn't available here: the reason, as the end of a sentence.
    NotHere(String),
}

pub(super) fn from_file(
    secrets_dir: &Utf8Path,
    organization: &Identifier,
    name: &str,
) -> Result<SecretLookup, SecretError> {
    check_file_name(name)?;
    // The check of a pull request has no secrets folder at all, which differs from a missing secret.
    let root = match secrets_dir.canonicalize() {
        Ok(root) => root,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Ok(SecretLookup::NotHere(format!("there is no secrets folder `{secrets_dir}` here")));
        }
        Err(error) => return Err(unreadable("the secrets folder", &error)),
    };
    let place = format!("`{organization}/{name}` in the secrets folder");
    let folder = root.join(organization.as_str());
    let path = folder.join(name).canonicalize().map_err(|error| unreadable(&place, &error))?;
    // `folder` isn't resolved: it could itself be a link that leads out.
    if !path.starts_with(&folder) {
        return Err(SecretError::new(
            "secret-link-out-of-folder",
            format!("{place} is a link out of the organization's folder"),
            "put a copy of the file there",
        ));
    }
    read(&path, &place)
}

/// Reads one of a systemd service's credentials. From a folder that `LoadCredential` names, systemd makes one
/// file per secret, all in one folder, named after the credential, the organization and the file.
///
/// No identifier contains `_`, so the first one after the credential's own name ends the organization, and
/// two organizations never share a file.
pub(super) fn from_credential(
    secrets_dir: &Utf8Path,
    organization: &Identifier,
    name: &str,
) -> Result<SecretLookup, SecretError> {
    check_file_name(name)?;
    let credential = format!("{}_{organization}_{name}", secrets_dir.file_name().unwrap_or_default());
    let place = format!("credential `{credential}`");
    read(secrets_dir.with_file_name(credential).as_std_path(), &place)
}

fn check_file_name(name: &str) -> Result<(), SecretError> {
    if is_file_name(name) {
        return Ok(());
    }
    Err(SecretError::new(
        "secret-file-name",
        format!("`from_file` is `{name}`, which is not the name of a file in the organization's folder"),
        "use a name of letters, digits, `-`, `_` and `.`, without folders and not starting with `.`",
    ))
}

fn read(path: &std::path::Path, place: &str) -> Result<SecretLookup, SecretError> {
    match read_bounded(path) {
        Ok(Some(bytes)) => text(place, &bytes).map(SecretLookup::Value),
        Ok(None) => Err(not_a_secret(place, "is not a file of at most 1 MiB")),
        Err(error) => Err(unreadable(place, &error)),
    }
}

/// Returns the file of a secret if every user of this host can read it: the file is readable by others, and
/// so is the path of folders to it.
pub(super) fn open_to_others(
    secrets_dir: &Utf8Path,
    organization: &Identifier,
    name: &str,
) -> Option<PathBuf> {
    let may = |path: &Path, what: u32| {
        std::fs::metadata(path).is_ok_and(|metadata| metadata.permissions().mode() & what != 0)
    };
    let path = secrets_dir.join(organization.as_str()).join(name).canonicalize().ok()?;
    let is_open = may(&path, OTHERS_READ) && path.ancestors().skip(1).all(|folder| may(folder, OTHERS_ENTER));
    is_open.then_some(path)
}

/// Reads the variable of this organization with a given name.
///
/// No identifier contains `_` or `--`, so the first `__` after the prefix ends the organization, and two
/// organizations never share a variable.
pub(super) fn from_env(
    environment: &dyn Fn(&str) -> Option<SecretString>,
    organization: &Identifier,
    name: &str,
) -> Result<SecretLookup, SecretError> {
    let fits = name.starts_with(|first: char| first.is_ascii_uppercase())
        && name.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_');
    if !fits {
        return Err(SecretError::new(
            "secret-variable-name",
            format!("`from_env` is `{name}`, which is not the end of a variable's name"),
            "use a name of upper-case letters, digits and `_`, starting with a letter",
        ));
    }
    let variable = variable(organization, name);
    let Some(value) = environment(&variable) else {
        return Ok(SecretLookup::NotHere(format!("the environment has no variable {variable}")));
    };
    match value.expose_secret().len() {
        0 => Err(not_a_secret(&format!("the variable {variable}"), "is empty")),
        1..=MAX_LENGTH => Ok(SecretLookup::Value(value)),
        _ => Err(not_a_secret(&format!("the variable {variable}"), "is larger than 1 MiB")),
    }
}

fn variable(organization: &Identifier, name: &str) -> String {
    format!("STREAMFLEET_SECRET_{}__{name}", organization.as_str().to_ascii_uppercase().replace('-', "_"))
}

fn is_file_name(name: &str) -> bool {
    !name.starts_with(['.', '-'])
        && (1..=255).contains(&name.len())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
}

/// Reads a regular file of at most `MAX_LENGTH` bytes; none for anything else.
fn read_bounded(path: &Path) -> std::io::Result<Option<Zeroizing<Vec<u8>>>> {
    // Checks the type before opening, since opening a pipe blocks until it is written to.
    let metadata = std::fs::metadata(path)?;
    let Some(length) = usize::try_from(metadata.len()).ok().filter(|&length| length <= MAX_LENGTH) else {
        return Ok(None);
    };
    if !metadata.is_file() {
        return Ok(None);
    }
    let mut bytes = Zeroizing::new(Vec::with_capacity(length + 1));
    std::fs::File::open(path)?.take(MAX_LENGTH as u64 + 1).read_to_end(&mut bytes)?;
    Ok((bytes.len() <= MAX_LENGTH).then_some(bytes))
}

fn text(place: &str, bytes: &[u8]) -> Result<SecretString, SecretError> {
    match std::str::from_utf8(bytes) {
        Ok("") => Err(not_a_secret(place, "is empty")),
        Ok(text) => Ok(SecretString::from(text)),
        Err(_) => Err(not_a_secret(place, "is not a text in UTF-8")),
    }
}

fn not_a_secret(place: &str, why: &str) -> SecretError {
    SecretError::new("secret-unusable", format!("{place} {why}"), "put the secret itself there, as text")
}

fn unreadable(place: &str, error: &std::io::Error) -> SecretError {
    if error.kind() == ErrorKind::NotFound {
        return SecretError::new(
            "secret-file-missing",
            format!("there is no {place}"),
            "put the secret there, readable only for the user that runs streamfleet",
        );
    }
    SecretError::new(
        "secret-file-unreadable",
        format!("{place} can't be read: {}", error.kind()),
        "make it readable for the user that runs streamfleet",
    )
}
