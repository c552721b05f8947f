//! The issuer's metadata and keys, and the exchange of a code for an ID token.

use std::time::{Duration, Instant};

use axum::body::Bytes;
use axum::http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use axum::http::{HeaderValue, Method, Request, StatusCode};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use camino::{Utf8Path, Utf8PathBuf};
use http_body_util::Full;
use jiff::Timestamp;
use jsonwebtoken::jwk::Jwk;
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::Mutex;
use zeroize::Zeroizing;

use super::attempt::Attempt;
use super::id_token::{self, Expected, IdTokenFault, Person};
use super::{Rejection, SignInRefusal};
use crate::config::{OidcConfig, is_private_address};
use crate::http::client::Client;
use crate::problem::quote_untrusted;

/// How long what the issuer publishes is used before it is fetched again: a key that was withdrawn counts no
/// longer than this.
const FRESH: Duration = Duration::from_secs(60 * 60);

/// The pause between two fetches for a key that isn't known.
const PAUSE: Duration = Duration::from_secs(60);

/// The most keys that are used.
const MAX_KEYS: usize = 100;

/// How long ago, in seconds, somebody who signs in again may have proved who they are.
const MAX_AGE: u32 = 15 * 60;

pub struct Provider {
    client: Client,
    pub issuer: String,
    client_id: String,
    /// The address to which the issuer sends browsers back.
    redirect_uri: String,
    secret_file: Option<Utf8PathBuf>,
    scopes: String,
    trust_unverified_emails: bool,
    published: Mutex<Option<Published>>,
}

#[derive(Clone)]
struct Published {
    endpoints: Endpoints,
    keys: Vec<Jwk>,
    at: Instant,
    /// The last fetch for a key that wasn't known.
    looked_again: Option<Instant>,
}

/// The used part of the issuer's metadata (OpenID Connect Discovery 1.0, section 3).
#[derive(Clone, Deserialize)]
struct Endpoints {
    issuer: String,
    authorization_endpoint: String,
    token_endpoint: String,
    jwks_uri: String,
    #[serde(default)]
    token_endpoint_auth_methods_supported: Vec<String>,
}

#[derive(Deserialize)]
struct KeySet {
    keys: Vec<Value>,
}

#[derive(Deserialize)]
struct Exchanged {
    id_token: Option<SecretString>,
}

impl Provider {
    /// `None` if the settings name no issuer.
    ///
    /// # Errors
    /// When the secret can't be read, or no client can be made.
    pub fn of(config: &OidcConfig, redirect_uri: String) -> Result<Option<Provider>, String> {
        let (Some(issuer), Some(client_id)) = (config.issuer.clone(), config.client_id.clone()) else {
            return Ok(None);
        };
        let client = Client::new().map_err(|error| error.to_string())?;
        let secret_file = config.client_secret_file.clone();
        secret_file.as_deref().map(read_secret).transpose()?;
        Ok(Some(Provider {
            client,
            issuer,
            client_id,
            redirect_uri,
            secret_file,
            scopes: config.scopes.join(" "),
            trust_unverified_emails: config.trust_unverified_emails,
            published: Mutex::new(None),
        }))
    }

    /// The issuer's page that somebody signs in on.
    pub async fn sign_in_page(&self, attempt: &Attempt) -> Result<String, Rejection> {
        let page = self.published().await?.endpoints.authorization_endpoint;
        let (state, nonce, challenge) = (attempt.state(), attempt.nonce(), attempt.challenge());
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.extend_pairs([
            ("response_type", "code"),
            ("client_id", &self.client_id),
            ("redirect_uri", &self.redirect_uri),
            ("scope", &self.scopes),
            ("state", &state),
            ("nonce", &nonce),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
        ]);
        if attempt.is_again {
            // The issuer asks for the password even if it knows the browser, and its token says when.
            query.extend_pairs([("prompt", "login"), ("max_age", &MAX_AGE.to_string())]);
        }
        let joint = if page.contains('?') { '&' } else { '?' };
        Ok(format!("{page}{joint}{}", query.finish()))
    }

