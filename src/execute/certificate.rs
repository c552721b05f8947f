//! Gets the certificates of managed base domains from their authority.
//!
//! What a later run needs is stored before the authority is asked for the next thing: the account, then the key of the
//! certificate, then the URL of its order, then the text that shows whose the domain is, then the chain. So a run that is
//! killed is continued, an order is made once, and the text is removed.

use jiff::{SignedDuration, Timestamp};
use rcgen::{CertificateParams, DistinguishedName, KeyPair};
use secrecy::{ExposeSecret as _, SecretString};

use super::{ExecutionReport, PlanExecution, StepFault, cancellation_point};
use crate::catalog::{IssueFailure, RenewalWindow, certificate_key};
use crate::config::Challenge;
use crate::names::{Digest, Domain, Identifier, ResourceKey, SecretRef};
use crate::plan::{CertificateOrder, Change};
use crate::problem::quote_untrusted;
use crate::secret::{self, SecretError};
use crate::spec::certificate::Certificate;
use crate::state::{Issued, KeptAccount, KeptCertificate, KeptCertificates, KeptOrder, Sealed, StateError};
use crate::target::acme::{AcmeAccount, AcmeFault, AcmeOrder, Authority};
use crate::target::dns::{self, DnsZones, RecordFault};

/// How long an authority is left alone after it refused for the first time, and at most. Let's Encrypt takes five refused
/// attempts for a name in an hour; with these there are at most three.
const AFTER_REFUSAL: (SignedDuration, SignedDuration) =
    (SignedDuration::from_mins(15), SignedDuration::from_hours(1));

/// The pauses after anything else failed.
const AFTER_FAILURE: (SignedDuration, SignedDuration) =
    (SignedDuration::from_mins(1), SignedDuration::from_mins(15));

/// The pause after an authority was asked too often.
const AFTER_LIMIT: (SignedDuration, SignedDuration) =
    (SignedDuration::from_hours(1), SignedDuration::from_hours(1));

/// Why there is no certificate, and what to do.
struct Fault {
    why: String,
    hint: String,
    /// How long to wait after the first and at most; `None` if the state can't be used, so that it remembers nothing.
    pauses: Option<(SignedDuration, SignedDuration)>,
    /// Whether the order has failed, so that the next attempt makes another one.
    ends_order: bool,
}

impl Fault {
    fn new(
        why: impl Into<String>,
        hint: impl Into<String>,
        pauses: Option<(SignedDuration, SignedDuration)>,
    ) -> Fault {
        Fault { why: why.into(), hint: hint.into(), pauses, ends_order: false }
    }
}

impl PlanExecution<'_> {
    /// Gets the certificates that are due, one after the other, and records their base domains. With `only_first`, it stops
    /// after the first one.
    pub(super) async fn get_certificates(&self, report: &mut ExecutionReport, only_first: bool) {
        if let Err(error) = self.remove_leftovers().await {
            self.fail(report, super::failure(None, error.into()));
        }
        let changes = self.plan.organizations.iter().flat_map(|organization| &organization.changes);
        for change in changes.filter(|change| change.is_ready()) {
            let Some(order) = &change.certificate else { continue };
            match self.get_certificate(change, order).await {
                Ok(false) => continue,
                Ok(true) => self.conclude(report, None, change, self.commit(None, &[change])),
                Err(fault) => {
                    self.record_failure(None, change, fault.message.clone());
                    self.conclude(report, None, change, Err(fault));
                }
            }
            cancellation_point().await;
            if only_first {
                break;
            }
        }
    }

    /// Returns false if the plan knows less than the state: of another certificate, or of an attempt that just failed.
    async fn get_certificate(&self, change: &Change, order: &CertificateOrder) -> Result<bool, StepFault> {
        let key = &change.resource;
        let known = self.state.certificates()?.certificates.remove(key).unwrap_or_default();
        let usable = known
            .issued
            .as_ref()
            .filter(|issued| self.keyring.open(&issued.key.sealed, &certificate_key(key)).is_ok());
        let is_paused = known
            .failure
            .as_ref()
            .is_some_and(|failure| failure.basis == order.basis && failure.until > (self.clock)());
        if usable.map(|issued| Digest::of(&issued.chain)) != order.replaces || is_paused {
            return Ok(false);
        }
        let (Some(authority), Ok(domain)) = (self.targets.authority(), key.name.parse::<Domain>()) else {
            return Err(StepFault::new("cannot get a certificate: no authority is set", "plan again"));
        };
        self.decide(None, std::iter::once(change));
        let issue = Issue { run: self, authority, key, domain, order };
        match issue.run(&known, usable).await {
            Ok(()) => Ok(true),
            Err(fault) => Err(issue.failed(known.failure.as_ref(), fault)?),
        }
    }

    /// Removes the texts of earlier orders from their zones.
    async fn remove_leftovers(&self) -> Result<(), StateError> {
        let KeptCertificates { certificates, .. } = self.state.certificates()?;
        for (domain, certificate) in
            certificates.iter().filter(|(_, certificate)| certificate.has_leftovers())
        {
            self.remove_texts(domain, certificate).await?;
        }
        Ok(())
    }

    /// Removes what showed the authority whose a domain is. A text that can't be removed now is harmless, and is removed later.
    async fn remove_texts(&self, key: &ResourceKey, certificate: &KeptCertificate) -> Result<(), StateError> {
        let Ok(domain) = key.name.parse::<Domain>() else { return Ok(()) };
        let zones = self.targets.zones(&key.organization);
        for text in &certificate.challenges {
            match dns::remove_challenge(&zones, &domain, text).await {
                // The zone isn't kept by us any more.
                Ok(()) | Err(RecordFault::NoLogin(_)) => {
                    self.state.change_certificates(|all| {
                        if let Some(certificate) = all.certificates.get_mut(key) {
                            certificate.challenges.remove(text);
                        }
                    })?;
                }
                Err(fault) => {
                    tracing::warn!(base_domain = %key, "cannot remove a challenge from the zone: {fault}")
                }
            }
            cancellation_point().await;
        }
        Ok(())
    }
}

