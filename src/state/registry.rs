//! The registry: ids, protection, deletions and approvals, which can't be recovered when lost.
//!
//! It is an append-only file, `registry.jsonl`, and its content in memory.

use std::collections::BTreeMap;

use camino::Utf8Path;
use jiff::{SignedDuration, Timestamp};
use uuid::Uuid;

use super::accounts::BoundAccount;
use super::lines::{AppendFile, read_whole};
use super::records::RegistryLine;
use super::{StateError, entries, is_same_email, snapshot};
use crate::catalog::{Approval, Deletion, DurableRecord};
use crate::names::ResourceKey;

pub(super) const FILE: &str = "registry.jsonl";

/// The file is compacted when it has more than twice the lines it needs, plus this many.
const SLACK: usize = 1000;

/// Compaction keeps deletions that are at most this much older than the last one. The limit on deletions
/// considers one hour.
const DELETIONS_KEPT: SignedDuration = SignedDuration::from_hours(24);

/// Compaction keeps approvals that are at most this much older than the newest one: the longest validity that
/// the settings allow.
const APPROVALS_KEPT: SignedDuration = SignedDuration::from_hours(168);

#[derive(Debug, Default, PartialEq)]
pub(super) struct RegistryContents {
    pub(super) installation: Option<Uuid>,
    pub(super) source: Option<String>,
    pub(super) resources: BTreeMap<ResourceKey, DurableRecord>,
    pub(super) generations: BTreeMap<ResourceKey, u32>,
    pub(super) deletions: Vec<Deletion>,
    pub(super) approvals: Vec<Approval>,
    /// Whether any token was ever created.
    pub(super) tokens_made: bool,
    /// The accounts of people at issuers, the first bound first.
    pub(super) accounts: Vec<BoundAccount>,
    /// The time of each resource's last deletion, so that compaction loses nothing.
    removed_at: BTreeMap<ResourceKey, Timestamp>,
}

/// The file and its content.
pub(super) struct Registry {
    lines: AppendFile,
    pub(super) facts: RegistryContents,
    pub(super) count: usize,
}

impl Registry {
    /// Opens the registry of a state folder, and creates it if it is missing. A last line that a crash cut
    /// short is repaired. Also returns warnings.
    pub(super) fn open(dir: &Utf8Path) -> Result<(Registry, Vec<String>), StateError> {
        let path = dir.join(FILE);
        let (mut lines, bytes, exposed) = AppendFile::open(path.clone())?;
        let (facts, count) = read(&path, &bytes)?;
        refuse_cut_short(dir, snapshot::registry_lines(dir), &facts, count)?;
        let mut mended: Vec<String> = Vec::new();
        mended.extend(entries::repair::<RegistryLine>(&mut lines, &bytes)?);
        let mut registry = Registry { lines, facts, count };
        if count > 2 * registry.facts.entries().len() + SLACK {
            // A failed compaction only leaves the file longer than necessary.
            let compacted = registry.compact(dir);
            mended
                .extend(compacted.err().map(|error| format!("the registry could not be compacted: {error}")));
        }
        Ok((registry, exposed.into_iter().chain(mended).collect()))
    }

    /// Reads the registry without opening it: nothing can be added or repaired. None if there is none.
    pub(super) fn read(dir: &Utf8Path) -> Result<Option<Registry>, StateError> {
        let path = dir.join(FILE);
        // Read the count first: lines that another process adds after this are not in it.
        let known = snapshot::registry_lines(dir);
        let Some(bytes) = read_whole(&path)? else { return Ok(None) };
        let (facts, count) = read(&path, &bytes)?;
        if refuse_cut_short(dir, known, &facts, count).is_err() {
            // Another process may have compacted the file meanwhile, after deleting the snapshot. A file that
            // really lost lines fails again.
            refuse_cut_short(dir, snapshot::registry_lines(dir), &facts, count)?;
        }
        Ok(Some(Registry { lines: AppendFile::unopened(path), facts, count }))
    }

    /// Whether anything besides the installation's id is recorded.
    pub(super) fn is_used(&self) -> bool {
        self.facts
            != RegistryContents { installation: self.facts.installation, ..RegistryContents::default() }
    }

    /// The error for a registry that lacks the installation's id.
    pub(super) fn without_installation(&self) -> StateError {
        let reason = "it doesn't contain the installation's id".to_owned();
        StateError::Damaged { path: self.lines.path().to_owned(), line: 1, reason }
    }

    /// Writes entries to disk, then applies them. Either all are recorded or none.
    pub(super) fn add(&mut self, entries: Vec<RegistryLine>) -> Result<(), StateError> {
        if entries.is_empty() {
            return Ok(());
        }
        let text: Vec<String> = entries.iter().map(entries::line).collect();
        self.lines.append(&text)?;
        self.count += text.len();
        entries.into_iter().for_each(|entry| self.facts.apply(entry));
        Ok(())
    }

    /// Replaces the file atomically by the shortest one with the same meaning.
    fn compact(&mut self, dir: &Utf8Path) -> Result<(), StateError> {
        let path = self.lines.path().to_owned();
        snapshot::forget(dir).map_err(StateError::io("write", &path))?;
        entries::replace(&path, self.facts.entries())?;
        let (lines, bytes, _) = AppendFile::open(path.clone())?;
        (self.facts, self.count) = read(&path, &bytes)?;
        self.lines = lines;
        Ok(())
    }
}

