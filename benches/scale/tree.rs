//! Spec trees of any size, the same for the same size but for the certificates' signatures.

use std::fs;
use std::path::{Path, PathBuf};

use rcgen::{CertificateParams, KeyPair};

/// How many clusters a fleet hosts, and how many fleets an organization has.
const CLUSTERS: usize = 100;
const FLEETS: usize = 10;

/// A tree on disk.
pub struct Tree {
    root: PathBuf,
    /// How many fleets it has.
    pub fleets: usize,
    /// How many clusters it has.
    pub clusters: usize,
}

impl Tree {
    /// Writes a tree with this many clusters, a hundred to a fleet and ten fleets to an organization. Every other cluster is
    /// reached from outside, and the rest from inside only.
    pub fn write(root: &Path, clusters: usize) -> Tree {
        let fleets = clusters.div_ceil(CLUSTERS);
        let tree = Tree { root: root.to_owned(), fleets, clusters };
        for organization in 0..fleets.div_ceil(FLEETS) {
            let name = format!("org-{organization:02}");
            tree.put(
                &format!("organizations/{name}.yaml"),
                &format!("{}identifier: {name}\n", header("Organization")),
            );
            tree.put(&format!("{name}/base-domains.yaml"), &base_domain(&name));
        }
        for fleet in 0..fleets {
            tree.put(&format!("{}/fleets/{}.yaml", owner(fleet), fleet_name(fleet)), &fleet_spec(fleet));
        }
        for cluster in 0..clusters {
            tree.put(&Self::cluster_file(cluster), &cluster_spec(cluster, 1));
        }
        tree
    }

    /// Where the tree is.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Gives one cluster this many units.
    pub fn resize(&self, cluster: usize, units: u32) {
        self.put(&Self::cluster_file(cluster), &cluster_spec(cluster, units));
    }

    fn cluster_file(cluster: usize) -> String {
        format!("{}/clusters/{}.yaml", owner(cluster / CLUSTERS), cluster_name(cluster))
    }

    fn put(&self, path: &str, text: &str) {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().expect("a file lies in a folder")).expect("the disk takes folders");
        fs::write(path, text).expect("the disk takes files");
    }
}

fn owner(fleet: usize) -> String {
    format!("org-{:02}", fleet / FLEETS)
}

fn fleet_name(fleet: usize) -> String {
    format!("fleet-{fleet:03}")
}

fn cluster_name(cluster: usize) -> String {
    format!("cluster-{cluster:05}")
}

fn header(kind: &str) -> String {
    format!("apiVersion: streamfleet/v1\nkind: {kind}\n")
}

fn base_domain(organization: &str) -> String {
    let domain = format!("kafka.{organization}.example.com");
    let params =
        CertificateParams::new(vec![domain.clone(), format!("*.{domain}")]).expect("names are names");
    let key = KeyPair::generate().expect("random numbers are to be had");
    let certificate = params.self_signed(&key).expect("the key signs").pem();
    let indented = |pem: &str| pem.lines().map(|line| format!("  {line}\n")).collect::<String>();
    format!(
        "{}organization: {organization}\ndomain: {domain}\ntls_cert: |\n{}tls_key: |\n{}",
        header("BaseDomain"),
        indented(&certificate),
        indented(&key.serialize_pem())
    )
}

fn fleet_spec(fleet: usize) -> String {
    let organization = owner(fleet);
    format!(
        "{}organization: {organization}\nidentifier: {}\ninfra_type: directory\ndomain: kafka.{organization}.example.com\n\
         tenancy_mode: Shared\nmax_tenants: {CLUSTERS}\nmax_kafka_units: {}\n",
        header("Fleet"),
        fleet_name(fleet),
        4 * CLUSTERS
    )
}

fn cluster_spec(cluster: usize, units: u32) -> String {
    let fleet = cluster / CLUSTERS;
    let access = if cluster.is_multiple_of(2) { "Internal & External" } else { "Internal" };
    format!(
        "# Owned by team {}; see the wiki for what it is for.\n{}organization: {}\ninfrastructure: {}\nidentifier: {}\n\
         cluster_type: kafka\ntenancy_mode: Shared\nkafka_units: {units}\ntags:\n  - key: team\n    value: team-{}\n\
         advanced_config:\n  version: 4.3.1\n  number_of_zones: 3\n  cluster_access: {access}\n",
        cluster % 37,
        header("Cluster"),
        owner(fleet),
        fleet_name(fleet),
        cluster_name(cluster),
        cluster % 37
    )
}
