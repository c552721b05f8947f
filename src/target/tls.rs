//! TLS to services beside the fleets.

use rustls::crypto::aws_lc_rs::default_provider;
use rustls::{ClientConfig, Error, RootCertStore};

/// The authorities that this host trusts.
pub(super) fn roots_of_host() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    // Old certificates that can't be parsed are common among those of a host.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    roots
}

/// # Errors
/// When this build supports no usual version of TLS.
pub(super) fn trusting(roots: RootCertStore) -> Result<ClientConfig, Error> {
    Ok(ClientConfig::builder_with_provider(default_provider().into())
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth())
}
