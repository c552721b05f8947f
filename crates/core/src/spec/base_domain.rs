//! Base domains: the addresses of clusters and their certificate.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::names::{Domain, Identifier};
use crate::spec::{CloudProvider, SecretValue};

/// A domain whose subdomains are the addresses of clusters, with the certificate that covers them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BaseDomain {
    /// The organization that owns the domain. It can't change.
    pub organization: Identifier,
    /// The domain. With managed DNS, the organization is prepended as its first label unless it is there
    /// already.
    #[schemars(example = &"kafka.example.com")]
    pub domain: Domain,
    /// The certificate in PEM, followed by the intermediate certificates, each one signing the one before. Without it and
    /// `tls_key`, Streamfleet gets a certificate for all names below the domain from the authority in the settings,
    /// `[acme]`, and renews it.
    #[serde(default)]
    #[schemars(length(min = 1), extend("x-lines" = true))]
    pub tls_cert: Option<String>,
    /// The certificate's private key in PEM, not encrypted.
    #[serde(default)]
    pub tls_key: Option<SecretValue>,
    /// The maintainer of the DNS records.
    #[serde(default)]
    pub dns_provider: DnsProvider,
    /// The zone that the DNS provider serves; the domain has to be in it. By default the domain itself.
    #[serde(default)]
    pub dns_base_domain: Option<Domain>,
    /// The cloud account of the managed DNS. With `rfc2136` and `route53`, its keys change the records; with
    /// `external-dns`, it is only recorded. Required with each of them.
    #[serde(default)]
    pub cloud_account: Option<Identifier>,
}

/// The maintainer of a base domain's DNS records.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum DnsProvider {
    /// The owner of the domain, by hand or otherwise.
    #[default]
    None,
    /// The fleet's own external-dns, from annotations on Services, or from the TLSRoutes of a fleet with a
    /// Gateway.
    #[serde(rename = "external-dns")]
    ExternalDns,
    /// Streamfleet itself, on a DNS server that takes signed updates by RFC 2136.
    #[serde(rename = "rfc2136")]
    Rfc2136,
    /// Streamfleet itself, in a hosted zone of Amazon Route 53.
    #[serde(rename = "route53")]
    Route53,
}

impl DnsProvider {
    /// Whether Streamfleet keeps the records itself.
    pub fn is_kept(self) -> bool {
        self.account().is_some()
    }

    /// The provider that the cloud account has to have by which Streamfleet keeps the records.
    pub fn account(self) -> Option<CloudProvider> {
        match self {
            DnsProvider::None | DnsProvider::ExternalDns => None,
            DnsProvider::Rfc2136 => Some(CloudProvider::Rfc2136),
            DnsProvider::Route53 => Some(CloudProvider::Aws),
        }
    }
}

impl BaseDomain {
    /// Returns the domain that clusters use, which is also the resource's identity: with managed DNS
    /// `<organization>.<submitted>` unless it already starts with the organization; otherwise as submitted.
    ///
    /// `None` if the added label makes the domain too long.
    pub fn derived_domain(&self) -> Option<Domain> {
        Self::derive(&self.organization, &self.domain, self.dns_provider)
    }

    /// Whether Streamfleet gets its certificate.
    pub fn is_managed(&self) -> bool {
        self.tls_cert.is_none() && self.tls_key.is_none()
    }

    /// Returns the zone with the records of the domain.
    pub fn zone(&self) -> Domain {
        let derived = || self.derived_domain().unwrap_or_else(|| self.domain.clone());
        self.dns_base_domain.clone().unwrap_or_else(derived)
    }

    /// Does the same as [`BaseDomain::derived_domain`] from only the fields that it depends on.
    pub fn derive(organization: &Identifier, submitted: &Domain, provider: DnsProvider) -> Option<Domain> {
        let prefix = format!("{organization}.");
        if provider == DnsProvider::None || submitted.as_str().starts_with(&prefix) {
            return Some(submitted.clone());
        }
        format!("{prefix}{submitted}").parse().ok()
    }
}
