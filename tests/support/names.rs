//! The base domain `acme.kafka.example.test`, whose names Streamfleet keeps on a DNS server.

use std::time::{Duration, SystemTime};

use rcgen::{CertificateParams, KeyPair};

use super::Tree;
use super::knot::{Knot, SECRET, key};

pub const DOMAIN: &str = "acme/base-domains/kafka.yaml";
pub const ACCOUNT: &str = "acme/cloud-accounts/dns.yaml";

/// Its document, without a certificate.
pub const MANAGED: &str = "apiVersion: streamfleet/v1\nkind: BaseDomain\norganization: acme\ndomain: kafka.example.test\n\
                           dns_provider: rfc2136\ndns_base_domain: example.test\ncloud_account: dns\n";

/// Puts it in place of the example's, with the fields of a certificate, if any.
pub fn keep(tree: &Tree, knot: &Knot, certificate: &str) {
    let account = format!(
        "provider: rfc2136\nendpoint: dns://127.0.0.1:{}\ncredentials: |\n{}",
        knot.address.port(),
        indented(&key("streamfleet", SECRET))
    );
    keep_in(tree, "rfc2136", &account, certificate);
}

/// Does the same with another provider and the fields of its account.
pub fn keep_in(tree: &Tree, provider: &str, account: &str, certificate: &str) {
    tree.remove("acme/base-domains/kafka.acme.example.com.yaml");
    tree.write(DOMAIN, format!("{}{certificate}", MANAGED.replace("rfc2136", provider)));
    let head = "apiVersion: streamfleet/v1\nkind: CloudAccount\norganization: acme\nidentifier: dns\n";
    tree.write(ACCOUNT, format!("{head}{account}"));
    tree.edit("organizations.yaml", "  - acme.example.com", "  - kafka.example.test");
    tree.edit("acme/fleets/eu.yaml", "domain: kafka.acme.example.com", "domain: kafka.example.test");
}

/// A certificate of these names with its key, in PEM.
pub fn certificate(names: &[&str]) -> (String, String) {
    sign(&params(names))
}

/// As above. It expires in so many days.
pub fn expiring(names: &[&str], days: u64) -> (String, String) {
    let mut params = params(names);
    params.not_after = (SystemTime::now() + Duration::from_secs(days * 86400)).into();
    sign(&params)
}

fn params(names: &[&str]) -> CertificateParams {
    CertificateParams::new(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()).unwrap()
}

fn sign(params: &CertificateParams) -> (String, String) {
    let pair = KeyPair::generate().unwrap();
    (params.self_signed(&pair).unwrap().pem(), pair.serialize_pem())
}

/// The fields of a document that contains a certificate.
pub fn fields((certificate, key): &(String, String)) -> String {
    format!("tls_cert: |\n{}tls_key: |\n{}", indented(certificate), indented(key))
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("  {line}\n")).collect()
}
