//! Refuses fleets on Streamfleet's own Kubernetes cluster that the settings don't name: they would use the rights of
//! its pod.

use crate::catalog::draft::{CatalogDraft, CatalogFinding};
use crate::names::{FleetKey, Kind};
use crate::problem::Problem;
use crate::spec::Spec;

pub(super) fn check(draft: &mut CatalogDraft) {
    for document in draft.documents_of(Kind::Fleet) {
        let Spec::Fleet(fleet) = &document.spec else { continue };
        let key = FleetKey { organization: fleet.organization.clone(), fleet: fleet.identifier.clone() };
        if !fleet.advanced_config.in_cluster || draft.config.targets.in_cluster.contains(&key) {
            continue;
        }
        let message = format!("the settings don't allow fleet {key} to be `in_cluster`");
        let problem = Problem::error("in-cluster-not-allowed", message).hint(format!(
            "let an administrator add it to the settings, under `[targets]`: in_cluster = [\"{key}\"]; otherwise set \
             `kubeconfig`"
        ));
        let label = "it would use the rights of streamfleet's own pod";
        draft.refuse(document, [CatalogFinding::new("/advanced_config/in_cluster", label, problem)]);
    }
}
