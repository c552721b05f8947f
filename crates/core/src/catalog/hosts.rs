//! The host names of clusters, and checks that they are valid and unique.

use std::collections::BTreeMap;

use crate::catalog::draft::{CatalogDraft, CatalogFinding};
use crate::names::{Domain, Identifier, Kind, ResourceKey};
use crate::problem::Problem;
use crate::spec::{Cluster, Spec};

/// The host names of a component of a cluster, beside the cluster's own. They are one label below the base
/// domain, so that one wildcard certificate is enough.
#[derive(Debug, Clone, Copy)]
pub struct HostNames {
    /// The owner of the names, as in "the brokers of `orders`".
    pub owner: &'static str,
    /// The prefix of the cluster's identifier. It ends in `--`, which no identifier contains, so that it makes
    /// no name of another cluster.
    pub prefix: &'static str,
    /// The highest number that replaces [`HostNames::NUMBER`] in the prefix, if it is in there.
    pub last: u32,
    /// Whether a cluster has them, if clients outside of Kubernetes reach it.
    pub is_used: fn(&Cluster) -> bool,
}

impl HostNames {
    /// Strimzi's placeholder for the number of a node.
    pub const NUMBER: &'static str = "{nodeId}";

    /// The host name with the placeholder for its number.
    pub fn template(&self, cluster: &Identifier, domain: &Domain) -> String {
        format!("{}{cluster}.{domain}", self.prefix)
    }

    pub(super) fn first(&self, cluster: &Identifier, domain: &Domain) -> String {
        self.template(cluster, domain).replace(Self::NUMBER, "0")
    }

    fn longest(&self, cluster: &Identifier, domain: &Domain) -> String {
        self.template(cluster, domain).replace(Self::NUMBER, &self.last.to_string())
    }
}

/// Ends in `--`, as the prefixes of the host names of clusters do.
pub const PROMETHEUS: &str = "metrics--";

/// The prefixes of host names that no cluster may have, since they are those of fleets, now or later.
pub const OF_FLEETS: [&str; 3] = [PROMETHEUS, "dashboards--", "logs--"];

/// The host name of a fleet's own Prometheus.
pub fn of_prometheus(fleet: &Identifier, domain: &Domain) -> String {
    format!("{PROMETHEUS}{fleet}.{domain}")
}

pub(super) fn bootstrap(cluster: &Identifier, domain: &Domain) -> String {
    format!("{cluster}.{domain}")
}

/// Returns the base domain of a cluster's addresses; none if the cluster is reachable only from inside, or if
/// its fleet or the domain can't be used.
pub(super) fn domain_of(draft: &CatalogDraft, cluster: &Cluster) -> Option<(ResourceKey, Domain)> {
    if !cluster.advanced_config.cluster_access.is_external() {
        return None;
    }
    let fleet_key = ResourceKey::new(Kind::Fleet, &cluster.organization, cluster.infrastructure.as_str());
    let key = draft.find_domain(&cluster.organization, draft.fleet(&fleet_key)?.domain.as_ref()?)?;
    draft.usable(&key)?;
    let domain = key.name.parse().ok()?;
    Some((key, domain))
}

/// Refuses clusters whose host names are invalid or already in use. Clusters that are reachable already keep
/// their names; then the oldest comes first.
pub(super) fn check(draft: &mut CatalogDraft) {
    let mut clusters: Vec<_> = draft
        .settled_of(Kind::Cluster)
        .filter(|(_, settled)| settled.is_usable())
        .filter_map(|(key, settled)| match &settled.spec {
            Spec::Cluster(cluster) => {
                let (_, domain) = domain_of(draft, cluster)?;
                Some((
                    !is_reached(draft, key),
                    draft.seniority(key),
                    key.clone(),
                    cluster.identifier.clone(),
                    domain,
                ))
            }
            _ => None,
        })
        .collect();
    clusters.sort();
    let domains = domain_owners(draft);
    let mut taken: BTreeMap<String, ResourceKey> = BTreeMap::new();
    for (is_new, _, key, identifier, domain) in clusters {
        let host = bootstrap(&identifier, &domain);
        let is_foreign_domain =
            domains.get(&host).is_some_and(|owners| owners.iter().any(|owner| *owner != key.organization));
        let findings = [
            too_long(draft.hosts, &identifier, &domain),
            (taken.contains_key(&host) || (is_new && is_foreign_domain)).then(|| host_taken(&host)),
        ];
        let findings: Vec<_> = findings.into_iter().flatten().collect();
        if findings.is_empty() {
            taken.insert(host, key);
        } else if let Some(document) = draft.claims.get(&key).and_then(|claim| claim.document) {
            draft.refuse(document, findings);
        }
    }
}

fn is_reached(draft: &CatalogDraft, key: &ResourceKey) -> bool {
    matches!(draft.last_good(key), Some(Spec::Cluster(cluster)) if cluster.advanced_config.cluster_access.is_external())
}

fn domain_owners(draft: &CatalogDraft) -> BTreeMap<String, Vec<Identifier>> {
    let mut owners: BTreeMap<String, Vec<Identifier>> = BTreeMap::new();
    for (key, _) in draft.settled_of(Kind::BaseDomain).filter(|(_, settled)| settled.is_usable()) {
        owners.entry(key.name.to_string()).or_default().push(key.organization.clone());
    }
    owners
}

fn host_taken(host: &str) -> CatalogFinding {
    let problem =
        Problem::error("host-taken", format!("`{host}` is already the address of another resource"))
            .hint("give the cluster another identifier, or its fleet another domain");
    CatalogFinding::new("/identifier", "gives that address", problem)
}

/// The longest name counts. A cluster's own is shorter than those of its components.
fn too_long(hosts: &[HostNames], cluster: &Identifier, domain: &Domain) -> Option<CatalogFinding> {
    let names = hosts.iter().map(|names| (names.owner, names.longest(cluster, domain)));
    let (owner, host) = names.max_by_key(|(_, host)| host.len())?;
    let problem = overlong(owner, cluster, &host)?;
    Some(CatalogFinding::new("/identifier", "too long with its domain", problem))
}

/// The problem of a host name that is too long for DNS.
pub(super) fn overlong(owner: &str, of: &Identifier, host: &str) -> Option<Problem> {
    if host.parse::<Domain>().is_ok() {
        return None;
    }
    let problem = Problem::error(
        "host-too-long",
        format!("the {owner} of `{of}` would have host names that are too long for DNS"),
    )
    .hint(format!(
        "`{host}` has {} characters; at most {} are allowed, and at most {} between dots; use a shorter identifier or \
         domain",
        host.len(),
        Domain::MAX_LENGTH,
        Domain::MAX_LABEL
    ));
    Some(problem)
}
