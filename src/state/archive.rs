//! A backup as bytes: a tar file with a manifest in front, which `tar` can list and open anywhere.
//!
//! Reading trusts nothing: only known names, only plain files, and every byte must be what the manifest says.

use std::collections::BTreeMap;
use std::io::{self, Read as _};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;
use zeroize::Zeroizing;

use super::{kubeconfigs, open, registry, tokens};
use crate::names::Digest;

/// The version of the archive's form. A field may be added to the manifest without a new one.
const FORMAT: u32 = 1;

/// The manifest's name. It comes first.
const MANIFEST: &str = "manifest.json";

/// The age identities, which the module of secrets keeps in the same folder.
pub(super) const IDENTITIES: &str = "identity.age-keys";

/// The fingerprint key, likewise.
pub(super) const FINGERPRINT: &str = "fingerprint.key";

/// What is backed up: all that can't be had again elsewhere. Approvals stand in the registry.
///
/// The order is that of copying: every line of the audit trail is written before what it tells of, so that copied after the
/// registry and the tokens it has at least what they have.
pub(super) const KEPT: [&str; 6] =
    [registry::FILE, tokens::FILE, open::AUDIT, IDENTITIES, FINGERPRINT, kubeconfigs::FILE];

/// What an archive holds, and of what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    format: u32,
    /// The version of the software that made it.
    pub software: String,
    /// When it was made.
    pub made_at: Timestamp,
    /// The installation; none where only keys had been made.
    pub installation: Option<Uuid>,
    /// The tree that was applied last; none where none was.
    pub source: Option<String>,
    /// The files, in the order in which they follow.
    pub files: Vec<SavedFile>,
}

/// A file of an archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedFile {
    /// Its name in the state folder.
    pub name: String,
    /// Its length in bytes.
    pub length: u64,
    /// The digest of its bytes.
    pub sha256: Digest,
}

/// Only the version, which is read before anything else.
#[derive(Deserialize)]
struct Versioned {
    format: u32,
}

/// A backup: what can't be rebuilt of a state folder, private keys among it.
pub struct Archive {
    /// What it holds.
    pub manifest: Manifest,
    files: BTreeMap<String, Zeroizing<Vec<u8>>>,
}

/// Why bytes are no backup that can be used.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// It is something else.
    #[error("it is no backup that streamfleet made ({0})")]
    Foreign(String),
    /// A newer version made it.
    #[error("a newer version of streamfleet made it (format {found}, this one reads up to {FORMAT})")]
    Newer {
        /// Its format.
        found: u32,
    },
    /// It isn't whole.
    #[error("it is damaged: {0}")]
    Damaged(String),
    /// It holds what no backup holds.
    #[error("it holds `{0}`, which no backup does")]
    Strange(String),
}

impl ArchiveError {
    /// What to do next.
    pub fn hint(&self) -> &'static str {
        match self {
            ArchiveError::Foreign(_) => "name a file that `streamfleet backup` made",
            ArchiveError::Newer { .. } => "install that version, and restore with it",
            ArchiveError::Damaged(_) => "nothing was written; take another copy of it, or an older backup",
            ArchiveError::Strange(_) => {
                "nothing was written; somebody changed it, so take another copy of it"
            }
        }
    }
}

impl Archive {
    /// Puts files into an archive, in the order that they are given in.
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

    /// Whether private keys are in it.
    pub fn holds_keys(&self) -> bool {
        self.files.contains_key(IDENTITIES)
    }

    /// The archive as a file has it.
    ///
    /// # Errors
    /// When a number doesn't fit a tar header.
    pub fn to_bytes(&self) -> io::Result<Zeroizing<Vec<u8>>> {
        let manifest = serde_json::to_vec_pretty(&self.manifest)?;
        // Room for all of it at once: a buffer that grew would leave copies of keys behind that nobody wipes.
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

    /// Reads an archive and sees that all of it is there and nothing else.
    ///
    /// # Errors
    /// When it is something else, of a newer version, or not as its manifest says.
    pub fn parse(bytes: &[u8]) -> Result<Archive, ArchiveError> {
        let mut archive = tar::Archive::new(bytes);
        // Raw, so that no entry stands for another one's name or size: those of ours need none.
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
            if !KEPT.contains(&name.as_str()) || files.contains_key(&name) {
                return Err(ArchiveError::Strange(name));
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
            return Err(ArchiveError::Strange(name.clone()));
        }
        for (name, saved) in named {
            let Some(bytes) = self.files.get(name) else {
                return Err(ArchiveError::Damaged(format!("`{name}` is missing from it")));
            };
            if bytes.len() as u64 != saved.length || Digest::of(bytes.as_slice()) != saved.sha256 {
                return Err(ArchiveError::Damaged(format!("`{name}` isn't what was saved")));
            }
        }
        Ok(())
    }
}

fn parse_manifest(text: &[u8]) -> Result<Manifest, ArchiveError> {
    let unreadable =
        |error: serde_json::Error| ArchiveError::Damaged(format!("its manifest can't be read ({error})"));
    let Versioned { format } = serde_json::from_slice(text).map_err(unreadable)?;
    if format > FORMAT {
        return Err(ArchiveError::Newer { found: format });
    }
    serde_json::from_slice(text).map_err(unreadable)
}

/// A plain file of an archive. Its size is bounded by the archive's, since nothing in one is compressed.
fn plain_entry(
    entry: io::Result<tar::Entry<'_, &[u8]>>,
    most: usize,
) -> Result<(String, Zeroizing<Vec<u8>>), ArchiveError> {
    let damaged = |error: io::Error| ArchiveError::Damaged(error.to_string());
    let mut entry = entry.map_err(damaged)?;
    let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
    if entry.header().entry_type() != tar::EntryType::Regular {
        return Err(ArchiveError::Strange(name));
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
