//! The state folder: everything remembered between rounds. One process at a time writes it; others may read.
//!
//! | file | content | when lost |
//! |---|---|---|
//! | `lock` | the process that uses the folder | recreated |
//! | `registry.jsonl` | ids, protection, deletions, approvals, the source, accounts at the issuer | restore a backup |
//! | `audit.jsonl` | who did what, for ever | restore a backup |
//! | `tokens.jsonl` | the tokens of API callers, as digests | restore a backup, or create new tokens |
//! | `kubeconfigs.json` | the last working kubeconfig of each fleet, sealed | rewritten by the next apply |
//! | `certificates.json` | accounts at certificate authorities, certificates and their keys, sealed | restore a backup; otherwise they are issued anew, and clusters restart |
//! | `sizes.jsonl` | the sizes of clusters over time, for their costs | restore a backup; costs start anew |
//! | `cache-v1/` | applied specs and objects, status, a snapshot for readers | rebuilt by the next rounds |
//! | `events.jsonl` | recent events | starts empty |
//! | `settings.json` | mode, settings and output folder of the last use | recreated |
//!
//! The module `secret` keeps the age identities and the fingerprint key in the same folder; `backup` saves
//! them too. The clone of the specs' repository is also there and is not saved. The folder itself may be a
//! link, the files in it may not.

mod accounts;
mod activity;
mod archive;
mod backup;
mod cache;
mod certificates;
mod disk;
mod entries;
mod error;
mod events;
mod folder;
mod kept;
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
mod sizes;
mod snapshot;
#[cfg(test)]
mod tests;
mod tokens;

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

use camino::Utf8Path;
use jiff::Timestamp;
use serde::de::IgnoredAny;
use tokio::sync::watch;
use uuid::Uuid;

use crate::catalog::{
    Approval, BucketRecord, CachedRecord, Deletion, DurableRecord, RecordedObject, RecordedResource,
};
use crate::names::{FleetKey, Kind, ObjectKey, ResourceKey};
use crate::parallel::locked;
use crate::spec::SourceId;
use cache::{Cache, Table};
use events::{EventLog, Retention};
use folder::FolderLock;
use kept::KeptFile;
use kubeconfigs::Kubeconfigs;
use recall::ResourceRecordCache;
use records::{RegistryLine, TargetRecord};
use registry::Registry;
use sizes::SizeLog;
use tokens::TokenStore;

pub use accounts::{BindError, BoundAccount};
pub use activity::JournalEntry;
pub use archive::{Archive, ArchiveError, Manifest, SavedFile};
pub use backup::back_up;
pub use certificates::{Issued, KeptAccount, KeptCertificate, KeptCertificates, KeptOrder, Sealed};
pub use error::StateError;
pub use events::{EVENT_BYTES_KEPT, EventIndexEntry, EventOutcome, Follower, RecordedEvent};
pub use folder::LockWait;
pub use kubeconfigs::KeptKubeconfig;
pub use last_used::LastUsed;
pub use restore::{RestoreError, restore};
pub use sizes::{ClusterSizes, ObjectSize};
pub use tokens::{
    Access, AddTokenError, FILE as TOKENS, InvalidTokenRequest, MAX_TOKEN_DAYS, NewToken, Reach,
    RevocationOutcome, SignInProof, TOKEN_DAYS, TOKEN_PREFIX, TOKENS_KEPT_DAYS, Token, TokenGrant,
    TokenOrder, TokenPurpose, TokenRejection, is_same_email, looks_like_token,
};

