//! A compact cache of the objects of one kind.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::health_fields;
use super::notifier::ChangeScope;
use super::topic::{Purpose, Topic, is_labelled};
use crate::component::{KubernetesKind, judged_kinds};
use crate::names::Json;
use crate::target::kubernetes::budget::{Budget, Charge, OverBudget};
use crate::target::kubernetes::fields;
use crate::target::kubernetes::live::Live;
use crate::target::kubernetes::untrusted::Weigh;

pub(in crate::target::kubernetes) type Name = (Option<String>, String);

#[derive(Default)]
pub(super) struct WatchedObject {
    /// The comparison with what we applied. None for foreign objects.
    pub(super) live: Option<Box<Live>>,
    /// The whole object, once an observation had to read it.
    pub(super) whole: Option<Json>,
    /// The parts that matter to health. None when nothing does.
    pub(super) signs: Option<Json>,
}

pub(super) struct ObjectCache {
    purpose: Purpose,
    /// The rows of the kind by which health is judged. The first one that includes an object reads it.
    judged: Vec<&'static KubernetesKind>,
    pub(super) objects: BTreeMap<Name, WatchedObject>,
    /// The latest `resourceVersion`, as a number.
    pub(super) version: u64,
    /// The `resourceVersion` to resume the watch from.
    pub(super) position: String,
    charge: Charge,
}

impl ObjectCache {
    pub(super) fn new(topic: &Topic, budget: &Arc<Budget>) -> Self {
        Self {
            purpose: topic.purpose,
            judged: judged_kinds(&topic.api_version, &topic.kind)
                .filter(|_| topic.purpose.is_judged())
                .collect(),
            objects: BTreeMap::new(),
            version: 0,
            position: String::new(),
            charge: Charge::new(budget),
        }
    }

    /// Reduces an object of a list or an event to what is cached, with its name.
    pub(super) fn take(&self, object: Value) -> Option<(Name, WatchedObject)> {
        let text = |field: &str| object.pointer("/metadata")?.get(field)?.as_str().map(str::to_owned);
        let name = (text("namespace"), text("name")?);
        let is_ours = match self.purpose {
            Purpose::Ours | Purpose::Inventory => true,
            Purpose::Health => false,
            Purpose::OursAndHealth => is_labelled(&object),
        };
        let signs = self.judged.iter().find_map(|kind| health_fields::of(kind, &object));
        let live = is_ours.then(|| Live::of(&object));
        let whole = (self.purpose == Purpose::Inventory).then(|| Json::from(fields::trimmed(object)));
        Some((name, WatchedObject { live: live.map(Box::new), whole, signs: signs.map(Json::from) }))
    }

    /// Drops all objects, to free budget for a new list. Returns false when there were none.
    pub(super) fn clear(&mut self) -> bool {
        let had = !self.objects.is_empty();
        self.objects.clear();
        self.charge.sub(self.charge.bytes());
        had
    }

    /// Caches a whole object, if the version matches and the budget allows it.
    pub(super) fn keep(&mut self, name: &Name, version: &str, whole: &Json) {
        let Some(seen) = self.objects.get_mut(name).filter(|seen| version_of(seen) == Some(version)) else {
            return;
        };
        self.charge.sub(seen.whole.take().map_or(0, |whole| whole.weight()));
        if self.charge.add(whole.weight()).is_ok() {
            seen.whole = Some(whole.clone());
        }
    }

    /// Replaces all objects by a new list. `charge` is the list's budget.
    pub(super) fn replace(
        &mut self,
        listed: BTreeMap<Name, WatchedObject>,
        position: String,
        charge: Charge,
    ) -> ChangeScope {
        self.charge = charge;
        let mut before = std::mem::replace(&mut self.objects, listed);
        let mut happened = ChangeScope::NOTHING;
        for (name, seen) in &mut self.objects {
            let known = before.remove(name);
            happened = happened | differs(self.purpose, &self.judged, known.as_ref(), Some(seen));
            let known = known.filter(|it| version_of(it) == version_of(seen) && seen.whole.is_none());
            if let Some(whole) = known.and_then(|known| known.whole)
                && self.charge.add(whole.weight()).is_ok()
            {
                seen.whole = Some(whole);
            }
        }
        for gone in before.values() {
            happened = happened | differs(self.purpose, &self.judged, Some(gone), None);
        }
        self.objects.retain(|_, seen| seen.is_of_use());
        self.moved(position);
        happened
    }

