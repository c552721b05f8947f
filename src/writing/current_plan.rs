//! The last plan, from which requests are answered.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use uuid::Uuid;

use crate::names::ResourceKey;
use crate::round::{Installation, Round};
use crate::spec::Documents;
use crate::views::records;

/// How long a plan counts as current if nothing newer was written. Rounds run every 30 s anyway, unless a
/// target delays them.
const CURRENT: Duration = Duration::from_secs(60);

/// A point in time: the number of writes until then, and the last change notification of the folder.
#[derive(Debug, Clone, Copy, Default)]
pub struct WriteMark {
    pub writes: u64,
    pub heard: Option<u64>,
}

/// A plan with its inputs.
#[derive(Clone)]
pub struct CurrentPlan {
    pub installation: Arc<Installation>,
    pub documents: Arc<Documents>,
    pub round: Arc<Round>,
    /// The mark of [`super::Writer`] from when the specs were read: all earlier writes are in the plan.
    pub mark: WriteMark,
    /// Why the plan could not be recorded, in which case none of it is carried out.
    pub trouble: Option<String>,
    since: Instant,
    /// Resources by id, computed on first use.
    ids: Arc<OnceLock<BTreeMap<Uuid, ResourceKey>>>,
}

impl CurrentPlan {
    /// A plan of specs that include every write before `mark`.
    pub fn new(
        installation: Arc<Installation>,
        documents: Arc<Documents>,
        round: Arc<Round>,
        mark: WriteMark,
    ) -> CurrentPlan {
        let (trouble, since) = (None, Instant::now());
        CurrentPlan { installation, documents, round, mark, trouble, since, ids: Arc::default() }
    }

    /// Marks the plan as not carried out.
    pub fn with_trouble(self, trouble: Option<String>) -> CurrentPlan {
        CurrentPlan { trouble, ..self }
    }

    /// Whether it includes this many writes, and no target may have changed much since.
    pub fn is_recent(&self, writes: u64) -> bool {
        self.mark.writes >= writes && self.since.elapsed() < CURRENT
    }

    pub fn key_with(&self, id: Uuid) -> Option<&ResourceKey> {
        let all = || {
            let checked = &self.round.checked;
            let recorded =
                checked.recorded.resources.iter().map(|(key, record)| (record.durable.id, key.clone()));
            let wanted =
                checked.catalog.resources.values().map(|resource| (resource.id, resource.key.clone()));
            let root = records::root(&self.round).map(|root| (root.id, root.key));
            root.into_iter().chain(recorded).chain(wanted).collect()
        };
        self.ids.get_or_init(all).get(&id)
    }
}
