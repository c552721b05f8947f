//! The certificates of managed base domains in a round: what was issued, and when it has to be renewed.

use std::time::Duration;

use futures_util::future::join_all;
use jiff::{SignedDuration, Timestamp};
use secrecy::SecretString;
use tokio::time::timeout;

use super::Round;
use super::kubeconfigs::NotKept;
use crate::catalog::{IssuedCertificate, OpenedSecret, RenewalWindow, Secrets, certificate_key};
use crate::config::AcmeConfig;
use crate::execute::account_secret;
use crate::names::{ResourceKey, SecretRef};
use crate::secret::{self, Keyring, SecretError};
use crate::state::{Issued, KeptCertificates, Sealed, State, StateError};
use crate::target::acme::{AcmeFault, Authority};

/// How long a plan waits for all answers.
const PATIENCE: Duration = Duration::from_secs(15);

/// When an authority that didn't answer is asked again.
const AGAIN: SignedDuration = SignedDuration::from_mins(30);

/// Adds issued certificates to the secrets of the specs, as if documents contained them.
pub(super) fn add(secrets: &mut Secrets, kept: &KeptCertificates, keyring: &Keyring) {
    for (domain, certificate) in &kept.certificates {
        let reference = certificate_key(domain);
        // A document that contains its own key isn't managed any more.
        if secrets.opened.contains_key(&reference) {
            continue;
        }
        let issued = certificate.issued.as_ref();
        let key = issued.and_then(|issued| keyring.open(&issued.key.sealed, &reference).ok());
        // A chain without its key is of no use.
        let issued = issued.filter(|_| key.is_some());
        if let Some(value) = key {
            let mark = keyring.mark(&reference, &value, None);
            secrets.opened.insert(reference, OpenedSecret::Value { value, mark });
        }
        let known = IssuedCertificate {
            chain: issued.map(|issued| issued.chain.clone()),
            renew_at: issued.map(|issued| issued.renew_at),
            look_at: issued.map(|issued| issued.look_at),
            failure: certificate.failure.clone(),
        };
        secrets.certificates.insert(domain.clone(), known);
    }
}

/// Returns the stored certificates, once the authority was asked about those for which it is time to ask.
///
/// # Errors
/// If the stored certificates can't be read or written.
pub(super) async fn look(
    state: &State,
    acme: &AcmeConfig,
    keyring: &Keyring,
    now: Timestamp,
) -> Result<KeptCertificates, StateError> {
    let mut kept = state.certificates()?;
    let due = |issued: &Issued| issued.directory == acme.directory && issued.look_at <= now;
    let due: Vec<(&ResourceKey, &Issued)> = kept
        .certificates
        .iter()
        .filter_map(|(domain, certificate)| Some((domain, certificate.issued.as_ref().filter(|it| due(it))?)))
        .collect();
    let account = kept.accounts.get(&acme.directory).filter(|_| !due.is_empty());
    let Some(account) = account else { return Ok(kept) };
    let Ok(credentials) = keyring.open(&account.credentials.sealed, &account_secret()) else {
        return Ok(kept);
    };
    let asked = timeout(PATIENCE, ask(acme, &credentials, &due, now)).await;
    let asked = asked.unwrap_or(Err(AcmeFault::Pending));
    let asked = asked.unwrap_or_else(|fault| due.iter().map(|_| Err(fault.clone())).collect());
    let again = now.checked_add(AGAIN).unwrap_or(Timestamp::MAX);
    let mut told = Vec::new();
    for ((domain, issued), window) in due.iter().zip(asked) {
        let (renew_at, look_at) = match window {
            Ok(window) => RenewalWindow::times(window, &issued.chain, now),
            Err(fault) => {
                tracing::warn!("cannot ask when to renew the certificate of {domain}: {fault}");
                (issued.renew_at, again)
            }
        };
        told.push(((*domain).clone(), issued.chain.clone(), renew_at, look_at));
    }
    let note = |all: &mut KeptCertificates| {
        for (domain, chain, renew_at, look_at) in &told {
            let certificate = all.certificates.get_mut(domain).and_then(|it| it.issued.as_mut());
            // An execution may have renewed it meanwhile.
            if let Some(issued) = certificate.filter(|issued| issued.chain == *chain) {
                (issued.renew_at, issued.look_at) = (*renew_at, *look_at);
            }
        }
    };
    // A state that is only read isn't changed.
    note(&mut kept);
    state.change_certificates(note)?;
    Ok(kept)
}

type Told = Result<Option<RenewalWindow>, AcmeFault>;

async fn ask(
    acme: &AcmeConfig,
    credentials: &SecretString,
    due: &[(&ResourceKey, &Issued)],
    now: Timestamp,
) -> Result<Vec<Told>, AcmeFault> {
    let account = Authority::new(acme.clone()).account(credentials).await?;
    Ok(join_all(due.iter().map(|(_, issued)| account.renewal(&issued.chain, now))).await)
}

/// Seals stored keys to the newest recipient, so that an earlier identity may be removed afterwards.
///
/// # Errors
/// When sealing or writing fails.
pub(super) fn keep(round: &Round, state: &State) -> Result<(), NotKept> {
    let recipient = round.keyring.recipient();
    let mut kept = state.certificates()?;
    let before = kept.clone();
    let reseal = |sealed: &mut Sealed, reference: &SecretRef| {
        if sealed.recipient != recipient
            && let Ok(value) = round.keyring.open(&sealed.sealed, reference)
        {
            *sealed =
                Sealed { sealed: secret::seal(&recipient, reference, &value)?, recipient: recipient.clone() };
        }
        Ok::<(), SecretError>(())
    };
    for account in kept.accounts.values_mut() {
        reseal(&mut account.credentials, &account_secret())?;
    }
    for (domain, certificate) in &mut kept.certificates {
        let keys = certificate.issued.iter_mut().map(|it| &mut it.key);
        let keys = keys.chain(certificate.order.iter_mut().map(|it| &mut it.key));
        for key in keys {
            reseal(key, &certificate_key(domain))?;
        }
    }
    if kept != before {
        // An execution may have changed them meanwhile; then the next round does this.
        state.change_certificates(|all| {
            if *all == before {
                *all = kept;
            }
        })?;
    }
    Ok(())
}
