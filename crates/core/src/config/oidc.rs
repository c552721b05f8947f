//! The settings of sign-in to the web UI by OpenID Connect.

use std::net::IpAddr;

use camino::Utf8PathBuf;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ApiConfig;
use super::base_url;
use super::listen::Listen;

/// The longest address and the longest id of a client, in bytes.
const LONGEST: usize = 2000;

/// The first parts of issuers that stand for all tenants of Entra ID.
const OF_ALL_TENANTS: [&str; 3] = ["common", "organizations", "consumers"];

/// Sign-in to the web UI by OpenID Connect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct OidcConfig {
    /// The address of the identity provider, exactly as its tokens name it. It must begin with `https://`,
    /// unless it is on this host. Issuers of all tenants, such as `/common` of Entra ID, are refused. By default
    /// there is no sign-in by OpenID Connect. With it, `api.base_url` must be a full URL, unless `listen` is a
    /// loopback address.
    #[schemars(with = "Option<String>", example = &"https://login.example.com/realms/acme")]
    pub issuer: Option<String>,
    /// The id of the client that is registered at the identity provider for this web UI.
    #[schemars(with = "Option<String>", example = &"streamfleet")]
    pub client_id: Option<String>,
    /// The file of the client's secret. It may be a credential of the systemd service. It is read at each
    /// sign-in, so it may change. By default the client is a public one, which PKCE alone protects.
    #[schemars(with = "Option<String>", example = &"$CREDENTIALS_DIRECTORY/oidc-client-secret")]
    pub client_secret_file: Option<Utf8PathBuf>,
    /// The scopes to request: `openid`, and what makes the identity provider put the e-mail address into its ID
    /// tokens.
    pub scopes: Vec<String>,
    /// Accept e-mail addresses that the identity provider doesn't call verified (`email_verified`). Only for one
    /// whose administrators alone set addresses: elsewhere, users could enter the address of another person.
    pub trust_unverified_emails: bool,
    /// Lead to the identity provider at once where a page needs somebody to sign in, and sign in for all their
    /// organizations. The form stays at `/ui/sign-in`.
    pub auto_redirect: bool,
}

impl Default for OidcConfig {
    fn default() -> Self {
        Self {
            issuer: None,
            client_id: None,
            client_secret_file: None,
            scopes: ["openid", "email"].map(str::to_owned).into(),
            trust_unverified_emails: false,
            auto_redirect: false,
        }
    }
}

impl OidcConfig {
    /// Returns an error for the first setting that is wrong by itself or with the others of `api`.
    pub(super) fn out_of_bounds(&self, api: &ApiConfig) -> Option<String> {
        let Some(issuer) = &self.issuer else {
            let alone = [
                ("client_id", self.client_id.is_some()),
                ("client_secret_file", self.client_secret_file.is_some()),
                ("auto_redirect", self.auto_redirect),
            ];
            let (key, _) = alone.into_iter().find(|(_, is_set)| *is_set)?;
            return Some(format!(
                "`api.oidc.{key}` needs `api.oidc.issuer`, the address of the identity provider, which is not set"
            ));
        };
        self.wrong_issuer(issuer).or_else(|| self.wrong_client()).or_else(|| wrong_return(api))
    }

    fn wrong_issuer(&self, issuer: &str) -> Option<String> {
        let shown: String = issuer.chars().filter(|letter| !letter.is_control()).take(200).collect();
        let wrong = |why: &str| Some(format!("`api.oidc.issuer` is `{shown}`, and {why}"));
        let Some(server) = Server::of(issuer) else {
            return wrong(
                "must be an address such as `https://login.example.com/realms/acme`, without a query",
            );
        };
        if !server.is_private() {
            return wrong(
                "must begin with https:// unless it is on this host: whoever is on the way could sign in as anybody",
            );
        }
        let first = server.path.split('/').nth(1).unwrap_or_default().to_ascii_lowercase();
        if OF_ALL_TENANTS.contains(&first.as_str()) {
            return wrong(
                "signs in users of all tenants, of whom anybody may have any e-mail address; name the issuer of one tenant, \
                 such as `https://login.microsoftonline.com/TENANT-ID/v2.0`",
            );
        }
        None
    }

