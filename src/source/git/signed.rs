//! Checks that a commit is signed by a key in a file of allowed signers (`man ssh-keygen`, "ALLOWED
//! SIGNERS"), and signs our own commits. Only ssh signatures are supported.

use aws_lc_rs::signature::{
    self as crypto, ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ECDSA_P521_SHA512_FIXED, ED25519,
    EcdsaVerificationAlgorithm, Ed25519KeyPair, RsaPublicKeyComponents, UnparsedPublicKey,
};
use secrecy::{ExposeSecret as _, SecretString};
use ssh_key::private::KeypairData;
use ssh_key::public::KeyData;
use ssh_key::{Algorithm, EcdsaCurve, HashAlg, LineEnding, PrivateKey, PublicKey, Signature, SshSig};

/// The namespace of git's signatures, so that signatures for another purpose don't count.
const NAMESPACE: &str = "git";

#[derive(Debug, Clone)]
pub(super) struct Signers(Vec<KeyData>);

impl Signers {
    /// Parses a file of allowed signers.
    ///
    /// # Errors
    /// If a line isn't understood. Options that restrict a key must not be ignored.
    pub(super) fn parse(text: &str) -> Result<Signers, String> {
        let mut keys = Vec::new();
        for (number, line) in (1..).zip(text.lines().map(str::trim)) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let key = key_of(line).map_err(|why| format!("line {number}: {why}"))?;
            keys.extend(key.map(|key| key.key_data().clone()));
        }
        if keys.is_empty() {
            return Err("it lists no key that may sign commits".to_owned());
        }
        Ok(Signers(keys))
    }

    /// Verifies the signature of a commit.
    ///
    /// # Errors
    /// The reason, as the end of a sentence that begins with the commit.
    pub(super) fn judge(&self, signature: &[u8], signed: &[u8]) -> Result<(), String> {
        let text = String::from_utf8_lossy(signature);
        if text.contains("-----BEGIN PGP") {
            return Err("is signed with OpenPGP, and only ssh signatures are supported".to_owned());
        }
        if !text.contains("-----BEGIN SSH SIGNATURE-----") {
            return Err("is not signed with an ssh key".to_owned());
        }
        let signature =
            SshSig::from_pem(signature).map_err(|error| format!("has a broken signature: {error}"))?;
        let key = signature.public_key();
        let shown = format!("{} {}", key.algorithm(), key.fingerprint(HashAlg::Sha256));
        if !self.0.contains(key) {
            return Err(format!("is signed by the key {shown}, which `source.signed_by` doesn't list"));
        }
        if signature.namespace() != NAMESPACE || !signature.reserved().is_empty() {
            return Err(format!("has a signature of {shown} that is not for git"));
        }
        let data = SshSig::signed_data(NAMESPACE, signature.hash_alg(), signed);
        match data.ok().and_then(|data| verify(key, signature.signature(), &data)) {
            Some(()) => Ok(()),
            None => Err(format!("doesn't match its signature by the key {shown}")),
        }
    }
}

/// Returns the key of a line; none if its namespaces exclude git.
fn key_of(line: &str) -> Result<Option<PublicKey>, String> {
    let words = words(line);
    let [_who, rest @ ..] = words.as_slice() else { return Err("it is empty".to_owned()) };
    let (options, rest) = match rest {
        [options, rest @ ..] if !is_algorithm(options) => (Some(options.as_str()), rest),
        rest => (None, rest),
    };
    let [algorithm, key, ..] = rest else {
        return Err(
            "it must be `WHO ssh-ed25519 KEY`, such as `ada@example.com ssh-ed25519 AAAA…`".to_owned()
        );
    };
    for option in options.into_iter().flat_map(|options| options.split(';')) {
        match option.to_ascii_lowercase().strip_prefix("namespaces=") {
            Some(names) if names.split(',').any(|name| name.trim() == NAMESPACE) => {}
            Some(_) => return Ok(None),
            None => {
                let name = option.split('=').next().unwrap_or_default();
                return Err(format!("`{name}` is not supported; to revoke a key, remove its line"));
            }
        }
    }
    PublicKey::from_openssh(&format!("{algorithm} {key}"))
        .map(Some)
        .map_err(|error| format!("its key: {error}"))
}

/// Splits a line into words; quoted parts may contain spaces. A comma outside of quotes becomes a semicolon,
/// so that options can be split at semicolons: quoted values contain commas too.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quoted) = (Vec::new(), String::new(), false);
    for letter in line.chars() {
        match letter {
            '"' => quoted = !quoted,
            ',' if !quoted => word.push(';'),
            ' ' | '\t' if !quoted => {
                words.extend(Some(std::mem::take(&mut word)).filter(|word| !word.is_empty()))
            }
            letter => word.push(letter),
        }
    }
    words.extend(Some(word).filter(|word| !word.is_empty()));
    words
}

fn is_algorithm(word: &str) -> bool {
    ["ssh-", "ecdsa-", "sk-"].iter().any(|begin| word.starts_with(begin))
}

