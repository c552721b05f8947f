//! Tiered storage: the older part of the log in a bucket, with Aiven's plugin for Apache Kafka.
//!
//! Strimzi's image doesn't contain the plugin. It is mounted from a separate image that the settings name, or
//! expected in the brokers' image under [`CLASS_PATH`].

use k8s_openapi::api::core::v1::Secret;
use serde_json::{Map, Value, json};

use super::KafkaContext;
use super::jaas::strip_unsafe_characters;
use super::placement::Mount;
use crate::catalog::{ResolvedCluster, TieredStorage};
use crate::component::{Manifest, SecretEncoding, SecretSlot, Stage, labels, manifest};
use crate::spec::CloudProvider;

/// The path of the plugin in the brokers' image.
const CLASS_PATH: &str = "/opt/kafka/plugins/tiered-storage/*";
/// The mount path of a separate plugin image.
const PLUGIN: &str = "/mnt/tiered-storage-plugin";
const FOLDER: &str = "/mnt/tiered-storage";
const FILE: &str = "credentials";
/// The size of the pieces in which segments are read back: 4 MiB, as in the plugin's own example.
const CHUNK_BYTES: u32 = 4 << 20;

pub fn tiered_storage(context: &KafkaContext) -> Option<Value> {
    storage(context).map(|storage| {
        json!({
            "type": "custom",
            "remoteStorageManager": {
                "className": "io.aiven.kafka.tieredstorage.RemoteStorageManager",
                "classPath": class_path(storage),
                "config": plugin_config(context, storage),
            },
        })
    })
}

fn class_path(storage: &TieredStorage) -> String {
    match &storage.plugin.plugin_image {
        Some(_) => {
            let folders = storage.plugin.plugin_folders.iter();
            folders.map(|folder| format!("{PLUGIN}/{folder}/*")).collect::<Vec<_>>().join(":")
        }
        None => CLASS_PATH.to_owned(),
    }
}

/// The settings of the plugin. All are strings.
fn plugin_config(context: &KafkaContext, storage: &TieredStorage) -> Value {
    let endpoint = endpoint(storage).map(strip_unsafe_characters);
    json!({
        "storage.backend.class": "io.aiven.kafka.tieredstorage.storage.s3.S3Storage",
        "storage.s3.bucket.name": strip_unsafe_characters(&storage.bucket),
        "storage.s3.region": strip_unsafe_characters(&storage.region),
        // A service with a single address has no host name per bucket.
        "storage.s3.path.style.access.enabled": endpoint.as_ref().map(|_| "true"),
        "storage.s3.endpoint.url": endpoint,
        "key.prefix": format!("{}/{}/", context.cluster.spec.organization, context.name()),
        "chunk.size": CHUNK_BYTES.to_string(),
    })
}

/// The address of the service; `None` for AWS itself.
fn endpoint(storage: &TieredStorage) -> Option<&str> {
    match storage.account.provider {
        CloudProvider::S3 => storage.account.endpoint.as_deref(),
        CloudProvider::Aws | CloudProvider::Rfc2136 => None,
    }
}

/// The URLs that brokers call.
pub fn calls(cluster: &ResolvedCluster) -> impl Iterator<Item = String> {
    let storage = cluster.tiered_storage.iter();
    storage.map(|storage| endpoint(storage).unwrap_or("https://s3.amazonaws.com").to_owned())
}

/// The plugin's index is a topic, with as many replicas as any other.
pub fn config(context: &KafkaContext) -> Map<String, Value> {
    let key = "rlmm.config.remote.log.metadata.topic.replication.factor";
    storage(context).map(|_| (key.to_owned(), json!(context.sizing.replication_factor))).into_iter().collect()
}

/// The Secret with the credentials, as an AWS credentials file.
pub fn credentials(context: &KafkaContext) -> Option<Manifest> {
    let storage = storage(context)?;
    let secret = Secret {
        metadata: labels::metadata(context.cluster, secret_name(context)),
        type_: Some("Opaque".to_owned()),
        ..Secret::default()
    };
    let slot = SecretSlot::of(&storage.credentials, SecretEncoding::Raw).to_value();
    Some(manifest::with_data(context.cluster, Stage::Configuration, &secret, [(FILE, slot)]))
}

/// The mounts of that Secret and of the separate plugin image, if there is one. The plugin's client reads the
/// credentials only once, so new ones restart brokers.
pub fn mounts(context: &KafkaContext) -> impl Iterator<Item = Mount> {
    let credentials = storage(context).map(|storage| Mount {
        name: "tiered-storage",
        source: ("secret", json!({"secretName": secret_name(context)})),
        path: FOLDER,
        version: storage.credentials.mark.fingerprint.clone().unwrap_or_default(),
    });
    let image = storage(context).and_then(|storage| storage.plugin.plugin_image.as_ref());
    let plugin = image.map(|image| Mount {
        name: "tiered-storage-plugin",
        source: ("image", json!({"reference": image})),
        path: PLUGIN,
        version: image.clone(),
    });
    credentials.into_iter().chain(plugin)
}

pub fn env(context: &KafkaContext) -> Option<Value> {
    storage(context)
        .map(|_| json!([{"name": "AWS_SHARED_CREDENTIALS_FILE", "value": format!("{FOLDER}/{FILE}")}]))
}

fn storage<'a>(context: &KafkaContext<'a>) -> Option<&'a TieredStorage> {
    context.cluster.tiered_storage.as_ref()
}

fn secret_name(context: &KafkaContext) -> String {
    format!("{}-tiered-storage", context.name())
}
