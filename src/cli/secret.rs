//! `streamfleet secret`: seals values, so that files with them can be shared.

use std::io::Read as _;

use clap::{Args, Subcommand};
use secrecy::SecretString;
use serde_json::json;

use crate::cli::console::Console;
use crate::cli::failure::Failure;
use crate::cli::round::{self, StateAccess};
use crate::cli::settings::{Settings, TreeArgs};
use crate::cli::{exit, saved_plan};
use crate::names::{Digest, Domain, Identifier, Kind, SecretRef, SpecPath};
use crate::secret::{self, Keyring};
use crate::source::directory;
use crate::spec::{self, SECRET_FIELDS, SecretValue, Snapshot, SnapshotEntry, edit};

/// Seal secrets, and seal them again to a new identity.
#[derive(Debug, Subcommand)]
pub enum Secret {
    Encrypt(Encrypt),
    Seal(Seal),
    Rotate(Rotate),
    Recipient(Recipient),
}

/// Seal a value for one field of one resource, and print the block to paste into its spec.
///
/// The value comes from standard input:
/// streamfleet secret encrypt BaseDomain/acme/kafka.example.com#tls_key TREE < key.pem
#[derive(Debug, Args)]
pub struct Encrypt {
    /// The field and resource that the value is for; the block can't be opened anywhere else. One of
    /// Fleet/…#kubeconfig, Fleet/…#monitoring.own.password, BaseDomain/…#tls_key (named by its derived domain),
    /// CloudAccount/…#credentials and User/…#password.
    #[arg(value_name = "KIND/ORGANIZATION/NAME#FIELD")]
    reference: String,
    #[command(flatten)]
    tree: TreeArgs,
    /// Seal to this recipient, as `streamfleet secret recipient` prints it, where the installation's own
    /// identity is not available.
    #[arg(long, value_name = "AGE RECIPIENT")]
    recipient: Option<String>,
}

/// Seal every plain-text secret of the tree in place, and change nothing else in the files.
///
/// The tree can then be put into git. Replace secrets that were in git in plain text: the history keeps them.
#[derive(Debug, Args)]
pub struct Seal {
    #[command(flatten)]
    tree: TreeArgs,
}

/// Create a new identity and seal every encrypted block of the tree to it again, and change nothing else in
/// the files.
///
/// Older identities are kept, so that older revisions of the tree can still be opened.
#[derive(Debug, Args)]
pub struct Rotate {
    #[command(flatten)]
    tree: TreeArgs,
}

/// Print the recipient that values are sealed to. It is no secret.
#[derive(Debug, Args)]
pub struct Recipient {
    #[command(flatten)]
    tree: TreeArgs,
}

/// The largest secret, in bytes. Keys, kubeconfigs and credentials files are far smaller.
const MAX_BYTES: u64 = 1 << 20;

pub fn run(verb: &Secret, console: &mut Console) -> Result<u8, Failure> {
    match verb {
        Secret::Encrypt(verb) => encrypt(verb, console),
        Secret::Seal(verb) => seal(verb, console),
        Secret::Rotate(verb) => rotate(verb, console),
        Secret::Recipient(verb) => {
            let settings = Settings::settle(&verb.tree)?;
            console.print(&format!("{}\n", round::keyring(&settings, StateAccess::Write)?.recipient()))?;
            Ok(exit::OK)
        }
    }
}

fn encrypt(verb: &Encrypt, console: &mut Console) -> Result<u8, Failure> {
    let reference = reference(&verb.reference)?;
    let recipient = match &verb.recipient {
        Some(recipient) => recipient.clone(),
        None => round::keyring(&Settings::settle(&verb.tree)?, StateAccess::Write)?.recipient(),
    };
    let value = read_value(console)?;
    let armour = secret::seal(&recipient, &reference, &value)
        .map_err(|error| Failure::of_secret(format!("cannot seal the value for {reference}"), &error))?;
    let block: String = armour.lines().map(|line| format!("    {line}\n")).collect();
    let key = reference.field.rsplit('.').next().unwrap_or_default();
    console.print(&format!("{key}:\n  encrypted: |\n{block}"))?;
    Ok(exit::OK)
}

