//! Certificate chains: the names they cover, their validity, and all faults of a chain at once.

use jiff::Timestamp;
use x509_parser::certificate::X509Certificate;
use x509_parser::error::X509Error;
use x509_parser::extensions::{GeneralName, ParsedExtension};
use x509_parser::prelude::FromDer as _;

use super::material::{MaterialFault, Part, UNKNOWN_LABEL, pem_blocks};
use super::private_key::PrivateKey;

pub use super::private_key::to_pkcs8_pem;

mod usage;

#[cfg(test)]
mod tests;

/// A certificate that TLS clients can accept: its chain is in order, and its key, if given, matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Certificate {
    /// The start of the whole chain's validity: the latest `notBefore` of its certificates.
    pub not_before: Timestamp,
    /// The end of the whole chain's validity: the earliest `notAfter` of its certificates.
    pub not_after: Timestamp,
    /// The covered host names, in lower case, wildcards included. At least one.
    pub names: Vec<String>,
}

impl Certificate {
    /// Parses a certificate chain in PEM, and checks that the private key, if given, belongs to it.
    ///
    /// The caller has to compare its validity with the time.
    ///
    /// # Errors
    /// All faults; they quote nothing of the key.
    pub fn parse(tls_cert: &str, tls_key: Option<&str>) -> Result<Certificate, Vec<MaterialFault>> {
        let mut faults = Vec::new();
        let ders = keep(read_ders(tls_cert), &mut faults).unwrap_or_default();
        let chain = keep(read_chain(&ders), &mut faults).unwrap_or_default();
        let key =
            tls_key.and_then(|key| keep(PrivateKey::parse(key).map_err(|fault| vec![fault]), &mut faults));
        let disorder = disorder(&chain);
        if disorder.is_empty() {
            faults.extend(usage::unusable(&chain));
        }
        faults.extend(disorder);
        faults.extend(key.and_then(|key| key_mismatch(&chain, &key)));
        let names = chain.first().and_then(|own| keep(host_names(own), &mut faults));
        let validity = keep(validity(&chain), &mut faults);
        match (names, validity.flatten()) {
            (Some(names), Some((not_before, not_after))) if faults.is_empty() => {
                Ok(Certificate { not_before, not_after, names })
            }
            _ => Err(faults),
        }
    }

    /// Returns what a chain says, without judging it. `None` if it can't be read.
    pub fn read(tls_cert: &str) -> Option<Certificate> {
        let ders = read_ders(tls_cert).ok()?;
        let chain = read_chain(&ders).ok()?;
        let names = host_names(chain.first()?).ok()?;
        let (not_before, not_after) = validity(&chain).ok().flatten()?;
        Some(Certificate { not_before, not_after, names })
    }

    /// Whether a client that connects to this host accepts the certificate: by an equal name, or by a
    /// wildcard, which replaces exactly the left-most label (RFC 6125, section 6.4.3).
    pub fn covers(&self, host: &str) -> bool {
        let host = host.to_ascii_lowercase();
        let parent = host.split_once('.').filter(|(label, _)| !label.is_empty()).map(|(_, parent)| parent);
        self.names.iter().any(|name| match name.strip_prefix("*.") {
            Some(domain) => parent == Some(domain),
            None => *name == host,
        })
    }
}

/// Returns the certificate in PEM that clients have to trust to accept the chain: the last one, if it is
/// self-signed. `None` if the chain ends before its root, whose certificate is then among the system's trust
/// anchors or with the chain's owner. An intermediate certificate is no substitute: public authorities change
/// theirs without notice.
pub fn root(tls_cert: &str) -> Option<String> {
    let ders = read_ders(tls_cert).ok()?;
    let chain = read_chain(&ders).ok()?;
    let last = chain.last().filter(|last| last.issuer() == last.subject())?;
    last.verify_signature(None).ok()?;
    Some(format!("{}\n", pem_blocks(tls_cert).ok()?.last()?.text.trim_end()))
}

/// Returns the issuer of a chain's last certificate. `None` if the chain can't be read.
pub fn issuer(tls_cert: &str) -> Option<String> {
    let ders = read_ders(tls_cert).ok()?;
    read_chain(&ders).ok()?.last().map(|last| last.issuer().to_string())
}

