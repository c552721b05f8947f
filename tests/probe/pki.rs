//! Authorities and certificates.

use std::time::{Duration, SystemTime};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};

pub struct Authority {
    /// Its certificate in PEM.
    pub pem: String,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate and its key, both in PEM.
#[derive(Clone)]
pub struct Pair {
    pub certificate: String,
    pub key: String,
}

impl Pair {
    /// The certificate with its issuer, as a base domain's.
    pub fn chain(&self, authority: &Authority) -> String {
        format!("{}{}", self.certificate, authority.pem)
    }
}

impl Authority {
    pub fn new(name: &str) -> Authority {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Authority { pem, issuer: Issuer::new(params, key) }
    }

    /// A certificate for host names.
    pub fn server(&self, hosts: &[&str]) -> Pair {
        self.sign(self::params(hosts, hosts[0]))
    }

    /// A certificate for a host name that has ended an hour ago.
    pub fn expired(&self, host: &str) -> Pair {
        self.sign(ended(params(&[host], host)))
    }

    /// A certificate for host names that is its own authority.
    pub fn own(hosts: &[&str], is_expired: bool) -> Pair {
        let mut params = params(hosts, hosts[0]);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let params = if is_expired { ended(params) } else { params };
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap().pem();
        Pair { certificate, key: key.serialize_pem() }
    }

    /// An authority below this one whose certificate has ended an hour ago.
    pub fn expired_below(&self) -> Authority {
        let mut params = ended(params(&[], "an authority below"));
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let pem = params.signed_by(&key, &self.issuer).unwrap().pem();
        Authority { pem, issuer: Issuer::new(params, key) }
    }

    /// A certificate for a user.
    pub fn user(&self, name: &str) -> Pair {
        self.sign(self::params(&[], name))
    }

    fn sign(&self, params: CertificateParams) -> Pair {
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap().pem();
        Pair { certificate, key: key.serialize_pem() }
    }
}

fn ended(mut params: CertificateParams) -> CertificateParams {
    let hour = Duration::from_secs(60 * 60);
    params.not_before = (SystemTime::now() - 2 * hour).into();
    params.not_after = (SystemTime::now() - hour).into();
    params
}

fn params(hosts: &[&str], name: &str) -> CertificateParams {
    let mut params =
        CertificateParams::new(hosts.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>()).unwrap();
    let mut subject = rcgen::DistinguishedName::new();
    subject.push(DnType::CommonName, name);
    params.distinguished_name = subject;
    params
}
