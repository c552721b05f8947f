use std::fs;
use std::path::{Path, PathBuf};

use rcgen::{CertificateParams, KeyPair};

const FLEETS: usize = 10;

pub struct Hosts {
    pub clusters: usize,
    pub infra_type: &'static str,
    pub settings: String,
}

pub struct Tree {
    root: PathBuf,
    hosts: Hosts,
    pub fleets: usize,
    pub clusters: usize,
}

impl Tree {
    /// Writes a tree with this many clusters, ten fleets to an organization. Every other cluster is reachable
    /// from outside its Kubernetes cluster.
    pub fn write(root: &Path, clusters: usize, hosts: Hosts) -> Tree {
        let fleets = clusters.div_ceil(hosts.clusters);
        let tree = Tree { root: root.to_owned(), hosts, fleets, clusters };
        for organization in 0..fleets.div_ceil(FLEETS) {
            let name = format!("org-{organization:02}");
            tree.put(
                &format!("organizations/{name}.yaml"),
                &format!(
                    "{}identifier: {name}\ndomains: [kafka.{name}.example.com]\n",
                    header("Organization")
                ),
            );
            tree.put(&format!("{name}/base-domains.yaml"), &base_domain(&name));
        }
        for fleet in 0..fleets {
            tree.put(&format!("{}/fleets/{}.yaml", owner(fleet), fleet_name(fleet)), &tree.fleet_spec(fleet));
        }
        for cluster in 0..clusters {
            tree.put(&tree.cluster_file(cluster), &tree.cluster_spec(cluster, 1, ""));
        }
        tree
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Rewrites one cluster's spec with this many units and further lines under `advanced_config`.
    pub fn change(&self, cluster: usize, units: u32, settings: &str) {
        self.put(&self.cluster_file(cluster), &self.cluster_spec(cluster, units, settings));
    }

    fn cluster_file(&self, cluster: usize) -> String {
        format!("{}/clusters/{}.yaml", owner(cluster / self.hosts.clusters), cluster_name(cluster))
    }

    fn fleet_spec(&self, fleet: usize) -> String {
        let (organization, Hosts { clusters, infra_type, settings }) = (owner(fleet), &self.hosts);
        format!(
            "{}organization: {organization}\nidentifier: {}\ninfra_type: {infra_type}\ndomain: kafka.{organization}.example.com\n\
             tenancy_mode: Shared\nmax_tenants: {clusters}\nmax_kafka_units: {}\n{settings}",
            header("Fleet"),
            fleet_name(fleet),
            4 * clusters
        )
    }

    fn cluster_spec(&self, cluster: usize, units: u32, settings: &str) -> String {
        let fleet = cluster / self.hosts.clusters;
        let access = if cluster.is_multiple_of(2) { "Internal & External" } else { "Internal" };
        format!(
            "# Owned by team {}; see the wiki for what it is for.\n{}organization: {}\ninfrastructure: {}\nidentifier: {}\n\
             cloud_provider: {}\ncluster_type: kafka\ntenancy_mode: Shared\nkafka_units: {units}\ntags:\n  - key: team\n    value: team-{}\n\
             advanced_config:\n  version: 4.3.1\n  number_of_zones: 3\n  cluster_access: {access}\n{settings}",
            cluster % 37,
            header("Cluster"),
            owner(fleet),
            fleet_name(fleet),
            cluster_name(cluster),
            self.hosts.infra_type,
            cluster % 37
        )
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
