//! The documents of a row: an organization with a cluster and everything that the cluster can refer to.

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use serde_json::{Value, json};

use super::schema;
use super::table::Choice;
use crate::support::Tree;

/// Writes documents with certificates signed by one authority.
pub struct Author {
    authority: String,
    issuer: Issuer<'static, KeyPair>,
    key: KeyPair,
}

impl Author {
    pub fn new() -> Author {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let authority = params.self_signed(&key).unwrap().pem();
        Author { authority, issuer: Issuer::new(params, key), key: KeyPair::generate().unwrap() }
    }

    /// Writes an organization whose documents have these values.
    pub fn write(&self, tree: &Tree, organization: &str, choices: &[Choice]) {
        let documents = self.documents(organization, choices);
        let text: String = documents.iter().map(|document| format!("{document}\n---\n")).collect();
        tree.write(&format!("{organization}/all.yaml"), text);
        let document = json!({"apiVersion": "streamfleet/v1", "kind": "Organization", "identifier": organization,
                "domains": [format!("{organization}.k.example.com")]});
        tree.write(&format!("{organization}.yaml"), document.to_string());
    }

    /// The names of the fields and values in the documents.
    pub fn names(&self, organization: &str, choices: &[Choice]) -> Vec<String> {
        let documents = self.documents(organization, choices);
        let names = |document: &Value| schema::names_in(document["kind"].as_str().unwrap(), "", document);
        documents.iter().flat_map(names).collect()
    }

    fn documents(&self, organization: &str, choices: &[Choice]) -> Vec<Value> {
        let domain = format!("{organization}.k.example.com");
        let names = [domain.clone(), format!("*.{domain}")];
        let leaf = CertificateParams::new(names).unwrap().signed_by(&self.key, &self.issuer).unwrap();
        let mut documents = [
            json!({"kind": "Fleet", "identifier": "eu", "infra_type": "directory", "domain": domain,
                "tenancy_mode": "Shared", "max_tenants": 1, "max_kafka_units": 100}),
            json!({"kind": "Cluster", "identifier": "orders", "infrastructure": "eu", "cluster_type": "kafka",
                "tenancy_mode": "Shared", "kafka_units": 1, "advanced_config": {"version": "4.3.1"}}),
            json!({"kind": "BaseDomain", "domain": domain, "tls_key": self.key.serialize_pem(),
                "tls_cert": format!("{}{}", leaf.pem(), self.authority)}),
            json!({"kind": "IdentityProvider", "identifier": "own", "issuer": "https://id.example.com",
                "jwks_uri": "https://id.example.com/keys", "audience": "kafka"}),
            json!({"kind": "CloudAccount", "identifier": "store", "provider": "s3", "region": "eu-1",
                "endpoint": "https://s3.example.com",
                "credentials": "[default]\naws_access_key_id = a\naws_secret_access_key = b\n"}),
            json!({"kind": "Topic", "cluster": "orders", "name": "Payments"}),
            json!({"kind": "User", "cluster": "orders", "identifier": "billing"}),
        ];
        for document in &mut documents {
            document["apiVersion"] = "streamfleet/v1".into();
            document["organization"] = organization.into();
            let kind = document["kind"].clone();
            for (_, path, value) in choices.iter().filter(|(of, ..)| kind == *of) {
                set(document, path, self.filled(parse(value)));
            }
        }
        documents.into()
    }

    /// Replaces placeholders by certificates, which can't be written in a table.
    fn filled(&self, value: Value) -> Value {
        if value == "CERTIFICATE" { self.authority.clone().into() } else { value }
    }
}

pub fn parse(value: &str) -> Value {
    serde_json::from_str(value).unwrap_or_else(|error| panic!("{value}: {error}"))
}

/// Sets the value at a path, or removes it if it is null.
fn set(document: &mut Value, path: &str, value: Value) {
    let fields = document.as_object_mut().unwrap();
    match path.split_once('/') {
        Some((first, rest)) if !value.is_null() || fields.contains_key(first) => {
            set(fields.entry(first).or_insert_with(|| json!({})), rest, value);
        }
        Some(_) => {}
        None if value.is_null() => drop(fields.remove(path)),
        None => drop(fields.insert(path.to_owned(), value)),
    }
}
