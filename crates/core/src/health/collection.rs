//! Decides which objects are read to judge the health of a fleet, and reads them as an observation.
//!
//! The caller reads them: with calls to the server, or from the watches of the daemon.

use std::collections::BTreeSet;

use crate::catalog::Condition;
use crate::component::health::read_objects::object_namespace;
use crate::component::health::{
    self, AppliedClusters, FleetObservation, HealthQuery, ReadObjects, ReadWhen, observation,
};
use crate::component::{self, KubernetesKind};
use crate::names::Json;

pub struct HealthCollection<'a> {
    wanted: &'a AppliedClusters,
    namespaces: BTreeSet<&'a str>,
    read: ReadObjects,
}

impl<'a> HealthCollection<'a> {
    pub fn new(wanted: &'a AppliedClusters) -> Self {
        let namespaces = wanted.values().map(|wanted| wanted.namespace.as_str()).collect();
        Self { wanted, namespaces, read: ReadObjects::default() }
    }

    /// The queries to read next, concurrently; empty if everything was read.
    pub fn next_queries(&self) -> Vec<HealthQuery> {
        let due = queries().filter(|(when, query)| !self.read.has(*query) && self.is_due(*when, query.kind));
        let due: Vec<_> = due.collect();
        let Some(first) = due.iter().map(|(when, _)| *when).min() else { return Vec::new() };
        due.into_iter().filter(|(when, _)| *when == first).map(|(_, query)| query).collect()
    }

    fn is_due(&self, when: ReadWhen, kind: &'static KubernetesKind) -> bool {
        let has_clusters = !self.wanted.is_empty();
        let is_leaving = || {
            self.wanted.values().any(|wanted| wanted.deleting)
                || has_clusters && health::is_leaving(&self.read)
        };
        match when {
            ReadWhen::Always => true,
            ReadWhen::Unselected => self.read.of(kind).is_some_and(|mut objects| objects.next().is_none()),
            ReadWhen::Clusters => has_clusters,
            ReadWhen::Applied => self.wanted.values().any(|it| it.kinds.contains(kind.kind)) || is_leaving(),
            ReadWhen::Deleting => is_leaving(),
            ReadWhen::Routed => self.wanted.values().any(|wanted| wanted.gateway.is_some()),
            ReadWhen::Trouble => has_clusters && health::is_troubled(&self.read),
        }
    }

    /// Adds the objects of a query, or why they can't be read. Objects of other namespaces are dropped, except
    /// for kinds that matter anywhere.
    pub fn add(&mut self, query: HealthQuery, objects: Result<Vec<Json>, Condition>) {
        let anywhere = query.kind.health.is_some_and(|source| source.anywhere);
        let matters = |object: &Json| anywhere || self.namespaces.contains(object_namespace(object).as_str());
        let objects = objects.map(|mut objects| {
            objects.retain(matters);
            objects
        });
        self.read.add(query, objects);
    }

    /// The observation from everything that was read.
    pub fn observation(&self) -> FleetObservation {
        observation(self.wanted, &self.read)
    }
}

/// Every query that health may need.
fn queries() -> impl Iterator<Item = (ReadWhen, HealthQuery)> {
    let of_kind = |kind: &'static KubernetesKind| {
        let source = kind.health?;
        let selected = (source.when, HealthQuery { kind, selector: source.selector });
        let all = source.else_all.then_some((ReadWhen::Unselected, HealthQuery { kind, selector: "" }));
        Some(std::iter::once(selected).chain(all))
    };
    component::kinds().filter_map(of_kind).flatten()
}
