//! Reads the objects by which the health of clusters is judged: all of a few kinds, with one call per kind for the
//! whole fleet.
//!
//! The caller decides where the objects come from: calls to the server, or the watches of the daemon.

use std::collections::BTreeMap;

use futures_util::future::try_join_all;
use serde_json::Value;

use super::watch::health_fields;
use super::{KubeError, KubernetesTarget};
use crate::catalog::Condition;
use crate::component::health::{AppliedCluster, HealthQuery};
use crate::health::{FleetObservation, HealthCollection};
use crate::names::{Json, ResourceKey};
use crate::plan::UNREACHED;

impl KubernetesTarget {
    /// Collects the objects by which the health of the fleet's clusters is judged. The daemon has them from its
    /// watches, except for the remains of clusters that are being deleted.
    pub(in crate::target) async fn observe_health(
        &self,
        wanted: &BTreeMap<ResourceKey, AppliedCluster>,
    ) -> Result<FleetObservation, KubeError> {
        let api = self.api().await?;
        let view = self.view.as_deref();
        let list = |query: HealthQuery| async move {
            let is_watched = query.kind.health.is_some_and(|source| source.is_watched());
            if let Some(view) = view.filter(|_| is_watched)
                && let Some(told) = view.signs(query).await?
            {
                return Ok(told);
            }
            api.list(query.kind.into(), None, query.selector, |object| kept(query, &object)).await
        };
        see(list, wanted).await
    }
}

type KindObjects = Result<Vec<Json>, KubeError>;

fn kept(query: HealthQuery, object: &Value) -> Option<Json> {
    health_fields::of(query.kind, object).map(Json::from)
}

/// Reads the requested objects until no query is left. A kind that the server refuses to list is only unknown; an
/// authentication failure (401) fails the whole collection.
async fn see<R: Future<Output = KindObjects>>(
    list: impl Fn(HealthQuery) -> R,
    wanted: &BTreeMap<ResourceKey, AppliedCluster>,
) -> Result<FleetObservation, KubeError> {
    let mut collection = HealthCollection::new(wanted);
    loop {
        let queries = collection.next_queries();
        if queries.is_empty() {
            return Ok(collection.observation());
        }
        let lists = queries.into_iter().map(|query| {
            let objects = list(query);
            async move {
                match objects.await {
                    Err(error) if error.is_code(401) || !matches!(error, KubeError::Refused { .. }) => {
                        Err(error)
                    }
                    objects => Ok((query, objects.map_err(|error| hidden(query, &error)))),
                }
            }
        });
        for (query, objects) in try_join_all(lists.collect::<Vec<_>>()).await? {
            collection.add(query, objects);
        }
    }
}

/// The condition for a kind that can't be read, with a hint.
fn hidden(query: HealthQuery, error: &KubeError) -> Condition {
    let (kind, resource) = (query.kind.kind, query.kind.resource());
    let partly = "the health of clusters is known only in part";
    match error.is_code(403) {
        true => Condition {
            kind: "PermissionMissing".to_owned(),
            degraded: true,
            message: format!(
                "{partly}: the user of the fleet's `kubeconfig` may not list {kind} objects; grant it `list` on \
                 `{resource}` with a ClusterRole"
            ),
        },
        false => Condition {
            kind: "NotSeen".to_owned(),
            degraded: false,
            message: match error.is_unreached() {
                true => format!("{partly}: {UNREACHED}"),
                false => format!("{partly}: {error}; {}", error.hint()),
            },
        },
    }
}

#[cfg(test)]
mod tests;
