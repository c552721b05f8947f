//! The pods of the registry.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};

use super::kinds::{COMPONENT, DEPLOYMENT, DISRUPTION_BUDGET, NAME};
use super::{POD, RegistryContext, environment};
use crate::component::kafka::{self, tls_secret};
use crate::component::labels::{self, CLUSTER, MOUNTED, ZONE};
use crate::component::mount::Mount;
use crate::component::{Manifest, clients, manifest};
use crate::names::Digest;

/// The port for clients, with TLS.
pub const PORT: u16 = 8443;
/// The port for the probes of the kubelet, without TLS and login. It tells whether the registry works, and its metrics.
const MANAGEMENT_PORT: u16 = 9000;

/// The folder for files that the process makes: nothing else can be written.
const TEMPORARY: &str = "/tmp";

pub fn metadata(context: &RegistryContext) -> ObjectMeta {
    let mut metadata = labels::metadata(context.cluster, context.name());
    metadata.labels.get_or_insert_default().insert(COMPONENT.to_owned(), NAME.to_owned());
    metadata
}

/// New schemas are in the topic at once, so that one replica may be replaced by another at any time. A replica is ready
/// when it has read the topic.
pub fn deployment(context: &RegistryContext) -> Manifest {
    let metadata = metadata(context);
    let annotations = context.provider.ca_cert.as_ref().map(|certificates| {
        // They are read only at start.
        json!({MOUNTED: Digest::of(certificates).short()})
    });
    let spec = json!({
        "replicas": context.replicas(),
        "selector": {"matchLabels": selector(context)},
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}},
        "template": {
            "metadata": {"labels": metadata.labels, "annotations": annotations},
            "spec": pod(context),
        },
    });
    manifest::untyped(context.cluster, &DEPLOYMENT, &metadata, spec)
}

/// One pod at a time may be taken away; `None` for a single one, where it would block maintenance of its host.
pub fn disruption_budget(context: &RegistryContext) -> Option<Manifest> {
    let spec = json!({
        "maxUnavailable": 1,
        // Pods that don't serve keep no host from being emptied.
        "unhealthyPodEvictionPolicy": "AlwaysAllow",
        "selector": {"matchLabels": selector(context)},
    });
    let budget = manifest::untyped(context.cluster, &DISRUPTION_BUDGET, &metadata(context), spec);
    (context.replicas() > 1).then_some(budget)
}

fn selector(context: &RegistryContext) -> Value {
    json!({CLUSTER: context.cluster.spec.identifier, COMPONENT: NAME})
}

fn pod(context: &RegistryContext) -> Value {
    let mounts = mounts(context);
    let volumes =
        mounts.iter().map(Mount::volume).chain([json!({"name": "tmp", "emptyDir": {"sizeLimit": "256Mi"}})]);
    let mounted = mounts.iter().map(Mount::mounted).chain([json!({"name": "tmp", "mountPath": TEMPORARY})]);
    let probe = |path: &str| json!({"httpGet": {"path": path, "port": MANAGEMENT_PORT}, "timeoutSeconds": 5});
    let mut starts = probe("/health/ready");
    // Until it has read its topic it counts as neither ready nor alive. Ten minutes are enough for a long one.
    starts["failureThreshold"] = 60.into();
    starts["periodSeconds"] = 10.into();
    json!({
        "automountServiceAccountToken": false,
        "enableServiceLinks": false,
        "affinity": kafka::affinity(context.cluster, false),
        "tolerations": kafka::tolerations(context.cluster),
        "topologySpreadConstraints": [spread(context, ZONE), spread(context, kafka::HOST_TOPOLOGY)],
        "securityContext": {"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [{
            "name": NAME,
            "image": context.image,
            "env": environment::environment(context),
            "ports": [
                {"name": "https", "containerPort": PORT, "protocol": "TCP"},
                {"name": "management", "containerPort": MANAGEMENT_PORT, "protocol": "TCP"},
            ],
            // Until nobody sends it new connections any more.
            "lifecycle": {"preStop": {"sleep": {"seconds": 5}}},
            "startupProbe": starts,
            "readinessProbe": probe("/health/ready"),
            "livenessProbe": probe("/health/live"),
            "resources": POD.to_value(),
            "securityContext": {
                "allowPrivilegeEscalation": false,
                "capabilities": {"drop": ["ALL"]},
                "readOnlyRootFilesystem": true,
            },
            "volumeMounts": mounted.collect::<Vec<_>>(),
        }],
        "volumes": volumes.collect::<Vec<_>>(),
    })
}

fn spread(context: &RegistryContext, topology: &str) -> Value {
    json!({
        "maxSkew": 1,
        "topologyKey": topology,
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": selector(context)},
    })
}

fn mounts(context: &RegistryContext) -> Vec<Mount> {
    let cluster = context.cluster;
    let kafka_ca = clients(cluster).map(|clients| clients.ca_secret).unwrap_or_default();
    let certificate = Mount::secret("tls", tls_secret::name(cluster), environment::TLS_FOLDER);
    let kafka = Mount::secret("kafka-ca", kafka_ca, environment::KAFKA_CA_FOLDER);
    let issuer =
        context.provider.ca_cert.as_ref().map(|_| {
            Mount::config_map("oauth-ca", kafka::oauth_ca_name(cluster), environment::OAUTH_CA_FOLDER)
        });
    [certificate, kafka].into_iter().chain(issuer).collect()
}
