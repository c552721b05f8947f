//! Sealed secrets: age armour around a value and the field that it was sealed for.
//!
//! The plaintext is a line of JSON that names the field, then the value. The field is inside of the
//! encryption, so a block copied into another resource is useless: it opens only for the field that it was
//! sealed for.

use std::io::Read as _;
use std::str::FromStr as _;

use age::armor::ArmoredReader;
use age::x25519::{Identity, Recipient};
use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::{MAX_LENGTH, SecretError};
use crate::names::{Digest, Identifier, Kind, SecretRef};

const FORMAT: u32 = 1;
pub(super) const BEGIN: &str = "-----BEGIN AGE ENCRYPTED FILE-----";
pub(super) const END: &str = "-----END AGE ENCRYPTED FILE-----";
/// The length of a full line of armour, in characters.
const LINE: usize = 64;

/// The first line of a plaintext: the field that the rest is for.
#[derive(Serialize, Deserialize)]
struct Binding {
    version: u32,
    organization: Identifier,
    kind: Kind,
    name: String,
    field: String,
}

impl Binding {
    fn is_for(&self, reference: &SecretRef) -> bool {
        let Binding { version: _, organization, kind, name, field } = self;
        let resource = &reference.resource;
        *organization == resource.organization
            && *kind == resource.kind
            && *name == resource.name
            && *field == reference.field
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotOpened {
    /// The block was sealed to an identity that is not in the keyring.
    NoIdentity,
    /// The block was sealed for another field or resource, which is not disclosed: it may be another organization's.
    WrongField,
    /// The text is not a whole block of armour, or not in the format of `streamfleet secret encrypt`: the reason,
    /// as the end of a sentence.
    Damaged(&'static str),
}

/// Seals a value to a recipient, for one field of one resource. Returns age armour.
///
/// # Errors
/// If the recipient is no age recipient, or the value is empty or longer than [`MAX_LENGTH`].
pub fn seal(recipient: &str, reference: &SecretRef, value: &SecretString) -> Result<String, SecretError> {
    let recipient = Recipient::from_str(recipient.trim()).map_err(|_| {
        SecretError::new(
            "recipient-invalid",
            "cannot seal the secret: the recipient is not an age recipient",
            "use the installation's recipient, which begins with `age1`",
        )
    })?;
    let value = value.expose_secret();
    if value.is_empty() || value.len() > MAX_LENGTH {
        return Err(SecretError::new(
            "secret-size",
            "cannot seal the secret: it is empty or larger than 1 MiB",
            "give the value itself, not the name of a file",
        ));
    }
    let SecretRef { resource, field } = reference;
    let binding = Binding {
        version: FORMAT,
        organization: resource.organization.clone(),
        kind: resource.kind,
        name: resource.name.to_string(),
        field: field.clone(),
    };
    let header = serde_json::to_string(&binding).map_err(|error| sealing_failed(&error))?;
    // Allocates everything at once: a growing buffer would leave copies behind that are never wiped.
    let mut plaintext = Zeroizing::new(String::with_capacity(header.len() + 1 + value.len()));
    plaintext.push_str(&header);
    plaintext.push('\n');
    plaintext.push_str(value);
    encrypt(&recipient, &plaintext)
}

pub(super) fn encrypt(recipient: &Recipient, plaintext: &str) -> Result<String, SecretError> {
    age::encrypt_and_armor(recipient, plaintext.as_bytes()).map_err(|error| sealing_failed(&error))
}

pub(super) fn open(
    identities: &[Identity],
    armour: &str,
    reference: &SecretRef,
) -> Result<SecretString, NotOpened> {
    let plaintext = decrypt(identities, armour)?;
    let (binding, value) = split(&plaintext)?;
    if binding.is_for(reference) { Ok(SecretString::from(value)) } else { Err(NotOpened::WrongField) }
}

/// Decrypts a block of [`seal`] without checking the field that it is for.
pub(super) fn decrypt(identities: &[Identity], armour: &str) -> Result<Zeroizing<String>, NotOpened> {
    let armour = normalise(armour).ok_or(NotOpened::Damaged("its BEGIN or END line is missing"))?;
    let damaged = NotOpened::Damaged("it differs from what was sealed, or is incomplete");
    let decryptor =
        age::Decryptor::new_buffered(ArmoredReader::new(armour.as_bytes())).map_err(|_| damaged)?;
    let identities = identities.iter().map(|identity| identity as &dyn age::Identity);
    let mut reader = decryptor.decrypt(identities).map_err(|error| match error {
        age::DecryptError::NoMatchingKeys => NotOpened::NoIdentity,
        _ => damaged,
    })?;
    // The plaintext is shorter than its armour, so the buffer never grows.
    let mut bytes = Zeroizing::new(Vec::with_capacity(armour.len()));
    reader.read_to_end(&mut bytes).map_err(|_| damaged)?;
    let plaintext = std::str::from_utf8(&bytes).map_err(|_| NotOpened::Damaged("it contains no text"))?;
    split(plaintext)?;
    Ok(Zeroizing::new(plaintext.to_owned()))
}

fn split(plaintext: &str) -> Result<(Binding, &str), NotOpened> {
    let foreign = NotOpened::Damaged("it was not sealed with `streamfleet secret encrypt`");
    let (header, value) = plaintext.split_once('\n').ok_or(foreign)?;
    let binding: Binding = serde_json::from_str(header).map_err(|_| foreign)?;
    match binding.version {
        FORMAT => Ok((binding, value)),
        _ => Err(NotOpened::Damaged("a newer version of streamfleet sealed it")),
    }
}

/// Returns a digest of a block that doesn't depend on how its lines are indented, broken or folded.
pub(super) fn sealed_digest(armour: &str) -> Option<Digest> {
    normalise(armour).map(Digest::of)
}

/// Restores the line breaks that age requires, however YAML folded or indented them.
fn normalise(armour: &str) -> Option<String> {
    let body = armour.trim().strip_prefix(BEGIN)?.strip_suffix(END)?;
    let body: Vec<char> = body.chars().filter(|c| !c.is_ascii_whitespace()).collect();
    let lines = body.chunks(LINE).map(|line| line.iter().collect::<String>() + "\n");
    Some(format!("{BEGIN}\n{}{END}\n", lines.collect::<String>()))
}

fn sealing_failed(error: &dyn std::fmt::Display) -> SecretError {
    SecretError::new(
        "seal-failed",
        format!("cannot seal the secret: {error}"),
        "try again, and report it if it happens again",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reference(text: &str) -> SecretRef {
        SecretRef::try_from(text.to_owned()).unwrap()
    }

    fn sealed(identity: &Identity, text: &str) -> String {
        seal(&identity.to_public().to_string(), &reference(text), &"hunter2\n".into()).unwrap()
    }

    const ACME: &str = "BaseDomain/acme/k.example.com#tls_key";

    #[test]
    fn a_block_opens_for_its_own_field_and_nowhere_else() {
        let identity = Identity::generate();
        let armour = sealed(&identity, ACME);
        let identities = [Identity::generate(), identity];
        assert_eq!(open(&identities, &armour, &reference(ACME)).unwrap().expose_secret(), "hunter2\n");
        for elsewhere in [
            "BaseDomain/rival/k.example.com#tls_key",
            "BaseDomain/acme/other.example.com#tls_key",
            "CloudAccount/acme/k.example.com#tls_key",
            "BaseDomain/acme/k.example.com#kubeconfig",
        ] {
            let opened = open(&identities, &armour, &reference(elsewhere));
            assert_eq!(opened.map(|_| ()), Err(NotOpened::WrongField), "{elsewhere}");
        }
        let stranger = open(&[Identity::generate()], &armour, &reference(ACME));
        assert_eq!(stranger.map(|_| ()), Err(NotOpened::NoIdentity));
    }

    #[test]
    fn neither_indenting_nor_folding_changes_a_block() {
        let identity = Identity::generate();
        let armour = sealed(&identity, ACME);
        for shape in [armour.replace('\n', "\n    "), armour.replace('\n', " "), armour.replace('\n', "\r\n")]
        {
            assert_eq!(sealed_digest(&shape), sealed_digest(&armour));
            let opened = open(std::slice::from_ref(&identity), &shape, &reference(ACME)).unwrap();
            assert_eq!(opened.expose_secret(), "hunter2\n");
        }
        assert_ne!(
            sealed_digest(&sealed(&identity, ACME)),
            sealed_digest(&armour),
            "sealing is never the same twice"
        );
    }

    #[test]
    fn a_damaged_or_foreign_block_is_told_apart() {
        let identity = Identity::generate();
        let armour = sealed(&identity, ACME);
        let by_hand = |plaintext: &str| encrypt(&identity.to_public(), plaintext).unwrap();
        let newer = r#"{"version":2,"organization":"acme","kind":"BaseDomain","name":"n","field":"f"}"#;
        let middle = armour.len() / 2;
        let cases = [
            (armour.replace(END, ""), "its BEGIN or END line is missing"),
            (String::new(), "its BEGIN or END line is missing"),
            (
                format!("{}{}", &armour[..middle], &armour[middle + 8..]),
                "it differs from what was sealed, or is incomplete",
            ),
            (by_hand("hunter2"), "it was not sealed with `streamfleet secret encrypt`"),
            (by_hand("{}\nhunter2"), "it was not sealed with `streamfleet secret encrypt`"),
            (by_hand(&format!("{newer}\nx")), "a newer version of streamfleet sealed it"),
        ];
        for (block, why) in cases {
            let opened = open(std::slice::from_ref(&identity), &block, &reference(ACME));
            assert_eq!(opened.map(|_| ()), Err(NotOpened::Damaged(why)));
        }
    }

    #[test]
    fn what_cannot_be_sealed_is_told_without_quoting_it() {
        let good = Identity::generate().to_public().to_string();
        let told = |recipient: &str, value: &str| {
            let error = seal(recipient, &reference(ACME), &value.into()).unwrap_err();
            format!("{error} ({})", error.hint)
        };
        let recipient = "cannot seal the secret: the recipient is not an age recipient (use the installation's recipient, \
                         which begins with `age1`)";
        let size = "cannot seal the secret: it is empty or larger than 1 MiB (give the value itself, not the name of a \
                    file)";
        assert_eq!(told("hunter2", "x"), recipient);
        assert_eq!(told(&good, ""), size);
        assert_eq!(told(&good, &"x".repeat(MAX_LENGTH + 1)), size);
    }
}
