//! A token for the login of the probe, by client credentials (RFC 6749, section 4.4).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use form_urlencoded::{Serializer, byte_serialize};
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST};
use http::{HeaderValue, Request, Uri};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::client::TlsStream;
use zeroize::Zeroizing;

use super::wire::MAX_RESPONSE;
use super::{Prober, tls};
use crate::component::probe::{LookupFault, ProbeFailure, PublicName, ServerText, TokenRequest};
use crate::names::Identifier;

#[derive(Deserialize)]
struct Answer {
    access_token: Option<SecretString>,
    /// One of the words that RFC 6749 lists in section 5.2. The description beside it is free text, which could
    /// repeat what was sent, so it isn't read.
    error: Option<String>,
}

impl Prober {
    /// Asks for a token.
    pub(super) async fn token(
        &self,
        organization: &Identifier,
        request: &TokenRequest,
    ) -> Result<SecretString, ProbeFailure> {
        self.ask_for_token(organization, request).await.map_err(|failure| match failure {
            ProbeFailure::NoToken(why) => ProbeFailure::NoToken(why),
            // The failure is about another server than the sentence.
            other => ProbeFailure::NoToken(ServerText::new(&words(other))),
        })
    }

    async fn ask_for_token(
        &self,
        organization: &Identifier,
        request: &TokenRequest,
    ) -> Result<SecretString, ProbeFailure> {
        let endpoint: Uri = request.token_endpoint.parse().map_err(|_| no_token("its address is no URL"))?;
        let host = endpoint.host().ok_or_else(|| no_token("its address has no host"))?;
        if endpoint.scheme_str() != Some("https") {
            return Err(no_token("its address is no https://"));
        }
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let server = PublicName { host, port: endpoint.port_u16().unwrap_or(443) };
        let trust = match &request.authorities {
            Some(pem) => tls::Trust::of_certificates(pem)?,
            None => self.system_trust(),
        };
        let (stream, _) = self.connect(organization, &server).await?;
        let stream = trust.shake_hands(stream, (&server.host, self.limits.step)).await?;
        let answer = timeout(self.limits.step, post(stream, &endpoint, request));
        let (status, body) = answer.await.map_err(|_| ProbeFailure::Silent(self.limits.step))??;
        let body = Zeroizing::new(Vec::from(body));
        let answer: Answer = serde_json::from_slice(&body)
            .map_err(|_| no_token(&format!("its answer {status} isn't JSON")))?;
        match (answer.access_token, answer.error) {
            (Some(token), _) if status.is_success() => Ok(token),
            (_, Some(error)) => {
                let error = super::login::without(&error, &request.client_secret);
                Err(no_token(&format!("its answer is {status}, {error}")))
            }
            _ => Err(no_token(&format!("its answer {status} has no token"))),
        }
    }
}

async fn post(
    stream: TlsStream<TcpStream>,
    endpoint: &Uri,
    request: &TokenRequest,
) -> Result<(http::StatusCode, Bytes), ProbeFailure> {
    let failed = |error: hyper::Error| no_token(&error.to_string());
    let mut connections = http1::Builder::new();
    connections.max_buf_size(MAX_RESPONSE);
    let (mut sender, connection) = connections.handshake(TokioIo::new(stream)).await.map_err(failed)?;
    let exchange = async {
        let answer = sender.send_request(message(endpoint, request)?).await.map_err(failed)?;
        let status = answer.status();
        let body = Limited::new(answer.into_body(), MAX_RESPONSE).collect().await;
        let body = body.map_err(|_| no_token("its answer ends early, or is larger than 64 KiB"))?;
        Ok((status, body.to_bytes()))
    };
    // The connection does its work while the exchange is awaited, and ends with it.
    tokio::pin!(exchange);
    tokio::select! {
        biased;
        answer = &mut exchange => answer,
        ended = connection => match ended {
            Ok(()) => exchange.await,
            Err(error) => Err(failed(error)),
        },
    }
}

fn message(endpoint: &Uri, request: &TokenRequest) -> Result<Request<Full<Bytes>>, ProbeFailure> {
    let mut form = Serializer::new(String::new());
    form.append_pair("grant_type", "client_credentials");
    form.extend_pairs(request.scope.iter().map(|scope| ("scope", scope)));
    let path = endpoint.path_and_query().map_or("/", |path| path.as_str());
    let host = endpoint.authority().map_or("", |authority| authority.as_str());
    Request::post(path)
        .header(HOST, host)
        .header(ACCEPT, "application/json")
        .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
        .header(AUTHORIZATION, basic(request))
        .body(Full::from(form.finish()))
        .map_err(|_| no_token("its address is no URL"))
}

/// Basic authentication with encoded parts (RFC 6749, section 2.3.1).
fn basic(request: &TokenRequest) -> HeaderValue {
    let encoded = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
    let secret = Zeroizing::new(encoded(request.client_secret.expose_secret()));
    let login = Zeroizing::new(format!("{}:{}", encoded(&request.client_id), &*secret));
    let header = Zeroizing::new(format!("Basic {}", STANDARD.encode(login.as_bytes())));
    // Base64 is always a valid value.
    let mut header = HeaderValue::from_str(&header).unwrap_or(HeaderValue::from_static(""));
    header.set_sensitive(true);
    header
}

fn no_token(why: &str) -> ProbeFailure {
    ProbeFailure::NoToken(ServerText::new(why))
}

/// A failure to reach the identity provider, as the end of a sentence about it.
fn words(failure: ProbeFailure) -> String {
    match failure {
        ProbeFailure::Lookup(LookupFault::Missing) => "its name has no address".to_owned(),
        ProbeFailure::Lookup(LookupFault::Failed(why)) => format!("its name can't be looked up: {why}"),
        ProbeFailure::Denied(denied) => format!("the settings don't allow its address: {denied}"),
        ProbeFailure::Refused => "its port is closed".to_owned(),
        ProbeFailure::Unconnected(why) | ProbeFailure::Handshake(why) | ProbeFailure::Unusable(why) => {
            why.to_string()
        }
        ProbeFailure::Certificate(fault) => format!("TLS ends with a certificate {fault}"),
        ProbeFailure::Silent(time) => format!("no answer within {} s", time.as_secs()),
        ProbeFailure::Closed => "it closes the connection".to_owned(),
        // Kafka's failures don't arise here.
        other => format!("{other:?}"),
    }
}
