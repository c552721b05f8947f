//! The keys of an installation: age identities that open its sealed secrets, and the key of the fingerprints.

mod files;
#[cfg(test)]
mod tests;

use std::fmt;
use std::os::unix::fs::MetadataExt as _;
use std::str::FromStr as _;

use age::x25519::Identity;
use aws_lc_rs::hmac;
use camino::{Utf8Path, Utf8PathBuf};
use secrecy::{ExposeSecret as _, SecretString};
use zeroize::Zeroizing;

use super::SecretError;
use super::envelope::{self, NotOpened};
use crate::catalog::SecretMark;
use crate::names::{Digest, SecretRef};
use files::{make_private_dir, read_private, require_private, was_used, write_private};

pub use files::KeyLock;

/// The file of the age identities, in the format of `age-keygen`, newest first.
const IDENTITIES: &str = "identity.age-keys";
/// The file of the fingerprint key, in hexadecimal.
const FINGERPRINT: &str = "fingerprint.key";
/// The length of the fingerprint key, in bytes: that of the digest, as RFC 2104 recommends.
const KEY_LENGTH: usize = 32;
/// The length of a fingerprint, in hexadecimal characters: 128 bits, so that collisions are negligible.
const FINGERPRINT_LENGTH: usize = 32;

/// The length of an event id, in hexadecimal digits.
pub const EVENT_ID_LENGTH: usize = 32;

pub struct Keyring {
    /// Newest first, never empty.
    identities: Vec<Identity>,
    fingerprint_key: Zeroizing<[u8; KEY_LENGTH]>,
    /// The state folder; none for ephemeral keys.
    dir: Option<Utf8PathBuf>,
    stamp: Option<IdentityStamp>,
}

/// The metadata of the identity file: inode, size in bytes, modification time in seconds and nanoseconds.
/// Replacing the file changes it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct IdentityStamp(u64, u64, i64, i64);

impl IdentityStamp {
    fn of(dir: &Utf8Path) -> Option<IdentityStamp> {
        let found = std::fs::symlink_metadata(dir.join(IDENTITIES)).ok()?;
        Some(IdentityStamp(found.ino(), found.size(), found.mtime(), found.mtime_nsec()))
    }
}

/// Prints the number of keys and no key.
impl fmt::Debug for Keyring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Keyring({} identities)", self.identities.len())
    }
}

impl Keyring {
    /// Reads the keys of a state folder; none if it has none yet.
    ///
    /// # Errors
    /// If other users can read the folder or a key, if a key can't be read or is damaged, or if one of the
    /// two files is missing from a folder that was used before. Nothing is ever replaced: a lost key is a
    /// lost secret.
    pub fn load(dir: &Utf8Path) -> Result<Option<Keyring>, SecretError> {
        if !require_private(dir)? {
            return Ok(None);
        }
        // Taken before the read, so that a file replaced meanwhile is read once more.
        let stamp = IdentityStamp::of(dir);
        let identities = read_private(&dir.join(IDENTITIES))?;
        let fingerprint = read_private(&dir.join(FINGERPRINT))?;
        match (identities, fingerprint) {
            (None, None) => Ok(None),
            (Some(identities), Some(fingerprint)) => Ok(Some(Keyring {
                identities: parse_identities(&identities)
                    .ok_or_else(|| damaged(&dir.join(IDENTITIES), "it is not a list of age identities"))?,
                fingerprint_key: parse_fingerprint_key(&fingerprint)
                    .ok_or_else(|| damaged(&dir.join(FINGERPRINT), "it is not 64 hexadecimal characters"))?,
                dir: Some(dir.to_owned()),
                stamp,
            })),
            // The first start was killed between writing the two files.
            _ if !was_used(dir)? => Ok(None),
            (None, Some(_)) => Err(half(dir, IDENTITIES, FINGERPRINT)),
            (Some(_), None) => Err(half(dir, FINGERPRINT, IDENTITIES)),
        }
    }

