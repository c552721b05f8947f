//! The DNS records of clusters whose base domain Streamfleet keeps itself (`rfc2136` and `route53`).
//!
//! A record is an object of its cluster like all others, but on the DNS server of the zone instead of on the Kubernetes
//! cluster. It exists only once the load balancer or the Gateway that it leads to has an address.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use serde_json::{Value, json};

use super::{COMPONENTS, Manifest, Stage, gateway, load_balancers};
use crate::catalog::{ClusterDomain, HostNames, ResolvedCluster};
use crate::component::Verdict::InPlace;
use crate::component::consequence::*;
use crate::component::labels::HOST;
use crate::component::{Component, Difference, KubernetesKind, ObjectFacts};
use crate::names::{Domain, Json, ObjectKey};
use crate::spec::Exposure;

pub static COMPONENT: Component = Component {
    objects: &[ObjectFacts { kind: KIND, stage: Stage::Name, ..ObjectFacts::NONE }],
    consequences: Consequences {
        rows: ROWS,
        created,
        placeholders: &[("{host}", host)],
        ..Consequences::NONE
    },
    ..Component::NONE
};

const KIND: &str = "DnsRecord";
const API_VERSION: &str = "dns.streamfleet.io/v1";

/// The key of an observed record's body with what it says of its owner, if that isn't us.
pub const OWNER: &str = "owner";

/// The condition of a fleet whose records can't be read.
pub const FAILING: &str = "DnsFailing";

/// The most addresses that a name gets. A load balancer has one or two for each zone.
const MAX_ADDRESSES: usize = 16;

#[rustfmt::skip]
const ROWS: &[Row] = &[
    row(KIND, "/spec/addresses/**", CHANGES, InPlace, ELSEWHERE),
    row(KIND, "/spec/alias", CHANGES, InPlace, ELSEWHERE),
    row(KIND, "/spec/**", CHANGES, InPlace, "the DNS record of {host} changes"),
    row(KIND, "", DELETED, InPlace, "the DNS record of {host} is deleted: clients don't find that name any more"),
    row(KIND, "", REWRITTEN, InPlace, ELSEWHERE),
];

const ELSEWHERE: &str = "{host} leads to another address, which clients use within a minute";

/// The destination of a host name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostRecords {
    pub addresses: BTreeSet<IpAddr>,
    /// Another name, if there are no addresses.
    pub alias: Option<String>,
}

/// The host names of a cluster that were found, with where each leads: nowhere yet, if that is empty.
pub type FoundHosts = BTreeMap<String, HostRecords>;

/// Whether an object is a DNS record, and so on no Kubernetes cluster.
pub fn is_record(object: &ObjectKey) -> bool {
    object.kind == KIND && object.api_version == API_VERSION
}

/// The domain of a cluster whose records Streamfleet keeps.
pub fn kept_domain(cluster: &ResolvedCluster) -> Option<&ClusterDomain> {
    load_balancers::external_domain(cluster).filter(|domain| domain.dns_provider.is_kept())
}

/// The kind of the objects that say which brokers a cluster has, for [`of_nodes`].
pub static NODES: &KubernetesKind = &super::kafka::kinds::NODE_POOL;

/// The records of a cluster that have to stay as they are, among its known records and those that would be made. `found` is
/// none if nothing could be found out.
pub fn undecided<'k>(
    cluster: &ResolvedCluster,
    found: Option<&FoundHosts>,
    known: impl Iterator<Item = &'k ObjectKey>,
) -> BTreeSet<ObjectKey> {
    let Some(domain) = kept_domain(cluster) else { return BTreeSet::new() };
    let hosts = found.into_iter().flat_map(BTreeMap::keys).chain([&domain.bootstrap_host]);
    let wanted = hosts.map(|host| key(cluster, host));
    let is_undecided =
        |record: &ObjectKey| belongs(cluster, domain, &record.name) && is_undecided(domain, found, record);
    known.cloned().chain(wanted).filter(is_undecided).collect()
}

