//! What is remembered between rounds, in one folder that one process at a time writes and others may read.
//!
//! | file | what | when it is lost |
//! |---|---|---|
//! | `lock` | the process that uses the folder | made again |
//! | `registry.jsonl` | ids, protection, deletions, approvals, the source | restore it from a backup |
//! | `audit.jsonl` | who did what, for ever | restore it from a backup |
//! | `tokens.jsonl` | the tokens of callers, as digests | restore it from a backup, or make new tokens |
//! | `kubeconfigs.json` | the kubeconfigs that fleets were last reached with, sealed | kept anew by the next apply, for fleets with a spec |
//! | `cache-v1/` | specs and objects as they were applied, status; and a snapshot of that for processes that only read | built anew by the next rounds |
//! | `events.jsonl` | what happened lately | begun anew |
//! | `settings.json` | the mode, the settings and the output folder of the last use | made again |
//! | `restored/` | a restore that was decided and not finished | restore again |
//!
//! The age identities and the fingerprint key, which are not this module's, lie in the same folder; `backup` saves them
//! with the rest. So does the clone of the specs' repository, which it leaves out. Nothing in the folder may be a link, but
//! the folder itself may be one.

mod activity;
mod archive;
mod backup;
mod cache;
mod disk;
mod entries;
mod error;
mod events;
mod folder;
mod kubeconfigs;
mod last_used;
mod lines;
mod open;
mod pieces;
mod read;
mod recall;
mod records;
mod registry;
mod restore;
mod snapshot;
#[cfg(test)]
mod tests;
mod tokens;

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

use camino::Utf8Path;
use jiff::Timestamp;
use serde::de::IgnoredAny;
use uuid::Uuid;

use crate::catalog::{Approval, Deletion, RecordedObject, RecordedResource};
use crate::names::{FleetKey, ObjectKey, ResourceKey};
use crate::parallel::locked;
use crate::spec::SourceId;
use cache::{Cache, Table};
use events::Events;
use folder::Lock;
use kubeconfigs::Kubeconfigs;
use lines::Lines;
use recall::Recalled;
use records::{Entry, Object, Seen};
use registry::Registry;
use tokens::Tokens;

pub use activity::{AuditEntry, JournalEntry};
pub use archive::{Archive, ArchiveError, Manifest, SavedFile};
pub use backup::back_up;
pub use error::StateError;
pub use events::{EVENTS_KEPT, Event, EventMark, Follower, Outcome};
pub use folder::Wait;
pub use kubeconfigs::KeptKubeconfig;
pub use last_used::LastUsed;
pub use restore::{NotRestored, Restored, finish_restore, restore};
pub use tokens::{
    Access, FILE as TOKENS, MOST_TOKEN_DAYS, NewToken, NoToken, NotAdded, OrderFault, Reach, Revoked,
    TOKEN_DAYS, TOKEN_PREFIX, TOKENS_KEPT_DAYS, Token, TokenOrder, is_same_email, looks_like_token,
};

/// An open state folder. It is this process's until it is dropped, unless it was only [read](State::read).
pub struct State {
    registry: Mutex<Registry>,
    kubeconfigs: Mutex<Kubeconfigs>,
    tokens: Tokens,
    audit: Mutex<Lines>,
    cache: Cache,
    /// How often each fleet's objects were written since the folder was opened.
    writes: Mutex<BTreeMap<FleetKey, u64>>,
    /// What is recorded of resources, as it was read last.
    recalled: Mutex<Recalled>,
    events: Mutex<Events>,
    warnings: Mutex<Vec<String>>,
    /// None where it was only read.
    lock: Option<Lock>,
}

