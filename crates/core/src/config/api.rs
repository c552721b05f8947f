//! The settings of the HTTP server.

use std::net::SocketAddr;

use camino::Utf8PathBuf;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::base_url;
use super::listen::{self, Listen, ListenAddress};
use super::oidc::OidcConfig;

/// The longest e-mail address, in bytes (RFC 5321, section 4.5.3.1.3, without its brackets).
const LONGEST_EMAIL: usize = 254;

/// How many characters of an invalid address an error quotes.
const LONGEST_SHOWN: usize = 200;

/// Whether and where `serve` answers over HTTP.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ApiConfig {
    /// The address and port that `serve` listens on: the API, which needs a token, the web UI, and `/healthz`,
    /// `/readyz`, `/metrics` and, with `source.webhook_secret_file`, `/webhook`. `none` opens no port. The flag
    /// `--listen` and the variable `STREAMFLEET_LISTEN` take precedence. By default it is `127.0.0.1:3000` if
    /// there are super users, and otherwise no port is opened. If another program has that default port, `serve`
    /// goes on without it. Without a token, callers that reach the address can read how many fleets and clusters
    /// there are and their statuses, but no names.
    #[schemars(with = "Option<String>", example = &"127.0.0.1:3000")]
    pub listen: Option<Listen>,
    /// The base URL of the API where that isn't the root of `listen`, for example behind a proxy: a full URL,
    /// or only its path. The API is answered below that path only, so the proxy must not strip the path;
    /// `/healthz`, `/readyz`, `/metrics`, `/webhook` and the socket are not moved.
    #[schemars(with = "Option<String>", example = &"https://kafka.example.com/streamfleet")]
    pub base_url: Option<String>,
    /// The file of the TLS certificate for `listen`, in PEM, followed by the intermediate certificates. It
    /// and `tls_key_file` may be credentials of the systemd service. They are reloaded when the files change
    /// and on SIGHUP. By default there is no TLS, and all traffic can be read on the network.
    #[schemars(with = "Option<String>", example = &"/etc/streamfleet/tls.crt")]
    pub tls_cert_file: Option<Utf8PathBuf>,
    /// The file of that certificate's private key, in PEM, not encrypted.
    #[schemars(with = "Option<String>", example = &"/etc/streamfleet/tls.key")]
    pub tls_key_file: Option<Utf8PathBuf>,
    /// How many connections `listen` accepts at a time. At the limit, a new connection closes the one that
    /// has been idle, or has been sending a body, for longest.
    #[schemars(range(min = 1, max = 65536))]
    pub max_connections: u32,
    /// How many of these connections may come from one address, so that one client can't take them all. Raise
    /// it behind a proxy.
    #[schemars(range(min = 1, max = 65536))]
    pub max_connections_per_address: u32,
    /// The largest tree of specs that `POST /v1/plans` accepts on `listen`, in MiB: its files in base64, as
    /// they are sent. All large bodies together may use four times this at a time, and at least 64 MiB. Any
    /// other body may have at most 1 MiB.
    #[schemars(range(min = 1, max = 256))]
    pub max_proposal_mib: u32,
    /// The socket file on which commands such as `plan` and `approve` talk to a running `serve`. Only root
    /// and the user that `serve` runs as may connect. By default `socket` in the state folder.
    #[schemars(with = "Option<String>", example = &"/run/streamfleet/socket")]
    pub socket: Option<Utf8PathBuf>,
    /// The e-mail addresses of the super users, who may do everything in every organization, including
    /// `root`. The variable `STREAMFLEET_SUPER_USER_EMAILS`, a comma-separated list, takes precedence.
    #[schemars(inner(length(max = 254)))]
    pub super_user_emails: Vec<String>,
    /// The rate limit for all tokens of one owner together: requests per minute, and also the burst size
    /// after a pause. Requests beyond it are answered 429, except for 10 requests per minute and token that
    /// revoke a token. An owner may also have at most 8 requests waiting for their turn to change or plan
    /// something; more are answered 429.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub requests_per_owner: u32,
    /// The rate limit for requests without a valid token from one address: requests per minute, and also the
    /// burst size after a pause. IPv6 addresses that share their first 64 bits count as one address. Requests
    /// beyond it are answered 429 and are not logged. Requests to public and unknown paths and webhooks with
    /// a wrong signature count; probes do not. Requests with a valid token are not limited by this.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub requests_per_address: u32,
    /// Sign-in to the web UI by OpenID Connect, with the authorization code flow and PKCE. Register a client at the
    /// identity provider, with the address of the web UI and `/ui/sign-in/callback` as its redirect URI.
    pub oidc: OidcConfig,
}