/// The records of a cluster, as far as it is known where they lead.
pub fn records(cluster: &ResolvedCluster, found: &FoundHosts) -> Vec<Manifest> {
    let Some(domain) = kept_domain(cluster) else { return Vec::new() };
    let ready = found.iter().filter(|(host, leads)| belongs(cluster, domain, host) && !leads.is_empty());
    let record = |(host, leads): (&String, &HostRecords)| Manifest {
        key: key(cluster, host),
        owner: cluster.key.clone(),
        stage: Stage::Name,
        body: leads.body(host, &domain.zone),
    };
    ready.map(record).collect()
}

/// Whether it isn't known if a record of a cluster's own name should be deleted.
fn is_undecided(domain: &ClusterDomain, found: Option<&FoundHosts>, record: &ObjectKey) -> bool {
    let Some(found) = found else { return true };
    match found.get(&record.name) {
        Some(leads) => leads.is_empty(),
        // Without the name that every cluster has, the operator may be about to make everything anew.
        None => !found.contains_key(&domain.bootstrap_host),
    }
}

/// The key of a record. It counts to the namespace of its cluster.
pub fn key(cluster: &ResolvedCluster, host: &str) -> ObjectKey {
    ObjectKey {
        namespace: Some(cluster.namespace.clone()),
        kind: KIND.to_owned(),
        name: host.to_owned(),
        api_version: API_VERSION.to_owned(),
    }
}

/// Whether a host name is one of a cluster's own, whoever says so.
fn belongs(cluster: &ResolvedCluster, domain: &ClusterDomain, host: &str) -> bool {
    let is_of = |names: &HostNames| {
        let template = names.template(&cluster.spec.identifier, &domain.domain);
        match template.split_once(HostNames::NUMBER) {
            None => host == template,
            Some((head, tail)) => {
                let number = host.strip_prefix(head).and_then(|rest| rest.strip_suffix(tail));
                let number = number.filter(|number| !number.starts_with('0') || *number == "0");
                number.and_then(|number| number.parse().ok()).is_some_and(|number: u32| number <= names.last)
            }
        }
    };
    host == domain.bootstrap_host || used_names(cluster).any(is_of)
}

/// The names that a cluster has beside its own.
fn used_names(cluster: &ResolvedCluster) -> impl Iterator<Item = &'static HostNames> {
    let all = COMPONENTS.iter().flat_map(|component| component.hosts);
    all.filter(|names| (names.is_used)(&cluster.spec))
}

/// How the names of a cluster are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameSource {
    /// By the Services of its load balancers.
    Services,
    /// By its brokers, since all names lead to the fleet's Gateway.
    Gateway,
}

impl NameSource {
    pub fn of(cluster: &ResolvedCluster) -> NameSource {
        match cluster.fleet_spec.advanced_config.exposure {
            Exposure::LoadBalancer => NameSource::Services,
            Exposure::TlsRoute => NameSource::Gateway,
        }
    }
}

/// The Gateway of a fleet.
pub fn gateway_key() -> ObjectKey {
    gateway::key()
}

/// The host name of a Service of a load balancer, and where it leads.
pub fn of_service(service: &Value) -> Option<(String, HostRecords)> {
    let host = service.pointer("/metadata/annotations")?.get(HOST)?.as_str()?;
    let ingress = service.pointer("/status/loadBalancer/ingress").and_then(Value::as_array);
    let texts =
        |field: &'static str| ingress.into_iter().flatten().filter_map(move |it| it.get(field)?.as_str());
    Some((host.to_owned(), HostRecords::of(texts("ip"), texts("hostname"))))
}