impl State {
    /// Opens a state folder and makes it where there is none.
    ///
    /// # Errors
    /// When another process uses it, it can't be written, or its registry is damaged or of a newer version.
    pub fn open(dir: &Utf8Path) -> Result<State, StateError> {
        let exposed = folder::prepare(dir)?;
        let lock = folder::lock(dir)?;
        restore::finish(dir)?;
        open::refuse_without_registry(dir)?;
        let (mut registry, of_registry) = Registry::open(dir)?;
        let is_used = registry.is_used();
        let installation = open::installation(&mut registry)?;
        let (tokens, of_tokens) = Tokens::open(dir)?;
        let (cache, of_cache) = Cache::open(dir, installation, registry.count)?;
        let (audit, of_audit) = open::audit(dir, is_used)?;
        let (events, of_events) = Events::open(dir)?;
        let lost = tokens.lost().filter(|_| registry.facts.tokens_made);
        let of_tokens = of_tokens.into_iter().chain(lost);
        let told = exposed.into_iter().chain(of_registry).chain(of_tokens).chain(of_cache);
        let warnings: Vec<String> = told.chain(of_audit).chain(of_events).collect();
        warnings.iter().for_each(|warning| tracing::debug!(%dir, warning, "mended the state"));
        Ok(State {
            registry: Mutex::new(registry),
            kubeconfigs: Mutex::new(Kubeconfigs::of(dir)),
            tokens,
            audit: Mutex::new(audit),
            cache,
            writes: Mutex::default(),
            recalled: Mutex::default(),
            events: Mutex::new(events),
            warnings: Mutex::new(warnings),
            lock: Some(lock),
        })
    }

    /// Whether a folder holds a state: until then, nothing was ever applied or saved.
    pub fn exists(dir: &Utf8Path) -> bool {
        dir.join(registry::FILE).exists()
    }

    /// Whether a folder remembers anything of what was applied, or may: keys alone and an installation's id are nothing. It is
    /// not opened for that.
    pub fn remembers(dir: &Utf8Path) -> bool {
        let path = dir.join(registry::FILE);
        match std::fs::read(&path) {
            Ok(bytes) => registry::remembers(&path, &bytes),
            Err(error) => error.kind() != std::io::ErrorKind::NotFound,
        }
    }

    /// What a person should know about the folder itself: what was repaired, set aside or can't be read.
    pub fn warnings(&self) -> Vec<String> {
        locked(&self.warnings).clone()
    }

    /// Makes sure that the folder is still the one that was opened: what is written to files that were taken away is lost.
    ///
    /// # Errors
    /// When it is gone or another one.
    pub fn still_there(&self) -> Result<(), StateError> {
        self.lock.as_ref().map_or(Ok(()), Lock::still_there)
    }

    /// A resource's id and whether it is protected; none where it isn't recorded.
    pub fn identity(&self, key: &ResourceKey) -> Option<(Uuid, bool)> {
        locked(&self.registry).facts.resources.get(key).map(|identity| (identity.id, identity.protected))
    }

    /// Records a resource as it was applied.
    ///
    /// # Errors
    /// When the registry or the cache can't be written.
    pub fn put_resource(&self, key: &ResourceKey, resource: &RecordedResource) -> Result<(), StateError> {
        self.put_resources([(key, resource)])
    }