/// Whether clients that trust only the authority of the first chain refuse the second: the authority at the
/// top of the first signed no certificate of the second. False if a chain can't be read, since nothing is
/// known then.
pub fn is_of_another_authority(before: &str, after: &str) -> bool {
    let [before, after] = [before, after].map(authorities);
    let (Some(before), Some(after)) = (before, after) else { return false };
    before.last().is_some_and(|top| !after.iter().any(|authority| authority.is(top)))
}

/// Whether two chains begin with the same certificate, whatever issuers follow. False if a chain can't be
/// read.
pub fn is_the_same(before: &str, after: &str) -> bool {
    let [before, after] = [before, after].map(|chain| read_ders(chain).ok()?.into_iter().next());
    before.is_some() && before == after
}

#[derive(PartialEq, Eq)]
struct Authority {
    name: Vec<u8>,
    /// The identifier of its key, if the certificate contains one: a recreated authority may have the name of
    /// the old one.
    key: Option<Vec<u8>>,
}

impl Authority {
    fn is(&self, other: &Authority) -> bool {
        let same_key = self.key.as_ref().zip(other.key.as_ref()).is_none_or(|(one, other)| one == other);
        self.name == other.name && same_key
    }
}

fn authorities(tls_cert: &str) -> Option<Vec<Authority>> {
    let ders = read_ders(tls_cert).ok()?;
    let authority = |certificate: &X509Certificate<'_>| {
        let is_own = certificate.issuer() == certificate.subject();
        let mut extensions = certificate.extensions().iter().map(|it| it.parsed_extension());
        let key = extensions.find_map(|extension| match extension {
            ParsedExtension::AuthorityKeyIdentifier(signer) => {
                signer.key_identifier.as_ref().map(|key| key.0.to_vec())
            }
            ParsedExtension::SubjectKeyIdentifier(own) if is_own => Some(own.0.to_vec()),
            _ => None,
        });
        Authority { name: certificate.issuer().as_raw().to_vec(), key }
    };
    Some(read_chain(&ders).ok()?.iter().map(authority).collect())
}

/// Decodes the certificates of a PEM text to DER, in their order.
///
/// # Errors
/// If the text isn't PEM, has no certificate, or has anything besides certificates.
pub(crate) fn read_ders(text: &str) -> Result<Vec<Vec<u8>>, Vec<MaterialFault>> {
    let blocks = pem_blocks(text).map_err(|error| vec![error.fault(Part::Certificate, damaged)])?;
    if blocks.is_empty() {
        return Err(vec![fault(
            "certificate-not-pem",
            "the certificate is not PEM: it has no `-----BEGIN CERTIFICATE-----` line",
            "convert it with `openssl x509 -inform DER -in CERT`; in YAML, put `|` before a text of several lines",
        )]);
    }
    let (mut ders, mut faults) = (Vec::new(), Vec::new());
    for block in &blocks {
        match (block.label, block.decode()) {
            ("CERTIFICATE", Some(der)) => ders.push(der.to_vec()),
            ("CERTIFICATE", None) => faults.push(damaged("its base64 can't be decoded")),
            (label, _) if label.ends_with("PRIVATE KEY") => faults.push(fault(
                "key-in-certificate",
                "the certificate contains a private key, which would be stored and shown in plain text",
                "move the key to the key's field, and replace it if this text was shared",
            )),
            (label, _) => faults.push(fault(
                "certificate-foreign-block",
                match label {
                    UNKNOWN_LABEL => "the certificate contains a block of an unknown type".to_owned(),
                    label => format!("the certificate contains a `{label}` block"),
                },
                "keep only `CERTIFICATE` blocks: the domain's own first, then the intermediate ones",
            )),
        }
    }
    if faults.is_empty() { Ok(ders) } else { Err(faults) }
}

