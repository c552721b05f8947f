//! The path of each object's file: `<namespace or _cluster>/<kind>-<name>.yaml`, Secrets in a `secrets`
//! folder there.

use camino::{Utf8Path, Utf8PathBuf};

use crate::names::ObjectKey;
use crate::target::TargetError;

/// The folder of objects without a namespace. No namespace's name has an underscore.
const CLUSTER: &str = "_cluster";

/// The folder of a namespace's Secrets, readable by its owner only and ignored by git.
pub(super) const SECRETS: &str = "secrets";

/// The longest file name of common file systems, in bytes.
const MAX_NAME: usize = 255;

pub(super) fn is_secret(key: &ObjectKey) -> bool {
    key.kind == "Secret"
}

pub(super) fn file(path: &Utf8Path, key: &ObjectKey) -> Result<Utf8PathBuf, TargetError> {
    let mut file = path.to_owned();
    file.push(plain(key, key.namespace.as_deref().unwrap_or(CLUSTER).to_owned())?);
    if is_secret(key) {
        file.push(SECRETS);
    }
    file.push(plain(key, format!("{}-{}.yaml", key.kind.to_ascii_lowercase(), key.name))?);
    Ok(file)
}

/// Whether a relative path stays in its folder and has no hidden part.
pub(super) fn is_inside(path: &Utf8Path) -> bool {
    path.as_str().split('/').all(is_plain)
}

fn plain(key: &ObjectKey, part: String) -> Result<String, TargetError> {
    if is_plain(&part) { Ok(part) } else { Err(TargetError::UnsafeName { object: key.clone(), part }) }
}

fn is_plain(part: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._:-".contains(&byte);
    (1..=MAX_NAME).contains(&part.len()) && !part.starts_with('.') && part.bytes().all(plain)
}
