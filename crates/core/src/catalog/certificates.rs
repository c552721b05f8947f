//! Checks that certificates of base domains are well-formed, valid now and cover the hosts of their clusters.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use secrecy::ExposeSecret;

use crate::catalog::draft::{CatalogDraft, CatalogFinding};
use crate::catalog::{Condition, Hold, HostNames, OpenedSecret, hosts, managed};
use crate::names::{Domain, Identifier, Kind, ResourceKey};
use crate::problem::Problem;
use crate::spec::certificate::Certificate;
use crate::spec::material::Part;
use crate::spec::{BaseDomain, Cluster, Document, Spec};

/// How long before its expiry a certificate causes a warning.
pub(super) const WARNING: SignedDuration = SignedDuration::from_hours(30 * 24);

/// How long before its expiry a certificate that Streamfleet renews is late: others last 47 days, and are renewed earlier.
const LATE: SignedDuration = SignedDuration::from_hours(7 * 24);

const TLS_CERT: &str = "/tls_cert";

/// Checks the certificate of every base domain's document. Validity and names are checked only if the
/// certificate is new or changed: refusing one that is already applied wouldn't take it back.
pub(super) fn check_domains(draft: &mut CatalogDraft) {
    let served = clusters_by_domain(draft);
    let read = prometheus_by_domain(draft);
    for document in draft.documents_of(Kind::BaseDomain) {
        let Spec::BaseDomain(spec) = &document.spec else { continue };
        let Some(tls_cert) = &spec.tls_cert else { continue };
        let findings = match parse(draft, document, tls_cert) {
            Ok(certificate) if is_changed(draft, &document.key, spec) => {
                let names = served.get(&document.key).map(Vec::as_slice).unwrap_or_default();
                let of_fleets = read.get(&document.key).map(Vec::as_slice).unwrap_or_default();
                let uncovered =
                    uncovered_domain(&certificate, draft.hosts, &document.key, (names, of_fleets));
                untimely(&certificate, draft).into_iter().chain(uncovered).collect()
            }
            Ok(_) => Vec::new(),
            Err(findings) => findings,
        };
        draft.refuse(document, findings);
    }
}

fn parse(
    draft: &CatalogDraft,
    document: &Document,
    tls_cert: &str,
) -> Result<Certificate, Vec<CatalogFinding>> {
    let key = match draft.secrets.opened.get(&managed::certificate_key(&document.key)) {
        // An empty key is reported by the check of secrets.
        Some(OpenedSecret::Value { value, .. }) if !value.expose_secret().trim().is_empty() => {
            Some(value.expose_secret())
        }
        _ => None,
    };
    Certificate::parse(tls_cert, key).map_err(|faults| {
        let place = |part| match part {
            Part::Key => "/tls_key",
            Part::Certificate | Part::Kubeconfig => TLS_CERT,
        };
        faults.into_iter().map(|fault| CatalogFinding::new(place(fault.part), "", fault.problem())).collect()
    })
}

/// Returns whether the certificate differs from the applied one. If that is lost, it counts as unchanged.
fn is_changed(draft: &CatalogDraft, key: &ResourceKey, spec: &BaseDomain) -> bool {
    match (draft.record(key), draft.last_good(key)) {
        (None, _) => true,
        (Some(_), Some(Spec::BaseDomain(applied))) => applied.tls_cert != spec.tls_cert,
        (Some(_), _) => false,
    }
}

fn untimely(certificate: &Certificate, draft: &CatalogDraft) -> Option<CatalogFinding> {
    let (code, message) = if draft.is_past(certificate.not_after) {
        ("certificate-expired", format!("the certificate expired on {}", day(certificate.not_after)))
    } else if !draft.is_past(certificate.not_before) {
        (
            "certificate-not-yet-valid",
            format!("the certificate is not valid before {}", day(certificate.not_before)),
        )
    } else {
        return None;
    };
    let problem = Problem::error(code, message).hint("replace it by a valid one");
    Some(CatalogFinding::new(TLS_CERT, "not valid now", problem))
}

fn day(time: Timestamp) -> String {
    time.strftime("%Y-%m-%d").to_string()
}