pub(crate) fn read_chain(ders: &[Vec<u8>]) -> Result<Vec<X509Certificate<'_>>, Vec<MaterialFault>> {
    let (mut chain, mut faults) = (Vec::new(), Vec::new());
    for (der, position) in ders.iter().zip(1..) {
        match X509Certificate::from_der(der) {
            Ok(([], certificate)) => chain.push(certificate),
            _ => faults.push(damaged(&format!("block {position} is not an X.509 certificate"))),
        }
    }
    if faults.is_empty() { Ok(chain) } else { Err(faults) }
}

/// Returns a fault for each certificate that the next one did not sign.
fn disorder(chain: &[X509Certificate<'_>]) -> Vec<MaterialFault> {
    let signed = |certificate: &X509Certificate<'_>, issuer: &X509Certificate<'_>| {
        certificate.issuer() == issuer.subject()
            && match certificate.verify_signature(Some(issuer.public_key())) {
                // The signature algorithm isn't supported here, so the names have to suffice.
                Ok(()) | Err(X509Error::SignatureUnsupportedAlgorithm) => true,
                Err(_) => false,
            }
    };
    chain
        .windows(2)
        .zip(1..)
        .filter(|(pair, _)| !signed(&pair[0], &pair[1]))
        .map(|(_, position)| {
            fault(
                "certificate-chain-order",
                format!("certificate {position} of the chain is not signed by certificate {}", position + 1),
                "put the domain's own certificate first, then each one that signed the one before it",
            )
        })
        .collect()
}

pub(crate) fn key_mismatch(chain: &[X509Certificate<'_>], key: &PrivateKey) -> Option<MaterialFault> {
    let fits =
        |certificate: &X509Certificate<'_>| key.fits(&certificate.public_key().subject_public_key.data);
    let hint = match chain.iter().position(fits) {
        _ if chain.is_empty() => return None,
        Some(0) => return None,
        Some(index) => {
            format!("it belongs to certificate {} of the chain: put that certificate first", index + 1)
        }
        None => {
            "use the key that the certificate was requested with, and change both fields together".to_owned()
        }
    };
    Some(MaterialFault::new(
        Part::Key,
        "key-does-not-fit",
        "the private key does not belong to the certificate",
        hint,
    ))
}

fn host_names(certificate: &X509Certificate<'_>) -> Result<Vec<String>, Vec<MaterialFault>> {
    let extension = certificate
        .subject_alternative_name()
        .map_err(|_| vec![damaged("it has two lists of names, or an unreadable one")])?;
    let names: Vec<String> = extension
        .iter()
        .flat_map(|extension| &extension.value.general_names)
        .filter_map(|name| match name {
            GeneralName::DNSName(name) => Some(name.to_ascii_lowercase()),
            _ => None,
        })
        .collect();
    if names.is_empty() {
        return Err(vec![fault(
            "certificate-no-names",
            "the certificate names no host: clients check its subject alternative names, not the common name",
            "request a new one with the host names as subject alternative names of type DNS",
        )]);
    }
    Ok(names)
}

fn validity(chain: &[X509Certificate<'_>]) -> Result<Option<(Timestamp, Timestamp)>, Vec<MaterialFault>> {
    let seconds = chain.iter().map(|certificate| {
        let validity = certificate.validity();
        (validity.not_before.timestamp(), validity.not_after.timestamp())
    });
    let narrowest = seconds.reduce(|(from, until), (begin, end)| (from.max(begin), until.min(end)));
    let timestamp =
        |second| Timestamp::from_second(second).map_err(|_| vec![damaged("its dates are out of range")]);
    narrowest.map(|(from, until)| Ok((timestamp(from)?, timestamp(until)?))).transpose()
}

/// Returns the value of a result, or moves its faults to the others.
fn keep<T>(result: Result<T, Vec<MaterialFault>>, faults: &mut Vec<MaterialFault>) -> Option<T> {
    result.map_err(|mut more| faults.append(&mut more)).ok()
}

fn damaged(why: &str) -> MaterialFault {
    fault(
        "certificate-damaged",
        format!("the certificate is damaged: {why}"),
        "copy the whole certificate again, from its BEGIN line to its END line",
    )
}

fn fault(code: &'static str, message: impl Into<String>, hint: &str) -> MaterialFault {
    MaterialFault::new(Part::Certificate, code, message, hint)
}
