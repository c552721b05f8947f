//! Key usage of certificates, from their extensions. Java's clients enforce it strictly.

use x509_parser::certificate::X509Certificate;
use x509_parser::x509::X509Version;

use super::{MaterialFault, fault};

/// Returns the faults of key usage for which clients refuse a chain: the first certificate has to be usable
/// for servers, each of the others for signing the one before.
pub(super) fn unusable(chain: &[X509Certificate<'_>]) -> Vec<MaterialFault> {
    let Some((own, issuers)) = chain.split_first() else { return Vec::new() };
    let issuers = issuers.iter().zip(2..).filter(|(issuer, _)| !may_sign(issuer)).map(|(_, position)| {
        fault(
            "certificate-issuer-no-ca",
            format!("certificate {position} of the chain may not sign others, so clients refuse the whole chain"),
            "request a chain from a certificate authority: each certificate after the first needs `CA:TRUE`, and \
             `keyCertSign` if it has a key usage",
        )
    });
    not_for_servers(own).into_iter().chain(issuers).collect()
}

fn not_for_servers(own: &X509Certificate<'_>) -> Option<MaterialFault> {
    let extended = own.extended_key_usage().ok().flatten();
    if extended.is_some_and(|usage| !usage.value.server_auth && !usage.value.any) {
        return Some(fault(
            "certificate-not-for-servers",
            "the certificate is not for servers, so clients refuse it: its extended key usage lacks `serverAuth`",
            "request a new one with `serverAuth` in its extended key usage, or without an extended key usage",
        ));
    }
    // Brokers sign during the handshake. Only key exchanges removed from Java and TLS 1.3 need encipherment
    // instead.
    let usage = own.key_usage().ok().flatten();
    usage.is_some_and(|usage| !usage.value.digital_signature()).then(|| {
        fault(
            "certificate-not-for-signing",
            "the certificate's key may not sign, so clients refuse it: its key usage lacks `digitalSignature`",
            "request a new one with `digitalSignature` in its key usage, or without a key usage",
        )
    })
}

/// Whether a certificate may sign others. X.509 v1, which some roots still use, has no extension to say so.
fn may_sign(issuer: &X509Certificate<'_>) -> bool {
    let is_ca = issuer.basic_constraints().ok().flatten().is_some_and(|it| it.value.ca);
    let usage = issuer.key_usage().ok().flatten();
    let is_old_root = issuer.version() == X509Version::V1 && issuer.issuer() == issuer.subject();
    is_old_root || is_ca && usage.is_none_or(|usage| usage.value.key_cert_sign())
}
