//! Definitions of custom resources: nothing of their kind can be made before they are served.

use std::time::Duration;

use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::KubeError;
use super::api::Api;
use crate::names::ObjectKey;

/// How long it may take until a definition is served. A server alone takes well below a second; several that have to agree
/// take five.
const PATIENCE: Duration = Duration::from_secs(30);

/// How often it is looked.
const INTERVAL: Duration = Duration::from_millis(50);

/// Waits until the kind of a definition that was applied is served in each of its versions. Other objects are ready at once.
pub(super) async fn wait_until_served(api: &Api, key: &ObjectKey, applied: &Value) -> Result<(), KubeError> {
    if key.kind != "CustomResourceDefinition" {
        return Ok(());
    }
    let since = Instant::now();
    let kind = applied.pointer("/spec/names/kind").and_then(Value::as_str).unwrap_or_default();
    for api_version in versions(applied) {
        loop {
            // A version is named before it can be asked for, which is no answer either.
            let kinds = api.kinds(&api_version).await;
            if matches!(&kinds, Ok(Some(kinds)) if kinds.contains_key(kind)) {
                break;
            }
            if since.elapsed() >= PATIENCE {
                let seconds = PATIENCE.as_secs();
                let reason = format!("it is not served {seconds} s after it was applied");
                return Err(kinds
                    .err()
                    .unwrap_or_else(|| KubeError::connection(&format!("use {key}"), reason)));
            }
            sleep(INTERVAL).await;
        }
    }
    Ok(())
}

/// The versions of a definition that are served, as objects name them.
fn versions(definition: &Value) -> Vec<String> {
    let group = definition.pointer("/spec/group").and_then(Value::as_str).unwrap_or_default();
    let versions = definition.pointer("/spec/versions").and_then(Value::as_array).into_iter().flatten();
    let served = versions.filter(|version| version["served"] == true);
    served.filter_map(|version| version.get("name")?.as_str()).map(|name| format!("{group}/{name}")).collect()
}
