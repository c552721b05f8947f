//! Builds a [`Manifest`] that belongs to a cluster.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Serialize;
use serde_json::{Value, json};

use crate::catalog::ResolvedCluster;
use crate::component::{KubernetesKind, Manifest, Stage, facts};
use crate::names::{Json, ObjectKey};

/// An object of a built-in Kubernetes kind.
pub fn typed<T>(cluster: &ResolvedCluster, stage: Stage, object: &T) -> Manifest
where
    T: k8s_openapi::Metadata<Ty = ObjectMeta> + Serialize,
{
    with_data(cluster, stage, object, [])
}

/// The same, with additional `data` that the type can't represent: the slots of secrets.
pub fn with_data<T, const N: usize>(
    cluster: &ResolvedCluster,
    stage: Stage,
    object: &T,
    data: [(&str, Value); N],
) -> Manifest
where
    T: k8s_openapi::Metadata<Ty = ObjectMeta> + Serialize,
{
    // Every key is a string and every value can be serialized, so there is no error to pass on.
    let mut body = serde_json::to_value(object).unwrap_or_default();
    for (key, value) in data {
        body["data"][key] = value;
    }
    assemble(cluster, stage, (T::API_VERSION, T::KIND), object.metadata(), &body)
}

/// An object of any kind, built from JSON. Null fields of the spec are left out.
pub fn untyped(
    cluster: &ResolvedCluster,
    kind: &KubernetesKind,
    metadata: &ObjectMeta,
    spec: Value,
) -> Manifest {
    let KubernetesKind { api_version, kind, .. } = *kind;
    let mut body = json!({"apiVersion": api_version, "kind": kind, "metadata": metadata});
    // `json!` would copy it.
    body["spec"] = spec;
    remove_nulls(&mut body);
    assemble(cluster, facts(kind).stage, (api_version, kind), metadata, &body)
}

fn assemble(
    cluster: &ResolvedCluster,
    stage: Stage,
    (api_version, kind): (&str, &str),
    metadata: &ObjectMeta,
    body: &Value,
) -> Manifest {
    let key = ObjectKey {
        namespace: metadata.namespace.clone(),
        kind: kind.to_owned(),
        name: metadata.name.clone().unwrap_or_default(),
        api_version: api_version.to_owned(),
    };
    Manifest { key, owner: cluster.key.clone(), stage, body: Json::from(body) }
}

fn remove_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, value| !value.is_null());
            fields.values_mut().for_each(remove_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_nulls),
        _ => {}
    }
}
