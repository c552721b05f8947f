//! Seals whole files in the format of the `age` program, which can open them too.

use std::io::Read as _;
use std::str::FromStr as _;

use age::armor::ArmoredReader;
use age::x25519::{Identity, Recipient};
use zeroize::Zeroizing;

use super::{SecretError, envelope, keyring};

const MAGIC: &[u8] = b"age-encryption.org/";

pub fn is_sealed(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC) || bytes.starts_with(envelope::BEGIN.as_bytes())
}

/// Seals a file to an age recipient.
///
/// # Errors
/// If the recipient is no age recipient.
pub fn seal_file(recipient: &str, bytes: &[u8]) -> Result<Vec<u8>, SecretError> {
    let recipient = Recipient::from_str(recipient.trim()).map_err(|_| {
        SecretError::new(
            "recipient-invalid",
            format!("`{recipient}` is not an age recipient"),
            "use the public key that `age-keygen` printed, which begins with `age1`",
        )
    })?;
    age::encrypt(&recipient, bytes).map_err(|error| {
        SecretError::new("sealing-failed", format!("cannot seal the file: {error}"), "try again")
    })
}

/// Opens a file with any of the given identities, which are in the format of `age-keygen`.
///
/// # Errors
/// If the text is no list of identities, none of them opens the file, or the file is damaged.
pub fn open_file(identities: &str, bytes: &[u8]) -> Result<Zeroizing<Vec<u8>>, SecretError> {
    let identities = keyring::parse_identities(identities).ok_or_else(|| {
        SecretError::new(
            "identity-invalid",
            "the identity file is not a list of age identities",
            "use the file that `age-keygen` wrote, whose keys begin with `AGE-SECRET-KEY-`",
        )
    })?;
    let damaged = |reason: String| {
        SecretError::new(
            "sealed-file-damaged",
            format!("the sealed file is damaged: {reason}"),
            "nothing was written; take another copy of it",
        )
    };
    let decryptor = age::Decryptor::new_buffered(ArmoredReader::new(bytes))
        .map_err(|error| damaged(error.to_string()))?;
    let identities: &[Identity] = &identities;
    let opened = decryptor.decrypt(identities.iter().map(|identity| identity as &dyn age::Identity));
    let mut reader = opened.map_err(|error| match error {
        age::DecryptError::NoMatchingKeys => SecretError::new(
            "identity-does-not-open",
            "it is sealed to none of the identities in the identity file",
            "give the identity whose recipient it was sealed to",
        ),
        error => damaged(error.to_string()),
    })?;
    // The content is shorter than its sealed form, so the buffer never grows and leaves no copies behind.
    let mut content = Zeroizing::new(Vec::with_capacity(bytes.len()));
    reader.read_to_end(&mut content).map_err(|error| damaged(error.to_string()))?;
    Ok(content)
}
