//! The one node of a cluster: its names, its address, and certificates as from Strimzi's own CA.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use rcgen::{BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, Issuer, KeyPair};

use super::objects::{Files, Objects, text};

pub struct Node {
    pub id: u32,
    pub pod: String,
    /// Its DNS name within the Kubernetes cluster.
    pub host: String,
    pub address: Ipv4Addr,
    /// The name of the bootstrap Service.
    pub bootstrap: String,
    cluster: String,
}

impl Node {
    pub fn from_objects(objects: &Objects) -> Node {
        let spec = &objects.pool["spec"];
        assert_eq!(spec["replicas"], 1);
        assert_eq!(spec["roles"], serde_json::json!(["controller", "broker"]));
        let ids = text(&objects.pool["metadata"]["annotations"]["strimzi.io/next-node-ids"]);
        let id = ids.trim_start_matches('[').split('-').next().unwrap().parse().unwrap();
        let (cluster, namespace) = (objects.name(), objects.namespace());
        let pod = format!("{cluster}-{}-{id}", text(&objects.pool["metadata"]["name"]));
        Node {
            id,
            host: format!("{pod}.{cluster}-kafka-brokers.{namespace}.svc"),
            address: address(),
            bootstrap: format!("{cluster}-kafka-bootstrap.{namespace}.svc"),
            pod,
            cluster,
        }
    }

    pub fn principal(&self) -> String {
        format!("CN={}-kafka,O=io.strimzi", self.cluster)
    }

    /// The Secret with Strimzi's cluster CA certificate.
    pub fn authority_secret(&self) -> String {
        format!("{}-cluster-ca-cert", self.cluster)
    }

    /// The Secret with the clients CA certificate.
    pub fn clients_authority_secret(&self) -> String {
        format!("{}-clients-ca-cert", self.cluster)
    }

    /// The Secrets that Strimzi would create: two CAs, the node's certificate, and the users' certificates.
    pub fn secrets(&self, users: &[&str]) -> BTreeMap<String, Files> {
        let (of_cluster, of_clients) = (Authority::new("cluster-ca v0"), Authority::new("clients-ca v0"));
        let names = [self.host.clone(), self.bootstrap.clone()];
        let own = of_cluster.sign("io.strimzi", &format!("{}-kafka", self.cluster), &names, &self.pod);
        let mut secrets = BTreeMap::from([
            (self.authority_secret(), of_cluster.files()),
            (self.clients_authority_secret(), of_clients.files()),
            (self.pod.clone(), own),
        ]);
        secrets.extend(users.iter().map(|name| ((*name).to_owned(), of_clients.sign("", name, &[], "user"))));
        secrets
    }
}

/// The address of this host at which the node listens. Every process has one of its own, so that ports never
/// collide.
pub fn address() -> Ipv4Addr {
    let [_, high, middle, low] = std::process::id().to_be_bytes();
    Ipv4Addr::new(127, high | 0x80, middle, low)
}

struct Authority {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new(name: &str) -> Authority {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name = named("io.strimzi", name);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Authority { pem, issuer: Issuer::new(params, key) }
    }

    fn files(&self) -> Files {
        [("ca.crt".to_owned(), self.pem.clone().into_bytes())].into()
    }

    fn sign(&self, organization: &str, name: &str, hosts: &[String], file: &str) -> Files {
        let mut params = CertificateParams::new(hosts).unwrap();
        params.distinguished_name = named(organization, name);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap().pem();
        let files = [("crt", certificate), ("key", key.serialize_pem())];
        files.map(|(ending, pem)| (format!("{file}.{ending}"), pem.into_bytes())).into()
    }
}

/// A distinguished name. Users have no organization.
fn named(organization: &str, common: &str) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    if !organization.is_empty() {
        name.push(DnType::OrganizationName, organization);
    }
    name.push(DnType::CommonName, common);
    name
}