    fn wrong_client(&self) -> Option<String> {
        let plain = |text: &str, banned: &str| {
            let fits = |byte: u8| byte.is_ascii_graphic() && !banned.as_bytes().contains(&byte);
            !text.is_empty() && text.len() <= LONGEST && text.bytes().all(fits)
        };
        let Some(client) = &self.client_id else {
            return Some(
                "`api.oidc.issuer` needs `api.oidc.client_id`, the id of the client that is registered there, which is not \
                 set"
                    .to_owned(),
            );
        };
        if !plain(client, "") {
            return Some("`api.oidc.client_id` must be printable ASCII characters without spaces".to_owned());
        }
        if self.scopes.iter().any(|scope| !plain(scope, "\"\\")) {
            return Some(
                "`api.oidc.scopes` must list words without spaces, quotes and backslashes".to_owned(),
            );
        }
        let is_openid = self.scopes.iter().any(|scope| scope == "openid");
        (!is_openid).then(|| "`api.oidc.scopes` must contain `openid`".to_owned())
    }
}

/// The server that an address leads to.
struct Server<'a> {
    is_tls: bool,
    host: &'a str,
    path: &'a str,
}

impl<'a> Server<'a> {
    /// `None` if the text is no address with a host, or has a query.
    fn of(address: &'a str) -> Option<Server<'a>> {
        let (scheme, rest) = address.split_once("://")?;
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let is_plain = |byte: u8| byte.is_ascii_graphic() && !b"?#\"<>\\^`{|}".contains(&byte);
        let is_sound =
            base_url::is_authority(authority) && path.bytes().all(is_plain) && address.len() <= LONGEST;
        let is_tls = match scheme {
            "https" => true,
            "http" => false,
            _ => return None,
        };
        let host = match authority.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => host,
            _ => authority,
        };
        is_sound.then_some(Server { is_tls, host, path })
    }

    /// Whether the connection is encrypted, or stays on this host.
    fn is_private(&self) -> bool {
        let host = self.host.trim_start_matches('[').trim_end_matches(']');
        self.is_tls || host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
    }
}

/// Whether what is sent to an address can't be read or changed on the way: it is by TLS, or stays on this host.
pub fn is_private_address(address: &str) -> bool {
    let (place, query) = address.split_once('?').unwrap_or((address, ""));
    let is_plain = query.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#');
    is_plain && Server::of(place).is_some_and(|server| server.is_private())
}

