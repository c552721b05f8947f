//! Checks an operator's manifests before any of them is used, since they come with rights over a whole
//! Kubernetes cluster.

use std::collections::BTreeSet;

use serde_json::Value;

use super::operators::{OperatorFault, OperatorRelease};
use crate::names::{Digest, Json};

#[derive(Debug)]
pub struct Release {
    /// The operator's custom resource definitions, unchanged.
    pub definitions: Vec<Json>,
    /// All other objects, in the order of the file.
    pub objects: Vec<Value>,
    pub kafka_versions: BTreeSet<String>,
}

/// The environment variable that identifies the operator's Deployment. It lists the versions of Kafka that
/// the operator runs, each with its image.
const KAFKA_IMAGES: &str = "STRIMZI_KAFKA_IMAGES";

const DEFINITION: (&str, &str) = ("apiextensions.k8s.io/v1", "CustomResourceDefinition");

/// The API versions and kinds that an operator's manifests may contain. Secret is not among them: a published
/// file contains no secrets.
const ALLOWED: [(&str, &str); 8] = [
    DEFINITION,
    ("v1", "ServiceAccount"),
    ("v1", "ConfigMap"),
    ("rbac.authorization.k8s.io/v1", "ClusterRole"),
    ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding"),
    ("rbac.authorization.k8s.io/v1", "RoleBinding"),
    ("apps/v1", "Deployment"),
    ("policy/v1", "PodDisruptionBudget"),
];

/// Suffixes of environment variables whose values are images: one image, or one `version=image` a line.
const IMAGE_VARIABLES: [&str; 3] = ["_IMAGE", "_IMAGES", "_BUILDER"];

pub(super) fn check(
    version: &str,
    release: &OperatorRelease,
    text: &str,
    digest: &Digest,
) -> Result<Release, OperatorFault> {
    let of = format!("the manifests of Strimzi {version}");
    check_digest(&of, release, digest)?;
    let documents: Vec<Value> = serde_saphyr::from_multiple(text).map_err(|error| not_yaml(&of, &error))?;
    let mut checked =
        Release { definitions: Vec::new(), objects: Vec::new(), kafka_versions: BTreeSet::new() };
    for (index, document) in documents.into_iter().enumerate() {
        let kind = allowed_kind(&of, index + 1, &document)?;
        check_images(&of, release, &document)?;
        match kind == DEFINITION {
            true => checked.definitions.push(document.into()),
            false => checked.objects.push(document),
        }
    }
    let variables = checked.objects.iter().flat_map(variables);
    let images: Vec<&Value> = variables.filter(|variable| variable["name"] == KAFKA_IMAGES).collect();
    let [images] = images.as_slice() else {
        let count = images.len();
        return Err(shape(format!("{of} contain {count} Deployments of the operator, and need exactly one")));
    };
    checked.kafka_versions = kafka_versions(images);
    Ok(checked)
}

/// Returns the versions in a list with a `version=image` on each line.
fn kafka_versions(images: &Value) -> BTreeSet<String> {
    let list = images.get("value").and_then(Value::as_str).unwrap_or_default();
    let versions = list.split_whitespace().filter_map(|line| Some(line.split_once('=')?.0.to_owned()));
    versions.collect()
}

fn check_digest(of: &str, release: &OperatorRelease, digest: &Digest) -> Result<(), OperatorFault> {
    if digest.as_str() == release.sha256 {
        return Ok(());
    }
    let expected = &release.sha256;
    Err(OperatorFault {
        code: "operator-checksum",
        message: format!(
            "{of} don't match: their SHA-256 digest is {digest}, and the settings expect {expected}"
        ),
        hint:
            "compare the file with the one that Strimzi publishes; if it is right, have the administrators of the \
             installation set its digest in `sha256`"
                .to_owned(),
    })
}

fn not_yaml(of: &str, error: &serde_saphyr::Error) -> OperatorFault {
    // Only the first line: the others quote the file.
    let text = error.to_string();
    let reason = text.lines().next().unwrap_or_default().trim_start_matches("error: ");
    shape(format!("{of} can't be read: {reason}"))
}