/// Parses the reference to a field, and refuses one whose block could never be opened.
fn reference(text: &str) -> Result<SecretRef, Failure> {
    let wrong = |message: String| {
        Failure::usage(message).hint("for example: BaseDomain/acme/kafka.example.com#tls_key")
    };
    let reference = SecretRef::try_from(text.to_owned()).map_err(|error| wrong(error.to_string()))?;
    let (kind, name) = (reference.resource.kind, &reference.resource.name);
    let fits = match kind {
        Kind::BaseDomain => name.parse::<Domain>().map(drop),
        _ => name.parse::<Identifier>().map(drop),
    };
    fits.map_err(|error| wrong(error.to_string()))?;
    let fields = SECRET_FIELDS.iter().filter(|(of, ..)| *of == kind).map(|(_, field, _)| *field);
    let fields: Vec<&str> = fields.collect();
    match fields.as_slice() {
        fields if fields.contains(&&*reference.field) => Ok(reference),
        [] => Err(wrong(format!("a {} has no secret field", kind.noun()))),
        [field] => Err(wrong(format!("the secret field of a {} is `{field}`", kind.noun()))),
        fields => {
            let fields = fields.join("` and `");
            Err(wrong(format!("the secret fields of a {} are `{fields}`", kind.noun())))
        }
    }
}

fn read_value(console: &mut Console) -> Result<SecretString, Failure> {
    use std::io::IsTerminal as _;
    if std::io::stdin().is_terminal() {
        console.tell("Reading the value from standard input; end it with Ctrl-D.\n");
    }
    let mut text = String::new();
    std::io::stdin()
        .take(MAX_BYTES + 1)
        .read_to_string(&mut text)
        .map_err(|error| Failure::during("cannot read the value from standard input", &error))?;
    let value = SecretString::from(text);
    let length = secrecy::ExposeSecret::expose_secret(&value).len() as u64;
    match length {
        0 => Err(Failure::usage("standard input is empty").hint("pass the value: … < key.pem")),
        length if length > MAX_BYTES => Err(Failure::usage("the value is larger than 1 MiB")),
        _ => Ok(value),
    }
}

fn rotate(verb: &Rotate, console: &mut Console) -> Result<u8, Failure> {
    let settings = Settings::settle(&verb.tree)?;
    let mut keyring = round::keyring(&settings, StateAccess::Write)?;
    // Held to the end, so that two rotations don't seal the same files.
    let _lock =
        keyring.add_identity().map_err(|error| Failure::of_secret("cannot create an identity", &error))?;
    let hint = "run it again; secrets that are not sealed again yet still open with the older identity";
    let blocks = write(&settings, &rotated(&settings, &keyring)?, "sealed again", hint, console)?;
    tell_recipient(blocks, "the new recipient", &keyring, console)
}

fn seal(verb: &Seal, console: &mut Console) -> Result<u8, Failure> {
    let settings = Settings::settle(&verb.tree)?;
    let keyring = round::keyring(&settings, StateAccess::Write)?;
    let secrets = write(&settings, &sealed(&settings, &keyring)?, "sealed", "run it again", console)?;
    if secrets == 0 {
        console.print("All secrets are sealed.\n")?;
        return Ok(exit::OK);
    }
    tell_recipient(secrets, "the recipient", &keyring, console)
}

fn tell_recipient(
    secrets: usize,
    recipient: &str,
    keyring: &Keyring,
    console: &mut Console,
) -> Result<u8, Failure> {
    let secrets = match secrets {
        1 => "1 secret is".to_owned(),
        _ => format!("{secrets} secrets are"),
    };
    console.print(&format!("{secrets} sealed to {recipient} {}\n", keyring.recipient()))?;
    Ok(exit::OK)
}

