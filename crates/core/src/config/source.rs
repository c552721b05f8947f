//! The git repository that specs are fetched from.

use camino::Utf8PathBuf;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::names::SpecPath;

/// The source of specs for commands that name no spec folder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SourceConfig {
    /// The git repository of the specs: `https://…`, `ssh://…`, `user@host:path`, or a path. It must not
    /// contain a token. By default specs are read from a folder.
    #[schemars(example = &"https://git.example.com/platform/kafka.git")]
    pub git: Option<String>,
    /// The branch.
    #[schemars(length(min = 1))]
    pub branch: String,
    /// The folder in the repository that contains the specs. By default the whole repository.
    #[schemars(example = &"specs")]
    pub folder: Option<String>,
    /// How many seconds `serve` waits between fetches. SIGHUP and webhooks trigger a fetch at once.
    #[schemars(range(min = 5, max = 86400))]
    pub interval_seconds: u32,
    /// The timeout of a fetch, in seconds.
    #[schemars(range(min = 1, max = 3600))]
    pub timeout_seconds: u32,
    /// The user name that is sent with the token over https. Most servers accept any.
    #[schemars(length(min = 1))]
    pub username: String,
    /// The file of the token for https. The variable `STREAMFLEET_GIT_TOKEN` takes precedence. It, `ssh_key`,
    /// `known_hosts`, `signed_by` and `signing_key` may be credentials of the systemd service:
    /// `$CREDENTIALS_DIRECTORY/git-token`.
    #[schemars(with = "Option<String>", example = &"/etc/streamfleet/git-token")]
    pub token_file: Option<Utf8PathBuf>,
    /// The file of the private key for ssh, without a passphrase.
    #[schemars(with = "Option<String>", example = &"/etc/streamfleet/id_ed25519")]
    pub ssh_key: Option<Utf8PathBuf>,
    /// The file of the host keys that an ssh server may have, in the format of `ssh-keyscan`.
    #[schemars(with = "Option<String>", example = &"/etc/streamfleet/known_hosts")]
    pub known_hosts: Option<Utf8PathBuf>,
    /// The file of the ssh keys that may sign commits, a line `WHO ssh-ed25519 KEY` each, in the format of
    /// git's `gpg.ssh.allowedSignersFile`. If set, the last commit of the branch is accepted only when one of
    /// these keys signed it.
    #[schemars(with = "Option<String>", example = &"/etc/streamfleet/allowed_signers")]
    pub signed_by: Option<Utf8PathBuf>,
    /// The file of the private ed25519 key that signs Streamfleet's own commits, without a passphrase. If
    /// `signed_by` is set, the API writes nothing without this key.
    #[schemars(with = "Option<String>", example = &"/etc/streamfleet/signing_ed25519")]
    pub signing_key: Option<Utf8PathBuf>,
    /// The file of the secret that GitHub, GitLab or Gitea uses when it notifies `serve` of a push, at
    /// `/webhook` of `api.listen`. It may be a credential of the systemd service. By default no webhook is
    /// accepted.
    #[schemars(with = "Option<String>", example = &"$CREDENTIALS_DIRECTORY/webhook-secret")]
    pub webhook_secret_file: Option<Utf8PathBuf>,
}