struct Issue<'i, 'r> {
    run: &'i PlanExecution<'r>,
    authority: &'i Authority,
    key: &'i ResourceKey,
    domain: Domain,
    order: &'i CertificateOrder,
}

impl Issue<'_, '_> {
    async fn run(&self, known: &KeptCertificate, usable: Option<&Issued>) -> Result<(), Fault> {
        let got = self.get(known, usable).await;
        if got.as_ref().is_err_and(|fault| fault.ends_order) {
            self.change(|certificate| certificate.order = None)?;
        }
        let left = self.run.state.certificates()?.certificates.remove(self.key).unwrap_or_default();
        if left.has_leftovers() {
            self.run.remove_texts(self.key, &left).await?;
        }
        got
    }

    async fn get(&self, known: &KeptCertificate, usable: Option<&Issued>) -> Result<(), Fault> {
        let account = self.account().await?;
        cancellation_point().await;
        if self.authority.challenge() == Challenge::Dns01 {
            self.check_authorities().await?;
        }
        let (mut order, key) = self.ordered(&account, known, usable).await?;
        cancellation_point().await;
        let chain = self.complete(&mut order, &key).await?;
        self.keep(&account, chain, &key).await
    }

    /// Opens the account at the authority, and makes one if there is none.
    async fn account(&self) -> Result<AcmeAccount, Fault> {
        let directory = self.authority.directory();
        if let Some(kept) = self.run.state.certificates()?.accounts.get(directory) {
            let credentials = self.open(&kept.credentials, &account_secret())?;
            return Ok(self.authority.account(&credentials).await?);
        }
        let (url, credentials) = self.authority.create_account().await?;
        let kept = KeptAccount { url: url.clone(), credentials: self.seal(&account_secret(), &credentials)? };
        self.run.audit([format!("made the account {url} at {}", self.order.authority)])?;
        self.run.state.change_certificates(|all| drop(all.accounts.insert(directory.to_owned(), kept)))?;
        if self.authority.challenge() == Challenge::DnsPersist01 {
            // The record can't be there yet.
            let fault = self.without_record("the domain has no record yet that lets it").await?;
            return Err(Fault { pauses: Some(AFTER_FAILURE), ..fault });
        }
        Ok(self.authority.account(&credentials).await?)
    }

    /// An authority would refuse what the domain's CAA records don't allow, and count it as a failed attempt.
    async fn check_authorities(&self) -> Result<(), Fault> {
        let Some(allowed) = dns::allowed_authorities(&self.zones(), &self.domain).await? else {
            return Ok(());
        };
        let names = self.authority.names().await?;
        let is_allowed = |name: &String| allowed.iter().any(|allowed| allowed.eq_ignore_ascii_case(name));
        let Some(first) = names.first().filter(|_| !names.iter().any(is_allowed)) else { return Ok(()) };
        let quoted = |names: &[String]| {
            let quoted: Vec<String> =
                names.iter().map(|name| format!("`{}`", quote_untrusted(name))).collect();
            if quoted.is_empty() { "nobody".to_owned() } else { quoted.join(", ") }
        };
        let (allowed, refused) = (quoted(&allowed), quoted(&names));
        Err(Fault::new(
            format!("the CAA records of the domain allow {allowed} to issue it, and not {refused}"),
            format!("add a CAA record for {}: 0 issuewild \"{first}\"", self.domain),
            Some(AFTER_FAILURE),
        ))
    }

