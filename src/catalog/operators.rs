//! The Strimzi operator that a fleet asks for.

use crate::catalog::draft::{Draft, Finding};
use crate::names::Kind;
use crate::problem::Problem;
use crate::spec::{Document, Fleet, Spec};

const STRIMZI: &str = "/advanced_config/components/strimzi";

/// Refuses every fleet whose operator can't be installed from the settings, or would go back to an older version.
pub(super) fn check(draft: &mut Draft) {
    for document in draft.documents_of(Kind::Fleet) {
        let Spec::Fleet(fleet) = &document.spec else { continue };
        let findings = unusable(draft, fleet).or_else(|| older(draft, document, fleet));
        draft.refuse(document, findings);
    }
}

fn unusable(draft: &Draft, fleet: &Fleet) -> Option<Finding> {
    let version = fleet.advanced_config.components.installs()?;
    let fault = draft.config.operators.strimzi(version).err()?;
    Some(Finding::new(STRIMZI, "", Problem::error(fault.code, fault.message).hint(fault.hint)))
}

fn older(draft: &Draft, document: &Document, fleet: &Fleet) -> Option<Finding> {
    let Some(Spec::Fleet(before)) = draft.last_good(&document.key) else { return None };
    let [was, is] = [before, fleet].map(|fleet| fleet.advanced_config.components.installs());
    let (was, is) = was.zip(is).filter(|(was, is)| numbers(is) < numbers(was))?;
    let problem =
        Problem::error("older-operator", format!("the Strimzi operator can't go from {was} back to {is}"))
            .hint(format!("an older operator doesn't know what a newer one left behind; put {was} back"));
    Some(Finding::new(STRIMZI, format!("was {was}"), problem))
}

fn numbers(version: &str) -> Vec<u32> {
    version.split('.').map(|number| number.parse().unwrap_or_default()).collect()
}
