use super::*;
use crate::component::fixtures;
use crate::config::{ManifestsFile, OperatorRelease};
use crate::names::Digest;

const MANIFESTS: &str = concat!(
    "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: kafkas.kafka.strimzi.io}\n---\n",
    include_str!("../../config/release/strimzi.yaml")
);

fn rendered(version: Option<&str>) -> Vec<Manifest> {
    let release = OperatorRelease {
        manifests: "strimzi.yaml".to_owned(),
        sha256: Digest::of(MANIFESTS).as_str().to_owned(),
        images: vec!["quay.io/strimzi/".to_owned()],
        content: ManifestsFile::of(Ok(MANIFESTS.as_bytes().to_owned())),
    };
    let operators = OperatorsConfig { strimzi: [("1.2.0".to_owned(), release)].into() };
    let catalog = fixtures::catalog([fixtures::cluster(json!({}))]);
    let fleet = catalog.fleets.values().find(|fleet| fleet.key.fleet.as_str() == "eu").unwrap();
    let mut fleet = ResolvedFleet::clone(fleet);
    let mut spec = (*fleet.spec).clone();
    spec.advanced_config.components.strimzi = version.map(str::to_owned);
    fleet.spec = spec.into();
    operator(&fleet, &operators)
}

#[test]
fn the_operator_watches_everything_from_a_namespace_of_its_own() {
    let objects = rendered(Some("1.2.0"));
    let lines: Vec<String> = objects.iter().map(|it| format!("{:?} {}", it.stage, it.key)).collect();
    insta::assert_snapshot!(lines.join("\n"));
    for object in &objects {
        assert_eq!(object.owner.to_string(), "fleet acme/eu");
        let body = object.body.value();
        let elsewhere = body.to_string().contains("myproject");
        assert!(!elsewhere, "{}", object.key);
        if object.key.kind != "CustomResourceDefinition" {
            assert_eq!(body["metadata"]["labels"]["app.kubernetes.io/managed-by"], "streamfleet");
        }
    }
    let body = |kind: &str| objects.iter().find(|it| it.key.kind == kind).unwrap().body.value();
    let variables = body("Deployment")["spec"]["template"]["spec"]["containers"][0]["env"].clone();
    let set = [
        ("STRIMZI_NAMESPACE", "*"),
        ("STRIMZI_POD_SECURITY_PROVIDER_CLASS", "restricted"),
        ("STRIMZI_OPERATOR_NAMESPACE_LABELS", "kubernetes.io/metadata.name=strimzi-operator"),
    ];
    assert_eq!(
        variables.as_array().unwrap()[..3],
        set.map(|(name, value)| json!({"name": name, "value": value}))
    );
    let own = json!({"fieldRef": {"fieldPath": "metadata.namespace"}});
    assert_eq!(variables.as_array().unwrap().last().unwrap()["valueFrom"], own);
    let pods = body("Deployment")["spec"]["template"]["metadata"]["labels"].clone();
    assert_eq!(pods.as_object().unwrap().len(), 2);
    // Definitions are unchanged.
    assert_eq!(body("CustomResourceDefinition")["metadata"], json!({"name": "kafkas.kafka.strimzi.io"}));
}

#[test]
fn an_operator_of_somebody_elses_is_not_rendered() {
    for version in [None, Some("existing"), Some("1.3.0")] {
        assert!(rendered(version).is_empty(), "{version:?}");
    }
}