/// Writes the files, each only if it is unchanged since it was read. Returns how many secrets were sealed.
fn write(
    settings: &Settings,
    files: &[SealedFile],
    what: &str,
    hint: &str,
    console: &mut Console,
) -> Result<usize, Failure> {
    for SealedFile { file, read, text, sealed } in files {
        let path = settings.tree.join(file.as_str());
        let attempt = || format!("cannot write `{file}`");
        let now = std::fs::read(&path).map_err(|error| Failure::during(attempt(), &error))?;
        if Digest::of(&now) != *read {
            return Err(Failure::new(format!("{}: it changed since it was read", attempt())).hint(hint));
        }
        saved_plan::replace(&path, text.as_bytes()).map_err(|error| Failure::during(attempt(), &error))?;
        console.print(&format!("{file}: {sealed} {what}\n"))?;
    }
    Ok(files.iter().map(|file| file.sealed).sum())
}

struct SealedFile {
    file: SpecPath,
    /// The digest of the file as it was read.
    read: Digest,
    text: String,
    sealed: usize,
}

/// Seals every encrypted block again, without writing. One failing file stops all.
fn rotated(settings: &Settings, keyring: &Keyring) -> Result<Vec<SealedFile>, Failure> {
    each_file(&scan(settings)?, "cannot seal the secrets of", " again", |file, text, attempt| {
        secret::rotate_text(text, file, keyring).map_err(|error| Failure::of_secret(attempt, &error))
    })
}

/// Seals every plain-text secret, without writing. One failing file stops all.
fn sealed(settings: &Settings, keyring: &Keyring) -> Result<Vec<SealedFile>, Failure> {
    let snapshot = scan(settings)?;
    let documents = spec::read(&snapshot, None);
    let recipient = keyring.recipient();
    each_file(&snapshot, "cannot seal the secrets of", "", |file, text, attempt| {
        let parsed = documents
            .files
            .get(file)
            .filter(|parsed| parsed.invalid.is_empty() && parsed.unreadable.is_empty());
        let Some(parsed) = parsed else {
            return Err(Failure::new(format!("{attempt}: it has problems"))
                .hint("fix them first: `streamfleet validate` shows them"));
        };
        let (mut text, mut sealed) = (text.to_owned(), 0);
        for document in &parsed.documents {
            let refused = |refusal: edit::EditRefusal| {
                Failure::new(format!("{attempt}: {}", refusal.message())).hint(refusal.hint())
            };
            for (field, secret) in document.spec.secrets() {
                let SecretValue::Plain(value) = secret else { continue };
                let reference = SecretRef { resource: document.key.clone(), field: field.to_owned() };
                let block = secret::seal(&recipient, &reference, value)
                    .map_err(|error| Failure::of_secret(attempt.clone(), &error))?;
                let mut wanted = edit::read(&text, &document.key).map_err(refused)?;
                if let Some(place) = wanted.pointer_mut(spec::secret_pointer(field)) {
                    *place = json!({ "encrypted": block });
                }
                text = edit::set(&text, &document.key, &wanted).map_err(refused)?;
                sealed += 1;
            }
        }
        Ok((text, sealed))
    })
}

fn scan(settings: &Settings) -> Result<Snapshot, Failure> {
    directory::scan(&settings.tree).map_err(|error| {
        Failure::during(format!("cannot read the tree `{}`", settings.tree_as_given), &error)
    })
}

/// Collects the files in which `seal` sealed anything. It takes the file, its text and a description of the
/// attempt for errors, and returns the new text and the number of sealed secrets.
fn each_file(
    snapshot: &Snapshot,
    verb: &str,
    again: &str,
    seal: impl Fn(&SpecPath, &str, String) -> Result<(String, usize), Failure>,
) -> Result<Vec<SealedFile>, Failure> {
    let mut files = Vec::new();
    for (file, entry) in &snapshot.entries {
        let attempt = || format!("{verb} `{file}`{again}; no file was changed");
        let (text, digest) = match entry {
            SnapshotEntry::File { bytes, digest } => {
                let text = std::str::from_utf8(bytes).map_err(|error| Failure::during(attempt(), &error))?;
                (text, digest)
            }
            SnapshotEntry::Unreadable { message, hint, .. } => {
                return Err(Failure::new(format!("{}: {message}", attempt())).hint(hint.clone()));
            }
        };
        let (text, sealed) = seal(file, text, attempt())?;
        if sealed > 0 {
            files.push(SealedFile { file: file.clone(), read: digest.clone(), text, sealed });
        }
    }
    Ok(files)
}
