use super::super::{Config, ManifestsFile, OperatorRelease, OperatorsConfig};
use super::*;

/// The operator and one custom resource definition.
const MANIFESTS: &str = concat!(
    "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: kafkas.kafka.strimzi.io}\n---\n",
    include_str!("strimzi.yaml")
);

fn settings(manifests: &str) -> OperatorsConfig {
    let release = OperatorRelease {
        manifests: "strimzi.yaml".to_owned(),
        sha256: Digest::of(manifests).as_str().to_owned(),
        images: vec!["quay.io/strimzi/".to_owned()],
        content: ManifestsFile::of(Ok(manifests.as_bytes().to_owned())),
    };
    OperatorsConfig { strimzi: [("1.2.0".to_owned(), release)].into() }
}

#[test]
fn published_manifests_are_taken_definitions_apart() {
    let settings = settings(MANIFESTS);
    let release = settings.strimzi("1.2.0").unwrap();
    assert_eq!((release.definitions.len(), release.objects.len()), (1, 13));
    assert!(release.kafka_versions.iter().eq(["4.2.0", "4.3.1"]), "{:?}", release.kafka_versions);
    assert_eq!(settings, settings.clone());
}

#[test]
fn what_is_not_as_it_has_to_be_is_refused_with_the_way_out() {
    let mut refusals = Vec::new();
    let mut refuse = |settings: &OperatorsConfig, version: &str| {
        let fault = settings.strimzi(version).unwrap_err();
        refusals.push(format!("{}: {}\n  {}", fault.code, fault.message, fault.hint));
    };
    refuse(&OperatorsConfig::default(), "1.2.0");
    refuse(&settings(MANIFESTS), "1.3.0");
    let mut absent = settings(MANIFESTS);
    absent.strimzi.get_mut("1.2.0").unwrap().content =
        ManifestsFile::of(Err("No such file or directory".to_owned()));
    refuse(&absent, "1.2.0");
    let mut other = settings(MANIFESTS);
    other.strimzi.get_mut("1.2.0").unwrap().content = ManifestsFile::of(Ok(b"kind: Kafka\n".to_vec()));
    refuse(&other, "1.2.0");
    let image = |from: &str, to: &str| {
        assert_eq!(MANIFESTS.matches(from).count(), 1, "{from}");
        settings(&MANIFESTS.replace(from, to))
    };
    refuse(
        &image("image: quay.io/strimzi/operator:1.2.0", "image: quay.io/strimzi-/operator:1.2.0"),
        "1.2.0",
    );
    refuse(&image("4.2.0=quay.io/strimzi/kafka", "4.2.0=docker.io/strimzi/kafka"), "1.2.0");
    refuse(&image("value: quay.io/strimzi/maven-builder:1.2.0", "value: maven"), "1.2.0");
    refuse(
        &image("value: quay.io/strimzi/operator:1.2.0", "valueFrom: {configMapKeyRef: {name: x, key: y}}"),
        "1.2.0",
    );
    refuse(
        &settings(&format!("{MANIFESTS}---\napiVersion: v1\nkind: Secret\nmetadata: {{name: key}}\n")),
        "1.2.0",
    );
    refuse(&settings(&format!("{MANIFESTS}---\nkind: Role\n")), "1.2.0");
    refuse(&settings(&format!("{MANIFESTS}---\n- 1\n")), "1.2.0");
    refuse(&settings("a: [\n"), "1.2.0");
    refuse(&settings(&MANIFESTS.replace("STRIMZI_KAFKA_IMAGES", "OTHER_IMAGES")), "1.2.0");
    insta::assert_snapshot!(refusals.join("\n"));
}

#[test]
fn settings_that_name_no_operator_are_refused_by_their_key() {
    let settings = |version: &str, manifests: &str, sha256: &str, images: &str| {
        let text = format!(
            "[operators.strimzi.\"{version}\"]\nmanifests = \"{manifests}\"\nsha256 = \"{sha256}\"\nimages = {images}\n"
        );
        Config::parse(&text).err().map(|error| error.to_string().trim_end().to_owned()).unwrap_or_default()
    };
    let digest = "0".repeat(64);
    let cases = [
        settings("1.2.0", "strimzi.yaml", &digest, "[\"quay.io/strimzi/\"]"),
        settings("latest", "strimzi.yaml", &digest, "[\"quay.io/strimzi/\"]"),
        settings("1.2.0", "https://example.com/strimzi.yaml", &digest, "[\"quay.io/strimzi/\"]"),
        settings("1.2.0", "strimzi.yaml", "00", "[\"quay.io/strimzi/\"]"),
        settings("1.2.0", "strimzi.yaml", &digest, "[\"quay.io/strimzi\"]"),
        settings("1.2.0", "strimzi.yaml", &digest, "[]"),
    ];
    insta::assert_snapshot!(cases.join("\n"));
}
