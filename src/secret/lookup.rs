//! Secrets in files and in the environment, where each organization reaches its own and no other's.

use std::io::{ErrorKind, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use camino::Utf8Path;
use secrecy::{ExposeSecret as _, SecretString};
use zeroize::Zeroizing;

use super::{MAX_LENGTH, SecretError};
use crate::names::Identifier;

/// The permission of everybody to read a file.
const OTHERS_READ: u32 = 0o004;
/// The permission of everybody to pass through a folder.
const OTHERS_ENTER: u32 = 0o001;

/// What came of looking for a secret.
pub(super) enum Found {
    /// Its value.
    Value(SecretString),
    /// It can't be known here: why, as the end of a sentence.
    NotHere(String),
}

/// Reads a file of the organization's own folder.
pub(super) fn from_file(
    secrets_dir: &Utf8Path,
    organization: &Identifier,
    name: &str,
) -> Result<Found, SecretError> {
    check_file_name(name)?;
    // A pull request's check has no secrets at all, which is not the same as one that is missing.
    let root = match secrets_dir.canonicalize() {
        Ok(root) => root,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Ok(Found::NotHere(format!("there is no secrets folder `{secrets_dir}` here")));
        }
        Err(error) => return Err(unreadable("the secrets folder", &error)),
    };
    let place = format!("`{organization}/{name}` in the secrets folder");
    let folder = root.join(organization.as_str());
    let path = folder.join(name).canonicalize().map_err(|error| unreadable(&place, &error))?;
    // A link to the folder itself would lead out of it just as well, so the folder isn't resolved.
    if !path.starts_with(&folder) {
        return Err(SecretError::new(
            "secret-link-out-of-folder",
            format!("{place} is a link that leads out of the organization's folder"),
            "put a copy of the file there",
        ));
    }
    read(&path, &place)
}

/// Reads one of the credentials that systemd gives a service: of a folder that `LoadCredential` names it makes one file each,
/// without folders, named by the credential, the organization and the file.
///
/// No identifier holds `_`, so the first one after the credential's own name ends the organization, and two organizations
/// never share a file.
pub(super) fn from_credential(
    secrets_dir: &Utf8Path,
    organization: &Identifier,
    name: &str,
) -> Result<Found, SecretError> {
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
        format!("`from_file` names `{name}`, which is not the name of a file in the organization's folder"),
        "give a name of letters, digits, `-`, `_` and `.`, without folders and not starting with `.`",
    ))
}

fn read(path: &std::path::Path, place: &str) -> Result<Found, SecretError> {
    match read_bounded(path) {
        Ok(Some(bytes)) => text(place, &bytes).map(Found::Value),
        Ok(None) => Err(not_a_secret(place, "is not a file of at most 1 MiB")),
        Err(error) => Err(unreadable(place, &error)),
    }
}

/// The file of a secret that was read, where users of this host can read it whom nobody meant to: everybody may, and may
/// come to it through the folders around it.
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

/// Reads a variable that only this organization's name leads to.
///
/// No identifier holds `_` or `--`, so the first `__` after the prefix ends the organization, and two organizations
/// never share a variable.
pub(super) fn from_env(
    environment: &dyn Fn(&str) -> Option<SecretString>,
    organization: &Identifier,
    name: &str,
) -> Result<Found, SecretError> {
    let fits = name.starts_with(|first: char| first.is_ascii_uppercase())
        && name.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_');
    if !fits {
        return Err(SecretError::new(
            "secret-variable-name",
            format!("`from_env` names `{name}`, which is not the end of a variable's name"),
            "give a name of upper-case letters, digits and `_`, starting with a letter",
        ));
    }
    let variable = variable(organization, name);
    let Some(value) = environment(&variable) else {
        return Ok(Found::NotHere(format!("the environment has no variable {variable}")));
    };
    match value.expose_secret().len() {
        0 => Err(not_a_secret(&format!("the variable {variable}"), "is empty")),
        1..=MAX_LENGTH => Ok(Found::Value(value)),
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

/// The bytes of a regular file that is not too large; none for anything else.
fn read_bounded(path: &Path) -> std::io::Result<Option<Zeroizing<Vec<u8>>>> {
    // Looked at before it is opened, since opening a pipe waits for somebody to write to it.
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
            "put the secret there, readable for the user that runs streamfleet alone",
        );
    }
    SecretError::new(
        "secret-file-unreadable",
        format!("{place} can't be read: {}", error.kind()),
        "make it readable for the user that runs streamfleet",
    )
}