impl ApiConfig {
    /// Returns the settings that name files to read, with their keys.
    pub fn files(&mut self) -> [(&'static str, &mut Option<Utf8PathBuf>); 3] {
        [
            ("api.tls_cert_file", &mut self.tls_cert_file),
            ("api.tls_key_file", &mut self.tls_key_file),
            ("api.oidc.client_secret_file", &mut self.oidc.client_secret_file),
        ]
    }

    /// Checks the settings about callers; returns an error for the first one outside the bounds of its
    /// schema.
    fn callers_out_of_bounds(&self) -> Option<String> {
        let bounds = [
            ("requests_per_owner", self.requests_per_owner),
            ("requests_per_address", self.requests_per_address),
        ];
        let out = bounds.into_iter().find(|(_, value)| !(1..=1_000_000).contains(value));
        out.map(|(key, value)| format!("`api.{key}` is {value}, and must be from 1 to 1000000")).or_else(
            || not_emails(&self.super_user_emails).map(|why| format!("`api.super_user_emails` {why}")),
        )
    }
}

/// Returns what is wrong with a list of e-mail addresses, as the end of a sentence that starts with the
/// list's name.
pub fn not_emails(list: &[String]) -> Option<String> {
    let wrong = list.iter().find(|email| !is_email(email))?;
    let shown: String = wrong.chars().filter(|letter| !letter.is_control()).take(LONGEST_EMAIL).collect();
    Some(format!("contains `{shown}`, which is not an e-mail address"))
}

/// Whether this looks like an e-mail address and is safe in a comma-separated list and in a commit header.
pub fn is_email(text: &str) -> bool {
    let is_odd =
        |letter: char| letter.is_whitespace() || letter.is_control() || "<>,;\"\\()".contains(letter);
    let halves = text.split_once('@');
    halves.is_some_and(|(name, host)| !name.is_empty() && !host.is_empty() && !host.contains('@'))
        && text.len() <= LONGEST_EMAIL
        && !text.contains(is_odd)
}

impl Default for ApiConfig {
    fn default() -> Self {
        Self {
            listen: None,
            base_url: None,
            tls_cert_file: None,
            tls_key_file: None,
            max_connections: 512,
            max_connections_per_address: 128,
            max_proposal_mib: 16,
            socket: None,
            super_user_emails: Vec::new(),
            requests_per_owner: 6000,
            requests_per_address: 600,
            oidc: OidcConfig::default(),
        }
    }
}

impl ApiConfig {
    pub(super) fn out_of_bounds(&self) -> Option<String> {
        let numbers = [
            ("max_connections", self.max_connections),
            ("max_connections_per_address", self.max_connections_per_address),
        ];
        let number = numbers.into_iter().find(|(_, value)| !(1..=65536).contains(value));
        if let Some((key, value)) = number {
            return Some(format!("`api.{key}` is {value}, and must be from 1 to 65536"));
        }
        if !(1..=256).contains(&self.max_proposal_mib) {
            let value = self.max_proposal_mib;
            return Some(format!("`api.max_proposal_mib` is {value}, and must be from 1 to 256"));
        }
        if let Some(wrong) = self.base_url.as_ref().filter(|base_url| base_url::path(base_url).is_none()) {
            let shown: String =
                wrong.chars().filter(|letter| !letter.is_control()).take(LONGEST_SHOWN).collect();
            return Some(format!(
                "`api.base_url` is `{shown}`, and must be an address such as `https://kafka.example.com/streamfleet`, or a \
                 path such as `/streamfleet`, with only letters, digits, `-`, `.`, `_`, `~` and `/` in the path"
            ));
        }
        let half = match (&self.tls_cert_file, &self.tls_key_file) {
            (Some(_), None) => ("tls_cert_file", "`api.tls_key_file`, the certificate's private key"),
            (None, Some(_)) => ("tls_key_file", "`api.tls_cert_file`, the certificate of that key"),
            _ => return self.callers_out_of_bounds().or_else(|| self.oidc.out_of_bounds(self)),
        };
        Some(format!("`api.{}` needs {}, which is not set", half.0, half.1))
    }

    /// Returns the address to listen on; none to open no port.
    pub fn address(&self) -> Option<ListenAddress> {
        ListenAddress::of(self.listen, !self.super_user_emails.is_empty())
    }

    /// Returns the link of the web UI, with a slash at the end. `address` is the one that was opened.
    pub fn ui_link(&self, address: SocketAddr) -> String {
        let base = self.full_base_url().map(str::to_owned).unwrap_or_else(|| {
            let scheme = if self.tls_cert_file.is_some() { "https" } else { "http" };
            format!("{scheme}://{}{}", listen::reachable(address), self.base_path())
        });
        format!("{base}/ui/")
    }

    /// Returns the base URL without a trailing slash; `None` if it isn't set, or is only a path.
    pub fn full_base_url(&self) -> Option<&str> {
        let base = self.base_url.as_deref().filter(|base_url| base_url::has_host(base_url));
        base.map(|base_url| base_url.trim_end_matches('/'))
    }

    /// Returns the path prefix of the API, without a trailing slash; empty for the root.
    pub fn base_path(&self) -> &str {
        self.base_url.as_deref().and_then(base_url::path).unwrap_or_default()
    }