    /// Reads the keys of a state folder. Creates the folder and the keys if needed, and completes a first
    /// start that was killed between writing the two files.
    ///
    /// # Errors
    /// Those of [`Keyring::load`]; if both files are missing from a folder that was used before; if the keys
    /// can't be written.
    pub fn load_or_create(dir: &Utf8Path) -> Result<Keyring, SecretError> {
        make_private_dir(dir)?;
        let _lock = KeyLock::take(dir)?;
        if was_used(dir)? {
            return Self::load(dir)?.ok_or_else(|| both_missing(dir));
        }
        // Nothing was recorded yet that needs a key, so a missing key was never created.
        let made = Self::ephemeral()?;
        if read_private(&dir.join(IDENTITIES))?.is_none() {
            write_private(dir, IDENTITIES, &made.identity_file())?;
        }
        if read_private(&dir.join(FINGERPRINT))?.is_none() {
            let key = Zeroizing::new(hex::encode(*made.fingerprint_key) + "\n");
            write_private(dir, FINGERPRINT, &key)?;
        }
        Self::load(dir)?.ok_or_else(|| both_missing(dir))
    }

    /// Creates keys in memory, for checks that only plan. What is sealed to them is lost with the process.
    ///
    /// # Errors
    /// If the system provides no randomness.
    pub fn ephemeral() -> Result<Keyring, SecretError> {
        let mut fingerprint_key = Zeroizing::new([0; KEY_LENGTH]);
        aws_lc_rs::rand::fill(fingerprint_key.as_mut_slice()).map_err(|_| {
            SecretError::new(
                "no-randomness",
                "cannot create keys: the system provides no random numbers",
                "check the system's log, and start again",
            )
        })?;
        Ok(Keyring { identities: vec![Identity::generate()], fingerprint_key, dir: None, stamp: None })
    }

    /// Reads the keys again if the identity file changed since they were read.
    ///
    /// # Errors
    /// Those of [`Keyring::load`].
    pub fn reload_if_changed(&self) -> Result<Option<Keyring>, SecretError> {
        match self.dir.as_deref().filter(|dir| IdentityStamp::of(dir) != self.stamp) {
            Some(dir) => Self::load(dir),
            None => Ok(None),
        }
    }

    /// Returns the public recipient of sealed secrets, `age1…`, of the newest identity.
    pub fn recipient(&self) -> String {
        self.identities[0].to_public().to_string()
    }

    pub fn is_own(&self, recipient: &str) -> bool {
        self.identities.iter().any(|identity| identity.to_public().to_string() == recipient.trim())
    }

    /// Adds a new identity, to which everything is sealed from now on. The old ones stay, to open what was
    /// sealed to them, and so do those that another process added meanwhile. No other process can add one
    /// until the lock is dropped.
    ///
    /// # Errors
    /// If the file can't be read again or written. Then the keys are unchanged.
    pub fn add_identity(&mut self) -> Result<KeyLock, SecretError> {
        let Some(dir) = self.dir.clone() else {
            self.identities.insert(0, Identity::generate());
            return Ok(KeyLock::ephemeral_lock());
        };
        let lock = KeyLock::take(&dir)?;
        let mut next = Self::load(&dir)?.ok_or_else(|| both_missing(&dir))?;
        next.identities.insert(0, Identity::generate());
        write_private(&dir, IDENTITIES, &next.identity_file())?;
        *self = next;
        Ok(lock)
    }

    /// Opens a sealed block for the field that contains it.
    ///
    /// # Errors
    /// If no identity opens it, it was sealed for another field, or it is damaged.
    pub fn open(&self, armour: &str, reference: &SecretRef) -> Result<SecretString, NotOpened> {
        envelope::open(&self.identities, armour, reference)
    }

    /// Returns the trace of a value: a fingerprint that only this installation can compute, and the digest of
    /// its sealed form, if any.
    pub fn mark(&self, reference: &SecretRef, value: &SecretString, sealed: Option<Digest>) -> SecretMark {
        let key = hmac::Key::new(hmac::HMAC_SHA256, self.fingerprint_key.as_slice());
        let mut mac = hmac::Context::with_key(&key);
        mac.update(reference.to_string().as_bytes());
        mac.update(&[0]);
        mac.update(value.expose_secret().as_bytes());
        let mut digest = hex::encode(mac.sign());
        digest.truncate(FINGERPRINT_LENGTH);
        SecretMark { fingerprint: Some(format!("hmac:{digest}")), sealed }
    }

