//! The format of a backup: a tar file with a manifest in front, which any `tar` can list and open.
//!
//! A backup is untrusted: only known names and plain files are read, and all bytes must match the manifest.

use std::collections::BTreeMap;
use std::io::{self, Read as _};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;
use zeroize::Zeroizing;

use super::certificates::KeptCertificates;
use super::kept::Content as _;
use super::kubeconfigs::Kubeconfigs;
use super::{open, registry, sizes, tokens};
use crate::names::Digest;

/// The version of the format. A field can be added to the manifest without a new version.
const FORMAT: u32 = 1;

/// The first entry.
const MANIFEST: &str = "manifest.json";

/// The age identities, which the module `secret` keeps in the same folder.
const IDENTITIES: &str = "identity.age-keys";

/// The fingerprint key, also of the module `secret`.
const FINGERPRINT: &str = "fingerprint.key";

/// The files in a backup: everything that can't be recreated. Approvals are in the registry.
///
/// Files are copied in this order. An audit line is written before the change that it describes, so a trail
/// copied after the registry and the tokens covers at least their content.
pub(super) const BACKUP_FILES: [&str; 8] = [
    registry::FILE,
    tokens::FILE,
    open::AUDIT,
    sizes::FILE,
    IDENTITIES,
    FINGERPRINT,
    Kubeconfigs::FILE,
    KeptCertificates::FILE,
];

/// The first entry of an archive: its content and origin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    format: u32,
    /// The version of streamfleet that made it.
    pub software: String,
    pub made_at: Timestamp,
    /// None if only keys existed.
    pub installation: Option<Uuid>,
    /// The tree that was applied last, if any.
    pub source: Option<String>,
    pub files: Vec<SavedFile>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedFile {
    pub name: String,
    /// In bytes.
    pub length: u64,
    pub sha256: Digest,
}

/// Only the version, which is parsed before anything else.
#[derive(Deserialize)]
struct ArchiveVersion {
    format: u32,
}

/// A backup: what can't be rebuilt of a state folder, including private keys.
pub struct Archive {
    pub manifest: Manifest,
    files: BTreeMap<String, Zeroizing<Vec<u8>>>,
}

#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    #[error("it is not a backup of streamfleet ({0})")]
    Foreign(String),
    #[error("a newer version of streamfleet created it (format {found}, this one reads up to {FORMAT})")]
    Newer { found: u32 },
    #[error("it is damaged: {0}")]
    Damaged(String),
    /// An entry with a name that no backup contains.
    #[error("it contains `{0}`, which no backup contains")]
    UnexpectedEntry(String),
}

impl ArchiveError {
    /// The suggested next step.
    pub fn hint(&self) -> &'static str {
        match self {
            ArchiveError::Foreign(_) => "use a file that `streamfleet backup` created",
            ArchiveError::Newer { .. } => "install that version, and restore with it",
            ArchiveError::Damaged(_) => "nothing was written; take another copy of it, or an older backup",
            ArchiveError::UnexpectedEntry(_) => {
                "nothing was written; the backup was modified, so use another copy of it"
            }
        }
    }
}

