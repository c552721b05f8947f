//! Waiting for custom resource definitions, whose objects can't be created before the kind is served.

use std::time::Duration;

use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::KubeError;
use super::api::Api;
use crate::names::ObjectKey;

/// How long it may take until a definition is served. A single server needs well below a second; several that
/// must agree need five seconds.
const PATIENCE: Duration = Duration::from_secs(30);

const INTERVAL: Duration = Duration::from_millis(50);

/// Waits until every served version of an applied definition has its kind. Returns at once for other objects.
pub(super) async fn wait_until_served(api: &Api, key: &ObjectKey, applied: &Value) -> Result<(), KubeError> {
    if key.kind != "CustomResourceDefinition" {
        return Ok(());
    }
    let since = Instant::now();
    let kind = applied.pointer("/spec/names/kind").and_then(Value::as_str).unwrap_or_default();
    for api_version in versions(applied) {
        loop {
            // A version is listed before it can be queried, so an error here is not final.
            let kinds = api.kinds(&api_version).await;
            if matches!(&kinds, Ok(Some(kinds)) if kinds.contains_key(kind)) {
                break;
            }
            if since.elapsed() >= PATIENCE {
                let seconds = PATIENCE.as_secs();
                let reason = format!("the API server doesn't serve it {seconds} s after it was applied");
                return Err(kinds
                    .err()
                    .unwrap_or_else(|| KubeError::connection(&format!("use {key}"), reason)));
            }
            sleep(INTERVAL).await;
        }
    }
    Ok(())
}

fn versions(definition: &Value) -> Vec<String> {
    let group = definition.pointer("/spec/group").and_then(Value::as_str).unwrap_or_default();
    let versions = definition.pointer("/spec/versions").and_then(Value::as_array).into_iter().flatten();
    let served = versions.filter(|version| version["served"] == true);
    served.filter_map(|version| version.get("name")?.as_str()).map(|name| format!("{group}/{name}")).collect()
}
