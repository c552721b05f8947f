//! The paths in a file of settings. They are relative to the folder of that file.

use camino::{Utf8Path, Utf8PathBuf};

use crate::cli::credentials::PREFIX;
use crate::config::{ApiConfig, Config};

/// Makes every path absolute.
///
/// # Errors
/// The setting whose path needs a shell to be expanded, and what to write instead.
pub fn settle(config: &mut Config, file: &Utf8Path) -> Result<(), (String, String)> {
    let folder = file.parent().unwrap_or(Utf8Path::new(""));
    let Config { state_dir, output_dir, secrets_dir, source, api, acme, .. } = config;
    let ApiConfig { socket, tls_cert_file, tls_key_file, oidc, .. } = api;
    let own = [
        ("state_dir", state_dir),
        ("output_dir", output_dir),
        ("secrets_dir", secrets_dir),
        ("api.socket", socket),
        ("api.tls_cert_file", tls_cert_file),
        ("api.tls_key_file", tls_key_file),
        ("api.oidc.client_secret_file", &mut oidc.client_secret_file),
    ];
    let roots = acme.as_mut().map(|acme| ("acme.roots", &mut acme.roots));
    let home = std::env::var("HOME").ok();
    for (name, path) in own.into_iter().chain(roots).chain(source.files()) {
        let Some(path) = path.as_mut().filter(|path| !path.as_str().starts_with(PREFIX)) else { continue };
        refuse_shell(name, path, home.as_deref())?;
        if let Ok(whole) = camino::absolute_utf8(folder.join(&*path)) {
            *path = whole;
        }
    }
    Ok(())
}

/// Makes a path absolute, without resolving links.
pub fn absolute_path(path: &Utf8Path) -> Utf8PathBuf {
    camino::absolute_utf8(path).unwrap_or_else(|_| path.to_owned())
}

/// Refuses `~` and `$`: without a shell they would become the names of folders.
fn refuse_shell(name: &str, path: &Utf8PathBuf, home: Option<&str>) -> Result<(), (String, String)> {
    let first = path.as_str().split('/').next().unwrap_or_default();
    if !first.starts_with(['~', '$']) {
        return Ok(());
    }
    let rest = path.as_str()[first.len()..].trim_start_matches('/');
    let hint = match home.filter(|_| ["~", "$HOME", "${HOME}"].contains(&first)) {
        Some(home) => format!("write `{}`", Utf8Path::new(home).join(rest)),
        None => "write the whole path".to_owned(),
    };
    Err((format!("`{name}` begins with `{first}`, which only a shell expands"), hint))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settled(text: &str) -> Result<Config, (String, String)> {
        let mut config = Config::parse(text).unwrap();
        settle(&mut config, Utf8Path::new("/etc/streamfleet/a.toml")).map(|()| config)
    }

    #[test]
    fn paths_go_by_the_folder_of_the_file() {
        let text = "state_dir = \"state\"\noutput_dir = \"/srv/out\"\nsecrets_dir = \"$CREDENTIALS_DIRECTORY/secrets\"\n\
                    [source]\nsigned_by = \"signers\"\n[api]\nsocket = \"run/socket\"\ntls_cert_file = \"a.crt\"\ntls_key_file = \"a.key\"\n";
        let config = settled(text).unwrap();
        let shown = |path: &Option<Utf8PathBuf>| path.as_ref().unwrap().to_string();
        assert_eq!(shown(&config.state_dir), "/etc/streamfleet/state");
        assert_eq!(shown(&config.output_dir), "/srv/out");
        assert_eq!(shown(&config.secrets_dir), "$CREDENTIALS_DIRECTORY/secrets");
        assert_eq!(shown(&config.source.signed_by), "/etc/streamfleet/signers");
        assert_eq!(shown(&config.api.socket), "/etc/streamfleet/run/socket");
        assert_eq!(shown(&config.api.tls_cert_file), "/etc/streamfleet/a.crt");
        assert_eq!(shown(&config.api.tls_key_file), "/etc/streamfleet/a.key");
    }

    #[test]
    fn what_only_a_shell_understands_is_refused_with_what_to_write() {
        for (path, why, hint) in [
            ("~/state", "`state_dir` begins with `~`, which only a shell expands", "write `/home/ann/state`"),
            (
                "$HOME/a/b",
                "`state_dir` begins with `$HOME`, which only a shell expands",
                "write `/home/ann/a/b`",
            ),
            ("~bob/a", "`state_dir` begins with `~bob`, which only a shell expands", "write the whole path"),
        ] {
            let refused = refuse_shell("state_dir", &path.into(), Some("/home/ann")).unwrap_err();
            assert_eq!(refused, (why.to_owned(), hint.to_owned()));
        }
        assert!(refuse_shell("state_dir", &"a~/$b".into(), None).is_ok());
    }
}
