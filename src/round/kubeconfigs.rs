//! Keeps the kubeconfig with which each fleet was last reached: it is still needed to empty the fleet after
//! its spec is removed.

use std::collections::BTreeMap;

use secrecy::{ExposeSecret as _, SecretString};

use super::Round;
use crate::catalog::{OpenedSecret, Recorded, ResolvedTree, SecretMark, Secrets};
use crate::config::{AddressRange, denied_server};
use crate::names::{FleetKey, SecretRef};
use crate::plan::Reach;
use crate::secret::{self, Keyring};
use crate::spec::kubeconfig::KubeAccess;
use crate::state::{KeptKubeconfig, State, StateError};

/// Opened kubeconfigs of fleets without a spec; the error is the end of a sentence.
pub(super) type Kept = BTreeMap<FleetKey, Result<SecretString, String>>;

const KUBECONFIG: &str = "kubeconfig";

pub(super) fn field(fleet: &FleetKey) -> SecretRef {
    SecretRef { resource: fleet.resource(), field: KUBECONFIG.to_owned() }
}

/// Opens the kubeconfigs of fleets whose specs are gone.
///
/// # Errors
/// When the file of kept kubeconfigs can't be read.
pub(super) fn open(
    state: Option<&State>,
    keyring: &Keyring,
    checked: &ResolvedTree,
) -> Result<Kept, StateError> {
    let Some(state) = state else { return Ok(Kept::new()) };
    let is_gone = |fleet: &FleetKey| !checked.secrets.opened.contains_key(&field(fleet));
    let gone = state.kubeconfigs()?.into_iter().filter(|(fleet, _)| is_gone(fleet));
    let opened = gone.map(|(fleet, kept)| {
        let value = keyring.open(&kept.sealed, &field(&fleet));
        let value =
            value.map_err(|_| "the recorded one can't be opened with the keys of this host".to_owned());
        (fleet, value)
    });
    Ok(opened.collect())
}

/// Removes kubeconfigs that weren't applied. Otherwise a proposal could name its author's own server, and a
/// dry run would send manifests with secrets to it.
pub(super) fn keep_from_proposed(secrets: &mut Secrets, recorded: &Recorded, allowed: &[AddressRange]) {
    for (reference, opened) in &mut secrets.opened {
        let OpenedSecret::Value { mark, value } = opened else { continue };
        let applied = recorded.resources.get(&reference.resource).map(|record| &record.cached.secrets);
        let applied = applied.and_then(|secrets| secrets.get(&reference.field));
        let is_applied = mark.fingerprint.is_some()
            && applied.is_some_and(|applied| applied.fingerprint == mark.fingerprint);
        if reference.field == KUBECONFIG && !is_applied {
            let denied = KubeAccess::parse(value.expose_secret()).ok();
            let denied = denied.and_then(|access| denied_server(&access, allowed));
            let which =
                if applied.is_some() { "it differs from the applied one" } else { "it was not applied yet" };
            let reason = denied.unwrap_or_else(|| {
                format!("{which}, and streamfleet doesn't connect with a proposed kubeconfig")
            });
            *opened = OpenedSecret::Unavailable { mark: mark.clone(), reason };
        }
    }
}

/// Stores the kubeconfigs with which fleets were reached, before anything else is written: from then on
/// Streamfleet must be able to clean up. Drops those of fleets without a record.
///
/// # Errors
/// When sealing or writing fails.
pub(super) fn keep(round: &Round, state: &State) -> Result<(), NotKept> {
    let mut kept = state.kubeconfigs()?;
    let recipient = round.keyring.recipient();
    // A fleet that is just being created may not be recorded yet.
    let is_known = |fleet: &FleetKey| state.identity(&fleet.resource()).is_some();
    kept.retain(|fleet, _| is_known(fleet) || round.under_way.contains(fleet));
    for plan in round.plan.fleets.iter().filter(|plan| plan.reach == Reach::Reached) {
        let reference = field(&plan.fleet);
        // A kubeconfig from before would be kept for nothing.
        let resource = round.checked.catalog.fleets.get(&plan.fleet);
        if resource.is_some_and(|fleet| fleet.spec.advanced_config.in_cluster) {
            kept.remove(&plan.fleet);
        }
        let opened = round.checked.secrets.opened.get(&reference);
        let Some(OpenedSecret::Value { value, mark: SecretMark { fingerprint: Some(fingerprint), .. } }) =
            opened
        else {
            continue;
        };
        let is_same = |it: &KeptKubeconfig| it.fingerprint == *fingerprint && it.recipient == recipient;
        if kept.get(&plan.fleet).is_some_and(is_same) {
            continue;
        }
        let (fingerprint, recipient) = (fingerprint.clone(), recipient.clone());
        let sealed = secret::seal(&recipient, &reference, value)?;
        kept.insert(plan.fleet.clone(), KeptKubeconfig { fingerprint, recipient, sealed });
    }
    Ok(state.keep_kubeconfigs(kept)?)
}

pub(super) struct NotKept {
    pub(super) message: String,
    pub(super) hint: String,
}

impl From<StateError> for NotKept {
    fn from(error: StateError) -> Self {
        Self { message: error.to_string(), hint: error.hint() }
    }
}

impl From<secret::SecretError> for NotKept {
    fn from(error: secret::SecretError) -> Self {
        Self { message: error.message, hint: error.hint }
    }
}