/// Refuses a registry that lost lines. A crash damages at most the last line; continuing without the others
/// would lose the record of what is protected. `known` is the count in the snapshot.
fn refuse_cut_short(
    dir: &Utf8Path,
    known: Option<(Uuid, usize)>,
    facts: &RegistryContents,
    count: usize,
) -> Result<(), StateError> {
    let is_ours = |installation: Uuid| facts.installation == Some(installation);
    match known.filter(|(installation, known)| is_ours(*installation) && count + 1 < *known) {
        Some((_, known)) => Err(StateError::CutShort { path: dir.join(FILE), lines: count, known }),
        None => Ok(()),
    }
}

/// The complete lines of a registry, and their content.
pub(super) fn whole_records(
    path: &Utf8Path,
    bytes: Vec<u8>,
) -> Result<(Vec<u8>, RegistryContents), StateError> {
    let (facts, _) = read(path, &bytes)?;
    Ok((entries::whole::<RegistryLine>(bytes), facts))
}

/// Whether a registry records anything about resources. An unreadable one may.
pub(super) fn remembers(path: &Utf8Path, bytes: &[u8]) -> bool {
    read(path, bytes).map_or(true, |(facts, _)| {
        facts
            != RegistryContents {
                installation: facts.installation,
                source: facts.source.clone(),
                ..RegistryContents::default()
            }
    })
}

fn read(path: &Utf8Path, bytes: &[u8]) -> Result<(RegistryContents, usize), StateError> {
    let mut facts = RegistryContents::default();
    let count = entries::read(path, bytes, |entry| facts.apply(entry))?;
    Ok((facts, count))
}

impl RegistryContents {
    pub(super) fn removal(&self, key: ResourceKey, at: Timestamp) -> RegistryLine {
        let generation = self.generations.get(&key).copied().unwrap_or(0).saturating_add(1);
        RegistryLine::Removed { key, at, generation }
    }

    fn apply(&mut self, entry: RegistryLine) {
        match entry {
            RegistryLine::Installation { id } => self.installation = Some(id),
            RegistryLine::Source { source } => self.source = Some(source),
            RegistryLine::Resource { key, resource } => drop(self.resources.insert(key, resource)),
            RegistryLine::Removed { key, at, generation } => {
                self.resources.remove(&key);
                self.removed_at.insert(key.clone(), at);
                self.generations.insert(key, generation);
            }
            RegistryLine::Deletion { fleet, cluster, at } => {
                if let Some(resource) = self.resources.get_mut(&cluster) {
                    resource.deleting = true;
                }
                let deletion = Deletion { fleet, cluster, at };
                // A copied file may have the same line twice; that is one deletion.
                if !self.deletions.contains(&deletion) {
                    self.deletions.push(deletion);
                }
            }
            RegistryLine::Approval { fleet, id, by, at } => {
                self.approvals.retain(|approval| approval.id != id);
                self.approvals.push(Approval { fleet, id, by, at });
            }
            RegistryLine::ApprovalUsed { id, at: _ } => self.approvals.retain(|approval| approval.id != id),
            RegistryLine::TokensMade => self.tokens_made = true,
            // A copied file may have the same line twice; that is one binding.
            RegistryLine::AccountBound(account) if self.accounts.contains(&account) => {}
            RegistryLine::AccountBound(account) => self.accounts.push(account),
            RegistryLine::AccountsReleased { email, at: _ } => {
                self.accounts.retain(|bound| !is_same_email(&bound.email, &email));
            }
        }
    }

    /// The shortest list of lines with this content.
    fn entries(&self) -> Vec<RegistryLine> {
        let newest = |times: Vec<Timestamp>| times.into_iter().max().unwrap_or(Timestamp::MIN);
        // The last line, not the latest timestamp: one timestamp of a clock that was ahead must not make
        // recent deletions seem old.
        let last_deletion = self.deletions.last().map_or(Timestamp::MIN, |deletion| deletion.at);
        let last_approval = newest(self.approvals.iter().map(|approval| approval.at).collect());
        let is_recent = |last: Timestamp, at: Timestamp, kept| last.duration_since(at) <= kept;

        let installation = self.installation.iter().map(|&id| RegistryLine::Installation { id });
        let source = self.source.iter().map(|source| RegistryLine::Source { source: source.clone() });
        let removed = self.generations.iter().map(|(key, &generation)| RegistryLine::Removed {
            key: key.clone(),
            at: self.removed_at.get(key).copied().unwrap_or(Timestamp::MIN),
            generation,
        });
        let deletions = self.deletions.iter().filter(|it| is_recent(last_deletion, it.at, DELETIONS_KEPT));
        let approvals = self.approvals.iter().filter(|it| is_recent(last_approval, it.at, APPROVALS_KEPT));
        let resource = |(key, resource): (&ResourceKey, &DurableRecord)| RegistryLine::Resource {
            key: key.clone(),
            resource: resource.clone(),
        };
        // A deletion marks its resource as being deleted, and a removal removes it: so the resources come
        // last, in their final form.
        let tokens = self.tokens_made.then_some(RegistryLine::TokensMade);
        let accounts = self.accounts.iter().cloned().map(RegistryLine::AccountBound);
        (installation.chain(source).chain(removed).chain(tokens).chain(accounts))
            .chain(deletions.cloned().map(RegistryLine::from))
            .chain(approvals.cloned().map(RegistryLine::from))
            .chain(self.resources.iter().map(resource))
            .collect()
    }
}