/// The mistake in the address that browsers are sent back to.
fn wrong_return(api: &ApiConfig) -> Option<String> {
    let is_remote =
        matches!(api.listen, Some(Listen::On(address)) if !address.ip().to_canonical().is_loopback());
    match api.base_url.as_deref() {
        Some(base) if base_url::has_host(base) => (!is_private_address(base)).then(|| {
            "`api.oidc.issuer` needs an `api.base_url` that begins with https://, to which the identity provider sends \
             browsers back"
                .to_owned()
        }),
        base if is_remote => {
            let why = if base.is_some() { "only a path" } else { "not set" };
            Some(format!(
                "`api.oidc.issuer` needs `api.base_url`, the full URL that the identity provider sends browsers back to, \
                 which is {why}"
            ))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::config::Config;

    const ISSUER: &str = "issuer = \"https://login.example.com/realms/acme\"\n";

    fn parsed(api: &str, oidc: &str) -> Result<Config, String> {
        let text = format!("[api]\n{api}\n[api.oidc]\n{oidc}\n");
        Config::parse(&text).map_err(|error| error.to_string().trim_end().to_owned())
    }

    #[test]
    fn what_is_wrong_with_the_settings_is_said_by_name() {
        let client = format!("{ISSUER}client_id = \"streamfleet\"\n");
        for (text, expected) in [
            (
                "client_id = \"a\"".to_owned(),
                "`api.oidc.client_id` needs `api.oidc.issuer`, the address of the identity provider, which is not set",
            ),
            (
                "auto_redirect = true".to_owned(),
                "`api.oidc.auto_redirect` needs `api.oidc.issuer`, the address of the identity provider, which is not set",
            ),
            (
                ISSUER.to_owned(),
                "`api.oidc.issuer` needs `api.oidc.client_id`, the id of the client that is registered there, which is not \
                 set",
            ),
            (
                format!("{ISSUER}client_id = \"a b\""),
                "`api.oidc.client_id` must be printable ASCII characters without spaces",
            ),
            (format!("{client}scopes = [\"email\"]"), "`api.oidc.scopes` must contain `openid`"),
            (
                format!("{client}scopes = [\"openid email\"]"),
                "`api.oidc.scopes` must list words without spaces, quotes and backslashes",
            ),
        ] {
            assert_eq!(parsed("", &text).unwrap_err(), expected, "{text}");
        }
        assert!(parsed("", &client).is_ok());
    }

    #[test]
    fn an_issuer_is_one_tenants_and_reached_by_tls() {
        let judged =
            |issuer: &str| parsed("", &format!("issuer = \"{issuer}\"\nclient_id = \"a\"")).map(drop);
        let shape = "must be an address such as `https://login.example.com/realms/acme`, without a query";
        let clear = "must begin with https:// unless it is on this host: whoever is on the way could sign in as anybody";
        let many = "signs in users of all tenants, of whom anybody may have any e-mail address; name the issuer of one \
                    tenant, such as `https://login.microsoftonline.com/TENANT-ID/v2.0`";
        for (issuer, why) in [
            ("", shape),
            ("login.example.com", shape),
            ("ftp://login.example.com", shape),
            ("https://", shape),
            ("https://ada@login.example.com", shape),
            ("https://login.example.com/?a=b", shape),
            ("https://login.example.com/#a", shape),
            ("https://login.example.com/a b", shape),
            ("http://login.example.com", clear),
            ("http://localhost.example.com", clear),
            ("http://192.0.2.1:8080/realms/acme", clear),
            ("https://login.microsoftonline.com/common/v2.0", many),
            ("https://login.microsoftonline.com/Organizations/v2.0", many),
            ("https://login.microsoftonline.com/consumers/v2.0", many),
        ] {
            assert_eq!(
                judged(issuer),
                Err(format!("`api.oidc.issuer` is `{issuer}`, and {why}")),
                "{issuer}"
            );
        }
        for issuer in [
            "https://login.example.com",
            "https://acme.eu.auth0.com/",
            "https://login.example.com:8443/realms/organizations",
            "https://login.microsoftonline.com/8f1d2c3b-0000-4000-8000-000000000000/v2.0",
            "http://localhost:8080/realms/acme",
            "http://127.0.0.1:8080/realms/acme",
            "http://[::1]:8080/realms/acme",
        ] {
            assert_eq!(judged(issuer), Ok(()), "{issuer}");
        }
    }

    #[test]
    fn browsers_are_sent_back_to_a_whole_address() {
        let judged = |api: &str| parsed(api, &format!("{ISSUER}client_id = \"a\"")).map(drop);
        let lacks = |why: &str| {
            Err(format!(
                "`api.oidc.issuer` needs `api.base_url`, the full URL that the identity provider sends browsers back to, \
                 which is {why}"
            ))
        };
        let listen = "listen = \"0.0.0.0:3000\"";
        assert_eq!(judged(listen), lacks("not set"));
        assert_eq!(judged(&format!("{listen}\nbase_url = \"/x\"")), lacks("only a path"));
        let clear = "`api.oidc.issuer` needs an `api.base_url` that begins with https://, to which the identity provider \
                     sends browsers back";
        assert_eq!(judged("base_url = \"http://kafka.example.com\""), Err(clear.to_owned()));
        for sound in [
            "",
            "listen = \"127.0.0.1:3000\"\nbase_url = \"/x\"",
            "base_url = \"http://localhost:3000\"",
            "listen = \"0.0.0.0:3000\"\nbase_url = \"https://kafka.example.com/x\"",
        ] {
            assert_eq!(judged(sound), Ok(()), "{sound}");
        }
    }
}