    pub(super) fn put(
        &mut self,
        (name, seen): (Name, WatchedObject),
        position: String,
    ) -> Result<ChangeScope, OverBudget> {
        let happened = differs(self.purpose, &self.judged, self.objects.get(&name), Some(&seen));
        self.take_out(&name);
        if seen.is_of_use() {
            self.charge.add(weight(&name, &seen))?;
            self.objects.insert(name, seen);
        }
        self.moved(position);
        Ok(happened)
    }

    fn take_out(&mut self, name: &Name) -> Option<WatchedObject> {
        let gone = self.objects.remove(name)?;
        self.charge.sub(weight(name, &gone));
        Some(gone)
    }

    /// Removes an object that is gone or has lost its label.
    pub(super) fn remove(&mut self, name: &Name, position: String) -> ChangeScope {
        self.moved(position);
        let gone = self.take_out(name);
        differs(self.purpose, &self.judged, gone.as_ref(), None)
    }

    /// Advances the position without a change.
    pub(super) fn moved(&mut self, position: String) {
        // Versions are increasing numbers, and a list may be older than the last event.
        self.version = self.version.max(position.parse().unwrap_or_default());
        self.position = position;
    }
}

impl WatchedObject {
    pub(super) fn is_of_use(&self) -> bool {
        self.live.is_some() || self.signs.is_some()
    }
}

fn differs(
    purpose: Purpose,
    judged: &[&KubernetesKind],
    before: Option<&WatchedObject>,
    after: Option<&WatchedObject>,
) -> ChangeScope {
    let plan = match (live(before), live(after)) {
        (Some(_), Some(_)) if purpose == Purpose::Inventory => content(before) != content(after),
        (Some(before), Some(after)) => !before.is_same(after),
        (before, after) => before.is_some() != after.is_some(),
    };
    let health = judged.iter().any(|kind| health_fields::ring(kind)) && signs_of(before) != signs_of(after);
    ChangeScope { plan, health }
}

fn live(seen: Option<&WatchedObject>) -> Option<&Live> {
    seen?.live.as_deref()
}

fn signs_of(seen: Option<&WatchedObject>) -> Option<&Json> {
    seen?.signs.as_ref()
}

fn content(seen: Option<&WatchedObject>) -> Option<Value> {
    seen?.whole.as_ref()?.value().get("data").cloned()
}

/// The overhead of a cached object in bytes, with its map entry.
const OBJECT: usize = 200;

/// The size of a `Live` in bytes, with its four digests.
const LIVE: usize = 500;

/// The overhead of each nested object in the signs, in bytes.
const INNER: usize = 32;

/// An estimate of the memory that a cached object takes, in bytes.
pub(super) fn weight(name: &Name, seen: &WatchedObject) -> usize {
    let names = name.0.as_ref().map_or(0, String::len) + name.1.len();
    let count = |text: &str, part: &str| text.matches(part).count();
    let signs = seen.signs.as_ref().map_or(0, |it| it.as_str().len() + INNER * count(it.as_str(), "{"));
    let whole = seen.whole.as_ref().map_or(0, Weigh::weight);
    OBJECT + names + seen.live.as_ref().map_or(0, |_| LIVE) + signs + whole
}

fn version_of(seen: &WatchedObject) -> Option<&str> {
    seen.live.as_ref().map(|live| live.version.as_str())
}

/// The `resourceVersion` as a number. Numbers increase with each change.
pub(super) fn version(object: &Value) -> Option<u64> {
    position(object)?.parse().ok()
}

pub(super) fn position(object: &Value) -> Option<&str> {
    object.pointer("/metadata/resourceVersion").and_then(Value::as_str)
}
