//! The certificate authority that issues the certificates of managed base domains.

use camino::Utf8PathBuf;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The certificate authority from which base domains without `tls_cert` and `tls_key` get their certificates, by ACME
/// (RFC 8555). Without it, every base domain needs a certificate of its own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AcmeConfig {
    /// The URL of the authority's directory.
    #[schemars(regex(pattern = r"^https://\S+$"), example = &"https://acme-v02.api.letsencrypt.org/directory")]
    pub directory: String,
    /// Whether you agree to the authority's terms of service, which it publishes. It has to be true.
    #[schemars(extend("examples" = [true]))]
    pub agree_to_terms: bool,
    /// Where the authority writes to about your certificates: `["mailto:kafka@example.com"]`.
    #[serde(default)]
    #[schemars(inner(regex(pattern = r"^mailto:\S+@\S+$")), extend("examples" = [["mailto:kafka@example.com"]]))]
    pub contact: Vec<String>,
    /// How the authority is shown that a domain is yours.
    #[serde(default)]
    #[schemars(extend("examples" = ["dns-01"]))]
    pub challenge: Challenge,
    /// How many seconds a record for `dns-01` is given to reach all servers of the zone, before the authority is asked to
    /// look.
    #[serde(default = "ten")]
    #[schemars(range(max = 600), extend("examples" = [10]))]
    pub propagation_seconds: u32,
    /// The kind of certificate, if the authority offers several: `tlsserver`.
    #[serde(default)]
    #[schemars(example = &"tlsserver")]
    pub profile: Option<String>,
    /// The file of the certificates in PEM that the authority's own server is trusted by. By default those of this host.
    #[serde(default)]
    #[schemars(with = "Option<String>", example = &"/etc/streamfleet/corp-ca.pem")]
    pub roots: Option<Utf8PathBuf>,
}

fn ten() -> u32 {
    10
}

/// How an authority is shown that a domain is yours.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Challenge {
    /// By a DNS record for each certificate, which Streamfleet adds and removes. The base domain needs
    /// `dns_provider: rfc2136` or `route53`.
    #[default]
    #[serde(rename = "dns-01")]
    Dns01,
    /// By a DNS record that names the account at the authority and stays. You add it once, and Streamfleet needs no key
    /// for the zone.
    #[serde(rename = "dns-persist-01")]
    DnsPersist01,
}

impl AcmeConfig {
    /// The host of the authority: `acme-v02.api.letsencrypt.org`.
    pub fn host(&self) -> String {
        let rest = self.directory.strip_prefix("https://").unwrap_or(&self.directory);
        rest.split(['/', '?']).next().unwrap_or_default().to_owned()
    }

    /// Returns an error for the first key that can't be used.
    pub(super) fn out_of_bounds(&self) -> Option<String> {
        let is_mail = |contact: &String| {
            contact
                .strip_prefix("mailto:")
                .is_some_and(|mail| mail.contains('@') && !mail.contains(char::is_whitespace))
        };
        if !self.directory.starts_with("https://") || self.host().is_empty() {
            return Some("`acme.directory` must be an https URL".to_owned());
        }
        if !self.agree_to_terms {
            return Some(
                "`acme.agree_to_terms` is false: read the terms of the authority, and set it to true if you agree"
                    .to_owned(),
            );
        }
        if self.propagation_seconds > 600 {
            let seconds = self.propagation_seconds;
            return Some(format!("`acme.propagation_seconds` is {seconds}, and must be from 0 to 600"));
        }
        self.contact.iter().find(|contact| !is_mail(contact)).map(|contact| {
            format!("`acme.contact` has `{contact}`, and must be like `mailto:kafka@example.com`")
        })
    }
}
