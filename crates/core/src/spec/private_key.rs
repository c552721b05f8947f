//! Private keys: parsed from any of the usual formats, written in the one that Strimzi reads.

use aws_lc_rs::encoding::{AsDer as _, Pkcs8V1Der};
use aws_lc_rs::error::KeyRejected;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_ASN1_SIGNING, ECDSA_P384_SHA384_ASN1_SIGNING, ECDSA_P521_SHA512_ASN1_SIGNING,
    EcdsaKeyPair, EcdsaSigningAlgorithm, Ed25519KeyPair, KeyPair as _, RsaKeyPair,
};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use zeroize::Zeroizing;

use super::material::{MaterialFault, Part, PemBlock, UNKNOWN_LABEL, pem_blocks};

#[cfg(test)]
mod tests;

pub(crate) struct PrivateKey {
    /// The key as unencrypted PKCS#8, version 1, in DER.
    pkcs8: Zeroizing<Vec<u8>>,
    /// The matching public key, as the bit string in a certificate's SubjectPublicKeyInfo.
    public: Vec<u8>,
}

/// Converts a private key in PEM to unencrypted PKCS#8 in PEM: from PKCS#1 (`RSA PRIVATE KEY`), SEC1
/// (`EC PRIVATE KEY`) or PKCS#8 itself.
///
/// # Errors
/// The first fault of the key; it quotes nothing of the key.
pub fn to_pkcs8_pem(key_pem: &str) -> Result<Zeroizing<String>, MaterialFault> {
    Ok(PrivateKey::parse(key_pem)?.to_pem())
}

impl PrivateKey {
    pub(crate) fn parse(text: &str) -> Result<PrivateKey, MaterialFault> {
        let block = the_key(text)?;
        if block.label == "ENCRYPTED PRIVATE KEY" || block.is_encrypted_by_header() {
            return Err(fault(
                "key-encrypted",
                "the private key is encrypted with a passphrase, which Streamfleet can't enter",
                "decrypt it with `openssl pkey -in KEY -out PLAIN-KEY`; Streamfleet seals it again when it writes it",
            ));
        }
        let read = match block.label {
            "PRIVATE KEY" => read_pkcs8,
            "RSA PRIVATE KEY" => read_rsa,
            "EC PRIVATE KEY" => read_ec,
            UNKNOWN_LABEL => return Err(unknown_type("of an unknown type")),
            label => return Err(unknown_type(&format!("of the type `{label}`"))),
        };
        let der = block.decode().ok_or_else(|| damaged("its base64 can't be decoded"))?;
        read(&der)
    }

    /// Whether a certificate with this public key belongs to the private key.
    pub(crate) fn fits(&self, public: &[u8]) -> bool {
        self.public == public
    }

    /// Returns the key as unencrypted PKCS#8 in PEM, with lines of 64 characters (RFC 7468, section 2).
    pub(crate) fn to_pem(&self) -> Zeroizing<String> {
        let encoded = Zeroizing::new(STANDARD.encode(&*self.pkcs8));
        // Full capacity at once: a growing string would leave copies behind that are never wiped.
        let mut pem = Zeroizing::new(String::with_capacity(encoded.len() + encoded.len() / 64 + 64));
        pem.push_str("-----BEGIN PRIVATE KEY-----\n");
        let mut rest = encoded.as_str();
        while !rest.is_empty() {
            let (line, after) = rest.split_at(rest.len().min(64));
            pem.push_str(line);
            pem.push('\n');
            rest = after;
        }
        pem.push_str("-----END PRIVATE KEY-----\n");
        pem
    }
}

fn the_key(text: &str) -> Result<PemBlock<'_>, MaterialFault> {
    let blocks = pem_blocks(text).map_err(|error| error.fault(Part::Key, damaged))?;
    if blocks.iter().any(|block| block.label == "CERTIFICATE") {
        return Err(fault(
            "certificate-in-key",
            "the private key contains a certificate",
            "move certificates to the certificate's field and keep only the key here",
        ));
    }
    // `openssl ecparam -genkey` writes the curve's parameters before the key, which contains them too.
    let mut keys = blocks.into_iter().filter(|block| block.label != "EC PARAMETERS");
    match (keys.next(), keys.next()) {
        (Some(key), None) => Ok(key),
        (None, _) => Err(fault(
            "key-not-pem",
            "the private key is not PEM: it has no `-----BEGIN PRIVATE KEY-----` line",
            "convert it with `openssl pkey -inform DER -in KEY`; in YAML, put `|` before a text of several lines",
        )),
        (Some(_), Some(_)) => Err(fault(
            "several-keys",
            "there are several blocks instead of one private key",
            "keep only the key that belongs to the certificate",
        )),
    }
}

