//! Opens the secrets of a tree, each where its document says it is.

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

use camino::Utf8PathBuf;
use secrecy::{ExposeSecret as _, SecretString};

use super::envelope::{NotOpened, sealed_digest};
use super::lookup::{SecretLookup, from_credential, from_env, from_file, open_to_others};
use super::{Keyring, SecretError, describe};
use crate::catalog::{OpenedSecret, SecretMark, Secrets};
use crate::names::{Digest, SecretRef};
use crate::parallel::locked;
use crate::problem::Problem;
use crate::spec::{Document, Documents, SecretValue, secret_pointer};

#[cfg(test)]
mod tests;

type Environment = Box<dyn Fn(&str) -> Option<SecretString> + Send + Sync>;

const KUBECONFIG: &str = "kubeconfig";

pub struct SecretStore {
    secrets_dir: Utf8PathBuf,
    environment: Environment,
    /// Replaced when another process adds keys.
    keyring: Mutex<Arc<Keyring>>,
    /// Whether files and variables must not be read.
    is_closed: bool,
}

/// Prints the folder of secrets, and no key or variable.
impl fmt::Debug for SecretStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SecretStore")
            .field("secrets_dir", &self.secrets_dir)
            .field("keyring", &self.keyring())
            .finish_non_exhaustive()
    }
}

impl SecretStore {
    /// Creates a store that reads files from one folder per organization below `secrets_dir`, variables with
    /// `environment`, and sealed blocks with `keyring`.
    pub fn new(
        secrets_dir: Utf8PathBuf,
        environment: impl Fn(&str) -> Option<SecretString> + Send + Sync + 'static,
        keyring: Keyring,
    ) -> Self {
        let keyring = Mutex::new(Arc::new(keyring));
        Self { secrets_dir, environment: Box::new(environment), keyring, is_closed: false }
    }

    /// Returns a store for specs that are only proposed: it reads no files and variables, and opens
    /// kubeconfigs as the only sealed blocks.
    pub fn for_proposed_specs(&self) -> Self {
        let (secrets_dir, keyring) = (self.secrets_dir.clone(), Mutex::new(self.keyring()));
        Self { secrets_dir, environment: Box::new(|_| None), keyring, is_closed: true }
    }

