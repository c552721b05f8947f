//! An OpenID Connect issuer that lies as it is told to. It checks what an honest one checks: the client, its
//! secret, the code, the redirect URI and the PKCE verifier.

use std::collections::BTreeMap;
use std::io::{self, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _, RSA_PKCS1_SHA256, RsaKeyPair,
};
use aws_lc_rs::{digest, hmac};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::{Value, json};

use crate::support::proxy::wire::Message;

pub const CLIENT: &str = "streamfleet";
pub const SECRET: &str = "s3cr+t of/the client";

/// How a token is signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signature {
    /// With the key that is published from the beginning.
    Own,
    /// With a key that another issuer has, under the name of the own one.
    Foreign,
    /// With the second key, under its own name.
    Second,
    /// With a key of an elliptic curve, under its own name.
    Curve,
    /// With the own key; then the claims are replaced.
    Tampered,
    /// Not at all, and it says so.
    None,
    /// With the published key as a shared secret.
    Shared,
}

/// What the token endpoint answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenAnswer {
    Token,
    /// A megabyte.
    Huge,
    /// A head, and then nothing.
    Silent,
    /// The same code is exchanged again and again.
    Repeated,
    NoToken,
}

pub struct Issuer {
    pub url: String,
    state: Arc<Mutex<IssuerState>>,
}

pub struct IssuerState {
    keys: [RsaKeyPair; 2],
    curve: EcdsaKeyPair,
    codes: BTreeMap<String, Code>,
    /// Whether the second key and that of the curve are published, too.
    pub publishes_all: bool,
    pub answer: TokenAnswer,
    /// The name in the metadata, if it isn't the address.
    pub calls_itself: Option<String>,
    /// The address of the keys, if it isn't an own one.
    pub keys_elsewhere: Option<String>,
    /// How often the keys were fetched.
    pub fetched: usize,
}

struct Code {
    challenge: String,
    redirect_uri: String,
    claims: Value,
    signature: Signature,
}

impl Issuer {
    /// Starts one. It ends with the test process.
    pub fn start() -> Issuer {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/realms/acme", listener.local_addr().unwrap());
        let state = IssuerState {
            keys: [(); 2].map(|()| RsaKeyPair::generate(KeySize::Rsa2048).unwrap()),
            curve: EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap(),
            codes: BTreeMap::new(),
            publishes_all: false,
            answer: TokenAnswer::Token,
            calls_itself: None,
            keys_elsewhere: None,
            fetched: 0,
        };
        let issuer = Issuer { url, state: Arc::new(Mutex::new(state)) };
        let (url, state) = (issuer.url.clone(), Arc::clone(&issuer.state));
        thread::spawn(move || {
            for socket in listener.incoming().flatten() {
                let (url, state) = (url.clone(), Arc::clone(&state));
                // Errors of a client that disconnects are ignored.
                thread::spawn(move || serve(socket, &url, &state));
            }
        });
        issuer
    }

    pub fn state(&self) -> MutexGuard<'_, IssuerState> {
        self.state.lock().unwrap()
    }

    /// Somebody signs in on the issuer's page: the code that the browser is sent back with.
    pub fn code(&self, asked: &BTreeMap<String, String>, claims: Value, signature: Signature) -> String {
        let is_complete = asked["kind"] == "a"
            && asked["response_type"] == "code"
            && asked["client_id"] == CLIENT
            && asked["scope"] == "openid email"
            && asked["code_challenge_method"] == "S256"
            && ["state", "nonce", "code_challenge"].iter().all(|name| asked[*name].len() == 43);
        assert!(is_complete, "{asked:?}");
        let mut state = self.state();
        let code = format!("code-{}-{}", state.codes.len(), asked["state"]);
        let (challenge, redirect_uri) = (asked["code_challenge"].clone(), asked["redirect_uri"].clone());
        state.codes.insert(code.clone(), Code { challenge, redirect_uri, claims, signature });
        code
    }

    /// The claims of an honest token.
    pub fn claims(&self, asked: &BTreeMap<String, String>, subject: &str, email: &str) -> Value {
        let now = jiff::Timestamp::now().as_second();
        json!({
            "iss": self.url, "aud": CLIENT, "sub": subject, "iat": now, "exp": now + 60, "nonce": asked["nonce"],
            "email": email, "email_verified": true,
        })
    }
}

