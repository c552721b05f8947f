//! Checks of fleets with a Prometheus of their own, against the settings and the base domain.

use crate::catalog::draft::{CatalogDraft, CatalogFinding};
use crate::catalog::images::without_image;
use crate::catalog::{certificates, hosts};
use crate::names::{Kind, ResourceKey};
use crate::spec::certificate::Certificate;
use crate::spec::{Fleet, Spec};

const PROMETHEUS: &str = "/advanced_config/monitoring/prometheus";

pub(super) fn check(draft: &mut CatalogDraft) {
    for document in draft.documents_of(Kind::Fleet) {
        let Spec::Fleet(fleet) = &document.spec else { continue };
        if fleet.advanced_config.own_prometheus().is_none() {
            continue;
        }
        let remedy = "`images.prometheus`, or use a Prometheus that is there";
        let image = &draft.config.images.prometheus;
        let without = without_image(image, "prometheus-without-image", "Prometheus", remedy);
        let without = without.map(|problem| CatalogFinding::new(PROMETHEUS, "", problem));
        let findings = [without, unusable_name(draft, fleet)];
        draft.refuse(document, findings.into_iter().flatten());
        // A new one is left out until the domain has its first certificate. One that runs in another domain isn't removed
        // for that.
        let runs = matches!(draft.last_good(&document.key), Some(Spec::Fleet(applied))
            if applied.advanced_config.own_prometheus().is_some() && applied.domain != fleet.domain);
        if let Some(of) = awaited_certificate(draft, fleet).filter(|_| runs) {
            draft.wait(&document.key, certificates::awaited(draft, of));
        }
    }
}

/// The base domain of a fleet, if it has no certificate yet.
fn awaited_certificate(draft: &CatalogDraft, fleet: &Fleet) -> Option<ResourceKey> {
    let key = draft.find_domain(&fleet.organization, fleet.domain.as_ref()?)?;
    match &draft.usable(&key)?.spec {
        Spec::BaseDomain(domain) => domain.tls_cert.is_none().then_some(key),
        _ => None,
    }
}

/// A base domain without a certificate gets one, and Prometheus waits for it.
fn unusable_name(draft: &CatalogDraft, fleet: &Fleet) -> Option<CatalogFinding> {
    let key = draft.find_domain(&fleet.organization, fleet.domain.as_ref()?)?;
    let domain = key.name.parse().ok()?;
    let host = hosts::of_prometheus(&fleet.identifier, &domain);
    if let Some(problem) = hosts::overlong("Prometheus", &fleet.identifier, &host) {
        return Some(CatalogFinding::new("/identifier", "too long with its domain", problem));
    }
    let Spec::BaseDomain(spec) = &draft.usable(&key)?.spec else { return None };
    let certificate = Certificate::parse(spec.tls_cert.as_deref()?, None).ok()?;
    let problem = certificates::uncovered(&host, &domain);
    (!certificate.covers(&host))
        .then(|| CatalogFinding::new(PROMETHEUS, "an address without a certificate", problem))
}