    /// Exchanges a code, and returns whom the ID token is about.
    pub async fn person(&self, code: &str, attempt: &Attempt) -> Result<Person, Rejection> {
        let published = self.published().await?;
        let token = self.exchange(&published.endpoints, code, attempt).await?;
        let token = token.expose_secret();
        let nonce = attempt.nonce();
        let expected = || Expected {
            issuer: &self.issuer,
            client_id: &self.client_id,
            nonce: &nonce,
            trust_unverified_emails: self.trust_unverified_emails,
            max_age: attempt.is_again.then_some(MAX_AGE),
            now: Timestamp::now(),
        };
        let checked = match id_token::check(token, &published.keys, &expected()) {
            Err(IdTokenFault::UnknownKey(_)) => {
                id_token::check(token, &self.look_again().await?.keys, &expected())
            }
            checked => checked,
        };
        checked.map_err(|fault| {
            let why = format!("the ID token is refused: {fault}");
            let told = match fault {
                IdTokenFault::Old => SignInRefusal::Unproved,
                _ => SignInRefusal::Refused,
            };
            Rejection { why, told }
        })
    }

    async fn exchange(
        &self,
        endpoints: &Endpoints,
        code: &str,
        attempt: &Attempt,
    ) -> Result<SecretString, Rejection> {
        let request = self.exchange_request(endpoints, code, attempt)?;
        let (status, body) = self.send("exchange the code", request).await?;
        if !status.is_success() {
            return Err(refused_code(status, &body));
        }
        let answer: Exchanged = parsed("the answer to the exchange of the code", &body)?;
        answer.id_token.ok_or_else(|| {
            Rejection::new("the answer to the exchange of the code has no ID token".to_owned())
        })
    }

    fn exchange_request(
        &self,
        endpoints: &Endpoints,
        code: &str,
        attempt: &Attempt,
    ) -> Result<Request<Full<Bytes>>, Rejection> {
        let secret = self.secret_file.as_deref().map(read_secret).transpose().map_err(Rejection::new)?;
        let secret = secret.as_ref().map(SecretString::expose_secret);
        let verifier = Zeroizing::new(attempt.verifier());
        let mut form = form_urlencoded::Serializer::new(String::new());
        form.extend_pairs([
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", &self.redirect_uri),
            ("code_verifier", &verifier),
        ]);
        // By default, clients use the header (OpenID Connect Discovery 1.0, section 3).
        let methods = &endpoints.token_endpoint_auth_methods_supported;
        let knows = |method: &str| methods.iter().any(|known| known == method);
        let is_in_form = knows("client_secret_post") && !knows("client_secret_basic");
        let mut header = None;
        match secret {
            Some(secret) if !is_in_form => header = Some(basic(&self.client_id, secret)),
            secret => {
                form.append_pair("client_id", &self.client_id);
                secret.map(|secret| form.append_pair("client_secret", secret));
            }
        }
        let mut request = request(&endpoints.token_endpoint, form.finish())?;
        *request.method_mut() = Method::POST;
        let form = HeaderValue::from_static("application/x-www-form-urlencoded");
        request
            .headers_mut()
            .extend([(CONTENT_TYPE, form)].into_iter().chain(header.map(|it| (AUTHORIZATION, it))));
        Ok(request)
    }

    async fn published(&self) -> Result<Published, Rejection> {
        let mut kept = self.published.lock().await;
        match kept.as_ref().filter(|published| published.at.elapsed() < FRESH) {
            Some(published) => Ok(published.clone()),
            None => Ok(kept.insert(self.fetch().await?).clone()),
        }
    }

    /// Fetches again, unless that was done a moment ago.
    async fn look_again(&self) -> Result<Published, Rejection> {
        let mut kept = self.published.lock().await;
        let is_recent = |published: &Published| published.looked_again.is_some_and(|at| at.elapsed() < PAUSE);
        match kept.as_ref().filter(|published| is_recent(published)) {
            Some(published) => Ok(published.clone()),
            None => {
                let looked_again = Some(Instant::now());
                Ok(kept.insert(Published { looked_again, ..self.fetch().await? }).clone())
            }
        }
    }