/// Returns the externally reachable clusters of each base domain, as far as documents and the record tell.
fn clusters_by_domain<'a>(draft: &CatalogDraft<'a>) -> BTreeMap<ResourceKey, Vec<&'a Cluster>> {
    let spec_of = |key: &ResourceKey| {
        let document = draft.claims.get(key).and_then(|claim| claim.document).map(|document| &document.spec);
        document.or_else(|| draft.last_good(key))
    };
    let domain_of = |key: &ResourceKey| {
        let Some(Spec::Cluster(cluster)) = spec_of(key) else { return None };
        let fleet = ResourceKey::new(Kind::Fleet, &key.organization, cluster.infrastructure.as_str());
        let Some(Spec::Fleet(fleet)) = spec_of(&fleet) else { return None };
        let domain =
            fleet.domain.as_ref().filter(|_| cluster.advanced_config.cluster_access.is_external())?;
        Some((draft.find_domain(&key.organization, domain)?, cluster))
    };
    let kept = draft.absent.keys().filter(|key| draft.settled.contains_key(key));
    let mut by_domain: BTreeMap<ResourceKey, Vec<&Cluster>> = BTreeMap::new();
    for (domain, cluster) in draft.claims.keys().chain(kept).filter_map(domain_of) {
        by_domain.entry(domain).or_default().push(cluster);
    }
    by_domain
}

/// The fleets of each base domain with a Prometheus of their own.
fn prometheus_by_domain<'a>(draft: &CatalogDraft<'a>) -> BTreeMap<ResourceKey, Vec<&'a Identifier>> {
    let mut by_domain: BTreeMap<ResourceKey, Vec<&Identifier>> = BTreeMap::new();
    for document in draft.documents_of(Kind::Fleet) {
        let Spec::Fleet(fleet) = &document.spec else { continue };
        let domain = fleet.domain.as_ref().filter(|_| fleet.advanced_config.own_prometheus().is_some());
        let domain = domain.and_then(|domain| draft.find_domain(&fleet.organization, domain));
        if let Some(domain) = domain {
            by_domain.entry(domain).or_default().push(&fleet.identifier);
        }
    }
    by_domain
}

fn uncovered_host(
    certificate: &Certificate,
    hosts: &[HostNames],
    cluster: &Cluster,
    domain: &Domain,
) -> Option<String> {
    let used = hosts.iter().filter(|names| (names.is_used)(cluster));
    let of_components = used.map(|names| names.first(&cluster.identifier, domain));
    let mut hosts = std::iter::once(hosts::bootstrap(&cluster.identifier, domain)).chain(of_components);
    hosts.find(|host| !certificate.covers(host))
}

fn uncovered_domain(
    certificate: &Certificate,
    hosts: &[HostNames],
    key: &ResourceKey,
    (clusters, fleets): (&[&Cluster], &[&Identifier]),
) -> Option<CatalogFinding> {
    let domain: Domain = key.name.parse().ok()?;
    let host = clusters.iter().find_map(|cluster| uncovered_host(certificate, hosts, cluster, &domain));
    let mut of_fleets = fleets.iter().map(|fleet| hosts::of_prometheus(fleet, &domain));
    let host = host.or_else(|| of_fleets.find(|host| !certificate.covers(host)))?;
    Some(CatalogFinding::new(TLS_CERT, covered_names(certificate), uncovered(&host, &domain)))
}

pub(super) fn uncovered(host: &str, domain: &Domain) -> Problem {
    Problem::error("certificate-names", format!("the certificate of `{domain}` doesn't cover `{host}`"))
        .hint(format!("use one for `*.{domain}`, which covers all clusters and brokers of the domain"))
}

fn covered_names(certificate: &Certificate) -> String {
    match certificate.names.split_first() {
        None => "covers nothing".to_owned(),
        Some((first, [])) => format!("covers `{first}`"),
        Some((first, others)) => format!("covers `{first}` and {} more", others.len()),
    }
}

