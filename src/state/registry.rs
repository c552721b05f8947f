//! What can't be found out again when it is lost: ids, protection, what was deleted and what was approved.
//!
//! It is kept as a file of events, `registry.jsonl`, and as what follows from them in memory.

use std::collections::BTreeMap;

use camino::Utf8Path;
use jiff::{SignedDuration, Timestamp};
use tempfile::NamedTempFile;
use uuid::Uuid;

use super::lines::{Lines, read_whole};
use super::records::{Entry, Identity};
use super::{StateError, entries, folder, snapshot};
use crate::catalog::{Approval, Deletion};
use crate::names::ResourceKey;

/// The registry's file.
pub(super) const FILE: &str = "registry.jsonl";

/// How much longer the file may be than what follows from it before it is written anew.
const SLACK: usize = 1000;

/// How long a deletion is kept after the newest one when the file is written anew. The limit on deletions looks back
/// one hour.
const DELETIONS_KEPT: SignedDuration = SignedDuration::from_hours(24);

/// How long an approval is kept after the newest one: the longest that the settings let one hold.
const APPROVALS_KEPT: SignedDuration = SignedDuration::from_hours(168);

/// What follows from the file.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Facts {
    pub(super) installation: Option<Uuid>,
    pub(super) source: Option<String>,
    pub(super) resources: BTreeMap<ResourceKey, Identity>,
    pub(super) generations: BTreeMap<ResourceKey, u32>,
    pub(super) deletions: Vec<Deletion>,
    pub(super) approvals: Vec<Approval>,
    /// Whether any token was ever made.
    pub(super) tokens_made: bool,
    /// When each resource was last deleted, so that writing the file anew loses nothing.
    removed_at: BTreeMap<ResourceKey, Timestamp>,
}

/// The file and what follows from it.
pub(super) struct Registry {
    lines: Lines,
    pub(super) facts: Facts,
    /// How many lines it has.
    pub(super) count: usize,
}

impl Registry {
    /// Opens the registry of a state folder, and makes it where there is none. Mends what a crash left: a last line that
    /// was cut short. The second part says what was.
    pub(super) fn open(dir: &Utf8Path) -> Result<(Registry, Vec<String>), StateError> {
        let path = dir.join(FILE);
        let (mut lines, bytes, exposed) = Lines::open(path.clone())?;
        let (facts, count) = read(&path, &bytes)?;
        refuse_cut_short(dir, snapshot::registry_lines(dir), &facts, count)?;
        let mut mended: Vec<String> = Vec::new();
        mended.extend(entries::repair::<Entry>(&mut lines, &bytes)?);
        let mut registry = Registry { lines, facts, count };
        if count > 2 * registry.facts.entries().len() + SLACK {
            // It is as good as it was, and longer.
            let compacted = registry.compact(dir);
            mended.extend(
                compacted.err().map(|error| format!("the registry stays longer than it need be: {error}")),
            );
        }
        Ok((registry, exposed.into_iter().chain(mended).collect()))
    }

    /// Reads the registry of a state folder without opening it: nothing can be added, and nothing is mended. None where there
    /// is none.
    pub(super) fn read(dir: &Utf8Path) -> Result<Option<Registry>, StateError> {
        let path = dir.join(FILE);
        // Another process may write meanwhile. What it adds after the lines were read is in no count from before that.
        let known = snapshot::registry_lines(dir);
        let Some(bytes) = read_whole(&path)? else { return Ok(None) };
        let (facts, count) = read(&path, &bytes)?;
        if refuse_cut_short(dir, known, &facts, count).is_err() {
            // It may also have written the file anew, shorter, and taken the snapshot away first. What is cut short stays so.
            refuse_cut_short(dir, snapshot::registry_lines(dir), &facts, count)?;
        }
        Ok(Some(Registry { lines: Lines::unopened(path), facts, count }))
    }

    /// Whether anything is known but the installation's id.
    pub(super) fn is_used(&self) -> bool {
        self.facts != Facts { installation: self.facts.installation, ..Facts::default() }
    }

    /// That the registry doesn't say which installation it is of.
    pub(super) fn without_installation(&self) -> StateError {
        let reason = "it doesn't say which installation it is of".to_owned();
        StateError::Damaged { path: self.lines.path().to_owned(), line: 1, reason }
    }

    /// Makes something known, on disk first. All of it is, or none.
    pub(super) fn add(&mut self, entries: Vec<Entry>) -> Result<(), StateError> {
        if entries.is_empty() {
            return Ok(());
        }
        let text: Vec<String> = entries.iter().map(Entry::to_line).collect();
        self.lines.append(&text)?;
        self.count += text.len();
        entries.into_iter().for_each(|entry| self.facts.apply(entry));
        Ok(())
    }

    /// Replaces the file by the shortest one with the same meaning, at once.
    fn compact(&mut self, dir: &Utf8Path) -> Result<(), StateError> {
        let path = self.lines.path().to_owned();
        let mut text = String::new();
        for entry in self.facts.entries() {
            text.push_str(&entry.to_line());
            text.push('\n');
        }
        let replace = || {
            // A temporary file is made 0600, as the registry has to be.
            let mut file = NamedTempFile::new_in(dir)?;
            std::io::Write::write_all(&mut file, text.as_bytes())?;
            file.as_file().sync_all()?;
            file.persist(&path).map_err(|error| error.error)
        };
        snapshot::forget(dir).and_then(|()| replace()).map_err(StateError::io("write anew", &path))?;
        folder::sync(dir)?;
        let (lines, bytes, _) = Lines::open(path.clone())?;
        (self.facts, self.count) = read(&path, &bytes)?;
        self.lines = lines;
        Ok(())
    }
}

