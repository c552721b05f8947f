//! systemd credentials, as the settings name them.

use camino::{Utf8Path, Utf8PathBuf};

use crate::config::Config;

/// The prefix of paths that name a credential.
pub const PREFIX: &str = "$CREDENTIALS_DIRECTORY/";

/// Replaces the variable at the beginning of paths by the service's folder of credentials. Outside of the
/// service the variable is not set: the paths stay, and reading them reports the missing file.
pub fn resolve(config: &mut Config) {
    let Ok(folder) = std::env::var("CREDENTIALS_DIRECTORY") else { return };
    paths(config).for_each(|path| resolve_in(path, Utf8Path::new(&folder)));
}

fn paths(config: &mut Config) -> impl Iterator<Item = &mut Utf8PathBuf> {
    let files = config.source.files().into_iter().chain(config.api.files()).map(|(_, file)| file);
    [&mut config.secrets_dir].into_iter().chain(files).flatten()
}

fn resolve_in(path: &mut Utf8PathBuf, folder: &Utf8Path) {
    if let Some(name) = path.as_str().strip_prefix(PREFIX) {
        *path = folder.join(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_a_secret_or_of_keys_may_be_a_credential() {
        let names =
            ["token_file", "ssh_key", "known_hosts", "signed_by", "signing_key", "webhook_secret_file"];
        let source: String =
            names.iter().map(|name| format!("{name} = \"$CREDENTIALS_DIRECTORY/{name}\"\n")).collect();
        let text = format!(
            "secrets_dir = \"$CREDENTIALS_DIRECTORY/secrets\"\n[source]\n{source}[api]\ntls_key_file = \"$CREDENTIALS_DIRECTORY/key\"\n"
        );
        let mut config: Config = toml::from_str(&text).unwrap();
        paths(&mut config).for_each(|path| resolve_in(path, Utf8Path::new("/run/c")));
        let found: Vec<String> = paths(&mut config).map(|path| path.to_string()).collect();
        let names = ["secrets"].into_iter().chain(names).chain(["key"]);
        assert_eq!(found, names.map(|name| format!("/run/c/{name}")).collect::<Vec<_>>());
    }
}