    /// Returns the public id of an event. Its number would disclose how many events the caller may not see.
    pub fn event_id(&self, number: u64) -> String {
        let key = hmac::Key::new(hmac::HMAC_SHA256, self.fingerprint_key.as_slice());
        let mut mac = hmac::Context::with_key(&key);
        // Domain separation: no secret reference starts like this.
        mac.update(b"event\0");
        mac.update(&number.to_be_bytes());
        let mut id = hex::encode(mac.sign());
        id.truncate(EVENT_ID_LENGTH);
        id
    }

    /// Opens a block that was sealed to an older identity, for any field; none for the newest identity.
    pub(super) fn open_old(&self, armour: &str) -> Result<Option<Zeroizing<String>>, NotOpened> {
        let (newest, older) = self.identities.split_at(1);
        match envelope::decrypt(newest, armour) {
            Ok(_) => Ok(None),
            Err(NotOpened::NoIdentity) => envelope::decrypt(older, armour).map(Some),
            Err(error) => Err(error),
        }
    }

    pub(super) fn seal_again(&self, plaintext: &str) -> Result<String, SecretError> {
        envelope::encrypt(&self.identities[0].to_public(), plaintext)
    }

    fn identity_file(&self) -> Zeroizing<String> {
        let note = "# The age identities of this Streamfleet installation, newest first. They open its sealed secrets,\n# \
                    and without them nothing can: back them up and keep them secret.\n";
        let entries = self.identities.iter().map(|identity| {
            let secret = identity.to_string();
            Zeroizing::new(format!("# public key: {}\n{}\n", identity.to_public(), secret.expose_secret()))
        });
        let entries: Vec<_> = entries.collect();
        let length = note.len() + entries.iter().map(|entry| entry.len()).sum::<usize>();
        let mut file = Zeroizing::new(String::with_capacity(length));
        file.push_str(note);
        entries.iter().for_each(|entry| file.push_str(entry));
        file
    }
}

/// Parses the identities of a file, in its order; none if it has none, or anything else in a line.
pub(super) fn parse_identities(text: &str) -> Option<Vec<Identity>> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let identities: Vec<Identity> = lines.map(|line| Identity::from_str(line).ok()).collect::<Option<_>>()?;
    (!identities.is_empty()).then_some(identities)
}

fn parse_fingerprint_key(text: &str) -> Option<Zeroizing<[u8; KEY_LENGTH]>> {
    let mut key = Zeroizing::new([0; KEY_LENGTH]);
    hex::decode_to_slice(text.trim(), key.as_mut_slice()).ok()?;
    Some(key)
}

fn damaged(file: &Utf8Path, why: &str) -> SecretError {
    let (dir, name) = (file.parent().unwrap_or(file), file.file_name().unwrap_or_default());
    SecretError::new(
        "key-file-damaged",
        format!("the key file {file} is damaged: {why}"),
        format!(
            "move it out of the folder and {}; without a backup, {}",
            from_backup(dir, name),
            make_anew(dir, name)
        ),
    )
}

fn half(dir: &Utf8Path, missing: &str, there: &str) -> SecretError {
    SecretError::new(
        "key-file-missing",
        format!("the key file {missing} is missing from {dir}, where {there} is"),
        format!("{}; if it is lost for good, {}", from_backup(dir, missing), make_anew(dir, missing)),
    )
}

fn both_missing(dir: &Utf8Path) -> SecretError {
    SecretError::new(
        "key-file-missing",
        format!(
            "the key files {IDENTITIES} and {FINGERPRINT} are missing from {dir}, which was used with them"
        ),
        format!(
            "take both from a backup, since without them no sealed secret can be opened: tar -xf FILE -C {dir} {IDENTITIES} \
             {FINGERPRINT}; if they are lost for good, {}, and {}",
            make_anew(dir, IDENTITIES),
            make_anew(dir, FINGERPRINT)
        ),
    )
}

/// Returns how to put back one file from a backup, which is a tar archive.
fn from_backup(dir: &Utf8Path, file: &str) -> String {
    format!("take it from a backup: tar -xf FILE -C {dir} {file}")
}

/// Returns how to replace a lost file. It is never done automatically: perhaps a disk is just not mounted.
fn make_anew(dir: &Utf8Path, file: &str) -> String {
    match file {
        IDENTITIES => {
            format!("create a new one with `age-keygen -o {dir}/{file}` and seal every secret again")
        }
        _ => format!(
            "create a new one with `(umask 077; openssl rand -hex 32 > {dir}/{file})`, after which every secret counts as \
             changed"
        ),
    }
}