fn verify(key: &KeyData, signature: &Signature, data: &[u8]) -> Option<()> {
    let bytes = signature.as_bytes();
    match (key, signature.algorithm()) {
        (KeyData::Ed25519(key), Algorithm::Ed25519) => {
            UnparsedPublicKey::new(&ED25519, key.as_ref()).verify(data, bytes).ok()
        }
        (KeyData::Ecdsa(key), Algorithm::Ecdsa { curve }) if key.curve() == curve => {
            let (algorithm, width): (&'static EcdsaVerificationAlgorithm, _) = match curve {
                EcdsaCurve::NistP256 => (&ECDSA_P256_SHA256_FIXED, 32),
                EcdsaCurve::NistP384 => (&ECDSA_P384_SHA384_FIXED, 48),
                EcdsaCurve::NistP521 => (&ECDSA_P521_SHA512_FIXED, 66),
            };
            UnparsedPublicKey::new(algorithm, key.as_sec1_bytes()).verify(data, &fixed(bytes, width)?).ok()
        }
        (KeyData::Rsa(key), Algorithm::Rsa { hash: Some(hash) }) => {
            let algorithm = match hash {
                HashAlg::Sha256 => &crypto::RSA_PKCS1_2048_8192_SHA256,
                HashAlg::Sha512 => &crypto::RSA_PKCS1_2048_8192_SHA512,
                _ => return None,
            };
            let (n, e) = (key.n.as_positive_bytes()?, key.e.as_positive_bytes()?);
            RsaPublicKeyComponents { n, e }.verify(algorithm, data, bytes).ok()
        }
        _ => None,
    }
}

/// Converts an ECDSA signature: returns its two numbers, each padded to the width of the curve.
fn fixed(mut bytes: &[u8], width: usize) -> Option<Vec<u8>> {
    let mut both = Vec::with_capacity(2 * width);
    for _ in 0..2 {
        let (length, rest) = bytes.split_first_chunk::<4>()?;
        let (number, rest) = rest.split_at_checked(usize::try_from(u32::from_be_bytes(*length)).ok()?)?;
        let number = number.strip_prefix(&[0]).unwrap_or(number);
        both.resize(both.len() + width.checked_sub(number.len())?, 0);
        both.extend(number);
        bytes = rest;
    }
    bytes.is_empty().then_some(both)
}

/// Signs a commit with a private key in OpenSSH's own format.
///
/// # Errors
/// If it isn't such a key, has a passphrase, or is not an ed25519 key.
pub(super) fn sign(key: &SecretString, commit: &str) -> Result<String, String> {
    let key = PrivateKey::from_openssh(key.expose_secret())
        .map_err(|_| "it is not a private key in OpenSSH's format".to_owned())?;
    let pair = match key.key_data() {
        KeypairData::Ed25519(pair) => pair,
        KeypairData::Encrypted(_) => {
            return Err("it has a passphrase, which Streamfleet can't enter".to_owned());
        }
        _ => return Err("it is not an ed25519 key; create one: `ssh-keygen -t ed25519 -N ''`".to_owned()),
    };
    let failed = |error: ssh_key::Error| error.to_string();
    let data = SshSig::signed_data(NAMESPACE, HashAlg::Sha512, commit.as_bytes()).map_err(failed)?;
    let seed = zeroize::Zeroizing::new(pair.private.to_bytes());
    let signer = Ed25519KeyPair::from_seed_and_public_key(seed.as_slice(), pair.public.as_ref())
        .map_err(|error| error.to_string())?;
    let signature = Signature::new(Algorithm::Ed25519, signer.sign(&data).as_ref()).map_err(failed)?;
    let public = key.public_key().key_data().clone();
    SshSig::new(public, NAMESPACE, HashAlg::Sha512, signature)
        .and_then(|signature| signature.to_pem(LineEnding::LF))
        .map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAILM+rvN+ot98qgEN796jTiQfZfG1KaT0PtFDJ/XFSqti";

    #[test]
    fn a_file_of_signers_is_read_strictly() {
        for (line, expected) in [
            (format!("ada@example.com {KEY}"), Ok(1)),
            (format!("# all of us\n\nada@example.com {KEY} a comment\n*@example.com {KEY}"), Ok(2)),
            (format!("\"ada@example.com,bob@example.com\" namespaces=\"file,git\" {KEY}"), Ok(1)),
            (format!("a {KEY}\nb namespaces=\"file\" {KEY}"), Ok(1)),
            (format!("b namespaces=\"file\" {KEY}"), Err("it lists no key that may sign commits")),
            (String::new(), Err("it lists no key that may sign commits")),
            (
                format!("\na cert-authority {KEY}"),
                Err("line 2: `cert-authority` is not supported; to revoke a key, remove its line"),
            ),
            (
                format!("a namespaces=\"git\",valid-before=\"20300101\" {KEY}"),
                Err("line 1: `valid-before` is not supported; to revoke a key, remove its line"),
            ),
            (
                "ada@example.com".to_owned(),
                Err("line 1: it must be `WHO ssh-ed25519 KEY`, such as `ada@example.com ssh-ed25519 AAAA…`"),
            ),
            (
                KEY.to_owned(),
                Err("line 1: it must be `WHO ssh-ed25519 KEY`, such as `ada@example.com ssh-ed25519 AAAA…`"),
            ),
            (
                "ada@example.com ssh-ed25519 AAAA".to_owned(),
                Err("line 1: its key: Base64 encoding error: invalid Base64 length"),
            ),
        ] {
            let read = Signers::parse(&line).map(|signers| signers.0.len());
            assert_eq!(
                read.as_ref().map_err(String::as_str),
                expected.as_ref().map_err(|why| *why),
                "{line}"
            );
        }
    }
}
