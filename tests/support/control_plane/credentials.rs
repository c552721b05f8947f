//! Keys, certificates and tokens, new for each control plane.

use std::fs;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};

pub struct Credentials {
    /// The server's CA certificate, as in a kubeconfig: PEM in base64.
    pub authority: String,
    pub admin_token: String,
    /// The administrator's client certificate and key, as in a kubeconfig: PEM in base64.
    pub admin_certificate: (String, String),
}

impl Credentials {
    /// Creates the credentials, and writes the files of the programs to a folder.
    pub fn write(folder: &Path) -> Credentials {
        let (authority, authority_key) = (authority(), KeyPair::generate().unwrap());
        let authority_pem = authority.self_signed(&authority_key).unwrap().pem();
        let issuer = Issuer::new(authority, authority_key);
        let server_key = KeyPair::generate().unwrap();
        let names = ["127.0.0.1", "localhost"].map(str::to_owned);
        let server = CertificateParams::new(names).unwrap().signed_by(&server_key, &issuer).unwrap();
        let admin_key = KeyPair::generate().unwrap();
        let admin = admin().signed_by(&admin_key, &issuer).unwrap();
        let admin_token = uuid::Uuid::now_v7().simple().to_string();

        let write = |name: &str, text: &str| fs::write(folder.join(name), text).unwrap();
        write("ca.crt", &authority_pem);
        write("server.crt", &server.pem());
        write("server.key", &server_key.serialize_pem());
        let service_accounts = KeyPair::generate().unwrap();
        write("service-accounts.key", &service_accounts.serialize_pem());
        write("service-accounts.pub", &service_accounts.public_key_pem());
        write("tokens", &format!("{admin_token},admin,admin,system:masters\n"));
        let admin_certificate = (STANDARD.encode(admin.pem()), STANDARD.encode(admin_key.serialize_pem()));
        Credentials { authority: STANDARD.encode(authority_pem), admin_token, admin_certificate }
    }
}

/// Kubernetes reads the common name as the user, and the organization as the group.
fn admin() -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, "admin");
    params.distinguished_name.push(DnType::OrganizationName, "system:masters");
    params
}

fn authority() -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, "a control plane for tests");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    params
}
