//! A Prometheus of Streamfleet's own, for a fleet that has none: it reads the fleet's clusters, judges the alerts, and is
//! reached by a name of its own over TLS, with a login.
//!
//! It finds pods by itself, so that its configuration doesn't change with the clusters. Their sizes do, in a file of rules
//! that it reads anew by itself, and so do the certificate and the login: nothing of that restarts it.

mod configuration;
mod exposure;
pub mod kinds;
mod login;
mod server;

use serde_json::{Value, json};

use crate::catalog::{ResolvedFleet, ResolvedPrometheus, of_prometheus};
use crate::component::consequence::*;
use crate::component::labels::METRICS;
use crate::component::{
    Component, Difference, FleetScope, Manifest, ObjectFacts, Stage, fleet_manifest, images_of_template,
    monitoring,
};
use crate::names::{ObjectKey, tenths};
use crate::spec::OwnPrometheus;
pub use login::web_configuration;

pub static COMPONENT: Component = Component {
    kinds: &kinds::KINDS,
    is_installed: |extras| extras.prometheus,
    in_fleet,
    services: Some(kinds::SELECTOR),
    objects: &[ObjectFacts {
        kind: "StatefulSet",
        stage: Stage::Operator,
        size: server::size,
        images: images_of_template,
        ..ObjectFacts::NONE
    }],
    consequences: Consequences { rows: ROWS, placeholders: &[("{prometheus}", takes)], ..Consequences::NONE },
    ..Component::NONE
};

const OURS: ObjectFilter = ObjectFilter::Namespace(NAMESPACE);

#[rustfmt::skip]
const ROWS: &[Row] = &[
    Row::in_place("StatefulSet", OURS, "", CREATED, "starts a Prometheus with {prometheus}, which reads the fleet's clusters"),
    Row { kind: "StatefulSet", of: OURS, path: "/spec/volumeClaimTemplates/**", when: CHANGES,
        outcome: RowVerdict::Refuses(DISK) },
    Row::in_place("StatefulSet", OURS, "/spec/template/**", CHANGES, "Prometheus restarts: for a minute or two it reads no metrics and \
        judges no alerts"),
    Row::in_place("StatefulSet", OURS, "", DELETED, "Streamfleet's Prometheus is removed, with its name. Its metrics stay on the disk \
        `data-prometheus-0` in `kafka-monitoring`: delete it by hand if you mean to"),
    Row::in_place("ConfigMap", OURS, "/data/**", CHANGES, "Prometheus follows other rules; clients notice nothing"),
    Row::in_place("Secret", OURS, "/data/web.yml", CHANGES, "whoever reads Prometheus needs the new password, within two minutes"),
    Row::in_place("Secret", OURS, "/data/**", CHANGES, CERTIFICATE),
    Row::in_place("Service", ObjectFilter::Body(is_public), "", CREATED, PUBLIC),
    Row::in_place("Service", OURS, "/spec/type", CHANGES, "the name of Prometheus leads to another address: until its DNS record does, nobody \
        reaches it"),
    Row::in_place("Service", OURS, "/metadata/annotations/**", CHANGES, "the load balancer of Prometheus gets another name, or becomes \
        private or public if the cloud's controller changes an existing one"),
];

const PUBLIC: &str = "Prometheus gets a public load balancer: anyone who can reach it can try to log in";

fn is_public(service: &Value) -> bool {
    let is_ours = service.pointer("/metadata/namespace").is_some_and(|namespace| namespace == NAMESPACE);
    is_ours && crate::component::exposure::is_public(service)
}

/// `0.4 CPUs, 1.5 GiB of memory and a disk of 20 GiB`.
fn takes(change: &ObjectChange, _: Option<&Difference>) -> String {
    let size = change.after.map(|manifest| server::size(&manifest.body)).unwrap_or_default();
    let (cpus, memory) = (tenths(size.cpu_millis, 1000), tenths(size.memory_mib, 1024));
    format!("{cpus} CPUs, {memory} GiB of memory and a disk of {} GiB", size.disk_gib)
}

const CERTIFICATE: &str =
    "Prometheus presents the new certificate within two minutes; its clients notice nothing";

const DISK: [&str; 3] = [
    "prometheus-disk",
    "the disk of {object} can't change",
    "restore `disk_gib` and `storage_class`; or set `prometheus: none`, apply, delete its disk by hand, and turn it on \
     again, which loses its metrics",
];

/// Its namespace. It holds Secrets, and rights to these are given only in namespaces that begin like those of clusters. No
/// cluster's is called so: theirs contain `--`.
pub const NAMESPACE: &str = "kafka-monitoring";

/// Whether an object follows from the clusters of its fleet, and not from the fleet alone.
pub fn follows_clusters(object: &ObjectKey) -> bool {
    object.namespace.as_deref() == Some(NAMESPACE)
        && object.kind == "ConfigMap"
        && object.name == configuration::SIZES
}

/// The name of all its objects, of its service account, and of the user who reads it.
pub const NAME: &str = "prometheus";

struct PrometheusContext<'a> {
    fleet: &'a ResolvedFleet,
    spec: &'a OwnPrometheus,
    resolved: &'a ResolvedPrometheus,
    image: &'a str,
}

impl<'a> PrometheusContext<'a> {
    /// `None` for a fleet without one of its own, with one that was refused earlier, or while the first certificate of its
    /// base domain is awaited.
    fn new(scope: &FleetScope<'a>) -> Option<Self> {
        Some(Self {
            fleet: scope.fleet,
            spec: scope.fleet.spec.advanced_config.own_prometheus()?,
            resolved: scope.fleet.own_prometheus.as_ref()?,
            image: scope.config.images.prometheus.as_deref()?,
        })
    }

    fn host(&self) -> String {
        of_prometheus(&self.fleet.key.fleet, &self.resolved.domain.domain)
    }

    fn object(&self, api_version: &str, kind: &str, name: &str, mut body: serde_json::Value) -> Manifest {
        body["apiVersion"] = api_version.into();
        body["kind"] = kind.into();
        body["metadata"]["name"] = name.into();
        body["metadata"]["namespace"] = NAMESPACE.into();
        body["metadata"]["labels"]["app.kubernetes.io/name"] = NAME.into();
        fleet_manifest::object(self.fleet, body)
    }
}

fn in_fleet(scope: &FleetScope) -> Vec<Manifest> {
    let Some(context) = PrometheusContext::new(scope) else { return Vec::new() };
    let (label, value) = METRICS;
    let labels = json!({label: value});
    let mut objects = vec![fleet_manifest::labelled_namespace(scope.fleet, NAMESPACE, "restricted", &labels)];
    objects.extend(configuration::objects(&context, scope));
    objects.extend(login::secrets(&context));
    objects.extend(server::objects(&context));
    objects.extend(exposure::objects(&context));
    let monitoring = scope.fleet.spec.advanced_config.monitoring.as_ref();
    if monitoring.is_some_and(|monitoring| monitoring.dashboards) {
        objects.extend(monitoring::dashboards(scope.fleet, NAMESPACE, &json!({})));
    }
    objects
}

#[cfg(test)]
mod tests;
