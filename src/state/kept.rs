//! A small file of the state folder that is replaced as a whole, and removed once there is nothing in it.

use std::io::ErrorKind;
use std::marker::PhantomData;

use camino::{Utf8Path, Utf8PathBuf};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::lines::read_whole;
use super::{StateError, folder};

/// The version of the format.
const VERSION: u32 = 1;

/// The content of such a file.
pub(super) trait Content: Default + PartialEq + Serialize + DeserializeOwned {
    const FILE: &'static str;
    /// What it is, for a file that is something else: `a list of kubeconfigs`.
    const NAME: &'static str;
}

#[derive(Serialize, Deserialize)]
struct Versioned<T> {
    version: u32,
    #[serde(flatten)]
    content: T,
}

/// Only the version, which is parsed before anything else.
#[derive(Deserialize)]
struct Version {
    version: u32,
}

pub(super) struct KeptFile<T> {
    dir: Utf8PathBuf,
    pub(super) path: Utf8PathBuf,
    content: PhantomData<T>,
}

impl<T: Content> KeptFile<T> {
    pub(super) fn of(dir: &Utf8Path) -> Self {
        Self { dir: dir.to_owned(), path: dir.join(T::FILE), content: PhantomData }
    }

    pub(super) fn read(&self) -> Result<T, StateError> {
        let Some(bytes) = read_whole(&self.path)? else { return Ok(T::default()) };
        let damaged = |error: serde_json::Error| StateError::Damaged {
            path: self.path.clone(),
            line: error.line(),
            reason: format!("it is not {}", T::NAME),
        };
        let Version { version } = serde_json::from_slice(&bytes).map_err(damaged)?;
        if version > VERSION {
            let path = self.path.clone();
            return Err(StateError::Newer { path, line: 1, found: version, known: VERSION });
        }
        let Versioned { content, .. } = serde_json::from_slice(&bytes).map_err(damaged)?;
        Ok(content)
    }

    /// Does nothing if it has that content.
    pub(super) fn write(&self, content: T) -> Result<(), StateError> {
        if self.read()? == content {
            return Ok(());
        }
        if content == T::default() {
            match std::fs::remove_file(&self.path) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    return Err(StateError::io("remove", &self.path)(error));
                }
                _ => return folder::sync(&self.dir),
            }
        }
        // Strings and maps with string keys always serialize.
        let text = serde_json::to_vec_pretty(&Versioned { version: VERSION, content }).unwrap_or_default();
        folder::replace_file(&self.path, &text)
    }
}