    /// Returns warnings about settings that are valid but probably unintended, a sentence each.
    pub fn doubts(&self) -> Vec<String> {
        let address = self.address().map(|listen| listen.address);
        let clear =
            address.filter(|it| self.tls_cert_file.is_none() && !it.ip().to_canonical().is_loopback());
        let clear = clear.map(|address| {
            format!(
                "`api.listen` is {address}, which other machines may reach, and TLS is off: tokens and secrets are sent in \
                 plain text; set `api.tls_cert_file` and `api.tls_key_file`"
            )
        });
        let unheard = (address.is_none() && self.tls_cert_file.is_some()).then(|| {
            let why = if self.listen.is_some() { "`none`" } else { "not set" };
            format!(
                "`api.tls_cert_file` and `api.tls_key_file` have no effect, because `api.listen` is {why}"
            )
        });
        clear.into_iter().chain(unheard).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    fn parsed(text: &str) -> Result<ApiConfig, String> {
        let config = Config::parse(&format!("[api]\n{text}\n")).map(|config| config.api);
        config.map_err(|error| error.to_string().trim_end().to_owned())
    }

    #[test]
    fn what_is_wrong_is_refused_by_its_name() {
        for (text, expected) in [
            ("max_connections = 0", "`api.max_connections` is 0, and must be from 1 to 65536"),
            (
                "max_connections_per_address = 65537",
                "`api.max_connections_per_address` is 65537, and must be from 1 to 65536",
            ),
            ("max_proposal_mib = 0", "`api.max_proposal_mib` is 0, and must be from 1 to 256"),
            ("max_proposal_mib = 257", "`api.max_proposal_mib` is 257, and must be from 1 to 256"),
            (
                "tls_cert_file = \"a\"",
                "`api.tls_cert_file` needs `api.tls_key_file`, the certificate's private key, which is not set",
            ),
            (
                "tls_key_file = \"a\"",
                "`api.tls_key_file` needs `api.tls_cert_file`, the certificate of that key, which is not set",
            ),
        ] {
            assert_eq!(parsed(text).unwrap_err(), expected);
        }
    }

    #[test]
    fn a_base_address_that_is_none_is_refused() {
        let expected = "`api.base_url` is `kafka.example.com`, and must be an address such as \
                        `https://kafka.example.com/streamfleet`, or a path such as `/streamfleet`, with only letters, \
                        digits, `-`, `.`, `_`, `~` and `/` in the path";
        assert_eq!(parsed("base_url = \"kafka.example.com\"").unwrap_err(), expected);
        for (text, path) in
            [("base_url = \"http://localhost:3000/x/\"", "/x"), ("base_url = \"/\"", ""), ("", "")]
        {
            assert_eq!(parsed(text).unwrap().base_path(), path, "{text}");
        }
    }

    #[test]
    fn the_web_ui_is_below_the_base_address_or_the_port() {
        let tls = "tls_cert_file = \"a\"\ntls_key_file = \"b\"";
        for (text, address, expected) in [
            ("", "127.0.0.1:3000", "http://127.0.0.1:3000/ui/"),
            (tls, "[::1]:3000", "https://[::1]:3000/ui/"),
            ("", "0.0.0.0:3000", "http://127.0.0.1:3000/ui/"),
            ("", "[::]:3000", "http://[::1]:3000/ui/"),
            ("base_url = \"/streamfleet/\"", "127.0.0.1:80", "http://127.0.0.1:80/streamfleet/ui/"),
            ("base_url = \"https://k.example.com/x/\"", "127.0.0.1:80", "https://k.example.com/x/ui/"),
            ("base_url = \"https://k.example.com\"", "127.0.0.1:80", "https://k.example.com/ui/"),
        ] {
            assert_eq!(parsed(text).unwrap().ui_link(address.parse().unwrap()), expected, "{text}");
        }
    }

    #[test]
    fn a_port_that_others_reach_wants_tls() {
        let tls = "tls_cert_file = \"a\"\ntls_key_file = \"b\"";
        let doubts = |text: &str| parsed(text).unwrap().doubts();
        let expected = "`api.listen` is 0.0.0.0:3000, which other machines may reach, and TLS is off: tokens and secrets \
                        are sent in plain text; set `api.tls_cert_file` and `api.tls_key_file`";
        assert_eq!(doubts("listen = \"0.0.0.0:3000\""), [expected]);
        for sound in ["listen = \"127.0.0.1:3000\"", "listen = \"[::1]:3000\"", ""] {
            assert_eq!(doubts(sound), [""; 0], "{sound}");
        }
        assert_eq!(doubts(&format!("listen = \"0.0.0.0:3000\"\n{tls}")), [""; 0]);
        let expected = |why| {
            [format!(
                "`api.tls_cert_file` and `api.tls_key_file` have no effect, because `api.listen` is {why}"
            )]
        };
        assert_eq!(doubts(tls), expected("not set"));
        assert_eq!(doubts(&format!("listen = \"none\"\n{tls}")), expected("`none`"));
        assert_eq!(doubts(&format!("super_user_emails = [\"ada@example.com\"]\n{tls}")), [""; 0]);
    }
}