pub(super) fn of_usable_domains(draft: &CatalogDraft) -> BTreeMap<ResourceKey, Certificate> {
    let usable = draft.settled_of(Kind::BaseDomain).filter(|(_, settled)| settled.is_usable());
    usable
        .filter_map(|(key, settled)| match &settled.spec {
            Spec::BaseDomain(domain) => {
                Some((key.clone(), Certificate::parse(domain.tls_cert.as_deref()?, None).ok()?))
            }
            _ => None,
        })
        .collect()
}

/// Clusters wait for the first certificate of their base domain.
pub(super) fn check_clusters(draft: &mut CatalogDraft, certificates: &BTreeMap<ResourceKey, Certificate>) {
    let finding = |draft: &CatalogDraft, cluster: &Cluster| {
        let (key, domain) = hosts::domain_of(draft, cluster)?;
        let certificate = certificates.get(&key)?;
        let host = uncovered_host(certificate, draft.hosts, cluster, &domain)?;
        Some(CatalogFinding::new(
            "/identifier",
            "an address without a certificate",
            uncovered(&host, &domain),
        ))
    };
    for document in draft.documents_of(Kind::Cluster) {
        let Spec::Cluster(cluster) = &document.spec else { continue };
        let finding = finding(draft, cluster);
        draft.refuse(document, finding);
        let Some((of, _)) = hosts::domain_of(draft, cluster) else { continue };
        if !certificates.contains_key(&of) && managed::is_managed(draft, &of) {
            draft.wait(&document.key, awaited(draft, of));
        }
    }
}

/// The hold of what waits for the first certificate of a base domain, with the reason of the last failure.
pub(super) fn awaited(draft: &CatalogDraft, of: ResourceKey) -> Hold {
    let issued = draft.secrets.certificates.get(&of);
    let why = issued.and_then(|issued| Some(issued.failure.as_ref()?.why.clone()));
    Hold::Certificate { of, why }
}

pub(super) fn warn(draft: &mut CatalogDraft, certificates: &BTreeMap<ResourceKey, Certificate>) {
    for (key, certificate) in certificates {
        let document = draft.claims.get(key).and_then(|claim| claim.document);
        if let Some((document, problem)) = document.zip(elsewhere(certificate, key)) {
            draft.problems.push(problem.at(document.locate(TLS_CERT), covered_names(certificate)));
        }
        let Some(condition) = condition(draft, certificate, key) else { continue };
        let hint = match managed::is_managed(draft, key) {
            true => "find out in the plan what the base domain waits for",
            false => "renew it and put the new certificate and its key in the document",
        };
        let problem = Problem::warning("certificate-expiry", condition.message).hint(hint);
        draft.problems.push(match document {
            Some(document) => {
                problem.at(document.locate(TLS_CERT), format!("until {}", day(certificate.not_after)))
            }
            None => problem,
        });
    }
}

/// Warns of a certificate for other domains alone. It is refused once there is a cluster for it.
fn elsewhere(certificate: &Certificate, key: &ResourceKey) -> Option<Problem> {
    let (domain, below) = (&key.name, format!(".{}", key.name));
    let is_elsewhere = !certificate.names.iter().any(|name| name.ends_with(&below));
    is_elsewhere.then(|| {
        let message = format!(
            "the certificate of `{domain}` covers no name below it, so no cluster could be reached there"
        );
        Problem::warning("certificate-names", message)
            .hint(format!("use one for `*.{domain}`, which covers all clusters and brokers of the domain"))
    })
}

pub(super) fn condition(
    draft: &CatalogDraft,
    certificate: &Certificate,
    key: &ResourceKey,
) -> Option<Condition> {
    let (domain, end) = (&key.name, certificate.not_after);
    if draft.is_past(end) {
        let message = format!("the certificate of `{domain}` expired on {}", day(end));
        return Some(Condition { kind: "CertificateExpired".to_owned(), degraded: true, message });
    }
    let is_managed = managed::is_managed(draft, key);
    let (warning, way) = if is_managed { (LATE, " and could not be renewed in time") } else { (WARNING, "") };
    let is_near = draft.is_past(end.checked_sub(warning).unwrap_or(Timestamp::MIN));
    let message = format!("the certificate of `{domain}` expires on {}{way}", day(end));
    is_near.then(|| Condition { kind: "CertificateExpiring".to_owned(), degraded: is_managed, message })
}
