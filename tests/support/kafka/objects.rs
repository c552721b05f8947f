//! The rendered objects of a cluster, read from a server.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::super::control_plane::ControlPlane;

/// The files of a Secret or a ConfigMap, by name.
pub type Files = BTreeMap<String, Vec<u8>>;

pub struct Objects {
    pub kafka: Value,
    pub pool: Value,
    /// The Secrets and ConfigMaps beside them, by the volume field that names one, and its name.
    pub files: BTreeMap<(&'static str, String), Files>,
}

impl Objects {
    pub fn read(plane: &ControlPlane, namespace: &str) -> Objects {
        let get = format!("get kafkas,kafkanodepools,secrets,configmaps --namespace={namespace} -o json");
        let list: Value = serde_json::from_str(&plane.kubectl(&get, "").expect(0).out).unwrap();
        let items = list["items"].as_array().unwrap();
        let only = |kind: &str| {
            let mut found = items.iter().filter(|item| item["kind"] == kind);
            let first = found.next().unwrap_or_else(|| panic!("{namespace} has no {kind}")).clone();
            assert!(found.next().is_none(), "{namespace} has more than one {kind}");
            first
        };
        let files = items.iter().filter_map(|item| Some(((source(item)?, name(item)), contents(item)?)));
        Objects { kafka: only("Kafka"), pool: only("KafkaNodePool"), files: files.collect() }
    }

    pub fn name(&self) -> String {
        name(&self.kafka)
    }

    pub fn namespace(&self) -> String {
        text(&self.kafka["metadata"]["namespace"])
    }

    /// Writes the pool's mounted files below a folder, as Kubernetes would below `/`.
    pub fn mount(&self, folder: &Path) {
        let template = &self.pool["spec"]["template"];
        for mount in list(&template["kafkaContainer"]["volumeMounts"]) {
            let volume =
                list(&template["pod"]["volumes"]).iter().find(|volume| volume["name"] == mount["name"]);
            let volume = volume.unwrap_or_else(|| panic!("nothing gives what is mounted by {mount}"));
            let source = [("secret", "secretName"), ("configMap", "name")]
                .into_iter()
                .find_map(|(kind, field)| Some((kind, volume[kind][field].as_str()?.to_owned())));
            let place = folder.join(text(&mount["mountPath"]).trim_start_matches('/'));
            write(&place, &self.files[&source.unwrap_or_else(|| panic!("{volume} is of another kind"))]);
        }
    }

    pub fn environment(&self) -> Vec<(String, String)> {
        let container = &self.pool["spec"]["template"]["kafkaContainer"];
        list(&container["env"]).iter().map(|it| (text(&it["name"]), text(&it["value"]))).collect()
    }
}

pub fn write(folder: &Path, files: &Files) {
    fs::create_dir_all(folder).unwrap();
    files.iter().for_each(|(name, bytes)| fs::write(folder.join(name), bytes).unwrap());
}

/// The items of an optional list.
pub fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

pub fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn name(object: &Value) -> String {
    text(&object["metadata"]["name"])
}

fn source(object: &Value) -> Option<&'static str> {
    match object["kind"].as_str()? {
        "Secret" => Some("secret"),
        "ConfigMap" => Some("configMap"),
        _ => None,
    }
}

fn contents(object: &Value) -> Option<Files> {
    let is_secret = object["kind"] == "Secret";
    let bytes = |text: &str| if is_secret { STANDARD.decode(text).unwrap() } else { text.into() };
    let data = object["data"].as_object()?.iter();
    Some(data.map(|(name, value)| (name.clone(), bytes(value.as_str().unwrap()))).collect())
}