    /// Returns the order that is under way, or makes one, with the key of its certificate.
    async fn ordered(
        &self,
        account: &AcmeAccount,
        known: &KeptCertificate,
        usable: Option<&Issued>,
    ) -> Result<(AcmeOrder, SecretString), Fault> {
        let directory = self.authority.directory();
        let kept = known.order.as_ref().filter(|kept| kept.directory == directory);
        if let Some(kept) = kept
            && let Some(url) = &kept.url
        {
            match account.resume(url).await {
                Ok(order) => return Ok((order, self.open(&kept.key, &certificate_key(self.key))?)),
                // An order ends after some days.
                Err(fault) if fault.ends_order() => {}
                Err(fault) => return Err(fault.into()),
            }
        }
        let key = KeyPair::generate().map_err(|error| broken(&error))?;
        let key = SecretString::from(key.serialize_pem());
        let sealed = self.seal(&certificate_key(self.key), &key)?;
        // Before the authority is asked, so that a state that can't be written makes no orders.
        let kept = KeptOrder { directory: directory.to_owned(), url: None, key: sealed };
        self.change(|certificate| certificate.order = Some(kept))?;
        cancellation_point().await;
        let replaces = usable.filter(|issued| issued.directory == directory);
        let order = match account.order(&self.order.name, replaces.map(|issued| issued.chain.as_str())).await
        {
            // It may have been set up anew at the same address.
            Err(AcmeFault::UnknownAccount) => {
                self.run.state.change_certificates(|all| drop(all.accounts.remove(directory)))?;
                return Err(AcmeFault::UnknownAccount.into());
            }
            order => order?,
        };
        self.change(|certificate| {
            if let Some(kept) = &mut certificate.order {
                kept.url = Some(order.url().to_owned());
            }
        })?;
        Ok((order, key))
    }

    async fn complete(&self, order: &mut AcmeOrder, key: &SecretString) -> Result<String, Fault> {
        let by_account = self.authority.challenge() == Challenge::DnsPersist01;
        if let Some(text) = order.challenge().await?.filter(|_| !by_account) {
            self.change(|certificate| {
                certificate.challenges.insert(text.clone());
            })?;
            cancellation_point().await;
            dns::add_challenge(&self.zones(), &self.domain, &text).await?;
            tokio::time::sleep(self.authority.propagation()).await;
        }
        cancellation_point().await;
        // Also where the authority has seen enough: the order may not say so yet.
        match order.prove().await {
            Err(AcmeFault::Refused(why)) if by_account => return Err(self.without_record(&why).await?),
            proved => proved?,
        }
        cancellation_point().await;
        let request = request(&self.order.name, key)?;
        let chain = order.certificate(&request).await?;
        match Certificate::parse(&chain, Some(key.expose_secret())) {
            Ok(certificate) if certificate.names.contains(&self.order.name) => Ok(chain),
            _ => Err(AcmeFault::Refused("its certificate isn't the one that was ordered".to_owned()).into()),
        }
    }

    /// What to add by hand, so that the authority issues certificates to the account.
    async fn without_record(&self, why: &str) -> Result<Fault, Fault> {
        let kept = self.run.state.certificates()?;
        let account = kept.accounts.get(self.authority.directory()).ok_or(AcmeFault::NoAccount)?;
        let (name, text) = self.authority.standing_record(&account.url, self.domain.as_str()).await?;
        Ok(Fault {
            why: format!("{why}; add the record once, which stays: {name} TXT \"{text}\""),
            hint: "add the record where the domain's zone is kept".to_owned(),
            pauses: Some(AFTER_REFUSAL),
            ends_order: true,
        })
    }

