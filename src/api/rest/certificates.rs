//! The certificates of base domains, the one that expires first at the front.

use axum::http::StatusCode;
use jiff::Timestamp;

use super::page::ListPage;
use super::{Answered, Call, written};
use crate::api::answer::ExpiringCertificate;
use crate::names::{Kind, ResourceKey};
use crate::record;
use crate::spec::Spec;
use crate::spec::certificate::Certificate;

pub(super) fn list(call: &Call) -> Answered {
    let organization = call.queried_organization()?;
    let keys = call.keys(Kind::BaseDomain).into_iter().filter(|key| {
        call.caller.sees(&key.organization)
            && organization.as_ref().is_none_or(|wanted| key.organization == *wanted)
    });
    let mut items: Vec<(Timestamp, &ResourceKey)> =
        keys.filter_map(|key| Some((call.expiry(key)?, key))).collect();
    items.sort_unstable();
    let text = |(at, key): &(Timestamp, &ResourceKey)| format!("{at}\n{}", String::from((*key).clone()));
    let after = |all: &[(Timestamp, &ResourceKey)], last: &str| {
        let (at, key) = last.split_once('\n')?;
        let last: (Timestamp, ResourceKey) = (at.parse().ok()?, key.to_owned().try_into().ok()?);
        Some(all.partition_point(|(at, key)| (*at, *key) <= (last.0, &last.1)))
    };
    let page = ListPage::behind(&call.query, items, after, text)?;
    let shown = |(at, key): &(Timestamp, &ResourceKey)| ExpiringCertificate {
        base_domain: (*key).clone(),
        not_after: record::timestamp(*at),
    };
    Ok(call.with_current_plan(written(StatusCode::OK, &page.answer(page.items.iter().map(shown).collect()))))
}

impl Call {
    /// When the certificate of a base domain expires; `None` if it can't be read.
    fn expiry(&self, key: &ResourceKey) -> Option<Timestamp> {
        match &self.resource(key)?.spec {
            Spec::BaseDomain(domain) => Some(Certificate::read(domain.tls_cert.as_deref()?)?.not_after),
            _ => None,
        }
    }
}