impl Default for SourceConfig {
    fn default() -> Self {
        Self {
            git: None,
            branch: "main".to_owned(),
            folder: None,
            interval_seconds: 60,
            timeout_seconds: 120,
            username: "git".to_owned(),
            token_file: None,
            ssh_key: None,
            known_hosts: None,
            signed_by: None,
            signing_key: None,
            webhook_secret_file: None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transport {
    Local,
    /// Encrypted, with or without a token.
    Https,
    /// With a key, to a server whose host key is known.
    Ssh {
        user: String,
        port: u16,
    },
}

impl Transport {
    /// Parses the URL or path of a repository. Errors never quote it, since it may contain a password.
    ///
    /// # Errors
    /// If it has an unsupported form, or contains a password.
    pub fn of(url: &str) -> Result<Transport, String> {
        let refused = |why: &str| Err(format!("`source.git` {why}"));
        if url.is_empty() || url.chars().any(char::is_control) {
            return refused("is not a URL or path");
        }
        let Some((scheme, rest)) = url.split_once("://") else {
            return Ok(match url.split_once(':') {
                Some((server, _)) if !server.contains('/') => Transport::Ssh {
                    user: server.split_once('@').map_or("git", |(user, _)| user).to_owned(),
                    port: SSH_PORT,
                },
                _ => Transport::Local,
            });
        };
        let server = rest.split('/').next().unwrap_or_default();
        let (login, server) = server.rsplit_once('@').map_or((None, server), |(a, b)| (Some(a), b));
        match scheme {
            "file" => Ok(Transport::Local),
            "https" if login.is_some() => refused(
                "contains a user or a password, which everyone who can read the settings sees; set a token in \
                 `source.token_file` or STREAMFLEET_GIT_TOKEN, and a user in `source.username`",
            ),
            "https" => Ok(Transport::Https),
            "ssh" if login.is_some_and(|login| login.contains(':')) => {
                refused("contains a password; set a key in `source.ssh_key`")
            }
            "ssh" => {
                let port = server.rsplit_once(':').filter(|(_, port)| !port.ends_with(']'));
                let Ok(port) = port.map_or(Ok(SSH_PORT), |(_, port)| port.parse()) else {
                    return refused("has a port that is not a number");
                };
                Ok(Transport::Ssh { user: login.unwrap_or("git").to_owned(), port })
            }
            _ => refused(
                "must begin with https:// or ssh://, or be user@host:path or a path; other connections can be tampered with",
            ),
        }
    }
}

const SSH_PORT: u16 = 22;

impl SourceConfig {
    /// Returns the settings that name files to read, with their keys.
    pub fn files(&mut self) -> [(&'static str, &mut Option<Utf8PathBuf>); 6] {
        [
            ("source.token_file", &mut self.token_file),
            ("source.ssh_key", &mut self.ssh_key),
            ("source.known_hosts", &mut self.known_hosts),
            ("source.signed_by", &mut self.signed_by),
            ("source.signing_key", &mut self.signing_key),
            ("source.webhook_secret_file", &mut self.webhook_secret_file),
        ]
    }

    pub(super) fn out_of_bounds(&self) -> Option<String> {
        let numbers = [
            ("interval_seconds", self.interval_seconds, 5, 86400),
            ("timeout_seconds", self.timeout_seconds, 1, 3600),
        ];
        let number = numbers.into_iter().find(|(_, value, min, max)| !(min..=max).contains(&value));
        if let Some((key, value, min, max)) = number {
            return Some(format!("`source.{key}` is {value}, and must be from {min} to {max}"));
        }
        if !is_branch(&self.branch) {
            return Some(format!("`source.branch` is `{}`, which is not a valid branch name", self.branch));
        }
        if let Some(folder) = self.folder.as_ref().filter(|folder| !is_folder(folder)) {
            return Some(format!(
                "`source.folder` is `{folder}`, and must be a path inside the repository, such as `specs/kafka`"
            ));
        }
        let transport = match Transport::of(self.git.as_deref()?) {
            Ok(transport) => transport,
            Err(why) => return Some(why),
        };
        let is_ssh = matches!(transport, Transport::Ssh { .. });
        let needed =
            [(&self.ssh_key, "ssh_key", "a private key"), (&self.known_hosts, "known_hosts", "host keys")];
        let missing = needed.into_iter().find(|(file, ..)| is_ssh && file.is_none());
        missing.map(|(_, key, what)| format!("`source.{key}` must be set to a file of {what}, for ssh"))
    }
}

/// Whether git would accept it as a branch name (`git help check-ref-format`), so that it can't change the
/// meaning of a refspec.
fn is_branch(name: &str) -> bool {
    let is_part = |part: &str| !part.is_empty() && !part.starts_with('.') && !part.ends_with(".lock");
    name.split('/').all(is_part)
        && !name.starts_with('-')
        && !name.ends_with('.')
        && !["..", "@{"].iter().any(|word| name.contains(word))
        && !name.chars().any(|letter| letter.is_control() || " ~^:?*[\\".contains(letter))
}

fn is_folder(path: &str) -> bool {
    SpecPath::try_from(path.to_owned()).is_ok() && !path.split('/').any(|name| name.starts_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    #[test]
    fn what_can_be_fetched_from_and_how() {
        let ssh = |user: &str, port| Ok(Transport::Ssh { user: user.to_owned(), port });
        for (url, expected) in [
            ("/srv/git/specs.git", Ok(Transport::Local)),
            ("../specs", Ok(Transport::Local)),
            ("./a:b", Ok(Transport::Local)),
            ("file:///srv/git/specs.git", Ok(Transport::Local)),
            ("https://git.example.com/specs.git", Ok(Transport::Https)),
            ("ssh://git.example.com/specs.git", ssh("git", 22)),
            ("ssh://ann@git.example.com:2222/specs.git", ssh("ann", 2222)),
            ("ssh://[::1]/specs.git", ssh("git", 22)),
            ("ann@git.example.com:specs.git", ssh("ann", 22)),
        ] {
            assert_eq!(Transport::of(url), expected, "{url}");
        }
    }

    #[test]
    fn what_is_wrong_with_a_source_is_said_without_showing_a_password() {
        for (text, expected) in [
            ("branch = \"a..b\"", "`source.branch` is `a..b`, which is not a valid branch name"),
            (
                "branch = \"a:refs/heads/b\"",
                "`source.branch` is `a:refs/heads/b`, which is not a valid branch name",
            ),
            (
                "folder = \"../secrets\"",
                "`source.folder` is `../secrets`, and must be a path inside the repository, such as `specs/kafka`",
            ),
            ("interval_seconds = 4", "`source.interval_seconds` is 4, and must be from 5 to 86400"),
            ("timeout_seconds = 0", "`source.timeout_seconds` is 0, and must be from 1 to 3600"),
            (
                "git = \"https://ann:hunter2@git.example.com/specs.git\"",
                "`source.git` contains a user or a password, which everyone who can read the settings sees; set a \
                 token in `source.token_file` or STREAMFLEET_GIT_TOKEN, and a user in `source.username`",
            ),
            (
                "git = \"ssh://ann:hunter2@git.example.com/specs.git\"",
                "`source.git` contains a password; set a key in `source.ssh_key`",
            ),
            (
                "git = \"http://git.example.com/specs.git\"",
                "`source.git` must begin with https:// or ssh://, or be user@host:path or a path; other connections can be \
                 tampered with",
            ),
            ("git = \"ssh://git.example.com:x/specs.git\"", "`source.git` has a port that is not a number"),
            ("git = \"\"", "`source.git` is not a URL or path"),
            (
                "git = \"ssh://git.example.com/a\"",
                "`source.ssh_key` must be set to a file of a private key, for ssh",
            ),
            (
                "git = \"git@git.example.com:a\"\nssh_key = \"key\"",
                "`source.known_hosts` must be set to a file of host keys, for ssh",
            ),
        ] {
            let error = Config::parse(&format!("[source]\n{text}\n")).unwrap_err().to_string();
            assert_eq!(error.trim_end(), expected);
        }
        let sound = "[source]\ngit = \"https://git.example.com/a\"\nbranch = \"release/1\"\nfolder = \"specs/kafka\"\n";
        assert!(Config::parse(sound).is_ok());
    }
}