/// A crash cuts no more than the last line. A registry that lacks others lost them otherwise, and going on without them would
/// forget what is protected. `known` is what a snapshot says of it.
fn refuse_cut_short(
    dir: &Utf8Path,
    known: Option<(Uuid, usize)>,
    facts: &Facts,
    count: usize,
) -> Result<(), StateError> {
    let is_ours = |installation: Uuid| facts.installation == Some(installation);
    match known.filter(|(installation, known)| is_ours(*installation) && count + 1 < *known) {
        Some((_, known)) => Err(StateError::CutShort { path: dir.join(FILE), lines: count, known }),
        None => Ok(()),
    }
}

/// The whole records of a registry's bytes, and what follows from them.
pub(super) fn whole_records(path: &Utf8Path, bytes: Vec<u8>) -> Result<(Vec<u8>, Facts), StateError> {
    let (facts, _) = read(path, &bytes)?;
    Ok((entries::whole::<Entry>(bytes), facts))
}

/// Whether a registry's bytes say anything of resources. What can't be read may.
pub(super) fn remembers(path: &Utf8Path, bytes: &[u8]) -> bool {
    read(path, bytes).map_or(true, |(facts, _)| {
        facts != Facts { installation: facts.installation, source: facts.source.clone(), ..Facts::default() }
    })
}

/// Reads a registry's bytes: what follows from them, and how many lines there were.
fn read(path: &Utf8Path, bytes: &[u8]) -> Result<(Facts, usize), StateError> {
    let mut facts = Facts::default();
    let count = entries::read(path, bytes, |entry| facts.apply(entry))?;
    Ok((facts, count))
}

impl Facts {
    /// The entry that takes a resource away.
    pub(super) fn removal(&self, key: ResourceKey, at: Timestamp) -> Entry {
        let generation = self.generations.get(&key).copied().unwrap_or(0).saturating_add(1);
        Entry::Removed { key, at, generation }
    }

    fn apply(&mut self, entry: Entry) {
        match entry {
            Entry::Installation { id } => self.installation = Some(id),
            Entry::Source { source } => self.source = Some(source),
            Entry::Resource(identity) => drop(self.resources.insert(identity.key.clone(), identity)),
            Entry::Removed { key, at, generation } => {
                self.resources.remove(&key);
                self.removed_at.insert(key.clone(), at);
                self.generations.insert(key, generation);
            }
            Entry::Deletion { fleet, cluster, at } => {
                if let Some(identity) = self.resources.get_mut(&cluster) {
                    identity.deleting = true;
                }
                let deletion = Deletion { fleet, cluster, at };
                // The same line twice, as a copy of the file may have it, is one deletion.
                if !self.deletions.contains(&deletion) {
                    self.deletions.push(deletion);
                }
            }
            Entry::Approval { fleet, id, by, at } => {
                self.approvals.retain(|approval| approval.id != id);
                self.approvals.push(Approval { fleet, id, by, at });
            }
            Entry::ApprovalUsed { id, at: _ } => self.approvals.retain(|approval| approval.id != id),
            Entry::TokensMade => self.tokens_made = true,
        }
    }

    /// The shortest list of entries that these facts follow from.
    fn entries(&self) -> Vec<Entry> {
        let newest = |times: Vec<Timestamp>| times.into_iter().max().unwrap_or(Timestamp::MIN);
        // The last one, whatever the clock said at others: one that was ahead once may not make the latest seem old.
        let last_deletion = self.deletions.last().map_or(Timestamp::MIN, |deletion| deletion.at);
        let last_approval = newest(self.approvals.iter().map(|approval| approval.at).collect());
        let is_recent = |last: Timestamp, at: Timestamp, kept| last.duration_since(at) <= kept;

        let installation = self.installation.iter().map(|&id| Entry::Installation { id });
        let source = self.source.iter().map(|source| Entry::Source { source: source.clone() });
        let removed = self.generations.iter().map(|(key, &generation)| Entry::Removed {
            key: key.clone(),
            at: self.removed_at.get(key).copied().unwrap_or(Timestamp::MIN),
            generation,
        });
        let deletions = self.deletions.iter().filter(|it| is_recent(last_deletion, it.at, DELETIONS_KEPT));
        let approvals = self.approvals.iter().filter(|it| is_recent(last_approval, it.at, APPROVALS_KEPT));
        // A deletion marks its resource as going, and a removal takes it away: the resources come last, as they are.
        let tokens = self.tokens_made.then_some(Entry::TokensMade);
        (installation.chain(source).chain(removed).chain(tokens))
            .chain(deletions.cloned().map(Entry::from))
            .chain(approvals.cloned().map(Entry::from))
            .chain(self.resources.values().cloned().map(Entry::Resource))
            .collect()
    }
}