/// Returns the document's API version and kind if they are allowed.
fn allowed_kind(
    of: &str,
    number: usize,
    document: &Value,
) -> Result<(&'static str, &'static str), OperatorFault> {
    let (api_version, kind) = kind(document).map_err(|lack| {
        shape(format!("document {number} of {of} is not a Kubernetes object: it has no `{lack}`"))
    })?;
    ALLOWED.into_iter().find(|allowed| *allowed == (api_version, kind)).ok_or_else(|| {
        let name = name(document);
        shape(format!("{of} contain {kind} {name} of {api_version}, which streamfleet doesn't install"))
    })
}

fn check_images(of: &str, release: &OperatorRelease, document: &Value) -> Result<(), OperatorFault> {
    let Some(image) = images(document).into_iter().find(|image| !is_allowed(image, &release.images)) else {
        return Ok(());
    };
    Err(OperatorFault {
        code: "operator-image",
        message: format!("{of} use the image `{image}`, which the settings don't allow"),
        hint: format!(
            "image names must begin with one of {}; have the administrators of the installation add it to `images`, or use \
             manifests with other images",
            release.images.join(", ")
        ),
    })
}

fn shape(message: String) -> OperatorFault {
    OperatorFault {
        code: "operator-manifests",
        message,
        hint: "use the unchanged file that Strimzi publishes for the Cluster Operator".to_owned(),
    }
}

/// Returns the API version and the kind, or else the name of a required field that is missing.
fn kind(document: &Value) -> Result<(&str, &str), &'static str> {
    let text = |field| document.get(field).and_then(Value::as_str).filter(|text| !text.is_empty());
    let api_version = text("apiVersion").ok_or("apiVersion")?;
    let kind = text("kind").ok_or("kind")?;
    if name(document).is_empty() { Err("metadata.name") } else { Ok((api_version, kind)) }
}

fn name(document: &Value) -> &str {
    document.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default()
}

fn containers(document: &Value) -> impl Iterator<Item = &Value> {
    let lists = ["containers", "initContainers", "ephemeralContainers"];
    let pod = document.pointer("/spec/template/spec");
    let lists = lists.into_iter().filter_map(move |list| pod?.get(list)?.as_array());
    lists.flatten()
}

fn variables(document: &Value) -> impl Iterator<Item = &Value> {
    containers(document).filter_map(|container| container.get("env")?.as_array()).flatten()
}

/// Returns every image that a workload runs itself or passes on to workloads that it creates.
fn images(document: &Value) -> Vec<String> {
    let own = containers(document).map(|it| it.get("image").and_then(Value::as_str).unwrap_or_default());
    let passed_on = variables(document).filter(|variable| {
        let name = variable.get("name").and_then(Value::as_str).unwrap_or_default();
        IMAGE_VARIABLES.iter().any(|ending| name.ends_with(ending))
    });
    // A value from a ConfigMap or Secret can't be checked; the variable's name stands in for it, which no
    // prefix allows.
    let value = |variable: &Value| match (variable.get("value"), variable.get("name")) {
        (None, Some(Value::String(name))) => format!("$({name})"),
        (value, _) => value.and_then(Value::as_str).unwrap_or_default().to_owned(),
    };
    let lines = passed_on.map(value).flat_map(|value| {
        let lines =
            value.split_whitespace().map(|line| line.split_once('=').map_or(line, |(_, image)| image));
        lines.map(str::to_owned).collect::<Vec<_>>()
    });
    let mounted =
        document.pointer("/spec/template/spec/volumes").and_then(Value::as_array).into_iter().flatten();
    let mounted = mounted.filter_map(|volume| volume.pointer("/image/reference")?.as_str());
    own.chain(mounted).map(str::to_owned).chain(lines).collect()
}

/// Whether an image is from one of these places.
pub(super) fn is_allowed(image: &str, prefixes: &[String]) -> bool {
    // How `..` affects a prefix depends on the container runtime that pulls the image.
    !image.contains("..") && prefixes.iter().any(|prefix| image.starts_with(prefix.as_str()))
}

#[cfg(test)]
mod tests;
