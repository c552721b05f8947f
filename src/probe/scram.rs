//! SCRAM-SHA-512 (RFC 5802 and 7677) as a client. The server proves, too, that it knows the password.

use std::num::NonZeroU32;

use aws_lc_rs::{constant_time, digest, hmac, pbkdf2, rand};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use secrecy::{ExposeSecret as _, SecretString};
use zeroize::Zeroizing;

/// The most rounds that a server may ask for; Kafka's own limit (`ScramMechanism`). Each round is work for us.
const MAX_ROUNDS: u32 = 16_384;

/// The header for a client that binds to no channel and acts for no other user.
const HEADER: &str = "n,,";

/// An exchange before its first message is answered.
pub struct Opening {
    nonce: String,
    /// The first message without its header.
    bare: String,
}

/// An exchange before the server's proof.
pub struct Proof {
    pub message: Vec<u8>,
    server_signature: Zeroizing<[u8; digest::SHA512_OUTPUT_LEN]>,
}

/// The server's message breaks the rules.
#[derive(Debug, PartialEq, Eq)]
pub struct Broken;

impl Opening {
    /// `None` if the operating system provides no random numbers.
    pub fn new(user: &str) -> Option<Opening> {
        let mut random = [0; 24];
        rand::fill(&mut random).ok()?;
        Some(Opening::with_nonce(user, STANDARD_NO_PAD.encode(random)))
    }

    fn with_nonce(user: &str, nonce: String) -> Opening {
        let user = user.replace('=', "=3D").replace(',', "=2C");
        Opening { bare: format!("n={user},r={nonce}"), nonce }
    }

    pub fn message(&self) -> Vec<u8> {
        format!("{HEADER}{}", self.bare).into_bytes()
    }

    /// Proves to the server that we know the password.
    pub fn prove(&self, challenge: &[u8], password: &SecretString) -> Result<Proof, Broken> {
        let challenge = std::str::from_utf8(challenge).map_err(|_| Broken)?;
        let mut parts = challenge.split(',');
        let mut value = |name: &str| parts.next().and_then(|part| part.strip_prefix(name)).ok_or(Broken);
        let (nonce, salt, rounds) = (value("r=")?, value("s=")?, value("i=")?);
        // The server has to add to ours.
        if !nonce.starts_with(&self.nonce) || nonce.len() == self.nonce.len() {
            return Err(Broken);
        }
        let salt = STANDARD.decode(salt).map_err(|_| Broken)?;
        let rounds =
            rounds.parse().ok().filter(|rounds: &NonZeroU32| rounds.get() <= MAX_ROUNDS).ok_or(Broken)?;

        let mut salted = Zeroizing::new([0; digest::SHA512_OUTPUT_LEN]);
        pbkdf2::derive(
            pbkdf2::PBKDF2_HMAC_SHA512,
            rounds,
            &salt,
            password.expose_secret().as_bytes(),
            &mut *salted,
        );
        let client_key = signed(&*salted, b"Client Key");
        let stored_key = digest::digest(&digest::SHA512, &*client_key);
        let without_proof = format!("c={},r={nonce}", STANDARD.encode(HEADER));
        let whole = format!("{},{challenge},{without_proof}", self.bare);
        let signature = signed(stored_key.as_ref(), whole.as_bytes());
        let proof: Zeroizing<Vec<u8>> =
            Zeroizing::new(client_key.iter().zip(&*signature).map(|(key, sign)| key ^ sign).collect());
        let server_key = signed(&*salted, b"Server Key");
        Ok(Proof {
            message: format!("{without_proof},p={}", STANDARD.encode(&*proof)).into_bytes(),
            server_signature: signed(&*server_key, whole.as_bytes()),
        })
    }
}

impl Proof {
    /// Whether the server's last message proves that it knows the password.
    pub fn is_answered_by(&self, message: &[u8]) -> bool {
        let signature = message.strip_prefix(b"v=").and_then(|signature| {
            let end = signature.iter().position(|byte| *byte == b',').unwrap_or(signature.len());
            STANDARD.decode(&signature[..end]).ok()
        });
        signature.is_some_and(|signature| {
            constant_time::verify_slices_are_equal(&signature, &*self.server_signature).is_ok()
        })
    }
}

fn signed(key: &[u8], message: &[u8]) -> Zeroizing<[u8; digest::SHA512_OUTPUT_LEN]> {
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA512, key), message);
    let mut bytes = Zeroizing::new([0; digest::SHA512_OUTPUT_LEN]);
    bytes.copy_from_slice(tag.as_ref());
    bytes
}

#[cfg(test)]
mod tests;