    pub fn keyring(&self) -> Arc<Keyring> {
        Arc::clone(&self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Arc<Keyring>> {
        // A poisoned lock is safe to use: only whole keyrings are assigned.
        locked(&self.keyring)
    }

    /// Reads the keys again if another process added some. If that fails, the old ones stay in use.
    fn refresh(&self) {
        match self.keyring().reload_if_changed() {
            Ok(Some(keyring)) => *self.lock() = Arc::new(keyring),
            Ok(None) => {}
            Err(error) => {
                tracing::warn!(%error, "cannot read the keys again; the previous ones stay active")
            }
        }
    }

    /// Opens all secrets of a tree. If two documents describe the same resource, the first one counts.
    pub fn open_all(&self, documents: &Documents) -> Secrets {
        self.refresh();
        let mut secrets = Secrets::default();
        self.open_into(&mut secrets, documents.documents());
        secrets
    }

    /// Opens the secrets of files that differ from `before`, and adds the `known` ones of the others.
    pub fn open_changed(&self, documents: &Documents, before: &Documents, known: &Secrets) -> Secrets {
        self.refresh();
        let mut secrets = known.clone();
        // A key that no document has is that of a managed certificate, until a document has its own.
        let there = before.changed_since(documents).chain(documents.changed_since(before));
        for document in there.flat_map(|file| &file.documents) {
            for (field, _) in document.spec.secrets() {
                let field = field.to_owned();
                secrets.opened.remove(&SecretRef { resource: document.key.clone(), field });
            }
        }
        let changed = documents.changed_since(before).flat_map(|file| &file.documents);
        self.open_into(&mut secrets, changed);
        secrets
    }

    fn open_into<'d>(&self, secrets: &mut Secrets, documents: impl Iterator<Item = &'d Document>) {
        let mut told = BTreeSet::new();
        for document in documents {
            for (field, value) in document.spec.secrets() {
                let reference = SecretRef { resource: document.key.clone(), field: field.to_owned() };
                let opened = self.open(&reference, value);
                if let (Ok(_), SecretValue::FromFile(name)) = (&opened, value) {
                    let exposed = open_to_others(&self.secrets_dir, &document.key.organization, name);
                    // Several documents may refer to the same file.
                    let exposed = exposed.filter(|path| told.insert(path.clone()));
                    secrets.warnings.extend(exposed.map(|path| warning_of(&path, document, field, name)));
                }
                let opened = opened.unwrap_or_else(|error| refused(document, field, error));
                secrets.opened.entry(reference).or_insert(opened);
            }
        }
    }

    /// Opens one secret with the rights of the organization whose field it is.
    fn open(&self, reference: &SecretRef, value: &SecretValue) -> Result<OpenedSecret, SecretError> {
        let organization = &reference.resource.organization;
        match value {
            SecretValue::Plain(value) => Ok(self.opened(reference, value.clone())),
            SecretValue::FromFile(_) | SecretValue::FromEnv(_) if self.is_closed => Ok(unopened(None)),
            // A proposed kubeconfig is opened; the planner makes sure that it isn't connected to.
            SecretValue::Encrypted(armour) if self.is_closed && reference.field != KUBECONFIG => {
                Ok(unopened(sealed_digest(armour)))
            }
            SecretValue::FromFile(name) if self.is_credential() => {
                Ok(self.found(reference, from_credential(&self.secrets_dir, organization, name)?))
            }
            SecretValue::FromFile(name) => {
                Ok(self.found(reference, from_file(&self.secrets_dir, organization, name)?))
            }
            SecretValue::FromEnv(name) => {
                Ok(self.found(reference, from_env(&*self.environment, organization, name)?))
            }
            SecretValue::Encrypted(armour) => self.unseal(reference, armour),
            SecretValue::Redacted => Err(SecretError::new(
                "secret-redacted",
                format!("{} is redacted, and its value is unknown", describe(reference)),
                "set the value again",
            )),
        }
    }

    /// Returns whether the secrets folder is in systemd's folder of credentials.
    fn is_credential(&self) -> bool {
        let folder = (self.environment)("CREDENTIALS_DIRECTORY");
        folder.is_some_and(|folder| self.secrets_dir.parent().is_some_and(|it| it == folder.expose_secret()))
    }

    fn unseal(&self, reference: &SecretRef, armour: &str) -> Result<OpenedSecret, SecretError> {
        let sealed = sealed_digest(armour);
        let keyring = self.keyring();
        match keyring.open(armour, reference) {
            Ok(value) => Ok(OpenedSecret::Value { mark: keyring.mark(reference, &value, sealed), value }),
            Err(NotOpened::NoIdentity) => Ok(OpenedSecret::Unavailable {
                mark: SecretMark { fingerprint: None, sealed },
                reason: "no identity here opens it".to_owned(),
            }),
            Err(NotOpened::WrongField) => Err(SecretError::new(
                "secret-sealed-elsewhere",
                format!(
                    "{} contains a block that was sealed for another field or resource",
                    describe(reference)
                ),
                "seal the value again for this field, with `streamfleet secret encrypt`",
            )),
            Err(NotOpened::Damaged(why)) => Err(SecretError::new(
                "secret-damaged",
                format!("the sealed block of {} is damaged: {why}", describe(reference)),
                "copy the whole block again, or seal the value again with `streamfleet secret encrypt`",
            )),
        }
    }

    fn found(&self, reference: &SecretRef, found: SecretLookup) -> OpenedSecret {
        match found {
            SecretLookup::Value(value) => self.opened(reference, value),
            SecretLookup::NotHere(reason) => {
                OpenedSecret::Unavailable { mark: SecretMark { fingerprint: None, sealed: None }, reason }
            }
        }
    }

    fn opened(&self, reference: &SecretRef, value: SecretString) -> OpenedSecret {
        OpenedSecret::Value { mark: self.keyring().mark(reference, &value, None), value }
    }
}

fn unopened(sealed: Option<Digest>) -> OpenedSecret {
    let mark = SecretMark { fingerprint: None, sealed };
    OpenedSecret::Unavailable { mark, reason: "secrets of a proposal aren't opened".to_owned() }
}

fn refused(document: &Document, field: &str, error: SecretError) -> OpenedSecret {
    OpenedSecret::Refused(error.problem().at(document.locate(secret_pointer(field)), "can't be used"))
}

fn warning_of(path: &Path, document: &Document, field: &str, name: &str) -> Problem {
    let place = format!("`{}/{name}` in the secrets folder", document.key.organization);
    Problem::warning("secret-open-to-others", format!("every user of this host can read {place}"))
        .at(document.locate(secret_pointer(field)), "")
        .hint(format!("restrict it: chmod 600 {}", path.display()))
}
