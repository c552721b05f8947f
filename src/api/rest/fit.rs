//! Which fleets a new cluster fits on, by the rules that would refuse it.

use axum::http::StatusCode;
use serde_json::Value;

use super::{Answered, Call, missing, written};
use crate::api::answer::{ClusterFitList, FitReason, FleetFit, Room};
use crate::catalog::{CapacityNeed, ClusterFit, Hold, Status, versions};
use crate::http::problem::ProblemDocument;
use crate::names::{FleetKey, Kind, ResourceKey};
use crate::plan::Waiting;
use crate::problem::Problem;
use crate::record::Standing;
use crate::spec::{Cluster, Fleet};
use crate::writing;

/// Judges a cluster on each fleet of its organization, or on the one that the body names.
pub(super) fn read(call: &Call) -> Answered {
    let body = call.json()?.into_value();
    let text = |name: &str| body[name].as_str().filter(|text| !text.is_empty());
    let organization = match text("organization") {
        Some(named) => call.organization(named)?,
        // Fails, with an error about the missing field.
        None => writing::key_of(Kind::Cluster, None, &body)?.organization,
    };
    let version = body.pointer("/advanced_config/version").and_then(Value::as_str);
    let names_version = version.is_some_and(|version| !version.is_empty());
    let named = text("infrastructure").map(str::to_owned);
    let cluster = writing::described_cluster(&organization, body)?;
    let mut fleets = call.fleets(Some(&organization));
    if let Some(named) = named {
        fleets.retain(|(key, _)| key.fleet.as_str() == named);
        if fleets.is_empty() {
            return Err(missing(Kind::Fleet.noun(), &named));
        }
    }
    let fit = |(key, fleet): &(FleetKey, Fleet)| {
        let mut cluster = Cluster { infrastructure: key.fleet.clone(), ..Cluster::clone(&cluster) };
        let support = call.support(key);
        if !names_version && let Some(usual) = versions::newest(|version| support.runs(version)) {
            usual.clone_into(&mut cluster.advanced_config.version);
        }
        call.fit(&cluster, key, fleet)
    };
    let items = fleets.iter().map(fit).collect();
    Ok(call.with_current_plan(written(StatusCode::OK, &ClusterFitList { items })))
}

impl Call {
    fn fit(&self, cluster: &Cluster, key: &FleetKey, fleet: &Fleet) -> FleetFit {
        let ClusterFit { needs, problems, holds } = self.made.round.checked.catalog.fit(cluster, fleet);
        let owner = ResourceKey::new(Kind::Cluster, &cluster.organization, cluster.identifier.as_str());
        let standing = self.standing(&key.resource());
        let mut reasons: Vec<FitReason> = self.out_of_reach(key, &standing).into_iter().collect();
        reasons.extend(problems.iter().map(of_problem));
        reasons.extend(self.unsupported(cluster, key));
        reasons.extend(holds.iter().map(|hold| of_hold(&owner, hold)));
        let [clusters, kafka_units, organization_clusters, organization_kafka_units] = needs.map(room);
        FleetFit {
            fleet: key.clone(),
            infra_type: fleet.infra_type,
            tenancy_mode: fleet.tenancy_mode,
            status: standing.status,
            fits: reasons.is_empty(),
            reasons,
            kafka_units,
            clusters,
            organization_kafka_units,
            organization_clusters,
        }
    }

    /// Why nothing could be created on a fleet for now.
    fn out_of_reach(&self, fleet: &FleetKey, standing: &Standing) -> Option<FitReason> {
        let waiting = self.made.round.fleet_plan(fleet).and_then(|plan| plan.reach.waiting());
        let (code, detail, hint) = match waiting {
            _ if standing.status == Status::Deleting => {
                ("deleting", "the fleet is being deleted".to_owned(), "choose another fleet")
            }
            Some(waiting @ Waiting::Unreachable { .. }) => {
                let why = self.audience().waiting_reason(&waiting);
                ("unreachable", why, "fix the fleet first, or choose another one")
            }
            _ => return None,
        };
        Some(FitReason { code: code.to_owned(), detail, hint: Some(hint.to_owned()) })
    }

    /// The cluster would be created and never run.
    fn unsupported(&self, cluster: &Cluster, fleet: &FleetKey) -> Option<FitReason> {
        let (support, version) = (self.support(fleet), &cluster.advanced_config.version);
        let known: Vec<&str> = support.kafka_versions.iter().flatten().map(String::as_str).collect();
        // An unknown version is a mistake of its own.
        let is_refused = versions::find(version).is_some() && !support.runs(version);
        is_refused.then(|| FitReason {
            code: "unsupported-version".to_owned(),
            detail: format!("fleet `{}` doesn't run Kafka {version}", fleet.fleet),
            hint: Some(format!("use one of {}, or upgrade the fleet's operator", known.join(", "))),
        })
    }
}

fn of_problem(problem: &Problem) -> FitReason {
    let (detail, hint) = (writing::detail(problem), writing::hint(problem, None));
    FitReason { code: problem.code.to_string(), detail, hint }
}

/// The refusal of a write of the cluster, or the reason why it would wait.
fn of_hold(cluster: &ResourceKey, hold: &Hold) -> FitReason {
    match writing::refusal_of(cluster, hold).map(ProblemDocument::from) {
        Some(refused) => {
            FitReason { code: refused.kind.word.to_owned(), detail: refused.detail, hint: refused.hint }
        }
        None => FitReason { code: "suspended".to_owned(), detail: hold.to_string(), hint: None },
    }
}

fn room(need: CapacityNeed) -> Room {
    let missing = need.missing();
    let CapacityNeed { used, wanted, limit, .. } = need;
    Room { limit, used, free: limit.map(|limit| limit.saturating_sub(used)), needed: wanted, missing }
}