/// An open state folder. This process holds the folder's lock until `State` is dropped, unless it was only
/// [read](State::read).
pub struct State {
    registry: Mutex<Registry>,
    kubeconfigs: Mutex<KeptFile<Kubeconfigs>>,
    certificates: Mutex<KeptFile<KeptCertificates>>,
    tokens: TokenStore,
    audit: Mutex<EventLog>,
    sizes: Mutex<SizeLog>,
    cache: Cache,
    /// The number of writes to each fleet's objects since the folder was opened.
    writes: Mutex<BTreeMap<FleetKey, u64>>,
    recalled: Mutex<ResourceRecordCache>,
    events: Mutex<EventLog>,
    /// Told whenever events were added.
    heard: watch::Sender<()>,
    warnings: Mutex<Vec<String>>,
    /// None for a state that is only read.
    lock: Option<FolderLock>,
}

impl State {
    /// Opens a state folder, and creates it if it is missing.
    ///
    /// # Errors
    /// When another process uses it, it can't be written, or its registry is damaged or of a newer version.
    pub fn open(dir: &Utf8Path) -> Result<State, StateError> {
        let exposed = folder::prepare(dir)?;
        let lock = folder::lock(dir)?;
        open::refuse_without_registry(dir)?;
        let (mut registry, of_registry) = Registry::open(dir)?;
        let is_used = registry.is_used();
        let installation = open::installation(&mut registry)?;
        let (tokens, of_tokens) = TokenStore::open(dir)?;
        let (sizes, of_sizes) = SizeLog::open(dir)?;
        let (cache, of_cache) = Cache::open(dir, installation, registry.count)?;
        let (audit, of_audit) = open::audit(dir, is_used)?;
        let (events, of_events) = EventLog::open(dir.join(events::FILE), Retention::Recent)?;
        let lost = tokens.lost().filter(|_| registry.facts.tokens_made);
        let of_tokens = of_tokens.into_iter().chain(lost);
        let told = exposed.into_iter().chain(of_registry).chain(of_tokens).chain(of_cache);
        let warnings: Vec<String> = told.chain(of_audit).chain(of_events).chain(of_sizes).collect();
        warnings.iter().for_each(|warning| tracing::debug!(%dir, warning, "repaired the state"));
        Ok(State {
            registry: Mutex::new(registry),
            kubeconfigs: Mutex::new(KeptFile::of(dir)),
            certificates: Mutex::new(KeptFile::of(dir)),
            tokens,
            audit: Mutex::new(audit),
            sizes: Mutex::new(sizes),
            cache,
            writes: Mutex::default(),
            recalled: Mutex::default(),
            events: Mutex::new(events),
            heard: watch::Sender::new(()),
            warnings: Mutex::new(warnings),
            lock: Some(lock),
        })
    }

    /// Whether the folder has a registry. Without one, nothing was ever applied or saved.
    pub fn exists(dir: &Utf8Path) -> bool {
        dir.join(registry::FILE).exists()
    }

    /// Whether the folder records, or may record, anything that was applied; keys and an installation id
    /// alone don't count. It is read without being opened.
    pub fn has_applied_records(dir: &Utf8Path) -> bool {
        let path = dir.join(registry::FILE);
        match std::fs::read(&path) {
            Ok(bytes) => registry::remembers(&path, &bytes),
            Err(error) => error.kind() != std::io::ErrorKind::NotFound,
        }
    }

    /// Sentences about the folder itself: repairs, files that were set aside, and unreadable files.
    pub fn warnings(&self) -> Vec<String> {
        locked(&self.warnings).clone()
    }

    /// Checks that the folder is still the one that was opened. Writes to deleted files would be lost.
    ///
    /// # Errors
    /// When it is gone or another one.
    pub fn check_not_replaced(&self) -> Result<(), StateError> {
        self.lock.as_ref().map_or(Ok(()), FolderLock::still_there)
    }

    /// A resource's id and whether it is protected; none if it isn't recorded.
    pub fn identity(&self, key: &ResourceKey) -> Option<(Uuid, bool)> {
        locked(&self.registry).facts.resources.get(key).map(|it| (it.id, it.protected))
    }

    pub fn put_resource(&self, key: &ResourceKey, resource: &RecordedResource) -> Result<(), StateError> {
        self.put_resources([(key, resource)])
    }