    /// Records several resources, with one wait for the disk.
    ///
    /// # Errors
    /// When the registry or the cache can't be written.
    pub fn put_resources<'a>(
        &self,
        resources: impl IntoIterator<Item = (&'a ResourceKey, &'a RecordedResource)>,
    ) -> Result<(), StateError> {
        let halves: Vec<_> =
            resources.into_iter().map(|(key, resource)| records::split(key, resource)).collect();
        self.put_halves(locked(&self.registry), &halves)
    }

    /// Records several resources as a plan has them that may be older than what guards them: of that, what came after the
    /// plan's own record stays. With it comes what the plan found recorded.
    ///
    /// # Errors
    /// When the registry or the cache can't be written.
    pub fn put_planned<'a>(
        &self,
        resources: impl IntoIterator<Item = (&'a ResourceKey, &'a RecordedResource, Option<&'a RecordedResource>)>,
    ) -> Result<(), StateError> {
        let registry = locked(&self.registry);
        let guarded =
            |(key, resource, before): (&ResourceKey, &RecordedResource, Option<&RecordedResource>)| {
                let (identity, detail) = records::split(key, resource);
                match registry.facts.resources.get(key) {
                    Some(known) => (identity.guarded_since(before, known), detail),
                    None => (identity, detail),
                }
            };
        let halves: Vec<_> = resources.into_iter().map(guarded).collect();
        self.put_halves(registry, &halves)
    }

    fn put_halves(
        &self,
        mut registry: MutexGuard<'_, Registry>,
        halves: &[(records::Identity, records::Detail)],
    ) -> Result<(), StateError> {
        let is_new =
            |identity: &&records::Identity| registry.facts.resources.get(&identity.key) != Some(identity);
        let entries = halves.iter().map(|(identity, _)| identity).filter(is_new).cloned();
        let entries = entries.map(Entry::Resource).collect();
        self.add(&mut registry, entries)?;
        drop(registry);
        for (identity, detail) in halves {
            let put = self.cache.put(Table::Resources, text(identity.key.clone()).as_bytes(), detail);
            self.touched([identity.key.clone()]);
            put?;
        }
        Ok(())
    }

    /// Marks recorded resources as going, which needs no new approval when it is interrupted.
    ///
    /// # Errors
    /// When the registry can't be written.
    pub fn mark_deleting(&self, key: &ResourceKey) -> Result<(), StateError> {
        let mut registry = locked(&self.registry);
        let going = registry.facts.resources.get(key).filter(|identity| !identity.deleting).cloned();
        let entry = going.map(|identity| Entry::Resource(records::Identity { deleting: true, ..identity }));
        self.add(&mut registry, entry.into_iter().collect())
    }

    /// Adds to a recorded resource what guards it against deletion, and leaves everything else of it as somebody else may have
    /// recorded it by now.
    ///
    /// # Errors
    /// When the registry can't be written.
    pub fn guard(&self, key: &ResourceKey, by: &RecordedResource) -> Result<(), StateError> {
        let mut registry = locked(&self.registry);
        let Some(known) = registry.facts.resources.get(key).cloned() else { return Ok(()) };
        let guarded = records::Identity {
            protected: known.protected || by.protected,
            suspended: known.suspended || by.suspended,
            suspicion: known.suspicion.clone().or_else(|| by.suspicion.clone()),
            ..known.clone()
        };
        self.add(&mut registry, (guarded != known).then_some(Entry::Resource(guarded)).into_iter().collect())
    }

    /// Whether something guards a resource against deletion that didn't when it was recorded as `before`.
    pub fn is_guarded_since(&self, key: &ResourceKey, before: Option<&RecordedResource>) -> bool {
        let registry = locked(&self.registry);
        registry.facts.resources.get(key).is_some_and(|known| known.is_guarded_since(before))
    }

    /// Records that a cluster's deletion begins, and marks it as going. A deletion that was interrupted and begins again
    /// counts once.
    ///
    /// # Errors
    /// When the registry can't be written.
    pub fn record_deletion(&self, deletion: Deletion) -> Result<(), StateError> {
        let mut registry = locked(&self.registry);
        let facts = &registry.facts;
        let counted = facts.resources.get(&deletion.cluster).is_some_and(|identity| identity.deleting)
            && facts.deletions.iter().any(|it| it.cluster == deletion.cluster);
        if counted { Ok(()) } else { self.add(&mut registry, vec![deletion.into()]) }
    }

    /// Forgets a resource that was deleted, but for how often that happened: one made anew under its key gets another id.
    ///
    /// # Errors
    /// When the registry or the cache can't be written.
    pub fn remove_resource(&self, key: &ResourceKey, now: Timestamp) -> Result<(), StateError> {
        let mut registry = locked(&self.registry);
        if registry.facts.resources.contains_key(key) {
            let removal = registry.facts.removal(key.clone(), now);
            self.add(&mut registry, vec![removal])?;
        }
        drop(registry);
        if let Some(fleet) = key.as_fleet() {
            locked(&self.kubeconfigs).forget(&fleet)?;
        }
        self.forget_details(key)
    }

    /// Makes something known in the registry, and lets what it is about be read again.
    fn add(&self, registry: &mut Registry, entries: Vec<Entry>) -> Result<(), StateError> {
        let keys: Vec<ResourceKey> = entries.iter().filter_map(Entry::resource).cloned().collect();
        let added = registry.add(entries);
        self.touched(keys);
        added
    }

    fn forget_details(&self, key: &ResourceKey) -> Result<(), StateError> {
        let written = text(key.clone());
        let removed = self.cache.remove(Table::Resources, written.as_bytes());
        self.touched([key.clone()]);
        removed?;
        self.cache.remove(Table::Status, written.as_bytes())
    }

    /// Records an object as it was applied.
    ///
    /// # Errors
    /// When the cache can't be written.
    pub fn put_object(
        &self,
        fleet: &FleetKey,
        key: &ObjectKey,
        object: &RecordedObject,
    ) -> Result<(), StateError> {
        self.writing(fleet, || self.cache.put(Table::Objects, &object_key(fleet, key), &Object::from(object)))
    }

    /// Forgets an object whose deletion is confirmed.
    ///
    /// # Errors
    /// When the cache can't be written.
    pub fn remove_object(&self, fleet: &FleetKey, key: &ObjectKey) -> Result<(), StateError> {
        self.writing(fleet, || self.cache.remove(Table::Objects, &object_key(fleet, key)))
    }

    /// Records that a target was looked at.
    ///
    /// # Errors
    /// When the cache can't be written.
    pub fn put_seen(&self, fleet: &FleetKey, at: Timestamp) -> Result<(), StateError> {
        self.cache.put(Table::Targets, fleet.to_string().as_bytes(), &Seen { observed_at: at })
    }

    /// Does what writes a fleet's objects, and counts it when it is over, though it failed: whoever reads in between has the
    /// older number, and reads again.
    fn writing<T>(&self, fleet: &FleetKey, write: impl FnOnce() -> T) -> T {
        let written = write();
        *locked(&self.writes).entry(fleet.clone()).or_default() += 1;
        written
    }

    /// A number that is another one when the objects that are recorded for a fleet were written since. When the fleet was last
    /// seen is not counted: it only says since when a fleet is out of reach. The number says nothing to another process.
    pub fn version_of(&self, fleet: &FleetKey) -> u64 {
        let writes = locked(&self.writes).get(fleet).copied().unwrap_or_default();
        // What was written may be lost by that. Neither number ever gets smaller.
        writes + self.cache.reopened()
    }

    /// Forgets a fleet, its clusters and everything about its target, though it may all still be there: for a target that
    /// is gone for good. The registry forgets all of it or nothing; what is made anew under these keys gets other ids.
    /// Gives what was forgotten.
    ///
    /// # Errors
    /// When the registry or the cache can't be written.
    pub fn forget_fleet(&self, fleet: &FleetKey, now: Timestamp) -> Result<Vec<ResourceKey>, StateError> {
        // The cache first: it can be had again, and a fleet that the registry still has can be forgotten once more.
        self.forget_target(fleet)?;
        let mut registry = locked(&self.registry);
        let facts = &registry.facts;
        let gone: Vec<ResourceKey> =
            facts.resources.values().filter(|it| it.is_on(fleet)).map(|it| it.key.clone()).collect();
        let removed = gone.iter().map(|key| facts.removal(key.clone(), now));
        let approvals = facts.approvals.iter().filter(|approval| approval.fleet == *fleet);
        let approvals = approvals.map(|it| Entry::ApprovalUsed { id: it.id.clone(), at: now });
        let entries = removed.chain(approvals).collect();
        self.add(&mut registry, entries)?;
        drop(registry);
        locked(&self.kubeconfigs).forget(fleet)?;
        for key in &gone {
            self.forget_details(key)?;
        }
        Ok(gone)
    }

    /// Forgets everything about a fleet's target. The resources on it stay recorded.
    ///
    /// # Errors
    /// When the cache can't be written.
    pub fn forget_target(&self, fleet: &FleetKey) -> Result<(), StateError> {
        self.writing(fleet, || {
            let (objects, _) = self.cache.scan::<IgnoredAny>(Table::Objects, &object_prefix(fleet))?;
            for (key, _) in objects {
                self.cache.remove(Table::Objects, &key)?;
            }
            self.cache.remove(Table::Journal, fleet.to_string().as_bytes())?;
            self.cache.remove(Table::Targets, fleet.to_string().as_bytes())
        })
    }

    /// The kubeconfigs that fleets were last reached with, sealed.
    ///
    /// # Errors
    /// When their file can't be read.
    pub fn kubeconfigs(&self) -> Result<BTreeMap<FleetKey, KeptKubeconfig>, StateError> {
        locked(&self.kubeconfigs).read()
    }

    /// Keeps these kubeconfigs and no others. One goes when its fleet is forgotten.
    ///
    /// # Errors
    /// When their file can't be written. It is as it was then.
    pub fn keep_kubeconfigs(&self, kept: BTreeMap<FleetKey, KeptKubeconfig>) -> Result<(), StateError> {
        locked(&self.kubeconfigs).write(kept)
    }

    /// Records which tree was applied.
    ///
    /// # Errors
    /// When the registry can't be written.
    pub fn set_source(&self, source: &SourceId) -> Result<(), StateError> {
        let mut registry = locked(&self.registry);
        if registry.facts.source.as_ref() == Some(&source.0) {
            return Ok(());
        }
        self.add(&mut registry, vec![Entry::Source { source: source.0.clone() }])
    }

    /// Records a person's approval.
    ///
    /// # Errors
    /// When the registry can't be written.
    pub fn approve(&self, approval: Approval) -> Result<(), StateError> {
        locked(&self.registry).add(vec![approval.into()])
    }

    /// Takes an approval away, since it is good for one time. It goes on as one for `rest`, where some of what it is for has
    /// to wait, and ends when it would have ended.
    ///
    /// # Errors
    /// When the registry can't be written.
    pub fn use_approval(&self, id: &str, rest: Option<&str>, now: Timestamp) -> Result<(), StateError> {
        let mut registry = locked(&self.registry);
        let used = registry.facts.approvals.iter().find(|approval| approval.id == id).cloned();
        let Some(used) = used else { return Ok(()) };
        let goes_on = rest.map(|rest| Entry::from(Approval { id: rest.to_owned(), ..used }));
        let used = Entry::ApprovalUsed { id: id.to_owned(), at: now };
        self.add(&mut registry, [used].into_iter().chain(goes_on).collect())
    }

    /// Adds a line to the audit trail and waits until it is on disk.
    ///
    /// # Errors
    /// When the audit trail can't be written.
    pub fn audit(&self, entry: &AuditEntry) -> Result<(), StateError> {
        self.audit_all(std::slice::from_ref(entry))
    }

    /// Adds lines to the audit trail and waits once until all are on disk.
    ///
    /// # Errors
    /// When the audit trail can't be written.
    pub fn audit_all(&self, entries: &[AuditEntry]) -> Result<(), StateError> {
        let lines: Vec<String> = entries.iter().map(records::with_version).collect();
        locked(&self.audit).append(&lines)
    }

    /// Waits until everything is on disk.
    ///
    /// # Errors
    /// When the cache can't be written.
    pub fn flush(&self) -> Result<(), StateError> {
        self.cache.flush()
    }
}

fn text(key: ResourceKey) -> String {
    key.into()
}

/// The key of an object in the cache: fleet and object, with a byte between them that neither has.
fn object_key(fleet: &FleetKey, key: &ObjectKey) -> Vec<u8> {
    [object_prefix(fleet), String::from(key.clone()).into_bytes()].concat()
}

fn object_prefix(fleet: &FleetKey) -> Vec<u8> {
    format!("{fleet}\0").into_bytes()
}

fn parse_object_key(key: &[u8]) -> Option<(FleetKey, ObjectKey)> {
    let (fleet, object) = std::str::from_utf8(key).ok()?.split_once('\0')?;
    Some((fleet.to_owned().try_into().ok()?, object.to_owned().try_into().ok()?))
}