/// Where the names of all clusters lead that a Gateway serves.
pub fn of_gateway(gateway: &Value) -> HostRecords {
    let addresses = gateway.pointer("/status/addresses").and_then(Value::as_array);
    let values = || addresses.into_iter().flatten().filter_map(|it| it.get("value")?.as_str());
    let is_address = |value: &&str| value.parse::<IpAddr>().is_ok();
    HostRecords::of(values().filter(is_address), values().filter(|value| !is_address(value)))
}

/// The names of a cluster behind a Gateway. `nodes` are the objects that say which brokers there are.
pub fn of_nodes<'v>(
    cluster: &ResolvedCluster,
    nodes: impl Iterator<Item = &'v Value>,
    leads: &HostRecords,
) -> FoundHosts {
    let Some(domain) = kept_domain(cluster) else { return FoundHosts::new() };
    let ids = nodes.filter_map(|pool| pool.pointer("/status/nodeIds")?.as_array()).flatten();
    let ids: Vec<u64> = ids.filter_map(Value::as_u64).collect();
    let template = |names: &HostNames| names.template(&cluster.spec.identifier, &domain.domain);
    let (numbered, others): (Vec<&HostNames>, Vec<&HostNames>) =
        used_names(cluster).partition(|names| names.prefix.contains(HostNames::NUMBER));
    let of_nodes = numbered.into_iter().flat_map(|names| {
        let known = ids.iter().filter(|id| **id <= u64::from(names.last));
        known.map(|id| template(names).replace(HostNames::NUMBER, &id.to_string())).collect::<Vec<_>>()
    });
    let of_nodes: Vec<String> = of_nodes.collect();
    if of_nodes.is_empty() {
        // The operator hasn't said it yet, or not again after its objects were lost.
        return FoundHosts::new();
    }
    let others = others.into_iter().map(template).chain([domain.bootstrap_host.clone()]);
    let all = of_nodes.into_iter().chain(others);
    all.map(|host| (host, leads.clone())).collect()
}

impl HostRecords {
    pub fn is_empty(&self) -> bool {
        self.addresses.is_empty() && self.alias.is_none()
    }

    fn of<'t>(addresses: impl Iterator<Item = &'t str>, names: impl Iterator<Item = &'t str>) -> HostRecords {
        let addresses: BTreeSet<IpAddr> =
            addresses.filter_map(|it| it.parse().ok()).take(MAX_ADDRESSES).collect();
        let mut names =
            names.filter_map(|name| name.trim_end_matches('.').to_lowercase().parse::<Domain>().ok());
        let alias = names.next().filter(|_| addresses.is_empty()).map(|name| name.to_string());
        HostRecords { addresses, alias }
    }

    /// The record of a host name as an object.
    pub fn body(&self, host: &str, zone: &Domain) -> Json {
        let mut spec = json!({"zone": zone});
        if let Some(alias) = &self.alias {
            spec["alias"] = alias.as_str().into();
        }
        if !self.addresses.is_empty() {
            spec["addresses"] = json!(self.addresses);
        }
        Json::from(
            &json!({"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": host}, "spec": spec}),
        )
    }

    /// Reads what [`HostRecords::body`] wrote.
    pub fn of_body(body: &Value) -> HostRecords {
        let addresses = body.pointer("/spec/addresses").and_then(Value::as_array).into_iter().flatten();
        let addresses = addresses.filter_map(|it| it.as_str()?.parse().ok()).collect();
        let alias = body.pointer("/spec/alias").and_then(Value::as_str).map(str::to_owned);
        HostRecords { addresses, alias }
    }
}

fn host(change: &ObjectChange, _: Option<&Difference>) -> String {
    change.object.name.clone()
}

/// `makes 4 DNS records`.
fn created(objects: &[&Manifest]) -> Option<String> {
    let records = objects.iter().filter(|it| is_record(&it.key));
    match records.clone().count() {
        0 => None,
        1 => records.map(|it| format!("makes the DNS record of {}", it.key.name)).next(),
        count => Some(format!("makes {count} DNS records")),
    }
}

#[cfg(test)]
mod tests;
