//! An identity provider that publishes its key and issues tokens with the claims given at its start.

use std::collections::BTreeMap;
use std::io::{self, BufReader};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{KeyPair as _, RSA_PKCS1_SHA256, RsaKeyPair};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::{Value, json};

use crate::support::proxy::tls::Authority;
use crate::support::proxy::wire::Message;

/// Its address and CA certificate. It ends with the test process.
pub struct IdentityProvider {
    pub url: String,
    pub authority: String,
    state: Arc<ProviderState>,
}

struct ProviderState {
    url: String,
    authority: Authority,
    keys: [RsaKeyPair; 2],
    clients: BTreeMap<&'static str, Value>,
}

/// A client whose tokens are signed with an unpublished key.
pub const FORGER: &str = "forger";

impl IdentityProvider {
    /// Starts one with clients by id and the claims of their tokens.
    pub fn start(clients: BTreeMap<&'static str, Value>) -> IdentityProvider {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("https://{}", listener.local_addr().unwrap());
        let authority = Authority::new();
        let pem = String::from_utf8(STANDARD.decode(&authority.certificate).unwrap()).unwrap();
        let keys = [(); 2].map(|()| RsaKeyPair::generate(KeySize::Rsa2048).unwrap());
        let state = Arc::new(ProviderState { url: url.clone(), authority, keys, clients });
        let serving = Arc::clone(&state);
        thread::spawn(move || {
            for socket in listener.incoming().flatten() {
                let state = Arc::clone(&serving);
                // Errors of a client that disconnects are ignored.
                thread::spawn(move || state.serve(socket));
            }
        });
        IdentityProvider { url, authority: pem, state }
    }

    /// The token that a client would get.
    pub fn token_of(&self, client: &str) -> String {
        self.state.token(client).unwrap()
    }
}

impl ProviderState {
    fn serve(&self, socket: TcpStream) -> io::Result<()> {
        let mut client = BufReader::new(self.authority.accept(socket)?);
        while let Some(asked) = Message::read(&mut client)? {
            let (status, answer) = self.answer(&asked);
            let head = format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\n\r\n");
            Message { head, body: answer.to_string().into_bytes() }.write(client.get_mut())?;
        }
        Ok(())
    }

    fn answer(&self, asked: &Message) -> (&'static str, Value) {
        match asked.method_and_path() {
            ("GET", "/keys") => ("200 OK", json!({"keys": [published(&self.keys[0])]})),
            ("POST", "/token") => match client_id(&asked.head).and_then(|id| self.token(&id)) {
                Some(token) => {
                    ("200 OK", json!({"access_token": token, "token_type": "Bearer", "expires_in": 3600}))
                }
                None => ("401 Unauthorized", json!({"error": "invalid_client"})),
            },
            _ => ("404 Not Found", json!({})),
        }
    }

    fn token(&self, client: &str) -> Option<String> {
        let now = jiff::Timestamp::now().as_second();
        let mut claims = self.clients.get(client)?.clone();
        for (claim, value) in [("iss", json!(self.url)), ("iat", json!(now)), ("exp", json!(now + 3600))] {
            claims[claim] = value;
        }
        let parts = [json!({"alg": "RS256", "kid": "first", "typ": "JWT"}), claims];
        let signed = parts.map(|part| URL_SAFE_NO_PAD.encode(part.to_string())).join(".");
        let key = &self.keys[usize::from(client == FORGER)];
        let mut signature = vec![0; key.public_modulus_len()];
        key.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), signed.as_bytes(), &mut signature).unwrap();
        Some(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }
}

fn published(key: &RsaKeyPair) -> Value {
    let number = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
    let key = key.public_key();
    json!({
        "kty": "RSA",
        "alg": "RS256",
        "use": "sig",
        "kid": "first",
        "n": number(key.modulus().big_endian_without_leading_zero()),
        "e": number(key.exponent().big_endian_without_leading_zero()),
    })
}

/// The user name of basic authentication.
fn client_id(head: &str) -> Option<String> {
    let line = head.lines().find(|line| line.to_ascii_lowercase().starts_with("authorization: basic "))?;
    let words = STANDARD.decode(line.split(' ').nth(2)?).ok()?;
    Some(String::from_utf8(words).ok()?.split(':').next()?.to_owned())
}