static CURVES: [&EcdsaSigningAlgorithm; 3] =
    [&ECDSA_P256_SHA256_ASN1_SIGNING, &ECDSA_P384_SHA384_ASN1_SIGNING, &ECDSA_P521_SHA512_ASN1_SIGNING];

fn read_pkcs8(der: &[u8]) -> Result<PrivateKey, MaterialFault> {
    match RsaKeyPair::from_pkcs8(der) {
        Ok(key) => return from_rsa(&key),
        Err(error) => refuse_size(error)?,
    }
    if let Some(key) = CURVES.iter().find_map(|curve| EcdsaKeyPair::from_pkcs8(curve, der).ok()) {
        return from_ec(&key);
    }
    let key = Ed25519KeyPair::from_pkcs8_maybe_unchecked(der)
        .map_err(|_| unknown_type("of a type that TLS servers can't use, or damaged"))?;
    let document = key.to_pkcs8v1().map_err(|_| damaged("it can't be encoded again"))?;
    Ok(private_key(document.as_ref(), key.public_key().as_ref()))
}

fn read_rsa(der: &[u8]) -> Result<PrivateKey, MaterialFault> {
    match RsaKeyPair::from_der(der) {
        Ok(key) => from_rsa(&key),
        Err(error) => refuse_size(error).and_then(|()| Err(damaged("it is not an RSA key"))),
    }
}

fn read_ec(der: &[u8]) -> Result<PrivateKey, MaterialFault> {
    let key = CURVES
        .iter()
        .find_map(|curve| EcdsaKeyPair::from_private_key_der(curve, der).ok())
        .ok_or_else(|| unknown_type("not on P-256, P-384 or P-521, or damaged"))?;
    from_ec(&key)
}

fn from_rsa(key: &RsaKeyPair) -> Result<PrivateKey, MaterialFault> {
    let der: Pkcs8V1Der<'static> = key.as_der().map_err(|_| damaged("it can't be encoded again"))?;
    Ok(private_key(der.as_ref(), key.public_key().as_ref()))
}

fn from_ec(key: &EcdsaKeyPair) -> Result<PrivateKey, MaterialFault> {
    let document = key.to_pkcs8v1().map_err(|_| damaged("it can't be encoded again"))?;
    Ok(private_key(document.as_ref(), key.public_key().as_ref()))
}

fn private_key(pkcs8: &[u8], public: &[u8]) -> PrivateKey {
    PrivateKey { pkcs8: Zeroizing::new(pkcs8.to_vec()), public: public.to_vec() }
}

/// Refuses an RSA key of an unsupported size; any other rejection may mean that the key is of another type.
fn refuse_size(error: KeyRejected) -> Result<(), MaterialFault> {
    if matches!(error.description_(), "TooSmall" | "TooLarge") {
        return Err(fault(
            "key-size",
            "the private key is an RSA key of fewer than 2048 or more than 8192 bits",
            "request a new certificate for a key of 2048 to 8192 bits",
        ));
    }
    Ok(())
}

fn unknown_type(what: &str) -> MaterialFault {
    fault(
        "key-unknown-type",
        format!("the private key is {what}"),
        "use an RSA key, an EC key on P-256, P-384 or P-521, or an Ed25519 key",
    )
}

fn damaged(why: &str) -> MaterialFault {
    fault(
        "key-damaged",
        format!("the private key is damaged: {why}"),
        "copy the whole key again, from its BEGIN line to its END line",
    )
}

fn fault(code: &'static str, message: impl Into<String>, hint: &str) -> MaterialFault {
    MaterialFault::new(Part::Key, code, message, hint)
}
