//! The credentials that systemd gives a service, as settings name them.

use camino::{Utf8Path, Utf8PathBuf};

use crate::config::{Config, SourceConfig};

/// What a path begins with that leads to a credential.
const PREFIX: &str = "$CREDENTIALS_DIRECTORY/";

/// Puts the service's folder of credentials into the paths that begin with its variable. Outside of the service there is no
/// such folder; the paths stay, and whoever needs what is there says that it is missing.
pub fn resolve(config: &mut Config) {
    let Ok(folder) = std::env::var("CREDENTIALS_DIRECTORY") else { return };
    let Config { secrets_dir, source, .. } = config;
    let SourceConfig { token_file, ssh_key, known_hosts, webhook_secret_file, .. } = source;
    for path in [secrets_dir, token_file, ssh_key, known_hosts, webhook_secret_file].into_iter().flatten() {
        resolve_in(path, Utf8Path::new(&folder));
    }
}

fn resolve_in(path: &mut Utf8PathBuf, folder: &Utf8Path) {
    if let Some(name) = path.as_str().strip_prefix(PREFIX) {
        *path = folder.join(name);
    }
}
