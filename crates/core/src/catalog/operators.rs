//! Checks of a fleet's Strimzi version.

use std::collections::BTreeSet;

use crate::catalog::draft::{CatalogDraft, CatalogFinding};
use crate::catalog::versions;
use crate::names::Kind;
use crate::problem::Problem;
use crate::spec::{Document, Fleet, Spec};

const STRIMZI: &str = "/advanced_config/components/strimzi";

const NAMES: usize = 6;

/// Refuses fleets whose operator can't be installed from the settings, would be downgraded, or doesn't
/// support the Kafka version of one of the fleet's clusters.
pub(super) fn check(draft: &mut CatalogDraft) {
    for document in draft.documents_of(Kind::Fleet) {
        let Spec::Fleet(fleet) = &document.spec else { continue };
        let findings = unusable(draft, fleet)
            .or_else(|| older(draft, document, fleet))
            .or_else(|| stranding(draft, document, fleet));
        draft.refuse(document, findings);
    }
}

fn unusable(draft: &CatalogDraft, fleet: &Fleet) -> Option<CatalogFinding> {
    let version = fleet.advanced_config.components.installs()?;
    let fault = draft.config.operators.strimzi(version).err()?;
    Some(CatalogFinding::new(STRIMZI, "", Problem::error(fault.code, fault.message).hint(fault.hint)))
}

fn older(draft: &CatalogDraft, document: &Document, fleet: &Fleet) -> Option<CatalogFinding> {
    let Some(Spec::Fleet(before)) = draft.last_good(&document.key) else { return None };
    let [was, is] = [before, fleet].map(|fleet| fleet.advanced_config.components.installs());
    let (was, is) = was.zip(is).filter(|(was, is)| numbers(is) < numbers(was))?;
    let problem =
        Problem::error("older-operator", format!("the Strimzi operator can't go from {was} back to {is}"))
            .hint(format!("an older operator can't handle what a newer one wrote; restore {was}"));
    Some(CatalogFinding::new(STRIMZI, format!("was {was}"), problem))
}

/// An operator no longer changes a cluster whose Kafka version it doesn't support. The last applied specs are
/// compared, since an edit in the same change is applied only after the operator.
fn stranding(draft: &CatalogDraft, document: &Document, fleet: &Fleet) -> Option<CatalogFinding> {
    let Some(Spec::Fleet(before)) = draft.last_good(&document.key) else { return None };
    let version = fleet.advanced_config.components.installs()?;
    let was = before.advanced_config.components.installs();
    let runs = &draft.config.operators.strimzi(version).ok()?.kafka_versions;
    if was == Some(version) || runs.is_empty() {
        return None;
    }
    let clusters = draft.named(&fleet.organization, Kind::Cluster).map(|(key, _)| key);
    let stranded = clusters.filter_map(|key| {
        let Some(Spec::Cluster(cluster)) = draft.last_good(key) else { return None };
        let (kafka, follows) = (&cluster.advanced_config.version, cluster.advanced_config.auto_upgrade);
        let is_run = |it: &String| it == kafka || follows && versions::is_patch_from(it, kafka);
        let is_stranded = cluster.infrastructure == fleet.identifier && !runs.iter().any(is_run);
        is_stranded.then(|| format!("{key} ({kafka})"))
    });
    let stranded: BTreeSet<String> = stranded.collect();
    let shown: Vec<&str> = stranded.iter().take(NAMES).map(String::as_str).collect();
    let more = match stranded.len().saturating_sub(NAMES) {
        0 if stranded.is_empty() => return None,
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let runs: Vec<&str> = runs.iter().map(String::as_str).collect();
    let message = format!("Strimzi {version} can't run the Kafka version of {}{more}", shown.join(", "));
    let problem = Problem::error("operator-without-kafka", message).hint(format!(
        "it runs {}: first set one of these in `advanced_config.version` of the clusters, and change the operator when \
         they are Healthy",
        runs.join(", ")
    ));
    Some(CatalogFinding::new(STRIMZI, was.map_or(String::new(), |was| format!("was {was}")), problem))
}

fn numbers(version: &str) -> Vec<u32> {
    version.split('.').map(|number| number.parse().unwrap_or_default()).collect()
}
