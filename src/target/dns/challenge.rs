//! The text by which a certificate authority sees whose a domain is. Others may have texts of the same name.

use hickory_proto::op::UpdateMessage as _;
use hickory_proto::rr::{DNSClass, RData, RecordType};

use super::{DnsFault, DnsZone, DnsZones, RecordFault, TTL, name, records, text};
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
    let zone = zone(zones, domain)?;
    let at = name(&challenge_name(domain))?;
    let mut update = zone.update();
    update.add_update(text(&at, value, TTL));
    zone.send(update, DnsFault::Changed).await?;
    let [answer] = zone.server.exchange([super::query(&at, RecordType::TXT)]).await?;
    // A server ignores a text where there is a CNAME.
    match records(answer, &at)?.iter().any(|record| is_text(&record.data, value)) {
        true => Ok(()),
        false => Err(RecordFault::Server(DnsFault::Hidden(challenge_name(domain)))),
    }
}

/// Removes a text that [`add`] added.
///
/// # Errors
/// If its server can't be asked, or refuses.
pub async fn remove(zones: &DnsZones, domain: &Domain, value: &str) -> Result<(), RecordFault> {
    let zone = zone(zones, domain)?;
    let mut gone = text(&name(&challenge_name(domain))?, value, 0);
    gone.dns_class = DNSClass::NONE;
    let mut update = zone.update();
    update.add_update(gone);
    Ok(zone.send(update, DnsFault::Changed).await?)
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
    let kept = zones.of_domain(domain).ok_or_else(RecordFault::gone)?;
    let zone = zone(zones, domain)?;
    let mut at = Some(domain.clone()).filter(|at| at.is_within(&kept.zone));
    while let Some(domain) = at {
        let at_domain = name(domain.as_str())?;
        let [answer] = zone.server.exchange([super::query(&at_domain, RecordType::CAA)]).await?;
        let found = records(answer, &at_domain)?;
        let of = |tag: &str| {
            let told = found.iter().filter_map(|record| match &record.data {
                RData::CAA(caa) if caa.tag.eq_ignore_ascii_case(tag) => Some(&caa.value),
                _ => None,
            });
            let names = told.map(|value| {
                String::from_utf8_lossy(value).split(';').next().unwrap_or_default().trim().to_owned()
            });
            names.collect::<Vec<_>>()
        };
        if !found.is_empty() {
            let (wild, any) = (of("issuewild"), of("issue"));
            let names = if wild.is_empty() { any } else { wild };
            // `;` alone is nobody.
            let allowed =
                (!names.is_empty()).then(|| names.into_iter().filter(|name| !name.is_empty()).collect());
            return Ok(allowed);
        }
        let above = domain.as_str().split_once('.').and_then(|(_, above)| above.parse::<Domain>().ok());
        at = above.filter(|above| above.is_within(&kept.zone));
    }
    Ok(None)
}

fn zone<'z>(zones: &'z DnsZones, domain: &Domain) -> Result<DnsZone<'z>, RecordFault> {
    let kept = zones.of_domain(domain).ok_or_else(RecordFault::gone)?;
    let login = kept.login.as_ref().map_err(|why| RecordFault::no_login(why))?;
    Ok(DnsZone::new(login, kept.zone.as_str())?)
}

fn is_text(data: &RData, value: &str) -> bool {
    matches!(data, RData::TXT(text) if text.txt_data.concat() == value.as_bytes())
}
