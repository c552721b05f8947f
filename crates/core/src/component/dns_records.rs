//! The DNS records of clusters and fleets whose base domain Streamfleet keeps itself (`rfc2136` and `route53`).
//!
//! A record is an object of its cluster or fleet like all others, but on the DNS server of the zone instead of on the Kubernetes
//! cluster. It exists only once the load balancer or the Gateway that it leads to has an address.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use serde_json::{Value, json};

use super::{COMPONENTS, Manifest, Stage, gateway, load_balancers, prometheus};
use crate::catalog::{HostNames, ResolvedCluster, ResolvedDomain, ResolvedFleet, of_prometheus};
use crate::component::Verdict::InPlace;
use crate::component::consequence::*;
use crate::component::labels::HOST;
use crate::component::{Component, Difference, KubernetesKind, ObjectFacts};
use crate::names::{Domain, Json, ObjectKey, ResourceKey};
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

/// The kind of the objects that say which brokers a cluster has, for [`NamedResource::behind`].
pub static NODES: &KubernetesKind = &super::kafka::kinds::NODE_POOL;

/// A resource with host names whose records Streamfleet keeps.
pub struct NamedResource<'a> {
    pub key: ResourceKey,
    pub namespace: &'a str,
    pub source: NameSource,
    /// Select the Services of its load balancers, each as a part of the URL's query.
    pub services: BTreeSet<&'static str>,
    domain: &'a ResolvedDomain,
    /// The name that it always has.
    first: String,
    /// Its other names.
    others: Vec<NameTemplate>,
}

/// A host name, or one for each node.
struct NameTemplate {
    /// With [`HostNames::NUMBER`] in the place of a node's number.
    text: String,
    /// The highest number.
    last: u32,
}

/// How the names of a resource are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameSource {
    /// By the Services of its load balancers.
    Services,
    /// By its brokers, since all names lead to the fleet's Gateway.
    Gateway,
}

impl From<Exposure> for NameSource {
    fn from(exposure: Exposure) -> NameSource {
        match exposure {
            Exposure::LoadBalancer => NameSource::Services,
            Exposure::TlsRoute => NameSource::Gateway,
        }
    }
}

impl<'a> NamedResource<'a> {
    /// `None` for a cluster whose records Streamfleet doesn't keep.
    pub fn of_cluster(cluster: &'a ResolvedCluster) -> Option<Self> {
        let domain = load_balancers::external_domain(cluster).filter(|it| it.dns_provider.is_kept())?;
        let used = |names: &&HostNames| (names.is_used)(&cluster.spec);
        let components = COMPONENTS.iter().filter(|component| component.hosts.iter().any(|it| used(&it)));
        let template = |names: &HostNames| NameTemplate {
            text: names.template(&cluster.spec.identifier, &domain.domain),
            last: names.last,
        };
        let names = components.clone().flat_map(|component| component.hosts).filter(used);
        Some(Self {
            key: cluster.key.clone(),
            namespace: &cluster.namespace,
            source: cluster.fleet_spec.advanced_config.exposure.into(),
            services: components.filter_map(|component| component.services).collect(),
            domain,
            first: domain.bootstrap_host(&cluster.spec.identifier),
            others: names.map(template).collect(),
        })
    }

    /// `None` for a fleet without names of its own, or whose records Streamfleet doesn't keep.
    pub fn of_fleet(fleet: &'a ResolvedFleet) -> Option<Self> {
        let domain = &fleet.own_prometheus.as_ref().filter(|it| it.domain.dns_provider.is_kept())?.domain;
        Some(Self {
            key: fleet.key.resource(),
            namespace: prometheus::NAMESPACE,
            source: fleet.spec.advanced_config.exposure.into(),
            services: prometheus::COMPONENT.services.into_iter().collect(),
            domain,
            first: of_prometheus(&fleet.key.fleet, &domain.domain),
            others: Vec::new(),
        })
    }