    async fn keep(&self, account: &AcmeAccount, chain: String, key: &SecretString) -> Result<(), Fault> {
        let now = (self.run.clock)();
        // Without the authority's word, the certificate is renewed by the rule of thumb.
        let window = account.renewal(&chain, now).await.unwrap_or_default();
        let (renew_at, look_at) = RenewalWindow::times(window, &chain, now);
        let issued = Issued {
            directory: self.authority.directory().to_owned(),
            chain: self.authority.with_root(chain),
            key: self.seal(&certificate_key(self.key), key)?,
            renew_at,
            look_at,
        };
        let CertificateOrder { name, authority, .. } = self.order;
        let what = format!("got a certificate for {name} from {authority}");
        tracing::info!(base_domain = %self.key, "{what}");
        self.run.audit([what])?;
        self.change(|certificate| {
            let challenges = std::mem::take(&mut certificate.challenges);
            *certificate = KeptCertificate { issued: Some(issued), challenges, ..KeptCertificate::default() };
        })?;
        cancellation_point().await;
        Ok(())
    }

    fn zones(&self) -> DnsZones {
        self.run.targets.zones(&self.key.organization)
    }

    fn change(&self, change: impl FnOnce(&mut KeptCertificate)) -> Result<(), StateError> {
        self.run
            .state
            .change_certificates(|all| change(all.certificates.entry(self.key.clone()).or_default()))
    }

    fn seal(&self, reference: &SecretRef, value: &SecretString) -> Result<Sealed, SecretError> {
        let recipient = self.run.keyring.recipient();
        let sealed = secret::seal(&recipient, reference, value)?;
        Ok(Sealed { recipient, sealed })
    }

    fn open(&self, sealed: &Sealed, reference: &SecretRef) -> Result<SecretString, Fault> {
        self.run.keyring.open(&sealed.sealed, reference).map_err(|_| {
            let why = "a recorded key can't be opened with the keys of this host";
            Fault::new(why, "restore the keys from a backup of the state", Some(AFTER_FAILURE))
        })
    }

    /// Stores why there is no certificate, and when the next attempt may be made.
    fn failed(&self, before: Option<&IssueFailure>, fault: Fault) -> Result<StepFault, StateError> {
        let CertificateOrder { name, authority, basis, .. } = self.order;
        let message = format!("cannot get a certificate for {name} from {authority}: {}", fault.why);
        let Fault { why, mut hint, pauses, .. } = fault;
        if let Some((first, most)) = pauses {
            let times = before.filter(|before| before.basis == *basis).map_or(0, |before| before.times) + 1;
            let pause = first.checked_mul(1 << (times - 1).min(12)).unwrap_or(most).min(most);
            let until = (self.run.clock)().checked_add(pause).unwrap_or(Timestamp::MAX);
            let failure = IssueFailure { why, hint: hint.clone(), basis: basis.clone(), times, until };
            self.change(|certificate| certificate.failure = Some(failure))?;
            hint.push_str("; the plan says when the next attempt is made");
        }
        Ok(StepFault { alone: true, ..StepFault::new(message, hint) })
    }
}

/// An account is of the whole installation.
pub fn account_secret() -> SecretRef {
    SecretRef { resource: ResourceKey::organization(&Identifier::root()), field: "acme_account".to_owned() }
}

/// The request for a certificate of a name, signed with its key.
fn request(name: &str, key: &SecretString) -> Result<Vec<u8>, Fault> {
    let key = KeyPair::from_pem(key.expose_secret()).map_err(|error| broken(&error))?;
    let mut params = CertificateParams::new([name.to_owned()]).map_err(|error| broken(&error))?;
    params.distinguished_name = DistinguishedName::new();
    let request = params.serialize_request(&key).map_err(|error| broken(&error))?;
    Ok(request.der().to_vec())
}

fn broken(error: &rcgen::Error) -> Fault {
    Fault::new(error.to_string(), "this is a bug in streamfleet; report it", Some(AFTER_FAILURE))
}

impl From<AcmeFault> for Fault {
    fn from(fault: AcmeFault) -> Fault {
        let pauses = match fault {
            AcmeFault::Refused(_) | AcmeFault::NoChallenge(_) => AFTER_REFUSAL,
            AcmeFault::Limited(_) => AFTER_LIMIT,
            _ => AFTER_FAILURE,
        };
        let ends_order = fault.ends_order();
        Fault { ends_order, ..Fault::new(fault.to_string(), fault.hint(), Some(pauses)) }
    }
}

impl From<RecordFault> for Fault {
    fn from(fault: RecordFault) -> Fault {
        let why = format!("the domain's zone can't be changed: {fault}");
        Fault::new(why, fault.hint(), Some(AFTER_FAILURE))
    }
}

impl From<StateError> for Fault {
    fn from(error: StateError) -> Fault {
        Fault::new(error.to_string(), error.hint(), None)
    }
}

impl From<SecretError> for Fault {
    fn from(error: SecretError) -> Fault {
        Fault::new(error.message, error.hint, None)
    }
}
