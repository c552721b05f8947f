//! Reloads the settings of a running daemon.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::cli::config::flatten_values;
use crate::cli::failure::Failure;
use crate::cli::settings::Settings;
use crate::config::Config;

/// Settings that take a restart: they say where the state, the source and the address are.
const FIXED: [&str; 5] = ["state_dir", "output_dir", "secrets_dir", "source", "api"];

/// Returns the new settings, which were just read; none when nothing that can be reloaded changed. Logs
/// errors, and changes that take a restart.
pub fn reload(read: Result<Settings, Failure>, before: &Settings) -> Option<Settings> {
    match read {
        Ok(after) => changed(before, after),
        Err(Failure { chain, hint, .. }) => {
            let error = chain.join(": ");
            tracing::error!(error, hint, "cannot reload the settings; the previous ones stay active");
            None
        }
    }
}

fn changed(before: &Settings, after: Settings) -> Option<Settings> {
    let (old, new) = (values(before), values(&after));
    let names = old.keys().chain(new.keys()).filter(|name| old.get(*name) != new.get(*name));
    let mut names: Vec<&str> = names.map(String::as_str).collect();
    names.sort_unstable();
    names.dedup();
    let is_fixed = |name: &&str| FIXED.contains(&name.split('.').next().unwrap_or_default());
    let (fixed, mut names): (Vec<&str>, Vec<&str>) = names.into_iter().partition(is_fixed);
    if !fixed.is_empty() {
        let settings = fixed.join(", ");
        tracing::warn!(
            settings,
            "restart the service to use some of the changed settings; until then the previous values stay active"
        );
    }
    // The manifests of an operator may have changed under the same file name.
    if names.is_empty() && before.config.operators != after.config.operators {
        names.push("operators.strimzi");
    }
    if names.is_empty() {
        tracing::info!("settings reloaded; no setting changed that can change without a restart");
        return None;
    }
    let settings = names.join(", ");
    tracing::info!(settings, "settings reloaded; the new ones are active");
    let Config { state_dir, output_dir, secrets_dir, source, api, .. } = before.config.clone();
    let config = Config { state_dir, output_dir, secrets_dir, source, api, ..after.config };
    Some(Settings { config, ..before.clone() })
}

/// The active settings by name. A flag wins over a changed file.
fn values(settings: &Settings) -> BTreeMap<String, Value> {
    let mut config = settings.config.clone();
    config.state_dir = Some(settings.state_dir.clone());
    config.output_dir = Some(settings.output_dir.clone());
    config.secrets_dir = Some(settings.secrets_dir.clone());
    let mut found = Vec::new();
    // Settings are strings, numbers and lists, which always serialize.
    flatten_values("", &serde_json::to_value(&config).unwrap_or_default(), &mut found);
    found.into_iter().collect()
}
