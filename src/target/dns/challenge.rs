//! The text by which a certificate authority sees whose a domain is. Others may have texts of the same name.

use super::{CaaProperty, DnsZone, DnsZones, KeptZone, RecordFault};
use crate::names::Domain;

const LABEL: &str = "_acme-challenge";

/// The name of the text: `_acme-challenge.acme.kafka.example.com`.
fn challenge_name(domain: &Domain) -> String {
    format!("{LABEL}.{domain}")
}

/// Adds a text for a base domain, unless it is there.
///
/// # Errors
/// If its server can't be asked, refuses, or doesn't have the text afterwards.
pub async fn add(zones: &DnsZones, domain: &Domain, value: &str) -> Result<(), RecordFault> {
    Ok(zone(zones, domain)?.add_text(&challenge_name(domain), value).await?)
}

/// Removes a text that [`add`] added.
///
/// # Errors
/// If its server can't be asked, or refuses.
pub async fn remove(zones: &DnsZones, domain: &Domain, value: &str) -> Result<(), RecordFault> {
    Ok(zone(zones, domain)?.remove_text(&challenge_name(domain), value).await?)
}

/// The names of the authorities that may issue a certificate for the names below a domain, by the CAA records of its zone
/// (RFC 8659); `None` if any may. Those above the zone aren't looked at.
///
/// # Errors
/// If the zone's server can't be asked.
pub async fn allowed_authorities(
    zones: &DnsZones,
    domain: &Domain,
) -> Result<Option<Vec<String>>, RecordFault> {
    let kept = kept(zones, domain)?;
    let zone = kept.open()?;
    let mut at = Some(domain.clone()).filter(|at| at.is_within(&kept.zone));
    while let Some(domain) = at {
        let found = zone.authorities(domain.as_str()).await?;
        if !found.is_empty() {
            return Ok(allowed(&found));
        }
        let above = domain.as_str().split_once('.').and_then(|(_, above)| above.parse::<Domain>().ok());
        at = above.filter(|above| above.is_within(&kept.zone));
    }
    Ok(None)
}

fn allowed(found: &[CaaProperty]) -> Option<Vec<String>> {
    let of = |tag: &str| {
        let told = found.iter().filter(|property| property.tag.eq_ignore_ascii_case(tag));
        let name =
            |property: &CaaProperty| property.value.split(';').next().unwrap_or_default().trim().to_owned();
        told.map(name).collect::<Vec<_>>()
    };
    let (wild, any) = (of("issuewild"), of("issue"));
    let names = if wild.is_empty() { any } else { wild };
    // `;` alone is nobody.
    (!names.is_empty()).then(|| names.into_iter().filter(|name| !name.is_empty()).collect())
}

fn zone<'z>(zones: &'z DnsZones, domain: &Domain) -> Result<DnsZone<'z>, RecordFault> {
    kept(zones, domain)?.open()
}

fn kept<'z>(zones: &'z DnsZones, domain: &Domain) -> Result<&'z KeptZone, RecordFault> {
    zones.of_domain(domain).ok_or_else(RecordFault::gone)
}