    async fn fetch(&self) -> Result<Published, Rejection> {
        let base = self.issuer.trim_end_matches('/');
        let what = "the issuer's metadata";
        let endpoints: Endpoints =
            self.get(what, &format!("{base}/.well-known/openid-configuration")).await?;
        if endpoints.issuer != self.issuer {
            let (found, own) = (quote_untrusted(&endpoints.issuer), &self.issuer);
            return Err(Rejection::new(format!(
                "the issuer calls itself {found}, and `api.oidc.issuer` is {own}; both must be equal to the letter"
            )));
        }
        let Endpoints { authorization_endpoint, token_endpoint, jwks_uri, .. } = &endpoints;
        for address in [authorization_endpoint, token_endpoint, jwks_uri] {
            // An issuer on this host may name addresses on it.
            let is_local_issuer = !self.issuer.starts_with("https://");
            if !is_private_address(address) || !(is_local_issuer || address.starts_with("https://")) {
                let address = quote_untrusted(address);
                return Err(Rejection::new(format!(
                    "the issuer's metadata has the address {address}, which is no https://"
                )));
            }
        }
        let KeySet { keys } = self.get("the issuer's keys", jwks_uri).await?;
        // Keys of kinds that aren't known are left out.
        let keys =
            keys.into_iter().filter_map(|key| serde_json::from_value(key).ok()).take(MAX_KEYS).collect();
        Ok(Published { endpoints, keys, at: Instant::now(), looked_again: None })
    }

    async fn get<T: DeserializeOwned>(&self, what: &str, address: &str) -> Result<T, Rejection> {
        let (status, body) = self.send(&format!("read {what}"), request(address, String::new())?).await?;
        match status {
            StatusCode::OK => parsed(what, &body),
            other => {
                Err(Rejection::unreachable(format!("cannot read {what} at {address}: the answer is {other}")))
            }
        }
    }

    async fn send(
        &self,
        attempted: &str,
        request: Request<Full<Bytes>>,
    ) -> Result<(StatusCode, Bytes), Rejection> {
        let address = request.uri().to_string();
        let sent = self.client.send(request).await;
        sent.map_err(|error| Rejection::unreachable(format!("cannot {attempted} at {address}: {error}")))
    }
}

fn request(address: &str, body: String) -> Result<Request<Full<Bytes>>, Rejection> {
    let request = Request::builder().uri(address).header(ACCEPT, "application/json").body(Full::from(body));
    request.map_err(|_| Rejection::new(format!("{} is no address", quote_untrusted(address))))
}

fn parsed<T: DeserializeOwned>(what: &str, body: &[u8]) -> Result<T, Rejection> {
    serde_json::from_slice(body).map_err(|error| {
        Rejection::new(format!("cannot read {what}: {}", quote_untrusted(&error.to_string())))
    })
}

/// The issuer's own words, for the log.
fn refused_code(status: StatusCode, body: &[u8]) -> Rejection {
    let answer: Value = serde_json::from_slice(body).unwrap_or_default();
    let text = |name: &str| quote_untrusted(answer[name].as_str().unwrap_or_default());
    let why =
        format!("the issuer refuses the code: {status} {} {}", text("error"), text("error_description"));
    Rejection::new(why.trim_end().to_owned())
}

/// Basic authentication with encoded parts (RFC 6749, section 2.3.1).
fn basic(client_id: &str, secret: &str) -> HeaderValue {
    let encoded = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
    let login = Zeroizing::new(format!("{}:{}", encoded(client_id), encoded(secret)));
    let header = Zeroizing::new(format!("Basic {}", STANDARD.encode(login.as_bytes())));
    let mut header = HeaderValue::from_str(&header).unwrap_or(HeaderValue::from_static(""));
    header.set_sensitive(true);
    header
}

fn read_secret(path: &Utf8Path) -> Result<SecretString, String> {
    let unusable = |why: String| format!("cannot use `api.oidc.client_secret_file`, `{path}`: {why}");
    let text = Zeroizing::new(std::fs::read_to_string(path).map_err(|error| unusable(error.to_string()))?);
    match text.trim() {
        "" => Err(unusable("it is empty".to_owned())),
        secret => Ok(SecretString::from(secret.to_owned())),
    }
}
