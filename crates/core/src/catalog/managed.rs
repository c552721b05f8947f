//! Base domains whose certificates Streamfleet gets: the issued chain takes the place of the one that other documents
//! contain, so that everything else treats both alike.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use crate::catalog::credentials::ONLY_RECORDED;
use crate::catalog::draft::{CatalogDraft, CatalogFinding};
use crate::catalog::{IssueFailure, OpenedSecret, Recorded, ResolvedSecret, Secrets};
use crate::config::{AcmeConfig, Challenge};
use crate::names::{Digest, Domain, Kind, ResourceKey, SecretRef};
use crate::problem::Problem;
use crate::spec::certificate::Certificate;
use crate::spec::{BaseDomain, Document, SecretValue, Spec};

const KEY: &str = "tls_key";

/// How often an authority is asked how long a certificate should be used if it doesn't say.
const LOOK: SignedDuration = SignedDuration::from_hours(6);

/// How soon an authority is asked again at the earliest, whatever it says.
const SOONEST: SignedDuration = SignedDuration::from_mins(10);

/// When an authority wants a certificate to be renewed, and when to ask again.
#[derive(Debug, Clone, Copy)]
pub struct RenewalWindow {
    pub start: Timestamp,
    pub end: Timestamp,
    pub look_at: Timestamp,
}

impl RenewalWindow {
    /// When a certificate is renewed, and when its authority is asked again: at a point in the authority's window that the
    /// certificate decides, so that many aren't renewed at once; without a window, after two thirds of its life.
    pub fn times(window: Option<RenewalWindow>, chain: &str, now: Timestamp) -> (Timestamp, Timestamp) {
        let later = |pause| now.checked_add(pause).unwrap_or(Timestamp::MAX);
        match (window, Certificate::read(chain)) {
            (Some(RenewalWindow { start, end, look_at }), _) => {
                let width = end.duration_since(start).as_secs().max(0);
                let digest = Digest::of(chain).to_string();
                let part = digest.bytes().rev().take(4).fold(0, |sum, byte| sum * 16 + i64::from(byte % 16));
                let at = start.checked_add(SignedDuration::from_secs(width.saturating_mul(part) / 65_536));
                (at.unwrap_or(end), look_at.clamp(later(SOONEST), later(LOOK)))
            }
            (None, Some(certificate)) => {
                let life = certificate.not_after.duration_since(certificate.not_before);
                let at = certificate.not_before.checked_add(life / 3 * 2);
                (at.unwrap_or(certificate.not_after), later(LOOK))
            }
            (None, None) => (now, later(LOOK)),
        }
    }
}

/// The key of a base domain's certificate, as objects refer to it.
pub fn certificate_key(domain: &ResourceKey) -> SecretRef {
    SecretRef { resource: domain.clone(), field: KEY.to_owned() }
}

/// The certificate of a base domain that Streamfleet looks after.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManagedCertificate {
    /// The name that it is for: `*.acme.kafka.example.com`.
    pub name: String,
    /// The host of the authority.
    pub authority: String,
    /// When the issued one ends; `None` if there is none that can be used.
    pub ends: Option<Timestamp>,
    /// The digest of its chain.
    pub chain: Option<Digest>,
    /// When it is due for renewal.
    pub renew_at: Option<Timestamp>,
    /// When the authority is asked again how long it should be used.
    pub look_at: Option<Timestamp>,
    /// The inputs of an attempt: the domain, its DNS account and the authority.
    pub basis: Digest,
    /// The last attempt with the same basis, if it failed.
    pub failure: Option<IssueFailure>,
}

impl ManagedCertificate {
    pub fn is_due(&self, now: Timestamp) -> bool {
        self.ends.is_none() || self.renew_at.is_some_and(|due| due <= now)
    }
}

/// Refuses what can't be managed, and adds the keys of issued certificates to the secrets of documents.
pub(super) fn check(draft: &mut CatalogDraft) {
    for document in draft.documents_of(Kind::BaseDomain) {
        let Spec::BaseDomain(domain) = &document.spec else { continue };
        if !domain.is_managed() {
            continue;
        }
        let has_one = chain(&document.key, draft.secrets, draft.recorded).is_some();
        if let Some(problem) = unmanageable(domain, draft.config.acme.as_ref(), has_one) {
            draft.refuse(document, [CatalogFinding::new("", "isn't looked after", problem)]);
        }
        let reference = certificate_key(&document.key);
        let issued = match draft.secrets.opened.get(&reference) {
            Some(OpenedSecret::Value { mark, .. }) => Some((mark.clone(), None)),
            _ => {
                let recorded = draft.record(&document.key).and_then(|record| record.cached.secrets.get(KEY));
                recorded.map(|mark| (mark.clone(), Some(ONLY_RECORDED.to_owned())))
            }
        };
        if let Some((mark, unavailable)) = issued {
            let resolved = ResolvedSecret { reference, mark, unavailable };
            draft.marks.entry(document.key.clone()).or_default().insert(KEY.to_owned(), resolved);
        }
    }
}

