//! Whether clients reach the Gateway of a fleet.

use jiff::Timestamp;
use serde_json::Value;

use super::kinds::GATEWAY;
use crate::catalog::Condition;
use crate::component::health::reading::{at, items, name, text};
use crate::component::health::words::brief;
use crate::component::health::{AppliedClusters, FleetObservation, ReadObjects};
use crate::names::Json;

/// The name of a Gateway object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GatewayName {
    pub namespace: String,
    pub name: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GatewayWithoutAddress {
    /// As `namespace/name`.
    pub gateway: String,
    pub made: Option<Timestamp>,
    /// The complaint of its controller, if any.
    pub controller_message: Option<String>,
}

impl GatewayName {
    fn find(&self, read: &ReadObjects) -> Option<Value> {
        let is_it = |gateway: &Value| {
            text(gateway, &["metadata", "namespace"]).as_ref() == Some(&self.namespace)
                && name(gateway).as_ref() == Some(&self.name)
        };
        read.of(&GATEWAY)?.map(Json::value).find(is_it)
    }
}

/// Finds out whether clients reach the Gateway that clusters are reached through.
pub fn observe(wanted: &AppliedClusters, read: &ReadObjects, seen: &mut FleetObservation) {
    let name = wanted.values().find_map(|wanted| wanted.gateway.as_ref());
    let gateway = name.and_then(|name| name.find(read));
    seen.gateway = gateway.as_ref().and_then(address);
    seen.unserved = gateway.as_ref().and_then(GatewayWithoutAddress::of);
}

/// The address of a Gateway, if it has one.
fn address(gateway: &Value) -> Option<String> {
    let first = at(gateway, &["status", "addresses"])?.get(0)?;
    text(first, &["value"]).filter(|address| !address.is_empty())
}

impl GatewayWithoutAddress {
    /// Reads a Gateway, with its controller's complaint; `None` if it has an address.
    fn of(gateway: &Value) -> Option<Self> {
        if address(gateway).is_some() {
            return None;
        }
        // Conditions that are still `Unknown` are no complaint.
        let complains = |it: &&Value| {
            ["Accepted", "Programmed"].iter().any(|kind| it["type"] == *kind) && it["status"] == "False"
        };
        let says = items(gateway, &["status", "conditions"]).filter(complains);
        let mut says = says.filter_map(|it| text(it, &["message"])).filter(|says| !says.is_empty());
        let namespace = text(gateway, &["metadata", "namespace"]).unwrap_or_default();
        Some(Self {
            gateway: format!("{namespace}/{}", name(gateway).unwrap_or_default()),
            made: text(gateway, &["metadata", "creationTimestamp"]).and_then(|made| made.parse().ok()),
            controller_message: says.next(),
        })
    }

    /// The condition of its fleet once it has had no address for too long.
    pub fn condition(&self, since: Timestamp) -> Condition {
        let Self { gateway, made: _, controller_message: says } = self;
        let says =
            says.as_ref().map_or_else(String::new, |says| format!("; its controller says: {}", brief(says)));
        Condition {
            kind: "GatewayUnserved".to_owned(),
            degraded: true,
            message: format!(
                "Gateway {gateway} has had no address since {} UTC, so clients outside of Kubernetes can't reach clusters \
                 through it{says}; check that the controller of its GatewayClass runs and that the cluster provides load \
                 balancers",
                since.strftime("%Y-%m-%d %H:%M")
            ),
        }
    }
}