impl Archive {
    pub(super) fn new(
        software: &str,
        made_at: Timestamp,
        (installation, source): (Option<Uuid>, Option<String>),
        files: Vec<(&'static str, Zeroizing<Vec<u8>>)>,
    ) -> Archive {
        let saved = files.iter().map(|(name, bytes)| SavedFile {
            name: (*name).to_owned(),
            length: bytes.len() as u64,
            sha256: Digest::of(bytes.as_slice()),
        });
        let manifest = Manifest {
            format: FORMAT,
            software: software.to_owned(),
            made_at,
            installation,
            source,
            files: saved.collect(),
        };
        Archive { manifest, files: files.into_iter().map(|(name, bytes)| (name.to_owned(), bytes)).collect() }
    }

    /// The files' bytes, in the manifest's order.
    pub(super) fn files(&self) -> impl Iterator<Item = (&str, &[u8])> {
        let named = self.manifest.files.iter();
        named.filter_map(|file| Some((file.name.as_str(), self.files.get(&file.name)?.as_slice())))
    }

    pub fn holds_keys(&self) -> bool {
        self.files.contains_key(IDENTITIES)
    }

    /// Writes the archive.
    ///
    /// # Errors
    /// When a number doesn't fit a tar header.
    pub fn to_bytes(&self) -> io::Result<Zeroizing<Vec<u8>>> {
        let manifest = serde_json::to_vec_pretty(&self.manifest)?;
        // Allocates everything at once: a growing buffer would leave unwiped copies of keys behind.
        const HEADERS: usize = 16 * 1024;
        let size = manifest.len() + self.files.values().map(|bytes| bytes.len()).sum::<usize>() + HEADERS;
        let mut tar = tar::Builder::new(Vec::with_capacity(size));
        let entries = [(MANIFEST, manifest.as_slice())].into_iter().chain(self.files());
        for (name, bytes) in entries {
            let mut header = tar::Header::new_ustar();
            header.set_mode(0o600);
            header.set_size(bytes.len() as u64);
            header.set_mtime(u64::try_from(self.manifest.made_at.as_second()).unwrap_or(0));
            tar.append_data(&mut header, name, bytes)?;
        }
        tar.into_inner().map(Zeroizing::new)
    }

    /// Reads an archive, and checks that it contains exactly what its manifest lists.
    ///
    /// # Errors
    /// When it is something else, of a newer version, or doesn't match its manifest.
    pub fn parse(bytes: &[u8]) -> Result<Archive, ArchiveError> {
        let mut archive = tar::Archive::new(bytes);
        // Raw, so that no extension entry overrides the name or size of another; ours need none.
        let entries = archive.entries().map_err(foreign)?.raw(true);
        let mut entries = entries.map(|entry| plain_entry(entry, bytes.len()));
        let manifest = match entries.next() {
            Some(Ok((name, text))) if name == MANIFEST => parse_manifest(&text)?,
            Some(Ok(_)) | None => return Err(ArchiveError::Foreign(format!("it has no `{MANIFEST}`"))),
            Some(Err(error)) => return Err(ArchiveError::Foreign(error.to_string())),
        };
        let mut files = BTreeMap::new();
        for entry in entries {
            let (name, bytes) = entry?;
            if !BACKUP_FILES.contains(&name.as_str()) || files.contains_key(&name) {
                return Err(ArchiveError::UnexpectedEntry(name));
            }
            files.insert(name, bytes);
        }
        let archive = Archive { manifest, files };
        archive.verify()?;
        Ok(archive)
    }

    fn verify(&self) -> Result<(), ArchiveError> {
        let named: BTreeMap<&str, &SavedFile> =
            self.manifest.files.iter().map(|file| (file.name.as_str(), file)).collect();
        if let Some(name) = self.files.keys().find(|name| !named.contains_key(name.as_str())) {
            return Err(ArchiveError::UnexpectedEntry(name.clone()));
        }
        for (name, saved) in named {
            let Some(bytes) = self.files.get(name) else {
                return Err(ArchiveError::Damaged(format!("`{name}` is missing from it")));
            };
            if bytes.len() as u64 != saved.length || Digest::of(bytes.as_slice()) != saved.sha256 {
                return Err(ArchiveError::Damaged(format!("`{name}` differs from what was saved")));
            }
        }
        Ok(())
    }
}

fn parse_manifest(text: &[u8]) -> Result<Manifest, ArchiveError> {
    let unreadable =
        |error: serde_json::Error| ArchiveError::Damaged(format!("its manifest can't be read ({error})"));
    let ArchiveVersion { format } = serde_json::from_slice(text).map_err(unreadable)?;
    if format > FORMAT {
        return Err(ArchiveError::Newer { found: format });
    }
    serde_json::from_slice(text).map_err(unreadable)
}

/// Reads a plain file of an archive. Its size is bounded by that of the archive, since nothing is compressed.
fn plain_entry(
    entry: io::Result<tar::Entry<'_, &[u8]>>,
    most: usize,
) -> Result<(String, Zeroizing<Vec<u8>>), ArchiveError> {
    let damaged = |error: io::Error| ArchiveError::Damaged(error.to_string());
    let mut entry = entry.map_err(damaged)?;
    let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
    if entry.header().entry_type() != tar::EntryType::Regular {
        return Err(ArchiveError::UnexpectedEntry(name));
    }
    let cut = || ArchiveError::Damaged(format!("`{name}` is cut short"));
    let size = usize::try_from(entry.size()).ok().filter(|size| *size <= most).ok_or_else(cut)?;
    let mut bytes = Zeroizing::new(Vec::with_capacity(size));
    entry.read_to_end(&mut bytes).map_err(damaged)?;
    if bytes.len() == size { Ok((name, bytes)) } else { Err(cut()) }
}

fn foreign(error: io::Error) -> ArchiveError {
    ArchiveError::Foreign(error.to_string())
}