/// The chain that a managed base domain has: the issued one, or until then the one that was applied last.
fn chain<'a>(key: &ResourceKey, secrets: &'a Secrets, recorded: &'a Recorded) -> Option<&'a String> {
    let issued = secrets.certificates.get(key).and_then(|issued| issued.chain.as_ref());
    issued.or_else(|| match recorded.resources.get(key)?.applied_spec(key.kind)? {
        Spec::BaseDomain(applied) => applied.tls_cert.as_ref(),
        _ => None,
    })
}

fn unmanageable(domain: &BaseDomain, acme: Option<&AcmeConfig>, has_one: bool) -> Option<Problem> {
    let problem = |message: &str, hint: &str| Some(Problem::error("certificate-missing", message).hint(hint));
    match acme {
        None if has_one => problem(
            "nobody renews the certificate of the base domain, because the settings name no authority",
            "name an authority in the settings, `[acme]`, or add `tls_cert` and `tls_key`",
        ),
        None => problem(
            "the base domain has no certificate, and the settings name no authority that issues one",
            "add `tls_cert` and `tls_key`, or name an authority in the settings: `[acme]`",
        ),
        Some(acme) if acme.challenge == Challenge::Dns01 && !domain.dns_provider.is_kept() => problem(
            "streamfleet can't prove to the authority that the domain is yours, because it doesn't keep the domain's \
             DNS records",
            "use `dns_provider: rfc2136` or `route53`, or set `challenge = \"dns-persist-01\"` in the settings under `[acme]` and \
             add one record by hand, or add `tls_cert` and `tls_key`",
        ),
        Some(_) => None,
    }
}

/// Returns the spec of a document, with the certificate that it has if its base domain is managed.
pub fn with_certificate(document: &Document, secrets: &Secrets, recorded: &Recorded) -> Spec {
    match &document.spec {
        Spec::BaseDomain(domain)
            if domain.is_managed()
                && let Some(chain) = chain(&document.key, secrets, recorded) =>
        {
            Spec::BaseDomain(BaseDomain {
                tls_cert: Some(chain.clone()),
                tls_key: Some(SecretValue::Redacted),
                ..domain.clone()
            })
        }
        spec => spec.clone(),
    }
}

pub(super) fn is_managed(draft: &CatalogDraft, key: &ResourceKey) -> bool {
    document(draft, key).is_some()
}

fn document<'a>(draft: &CatalogDraft<'a>, key: &ResourceKey) -> Option<&'a BaseDomain> {
    match &draft.claims.get(key)?.document?.spec {
        Spec::BaseDomain(domain) if domain.is_managed() => Some(domain),
        _ => None,
    }
}

/// The certificates of managed base domains whose documents can be used.
pub(super) fn certificates(draft: &CatalogDraft) -> BTreeMap<ResourceKey, ManagedCertificate> {
    let Some(acme) = &draft.config.acme else { return BTreeMap::new() };
    let usable = draft.settled_of(Kind::BaseDomain).filter(|(_, settled)| settled.hold.is_none());
    usable.filter_map(|(key, _)| Some((key.clone(), certificate(draft, key, acme)?))).collect()
}

fn certificate(draft: &CatalogDraft, key: &ResourceKey, acme: &AcmeConfig) -> Option<ManagedCertificate> {
    let document = document(draft, key)?;
    let domain: Domain = key.name.parse().ok()?;
    let issued = draft.secrets.certificates.get(key).cloned().unwrap_or_default();
    let basis = basis(draft, key, document, acme);
    let certificate = issued.chain.as_deref().and_then(Certificate::read);
    Some(ManagedCertificate {
        name: format!("*.{domain}"),
        authority: acme.host(),
        ends: certificate.map(|certificate| certificate.not_after),
        chain: issued.chain.as_deref().map(Digest::of),
        renew_at: issued.renew_at,
        look_at: issued.look_at,
        failure: issued.failure.filter(|failure| failure.basis == basis),
        basis,
    })
}

fn basis(draft: &CatalogDraft, key: &ResourceKey, domain: &BaseDomain, acme: &AcmeConfig) -> Digest {
    let account = domain.cloud_account.as_ref();
    let account = account.map(|name| ResourceKey::new(Kind::CloudAccount, &key.organization, name.as_str()));
    let settled = account.as_ref().and_then(|account| draft.settled.get(account)).map(|it| &it.spec);
    let marks = account.as_ref().and_then(|account| draft.marks.get(account));
    Digest::of(format!("{:?}", (&domain.dns_provider, domain.zone(), settled, marks, acme)))
}
