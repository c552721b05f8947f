//! Warnings about a valid file of settings that is likely not what was meant.

use std::io::ErrorKind;

use camino::Utf8Path;

use crate::cli::credentials::PREFIX;
use crate::cli::settings::OWN_FOLDER;
use crate::config::{Config, Transport};

/// Returns the warnings, each as a sentence.
pub fn of(config: &Config, table: &toml::Table) -> Vec<String> {
    let (mut source, mut api) = (config.source.clone(), config.api.clone());
    let files = source.files().into_iter().chain(api.files());
    let files = files.filter_map(|(name, path)| Some((name, path.take()?)));
    let missing = files.filter(|(_, path)| !path.as_str().starts_with(PREFIX) && is_missing(path));
    let missing = missing.map(|(name, path)| format!("`{name}` is `{path}`, and there is no such file"));
    let git = config.source.git.as_deref();
    missing
        .chain(without_git(git, table))
        .chain(git.and_then(forgotten_scheme))
        .chain(unsigned(config))
        .chain(config.api.doubts())
        .collect()
}

/// Only a missing file counts: one that can't be accessed may belong to another user.
fn is_missing(path: &Utf8Path) -> bool {
    std::fs::metadata(path).is_err_and(|error| error.kind() == ErrorKind::NotFound)
}

/// Warns of keys that configure fetching while no repository is named.
fn without_git(git: Option<&str>, table: &toml::Table) -> Option<String> {
    let source = table.get("source")?.as_table().filter(|source| git.is_none() && !source.is_empty())?;
    let keys: Vec<String> = source.keys().map(|key| format!("`source.{key}`")).collect();
    Some(format!(
        "{} no effect, because `source.git` is not set",
        match keys.as_slice() {
            [key] => format!("{key} has"),
            keys => format!("{} have", keys.join(", ")),
        }
    ))
}

/// Warns when `source.git` is set without `state_dir`: with no tree, the state is placed beside the settings.
pub fn homeless(config: &Config, folder: &Utf8Path) -> Option<String> {
    let Config { state_dir, output_dir, secrets_dir, source, .. } = config;
    let unnamed = [("state_dir", state_dir), ("output_dir", output_dir), ("secrets_dir", secrets_dir)];
    let unnamed: Vec<String> =
        unnamed.iter().filter(|(_, path)| path.is_none()).map(|(name, _)| format!("`{name}`")).collect();
    (source.git.is_some() && state_dir.is_none()).then(|| {
        format!(
            "with `source.git` and without a flag or variable, the default of {} is in `{}`, beside this file",
            unnamed.join(", "),
            folder.join(OWN_FOLDER)
        )
    })
}

/// Warns when commits have to be signed but there is no key to sign those of the API. `serve` always has an
/// API, at least on the socket.
fn unsigned(config: &Config) -> Option<String> {
    let source = &config.source;
    let is_unsigned = source.git.is_some() && source.signed_by.is_some() && source.signing_key.is_none();
    is_unsigned.then(|| {
        "`source.signed_by` is set and `source.signing_key` isn't: the API is read-only, on the socket and on \
         `api.listen`, because its commits could not be signed"
            .to_owned()
    })
}

/// Warns of a local path that doesn't exist and begins with a host name.
fn forgotten_scheme(git: &str) -> Option<String> {
    let host = git.split('/').next().unwrap_or_default();
    let is_host = host.contains('.') && !host.starts_with('.') && git.contains('/');
    let is_local = Transport::of(git) == Ok(Transport::Local) && !git.contains("://");
    (is_host && is_local && is_missing(Utf8Path::new(git))).then(|| {
        format!(
            "`source.git` is `{git}`, a path on this machine that doesn't exist; for the host {host}, use \
                `https://{git}`"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn doubts(text: &str) -> Vec<String> {
        of(&Config::parse(text).unwrap(), &toml::from_str(text).unwrap())
    }

    const UNSIGNED: &str = "`source.signed_by` is set and `source.signing_key` isn't: the API is read-only, on the \
        socket and on `api.listen`, because its commits could not be signed";

    #[test]
    fn what_is_likely_not_meant_is_told() {
        let cases = [
            (
                "[source]\ngit = \"https://h.example.com/x.git\"\ntoken_file = \"/nowhere/token\"\nsigned_by = \
                    \"/nowhere/signers\"\n",
                vec![
                    "`source.token_file` is `/nowhere/token`, and there is no such file",
                    "`source.signed_by` is `/nowhere/signers`, and there is no such file",
                    UNSIGNED,
                ],
            ),
            (
                "[source]\nbranch = \"main\"\n",
                vec!["`source.branch` has no effect, because `source.git` is not set"],
            ),
            (
                "[source]\nbranch = \"main\"\nfolder = \"a\"\n",
                vec!["`source.branch`, `source.folder` have no effect, because `source.git` is not set"],
            ),
            (
                "[source]\ngit = \"h.example.com/x.git\"\n",
                vec![
                    "`source.git` is `h.example.com/x.git`, a path on this machine that doesn't exist; for the host \
                     h.example.com, use `https://h.example.com/x.git`",
                ],
            ),
            (
                "[source]\ngit = \"https://h.example.com/x.git\"\ntoken_file = \"$CREDENTIALS_DIRECTORY/token\"\n",
                vec![],
            ),
            ("[source]\ngit = \"../x.git\"\n", vec![]),
            ("[source]\ngit = \"../x.git\"\nsigned_by = \"$CREDENTIALS_DIRECTORY/a\"\n", vec![UNSIGNED]),
            (
                "[source]\ngit = \"../x.git\"\nsigned_by = \"$CREDENTIALS_DIRECTORY/a\"\nsigning_key = \
                    \"$CREDENTIALS_DIRECTORY/b\"\n",
                vec![],
            ),
            ("", vec![]),
        ];
        for (text, expected) in cases {
            assert_eq!(doubts(text), expected, "{text}");
        }
    }
}
