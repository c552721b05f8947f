//! Files of a pod that are read from an object of its namespace.

use serde_json::{Value, json};

/// A folder in a container with the files of a Secret or a ConfigMap.
pub struct Mount {
    /// The name of the volume.
    name: &'static str,
    source: MountSource,
    /// The name of the object.
    object: String,
    folder: &'static str,
}

enum MountSource {
    Secret,
    ConfigMap,
}

impl Mount {
    pub fn secret(name: &'static str, object: impl Into<String>, folder: &'static str) -> Mount {
        Mount { name, source: MountSource::Secret, object: object.into(), folder }
    }

    pub fn config_map(name: &'static str, object: impl Into<String>, folder: &'static str) -> Mount {
        Mount { name, source: MountSource::ConfigMap, object: object.into(), folder }
    }

    /// The volume, as a pod has it.
    pub fn volume(&self) -> Value {
        match self.source {
            MountSource::Secret => json!({"name": self.name, "secret": {"secretName": self.object}}),
            MountSource::ConfigMap => json!({"name": self.name, "configMap": {"name": self.object}}),
        }
    }

    /// The mount, as a container has it.
    pub fn mounted(&self) -> Value {
        json!({"name": self.name, "mountPath": self.folder, "readOnly": true})
    }
}