    /// Records several resources with one sync to disk.
    pub fn put_resources<'a>(
        &self,
        resources: impl IntoIterator<Item = (&'a ResourceKey, &'a RecordedResource)>,
    ) -> Result<(), StateError> {
        let whole =
            |(key, resource): (_, &'a RecordedResource)| (key, resource.durable.clone(), &resource.cached);
        self.put_records(locked(&self.registry), resources.into_iter().map(whole).collect())
    }

    /// Records several resources from a plan, each with the record that the plan was based on. Guards against
    /// deletion that were recorded after that stay.
    pub fn put_planned<'a>(
        &self,
        resources: impl IntoIterator<Item = (&'a ResourceKey, &'a RecordedResource, Option<&'a RecordedResource>)>,
    ) -> Result<(), StateError> {
        let registry = locked(&self.registry);
        let guarded = |(key, resource, before): (_, &'a RecordedResource, Option<&RecordedResource>)| {
            let durable = match registry.facts.resources.get(key) {
                Some(known) => {
                    let before = before.map(|before| &before.durable);
                    let mut durable = resource.durable.clone().guarded_since(before, known);
                    // A run makes buckets after its plan was made.
                    BucketRecord::put(BucketRecord::of(known).as_ref(), &mut durable);
                    durable
                }
                None => resource.durable.clone(),
            };
            (key, durable, &resource.cached)
        };
        let records = resources.into_iter().map(guarded).collect();
        self.put_records(registry, records)
    }

    fn put_records(
        &self,
        mut registry: MutexGuard<'_, Registry>,
        records: Vec<(&ResourceKey, DurableRecord, &CachedRecord)>,
    ) -> Result<(), StateError> {
        let known = &registry.facts.resources;
        let changed = records.iter().filter(|(key, durable, _)| known.get(*key) != Some(durable));
        let line = |(key, durable, _): &(&ResourceKey, DurableRecord, _)| RegistryLine::Resource {
            key: (*key).clone(),
            resource: durable.clone(),
        };
        let lines = changed.map(line).collect();
        self.add(&mut registry, lines)?;
        drop(registry);
        for (key, _, cached) in records {
            let put = self.cache.put(Table::Resources, text(key.clone()).as_bytes(), cached);
            self.touched([key.clone()]);
            put?;
        }
        Ok(())
    }

    /// Marks a recorded resource as being deleted. An interrupted deletion then needs no new approval.
    pub fn mark_deleting(&self, key: &ResourceKey) -> Result<(), StateError> {
        self.change_durable(key, |known| DurableRecord { deleting: true, ..known })
    }

    /// Records the bucket that is made for a cluster, or that there is none.
    pub fn set_bucket(&self, key: &ResourceKey, bucket: Option<&BucketRecord>) -> Result<(), StateError> {
        self.change_durable(key, |mut known| {
            BucketRecord::put(bucket, &mut known);
            known
        })
    }

    /// Adds guards against deletion to a recorded resource, and keeps everything else as it is now: another
    /// writer may have changed it.
    pub fn guard(&self, key: &ResourceKey, by: &DurableRecord) -> Result<(), StateError> {
        self.change_durable(key, |known| known.guarded_since(None, by))
    }

    fn change_durable(
        &self,
        key: &ResourceKey,
        change: impl FnOnce(DurableRecord) -> DurableRecord,
    ) -> Result<(), StateError> {
        let mut registry = locked(&self.registry);
        let Some(known) = registry.facts.resources.get(key) else { return Ok(()) };
        let resource = change(known.clone());
        let is_changed = resource != *known;
        let line = is_changed.then(|| RegistryLine::Resource { key: key.clone(), resource });
        self.add(&mut registry, line.into_iter().collect())
    }

    /// Whether a guard against deletion was added since the resource was recorded as `before`.
    pub fn is_guarded_since(&self, key: &ResourceKey, before: Option<&RecordedResource>) -> bool {
        let registry = locked(&self.registry);
        let known = registry.facts.resources.get(key);
        known.is_some_and(|known| known.is_guarded_since(before.map(|before| &before.durable)))
    }

    /// Records that a cluster's deletion begins, and marks the cluster as being deleted. An interrupted
    /// deletion that begins again counts once.
    pub fn record_deletion(&self, deletion: Deletion) -> Result<(), StateError> {
        let mut registry = locked(&self.registry);
        let facts = &registry.facts;
        let counted = facts.resources.get(&deletion.cluster).is_some_and(|it| it.deleting)
            && facts.deletions.iter().any(|it| it.cluster == deletion.cluster);
        if counted { Ok(()) } else { self.add(&mut registry, vec![deletion.into()]) }
    }

    /// Forgets a deleted resource. The number of its deletions is kept, so that a resource recreated under
    /// its key gets another id.
    pub fn remove_resource(&self, key: &ResourceKey, now: Timestamp) -> Result<(), StateError> {
        // While the registry still has the domain, forgetting this can be repeated.
        if key.kind == Kind::BaseDomain {
            self.change_certificates(|all| drop(all.certificates.remove(key)))?;
        }
        let mut registry = locked(&self.registry);
        if registry.facts.resources.contains_key(key) {
            let removal = registry.facts.removal(key.clone(), now);
            self.add(&mut registry, vec![removal])?;
        }
        drop(registry);
        if let Some(fleet) = key.as_fleet() {
            locked(&self.kubeconfigs).forget(&fleet)?;
        }
        self.end_sizes(key, now)?;
        self.forget_details(key)
    }

    /// Adds entries to the registry, and marks their resources to be read again.
    fn add(&self, registry: &mut Registry, entries: Vec<RegistryLine>) -> Result<(), StateError> {
        let keys: Vec<ResourceKey> = entries.iter().filter_map(RegistryLine::resource).cloned().collect();
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

    pub fn put_object(
        &self,
        fleet: &FleetKey,
        key: &ObjectKey,
        object: &RecordedObject,
    ) -> Result<(), StateError> {
        self.writing(fleet, || self.cache.put(Table::Objects, &object_key(fleet, key), object))
    }

    /// Forgets an object whose deletion is confirmed.
    pub fn remove_object(&self, fleet: &FleetKey, key: &ObjectKey) -> Result<(), StateError> {
        self.writing(fleet, || self.cache.remove(Table::Objects, &object_key(fleet, key)))
    }

    /// Records when a target was observed.
    pub fn record_observation(&self, fleet: &FleetKey, at: Timestamp) -> Result<(), StateError> {
        self.cache.put(Table::Targets, fleet.to_string().as_bytes(), &TargetRecord { observed_at: at })
    }

    /// Runs a write to a fleet's objects and counts it afterwards, even if it failed. A reader in between has
    /// the older number and reads again.
    fn writing<T>(&self, fleet: &FleetKey, write: impl FnOnce() -> T) -> T {
        let written = write();
        *locked(&self.writes).entry(fleet.clone()).or_default() += 1;
        written
    }

    /// A number that changes with every write to a fleet's recorded objects. The time of the last observation
    /// is not counted, since it only says how long a fleet is out of reach. The number is valid in this
    /// process only.
    pub fn version_of(&self, fleet: &FleetKey) -> u64 {
        let writes = locked(&self.writes).get(fleet).copied().unwrap_or_default();
        // Reopening the cache may lose writes. Neither number ever falls, so the sum changes.
        writes + self.cache.reopened()
    }

    /// Forgets a fleet, its clusters and everything about its target, though it may all still exist: for a
    /// target that is gone for good. In the registry this is atomic. Resources recreated under these keys get
    /// other ids. Returns what was forgotten.
    pub fn forget_fleet(&self, fleet: &FleetKey, now: Timestamp) -> Result<Vec<ResourceKey>, StateError> {
        // The cache first: while the registry still has the fleet, forgetting it can be repeated.
        self.forget_target(fleet)?;
        let mut registry = locked(&self.registry);
        let facts = &registry.facts;
        let is_on_fleet = |(key, it): &(&ResourceKey, &DurableRecord)| it.fleet(key).as_ref() == Some(fleet);
        let gone: Vec<ResourceKey> =
            facts.resources.iter().filter(is_on_fleet).map(|(key, _)| key.clone()).collect();
        let removed = gone.iter().map(|key| facts.removal(key.clone(), now));
        let approvals = facts.approvals.iter().filter(|approval| approval.fleet == *fleet);
        let approvals = approvals.map(|it| RegistryLine::ApprovalUsed { id: it.id.clone(), at: now });
        let entries = removed.chain(approvals).collect();
        self.add(&mut registry, entries)?;
        drop(registry);
        locked(&self.kubeconfigs).forget(fleet)?;
        for key in &gone {
            self.end_sizes(key, now)?;
            self.forget_details(key)?;
        }
        Ok(gone)
    }

    /// Forgets everything about a fleet's target. The resources on it stay recorded.
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

    /// The last working kubeconfig of each fleet, sealed.
    pub fn kubeconfigs(&self) -> Result<BTreeMap<FleetKey, KeptKubeconfig>, StateError> {
        Ok(locked(&self.kubeconfigs).read()?.kubeconfigs)
    }

    /// Replaces the stored kubeconfigs. One is removed when its fleet is forgotten.
    ///
    /// # Errors
    /// When their file can't be written. It is unchanged then.
    pub fn keep_kubeconfigs(&self, kept: BTreeMap<FleetKey, KeptKubeconfig>) -> Result<(), StateError> {
        locked(&self.kubeconfigs).write(Kubeconfigs { kubeconfigs: kept })
    }

    /// The certificates of managed base domains, their keys sealed.
    pub fn certificates(&self) -> Result<KeptCertificates, StateError> {
        locked(&self.certificates).read()
    }

    /// Changes the stored certificates. Nothing is changed in a state that is only read.
    ///
    /// # Errors
    /// When their file can't be read or written. It is unchanged then.
    pub fn change_certificates(&self, change: impl FnOnce(&mut KeptCertificates)) -> Result<(), StateError> {
        if self.lock.is_none() {
            return Ok(());
        }
        let file = locked(&self.certificates);
        let mut kept = file.read()?;
        change(&mut kept);
        file.write(kept)
    }

    pub fn set_source(&self, source: &SourceId) -> Result<(), StateError> {
        let mut registry = locked(&self.registry);
        if registry.facts.source.as_ref() == Some(&source.0) {
            return Ok(());
        }
        self.add(&mut registry, vec![RegistryLine::Source { source: source.0.clone() }])
    }

    pub fn approve(&self, approval: Approval) -> Result<(), StateError> {
        locked(&self.registry).add(vec![approval.into()])
    }

    /// Removes an approval, since it can be used only once. If some of the approved steps have to wait, it
    /// becomes an approval of `rest`, with the same expiry.
    pub fn use_approval(&self, id: &str, rest: Option<&str>, now: Timestamp) -> Result<(), StateError> {
        let mut registry = locked(&self.registry);
        let used = registry.facts.approvals.iter().find(|approval| approval.id == id).cloned();
        let Some(used) = used else { return Ok(()) };
        let goes_on = rest.map(|rest| RegistryLine::from(Approval { id: rest.to_owned(), ..used }));
        let used = RegistryLine::ApprovalUsed { id: id.to_owned(), at: now };
        self.add(&mut registry, [used].into_iter().chain(goes_on).collect())
    }

    /// Waits until all writes to the cache, and all sizes, are on disk.
    pub fn flush(&self) -> Result<(), StateError> {
        self.cache.flush()?;
        locked(&self.sizes).sync()
    }
}

fn text(key: ResourceKey) -> String {
    key.into()
}

/// The key of an object in the cache: fleet and object, separated by a byte that neither contains.
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
