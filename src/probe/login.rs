//! The login of the probe at a broker.

use secrecy::{ExposeSecret as _, SecretString};
use tokio::io::{AsyncRead, AsyncWrite};
use zeroize::Zeroizing;

use super::conversation::Conversation;
use super::fault::Fault;
use super::requests::{ApiVersions, KnownVersions, SaslAuthenticate, SaslHandshake};
use super::scram::Opening;
use crate::component::probe::{ProbeFailure, ProbeLogin, ServerText};

/// The error codes of a listener with other mechanisms, and of one without any (`UNSUPPORTED_SASL_MECHANISM`,
/// `ILLEGAL_SASL_STATE`).
const OTHER_MECHANISM: [i16; 2] = [33, 34];

/// The name under which a refused client certificate is reported.
const OF_CERTIFICATE: &str = "the probe's certificate";

/// A login with everything that it needs.
#[derive(Clone, Copy)]
pub enum Credentials<'c> {
    Scram {
        user: &'c str,
        password: &'c SecretString,
    },
    /// The certificate was shown in the TLS handshake.
    Mtls,
    OAuth {
        client: &'c str,
        token: &'c SecretString,
    },
}

impl<'c> Credentials<'c> {
    /// The token is that of an OAuth login.
    pub fn new(login: &'c ProbeLogin, token: Option<&'c SecretString>) -> Option<Self> {
        match login {
            ProbeLogin::Scram { user, password } => Some(Credentials::Scram { user, password }),
            ProbeLogin::Mtls { .. } => Some(Credentials::Mtls),
            ProbeLogin::OAuth(request) => {
                Some(Credentials::OAuth { client: &request.client_id, token: token? })
            }
        }
    }

    /// Logs in, and asks which versions of requests the broker knows: a broker that refuses a client certificate
    /// tells so when something is asked.
    pub async fn log_in<S: AsyncRead + AsyncWrite + Unpin>(
        self,
        broker: &mut Conversation<S>,
    ) -> Result<KnownVersions, ProbeFailure> {
        match self {
            Credentials::Scram { user, password } => scram(broker, user, password).await?,
            Credentials::OAuth { client, token } => oauth(broker, client, token).await?,
            Credentials::Mtls => {}
        }
        broker.ask(&ApiVersions).await.map_err(|fault| match fault {
            Fault::Alert(alert) if matches!(self, Credentials::Mtls) => refused_certificate(alert),
            fault => fault.into(),
        })
    }
}

/// The alert with which a server ends TLS says why it refuses a client's certificate.
pub fn refused_certificate(alert: rustls::AlertDescription) -> ProbeFailure {
    ProbeFailure::LoginRefused {
        user: OF_CERTIFICATE.to_owned(),
        says: ServerText::new(&format!("the broker says {alert:?}")),
    }
}

async fn scram<S: AsyncRead + AsyncWrite + Unpin>(
    broker: &mut Conversation<S>,
    user: &str,
    password: &SecretString,
) -> Result<(), ProbeFailure> {
    choose(broker, "SCRAM-SHA-512").await?;
    let no_random = || ProbeFailure::Unusable(ServerText::new("this host provides no random numbers"));
    let opening = Opening::new(user).ok_or_else(no_random)?;
    let challenge = say(broker, &opening.message(), (user, password)).await?;
    let proof = opening.prove(&challenge, password).map_err(|_| ProbeFailure::Garbled)?;
    let answer = say(broker, &proof.message, (user, password)).await?;
    if proof.is_answered_by(&answer) { Ok(()) } else { Err(ProbeFailure::Unproven) }
}

/// OAUTHBEARER (RFC 7628).
async fn oauth<S: AsyncRead + AsyncWrite + Unpin>(
    broker: &mut Conversation<S>,
    client: &str,
    token: &SecretString,
) -> Result<(), ProbeFailure> {
    choose(broker, "OAUTHBEARER").await?;
    let message = Zeroizing::new(format!("n,,\u{1}auth=Bearer {}\u{1}\u{1}", token.expose_secret()));
    let answer = say(broker, message.as_bytes(), (client, token)).await?;
    if answer.is_empty() {
        return Ok(());
    }
    // A refusal comes as JSON, and ends once the client has answered (RFC 7628, section 3.2.3).
    say(broker, b"\x01", (client, token)).await?;
    let says = without(&String::from_utf8_lossy(&answer), token);
    Err(ProbeFailure::LoginRefused { user: client.to_owned(), says })
}

async fn choose<S: AsyncRead + AsyncWrite + Unpin>(
    broker: &mut Conversation<S>,
    mechanism: &'static str,
) -> Result<(), ProbeFailure> {
    let answer = broker.ask(&SaslHandshake { mechanism }).await?;
    match answer.error {
        0 => Ok(()),
        code if OTHER_MECHANISM.contains(&code) => {
            let offered = answer.offered.join(", ");
            let offered = if offered.is_empty() { "none" } else { &offered };
            Err(ProbeFailure::Mechanism { offered: ServerText::new(offered) })
        }
        _ => Err(ProbeFailure::Garbled),
    }
}

/// Sends a message of the mechanism, as a user with a secret, and returns the server's.
async fn say<S: AsyncRead + AsyncWrite + Unpin>(
    broker: &mut Conversation<S>,
    message: &[u8],
    (user, secret): (&str, &SecretString),
) -> Result<Vec<u8>, ProbeFailure> {
    let answer = broker.ask(&SaslAuthenticate { message }).await?;
    match answer.error {
        0 => Ok(answer.message),
        _ => Err(ProbeFailure::LoginRefused {
            user: user.to_owned(),
            says: without(&answer.says.unwrap_or_default(), secret),
        }),
    }
}

/// A server's words, without those that repeat a part of a secret.
pub fn without(says: &str, secret: &SecretString) -> ServerText {
    const PART: usize = 8;
    let secret = secret.expose_secret().as_bytes();
    let repeats = secret
        .windows(PART.min(secret.len().max(1)))
        .any(|part| says.as_bytes().windows(part.len()).any(|said| said == part));
    ServerText::new(if repeats { "the answer repeats the secret, so it isn't shown" } else { says })
}
