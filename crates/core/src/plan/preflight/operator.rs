//! Strimzi operators, as described by their Deployments.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::Value;

use super::name::name;

/// The variable that identifies an operator. It lists the supported Kafka versions, each with its image.
const KAFKA_IMAGES: &str = "STRIMZI_KAFKA_IMAGES";

/// The variable that lists the watched namespaces.
const NAMESPACE: &str = "STRIMZI_NAMESPACE";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operator {
    pub namespace: String,
    pub name: String,
    /// Its version, by the tag of its image; `None` without such a tag.
    pub version: Option<String>,
    /// The supported Kafka versions; empty if unknown.
    pub kafka_versions: BTreeSet<String>,
    pub watches: Watches,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Watches {
    All,
    These(BTreeSet<String>),
    /// The Deployment doesn't say.
    Unknown,
}

impl Operator {
    /// Parses a Deployment; `None` if it doesn't run a Strimzi operator.
    pub fn of(deployment: &Value) -> Option<Operator> {
        let text = |pointer: &str| name(deployment.pointer(pointer)?.as_str()?);
        let pod = deployment.pointer("/spec/template")?;
        let containers = pod.pointer("/spec/containers")?.as_array()?;
        let container = containers.iter().find(|container| variable(container, KAFKA_IMAGES).is_some())?;
        let namespace = text("/metadata/namespace")?;
        let images = variable(container, KAFKA_IMAGES)?.get("value").and_then(Value::as_str);
        let versions = images.unwrap_or_default().split_whitespace();
        let versions = versions.filter_map(|line| name(line.split_once('=')?.0.trim()));
        Some(Operator {
            name: text("/metadata/name")?,
            version: container.get("image").and_then(Value::as_str).and_then(tag),
            kafka_versions: versions.collect(),
            watches: Watches::of(variable(container, NAMESPACE), pod, &namespace),
            namespace,
        })
    }

    /// Whether it watches a namespace. If unknown, the answer is yes.
    pub fn watches(&self, namespace: &str) -> bool {
        match &self.watches {
            Watches::All | Watches::Unknown => true,
            Watches::These(these) => these.contains(namespace),
        }
    }

    /// Whether it supports a version of Kafka. If unknown, the answer is yes.
    pub fn runs(&self, version: &str) -> bool {
        self.kafka_versions.is_empty() || self.kafka_versions.contains(version)
    }
}

/// `Strimzi 1.2.0 in strimzi/strimzi-cluster-operator`.
impl fmt::Display for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let version = self.version.as_deref().map(|version| format!(" {version}")).unwrap_or_default();
        write!(f, "Strimzi{version} in {}/{}", self.namespace, self.name)
    }
}

impl Watches {
    /// Parses the variable like Strimzi: absent, empty or `*` means all namespaces.
    fn of(variable: Option<&Value>, pod: &Value, own: &str) -> Watches {
        let Some(variable) = variable else { return Watches::All };
        let given = match (variable.get("value"), variable.pointer("/valueFrom/fieldRef/fieldPath")) {
            (Some(value), _) => value.as_str(),
            (None, Some(field)) => field.as_str().and_then(|field| referred(field, pod, own)),
            (None, None) if variable.get("valueFrom").is_none() => Some(""),
            (None, None) => None,
        };
        match given.map(str::trim) {
            None => Watches::Unknown,
            Some("" | "*") => Watches::All,
            Some(list) => Watches::These(list.split(',').map(|it| it.trim().to_owned()).collect()),
        }
    }
}

/// Resolves a reference to the pod's metadata. Operator Lifecycle Manager keeps the list in an annotation.
fn referred<'a>(field: &str, pod: &'a Value, own: &'a str) -> Option<&'a str> {
    if field == "metadata.namespace" {
        return Some(own);
    }
    let annotation = field.strip_prefix("metadata.annotations['")?.strip_suffix("']")?;
    pod.pointer("/metadata/annotations")?.get(annotation)?.as_str()
}

fn variable<'a>(container: &'a Value, name: &str) -> Option<&'a Value> {
    container.get("env")?.as_array()?.iter().find(|variable| variable["name"] == name)
}

/// `1.2.0` of `registry:5000/strimzi/operator:1.2.0`.
fn tag(image: &str) -> Option<String> {
    let image = image.split('@').next()?;
    let tag = image.rsplit('/').next()?.split_once(':')?.1;
    name(tag).filter(|tag| tag.starts_with(|it: char| it.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn deployment(image: &str, namespace: Value) -> Value {
        let mut variables = vec![json!({"name": KAFKA_IMAGES, "value":
            "4.3.0=quay.io/strimzi/kafka:1.2.0-kafka-4.3.0\n4.3.1=quay.io/strimzi/kafka:1.2.0-kafka-4.3.1\n"})];
        if let Value::Object(mut variable) = namespace {
            variable.insert("name".to_owned(), NAMESPACE.into());
            variables.push(variable.into());
        }
        json!({"metadata": {"namespace": "ops", "name": "strimzi"}, "spec": {"template": {
            "metadata": {"annotations": {"olm.targetNamespaces": "a,b"}},
            "spec": {"containers": [{"name": "proxy"}, {"image": image, "env": variables}]}}}})
    }

    #[test]
    fn an_operator_is_known_by_what_it_is_given() {
        let operator = Operator::of(&deployment("quay.io/strimzi/operator:1.2.0", Value::Null)).unwrap();
        assert_eq!(operator.to_string(), "Strimzi 1.2.0 in ops/strimzi");
        assert!(operator.runs("4.3.1") && !operator.runs("4.2.0"));
        for (image, version) in [
            ("mirror:5000/strimzi/operator:1.1.0", Some("1.1.0")),
            ("mirror:5000/strimzi/operator@sha256:00", None),
            ("mirror:5000/strimzi/operator:1.1.0@sha256:00", Some("1.1.0")),
            ("operator:latest", None),
        ] {
            let operator = Operator::of(&deployment(image, Value::Null)).unwrap();
            assert_eq!(operator.version.as_deref(), version, "{image}");
        }
        assert_eq!(
            Operator::of(&json!({"spec": {"template": {"spec": {"containers": [{"name": "x"}]}}}})),
            None
        );
        assert_eq!(Operator::of(&json!({})), None);
    }

    #[test]
    fn the_namespaces_are_told_as_strimzi_reads_them() {
        let these = |names: &[&str]| Watches::These(names.iter().map(|name| (*name).to_owned()).collect());
        let field = |path: &str| json!({"valueFrom": {"fieldRef": {"fieldPath": path}}});
        for (variable, expected) in [
            (Value::Null, Watches::All),
            (json!({"value": "*"}), Watches::All),
            (json!({"value": ""}), Watches::All),
            (json!({}), Watches::All),
            (json!({"value": "a, b"}), these(&["a", "b"])),
            (field("metadata.namespace"), these(&["ops"])),
            (field("metadata.annotations['olm.targetNamespaces']"), these(&["a", "b"])),
            (field("metadata.annotations['other']"), Watches::Unknown),
            (json!({"valueFrom": {"configMapKeyRef": {"name": "x"}}}), Watches::Unknown),
        ] {
            let operator = Operator::of(&deployment("operator:1.2.0", variable.clone())).unwrap();
            assert_eq!(operator.watches, expected, "{variable}");
        }
    }
}
