//! What a running process answers over HTTP.

use std::net::SocketAddr;

use camino::Utf8PathBuf;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The longest e-mail address (RFC 5321, section 4.5.3.1.3, without its brackets).
const LONGEST_EMAIL: usize = 254;

/// Whether and where `serve` answers over HTTP.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ApiConfig {
    /// The address and port that `serve` answers on: `/healthz`, `/readyz`, `/metrics` and, with
    /// `source.webhook_secret_file`, `/webhook`. By default it opens no port. There is no login: whoever reaches the
    /// address reads how many fleets and clusters there are and how they are, and no names.
    #[schemars(with = "Option<String>", example = &"127.0.0.1:3000")]
    pub listen: Option<SocketAddr>,
    /// The file of the socket on which commands such as `plan` and `approve` ask a running `serve`. Only the user that it
    /// runs as, and root, may. By default `socket` in the folder of the state.
    #[schemars(with = "Option<String>", example = &"/run/streamfleet/socket")]
    pub socket: Option<Utf8PathBuf>,
    /// The e-mail addresses of the super users, who may do everything in every organization, `root` among them. The variable
    /// `STREAMFLEET_SUPER_USER_EMAILS`, a list with commas, goes before it.
    #[schemars(inner(length(max = 254)))]
    pub super_user_emails: Vec<String>,
    /// How many requests a minute a token is good for, and at once after a pause. More are answered 429.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub requests_per_token: u32,
    /// How many requests a minute that show no token which holds are heard from one address, and at once after a pause; of
    /// IPv6, all addresses that have their first 64 bits in common are one. More are answered 429.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub requests_per_address: u32,
}

impl Default for ApiConfig {
    fn default() -> Self {
        Self {
            listen: None,
            socket: None,
            super_user_emails: Vec::new(),
            requests_per_token: 6000,
            requests_per_address: 600,
        }
    }
}

impl ApiConfig {
    /// The first key that is out of its bounds, which are those of the schema.
    pub(super) fn out_of_bounds(&self) -> Option<String> {
        let bounds = [
            ("requests_per_token", self.requests_per_token),
            ("requests_per_address", self.requests_per_address),
        ];
        let out = bounds.into_iter().find(|(_, value)| !(1..=1_000_000).contains(value));
        out.map(|(key, value)| format!("`api.{key}` is {value}, and it has to be from 1 to 1000000")).or_else(
            || not_emails(&self.super_user_emails).map(|why| format!("`api.super_user_emails` {why}")),
        )
    }
}

/// What is wrong with a list of e-mail addresses, to follow its name; none where nothing is.
pub fn not_emails(list: &[String]) -> Option<String> {
    let wrong = list.iter().find(|email| !is_email(email))?;
    let shown: String = wrong.chars().filter(|letter| !letter.is_control()).take(LONGEST_EMAIL).collect();
    Some(format!("names `{shown}`, which is not an e-mail address"))
}

/// Whether this can be an e-mail address, and can stand in a list of them and in a commit.
pub fn is_email(text: &str) -> bool {
    let is_odd =
        |letter: char| letter.is_whitespace() || letter.is_control() || "<>,;\"\\()".contains(letter);
    let halves = text.split_once('@');
    halves.is_some_and(|(name, host)| !name.is_empty() && !host.is_empty() && !host.contains('@'))
        && text.len() <= LONGEST_EMAIL
        && !text.contains(is_odd)
}