fn serve(socket: TcpStream, url: &str, state: &Mutex<IssuerState>) -> io::Result<()> {
    let mut client = BufReader::new(socket);
    while let Some(asked) = Message::read(&mut client)? {
        let (status, body) = state.lock().unwrap().answer(&asked, url);
        let head = format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\n\r\n");
        match body {
            Some(body) => Message { head, body: body.into_bytes() }.write(client.get_mut())?,
            None => {
                client.get_mut().write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n{")?;
                // Until the other side has had enough.
                io::copy(&mut client, &mut io::sink())?;
            }
        }
    }
    Ok(())
}

impl IssuerState {
    fn answer(&mut self, asked: &Message, url: &str) -> (&'static str, Option<String>) {
        let (method, path) = asked.method_and_path();
        match (method, path) {
            ("GET", "/realms/acme/.well-known/openid-configuration") => {
                let metadata = json!({
                    "issuer": self.calls_itself.as_deref().unwrap_or(url),
                    "authorization_endpoint": format!("{url}/auth?kind=a&other=b"),
                    "token_endpoint": format!("{url}/token"),
                    "jwks_uri": self.keys_elsewhere.clone().unwrap_or_else(|| format!("{url}/keys")),
                });
                ("200 OK", Some(metadata.to_string()))
            }
            ("GET", "/realms/acme/keys") => {
                self.fetched += 1;
                let mut keys = vec![rsa(&self.keys[0], "first"), json!({"kty": "new", "kid": "unknown"})];
                if self.publishes_all {
                    keys.extend([rsa(&self.keys[1], "second"), curve(&self.curve)]);
                }
                ("200 OK", Some(json!({"keys": keys}).to_string()))
            }
            ("POST", "/realms/acme/token") => match self.answer {
                TokenAnswer::Huge => {
                    ("200 OK", Some(format!("{{\"id_token\":\"{}\"}}", "x".repeat(1 << 20))))
                }
                TokenAnswer::Silent => ("200 OK", None),
                TokenAnswer::NoToken => ("200 OK", Some("{\"access_token\":\"x\"}".to_owned())),
                TokenAnswer::Token | TokenAnswer::Repeated => match self.exchange(asked) {
                    Ok(token) => {
                        ("200 OK", Some(json!({"token_type": "Bearer", "id_token": token}).to_string()))
                    }
                    Err(why) => {
                        let error = json!({"error": "invalid_grant", "error_description": why});
                        ("400 Bad Request", Some(error.to_string()))
                    }
                },
            },
            _ => ("404 Not Found", Some(String::new())),
        }
    }

    fn exchange(&mut self, asked: &Message) -> Result<String, &'static str> {
        let fields: BTreeMap<String, String> = form_urlencoded::parse(&asked.body).into_owned().collect();
        let login = STANDARD.encode("streamfleet:s3cr%2Bt+of%2Fthe+client");
        if !asked.head.contains(&format!(": Basic {login}\r\n")) || fields.contains_key("client_secret") {
            return Err("wrong client");
        }
        let code = self.codes.remove(&fields["code"]).ok_or("unknown code")?;
        let verifier = digest::digest(&digest::SHA256, fields["code_verifier"].as_bytes());
        let is_right = fields["grant_type"] == "authorization_code"
            && fields["redirect_uri"] == code.redirect_uri
            && URL_SAFE_NO_PAD.encode(verifier) == code.challenge;
        if !is_right {
            return Err("wrong verifier or redirect URI");
        }
        let token = self.sign(&code.claims, code.signature);
        if self.answer == TokenAnswer::Repeated {
            self.codes.insert(fields["code"].clone(), code);
        }
        Ok(token)
    }

    fn sign(&self, original: &Value, signature: Signature) -> String {
        let (algorithm, named) = match signature {
            Signature::None => ("none", "first"),
            Signature::Shared => ("HS256", "first"),
            Signature::Second => ("RS256", "second"),
            Signature::Curve => ("ES256", "curve"),
            Signature::Own | Signature::Foreign | Signature::Tampered => ("RS256", "first"),
        };
        let header = json!({"alg": algorithm, "kid": named, "typ": "JWT"});
        let [header, claims] = [&header, original].map(|part| URL_SAFE_NO_PAD.encode(part.to_string()));
        let signed = format!("{header}.{claims}");
        let rsa = |key: &RsaKeyPair| {
            let mut bytes = vec![0; key.public_modulus_len()];
            key.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), signed.as_bytes(), &mut bytes).unwrap();
            bytes
        };
        let bytes = match signature {
            Signature::None => Vec::new(),
            Signature::Shared => {
                let modulus = self.keys[0].public_key().modulus().big_endian_without_leading_zero().to_vec();
                hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &modulus), signed.as_bytes()).as_ref().to_vec()
            }
            Signature::Own | Signature::Tampered => rsa(&self.keys[0]),
            Signature::Foreign | Signature::Second => rsa(&self.keys[1]),
            Signature::Curve => {
                self.curve.sign(&SystemRandom::new(), signed.as_bytes()).unwrap().as_ref().to_vec()
            }
        };
        let shown = match signature {
            Signature::Tampered => {
                let mut others = original.clone();
                others["sub"] = "other".into();
                signed.replace(&claims, &URL_SAFE_NO_PAD.encode(others.to_string()))
            }
            _ => signed,
        };
        format!("{shown}.{}", URL_SAFE_NO_PAD.encode(bytes))
    }
}

fn rsa(key: &RsaKeyPair, named: &str) -> Value {
    let number = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
    let key = key.public_key();
    json!({
        "kty": "RSA", "alg": "RS256", "use": "sig", "kid": named,
        "n": number(key.modulus().big_endian_without_leading_zero()),
        "e": number(key.exponent().big_endian_without_leading_zero()),
    })
}

fn curve(key: &EcdsaKeyPair) -> Value {
    // An uncompressed point: a byte, and the two coordinates.
    let (x, y) = key.public_key().as_ref()[1..].split_at(32);
    let [x, y] = [x, y].map(|bytes| URL_SAFE_NO_PAD.encode(bytes));
    json!({"kty": "EC", "crv": "P-256", "alg": "ES256", "use": "sig", "kid": "curve", "x": x, "y": y})
}