    /// The records that have to stay as they are, among its known records and those that would be made. `found` is none if
    /// nothing could be found out.
    pub fn undecided<'k>(
        &self,
        found: Option<&FoundHosts>,
        known: impl Iterator<Item = &'k ObjectKey>,
    ) -> BTreeSet<ObjectKey> {
        let hosts = found.into_iter().flat_map(BTreeMap::keys).chain([&self.first]);
        let wanted = hosts.map(|host| self.record_key(host));
        let is_undecided =
            |record: &ObjectKey| self.has(&record.name) && self.is_undecided(found, &record.name);
        known.cloned().chain(wanted).filter(is_undecided).collect()
    }

    /// Its records, as far as it is known where they lead.
    pub fn records(&self, found: &FoundHosts) -> Vec<Manifest> {
        let ready = found.iter().filter(|(host, leads)| self.has(host) && !leads.is_empty());
        let record = |(host, leads): (&String, &HostRecords)| Manifest {
            key: self.record_key(host),
            owner: self.key.clone(),
            stage: Stage::Name,
            body: leads.body(host, &self.domain.zone),
        };
        ready.map(record).collect()
    }

    /// Whether it isn't known if the record of a name of its own should be deleted.
    fn is_undecided(&self, found: Option<&FoundHosts>, host: &str) -> bool {
        let Some(found) = found else { return true };
        match found.get(host) {
            Some(leads) => leads.is_empty(),
            // Without the name that it always has, the operator may be about to make everything anew.
            None => !found.contains_key(&self.first),
        }
    }

    /// The key of a record. It counts to the namespace of its resource.
    fn record_key(&self, host: &str) -> ObjectKey {
        ObjectKey {
            namespace: Some(self.namespace.to_owned()),
            kind: KIND.to_owned(),
            name: host.to_owned(),
            api_version: API_VERSION.to_owned(),
        }
    }

    /// Whether a host name is one of its own, whoever says so.
    fn has(&self, host: &str) -> bool {
        host == self.first || self.others.iter().any(|names| names.has(host))
    }

    /// Its names behind a Gateway. `nodes` are the objects that say which brokers there are.
    pub fn behind<'v>(&self, leads: &HostRecords, nodes: impl Iterator<Item = &'v Value>) -> FoundHosts {
        let ids = nodes.filter_map(|pool| pool.pointer("/status/nodeIds")?.as_array()).flatten();
        let ids: Vec<u64> = ids.filter_map(Value::as_u64).collect();
        let (numbered, others): (Vec<&NameTemplate>, Vec<&NameTemplate>) =
            self.others.iter().partition(|names| names.text.contains(HostNames::NUMBER));
        let of_nodes: Vec<String> = numbered.iter().flat_map(|names| names.numbered(&ids)).collect();
        if of_nodes.is_empty() && !numbered.is_empty() {
            // The operator hasn't said it yet, or not again after its objects were lost.
            return FoundHosts::new();
        }
        let others = others.into_iter().map(|names| names.text.clone()).chain([self.first.clone()]);
        of_nodes.into_iter().chain(others).map(|host| (host, leads.clone())).collect()
    }
}

impl NameTemplate {
    fn has(&self, host: &str) -> bool {
        match self.text.split_once(HostNames::NUMBER) {
            None => host == self.text,
            Some((head, tail)) => {
                let number = host.strip_prefix(head).and_then(|rest| rest.strip_suffix(tail));
                let number = number.filter(|number| !number.starts_with('0') || *number == "0");
                number.and_then(|number| number.parse().ok()).is_some_and(|number: u32| number <= self.last)
            }
        }
    }

    /// The names of these nodes.
    fn numbered(&self, ids: &[u64]) -> Vec<String> {
        let known = ids.iter().filter(|id| **id <= u64::from(self.last));
        known.map(|id| self.text.replace(HostNames::NUMBER, &id.to_string())).collect()
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

/// The addresses to which the names of all clusters behind a Gateway lead.
pub fn of_gateway(gateway: &Value) -> HostRecords {
    let addresses = gateway.pointer("/status/addresses").and_then(Value::as_array);
    let values = || addresses.into_iter().flatten().filter_map(|it| it.get("value")?.as_str());
    let is_address = |value: &&str| value.parse::<IpAddr>().is_ok();
    HostRecords::of(values().filter(is_address), values().filter(|value| !is_address(value)))
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
