//! The server itself, with its disk.

use serde_json::{Value, json};

use super::{NAME, PrometheusContext, configuration, login};
use crate::component::mount::Mount;
use crate::component::{Manifest, Resources, Size};
use crate::names::Json;

/// The port for clients, with TLS and login.
pub const PORT: u16 = 9090;

/// The user `nobody` of the image, who may write to the disk.
const USER: u64 = 65_534;

const DATA: &str = "/prometheus";

/// The part of its disk that blocks may take, in percent. The rest is for what is not yet in a block.
const FILLED: u64 = 80;

/// What it takes beside the series of clusters, and for each Kafka unit that the fleet may have: a guess of 20,000 series,
/// at some kB each.
const BASE: Resources = Resources { cpu_millis: 200, memory_mib: 512 };
const EACH_UNIT: Resources = Resources { cpu_millis: 20, memory_mib: 100 };

/// A limit of units that is far above what there is shouldn't keep it from starting.
const MOST_UNITS: u64 = 500;

pub fn objects(context: &PrometheusContext) -> Vec<Manifest> {
    // The token is for its pod alone, which asks for it.
    let account = json!({"automountServiceAccountToken": false});
    vec![
        context.object("v1", "ServiceAccount", NAME, account),
        context.object("apps/v1", "StatefulSet", NAME, json!({"spec": spec(context)})),
    ]
}

fn spec(context: &PrometheusContext) -> Value {
    let labels = json!({"app.kubernetes.io/name": NAME});
    let mut claim = json!({
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": format!("{}Gi", context.spec.disk_gib)}},
    });
    if let Some(class) = &context.fleet.spec.advanced_config.storage_class {
        claim["storageClassName"] = class.as_str().into();
    }
    json!({
        "replicas": 1,
        // Else a pod that never starts would stay as it is, whatever its template becomes.
        "podManagementPolicy": "Parallel",
        "serviceName": NAME,
        "selector": {"matchLabels": labels},
        // Its metrics stay where it is removed.
        "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
        "template": {"metadata": {"labels": labels}, "spec": pod(context)},
        "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": claim}],
    })
}

fn pod(context: &PrometheusContext) -> Value {
    let files: Vec<Mount> = configuration::mounts().into_iter().chain(login::mounts()).collect();
    let volumes: Vec<Value> = files.iter().map(Mount::volume).collect();
    let data = json!({"name": "data", "mountPath": DATA});
    let mounts: Vec<Value> = files.iter().map(Mount::mounted).chain([data]).collect();
    // A login would be needed to ask for more.
    let listens = json!({"tcpSocket": {"port": PORT}, "periodSeconds": 10});
    json!({
        "serviceAccountName": NAME,
        "automountServiceAccountToken": true,
        "enableServiceLinks": false,
        // It ends by writing down what it has.
        "terminationGracePeriodSeconds": 300,
        "securityContext": {
            "runAsNonRoot": true,
            "runAsUser": USER,
            "runAsGroup": USER,
            "fsGroup": USER,
            "fsGroupChangePolicy": "OnRootMismatch",
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [{
            "name": NAME,
            "image": context.image,
            "args": arguments(context),
            "ports": [{"name": "https", "containerPort": PORT, "protocol": "TCP"}],
            "readinessProbe": listens,
            "livenessProbe": listens,
            "resources": resources(context).to_value(),
            "securityContext": {
                "allowPrivilegeEscalation": false,
                "capabilities": {"drop": ["ALL"]},
                "readOnlyRootFilesystem": true,
            },
            "volumeMounts": mounts,
        }],
        "volumes": volumes,
    })
}

fn arguments(context: &PrometheusContext) -> Vec<String> {
    let bytes = u64::from(context.spec.disk_gib) * 1024 * FILLED / 100;
    vec![
        format!("--config.file={}", configuration::FILE),
        format!("--storage.tsdb.path={DATA}"),
        format!("--storage.tsdb.retention.time={}d", context.spec.retention_days),
        format!("--storage.tsdb.retention.size={bytes}MB"),
        format!("--web.listen-address=:{PORT}"),
        format!("--web.external-url=https://{}/", context.host()),
        format!("--web.config.file={}/{}", login::WEB_FOLDER, login::WEB_FILE),
        // Its files change with the clusters.
        "--enable-feature=auto-reload-config".to_owned(),
    ]
}

fn resources(context: &PrometheusContext) -> Resources {
    let units = u64::from(context.fleet.spec.max_kafka_units).min(MOST_UNITS);
    Resources {
        cpu_millis: BASE.cpu_millis + units * EACH_UNIT.cpu_millis,
        memory_mib: BASE.memory_mib + units * EACH_UNIT.memory_mib,
    }
}

pub fn size(set: &Json) -> Size {
    let claims = set.value();
    let claims = claims.pointer("/spec/volumeClaimTemplates").and_then(Value::as_array);
    let storage = |claim: &Value| {
        let text = claim.pointer("/spec/resources/requests/storage")?.as_str()?;
        text.strip_suffix("Gi")?.parse::<u64>().ok()
    };
    let disk_gib = claims.into_iter().flatten().filter_map(storage).sum();
    Size { disk_gib, ..Size::of_deployment(set) }
}
