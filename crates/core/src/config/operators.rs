//! The operators that may be installed on fleets: their versions and their manifests.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::release::{self, Release};
use crate::names::Digest;

/// The operators that fleets may have installed. The administrator of the installation chooses them, never a
/// tenant.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct OperatorsConfig {
    /// The versions of the Strimzi operator that a fleet may name in `advanced_config.components.strimzi`.
    pub strimzi: BTreeMap<String, OperatorRelease>,
}

/// An expression with a list needs more of `syn` than the core alone switches on.
const EXAMPLE_IMAGES: &[&str] = &["quay.io/strimzi/"];

/// One version of an operator.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OperatorRelease {
    /// The file with the operator's manifests, as published by its project: a path relative to the folder of
    /// this file.
    #[schemars(length(min = 1), example = &"strimzi-cluster-operator-1.2.0.yaml")]
    pub manifests: String,
    /// The SHA-256 digest of the file, in hexadecimal. A file with another digest is refused.
    #[schemars(regex(pattern = r"^[0-9a-f]{64}$"), example = &"0000000000000000000000000000000000000000000000000000000000000000")]
    pub sha256: String,
    /// Allowed prefixes of container image names in the file, each ending in a slash: `["quay.io/strimzi/"]`.
    #[schemars(length(min = 1), inner(regex(pattern = r"^\S+/$")), example = EXAMPLE_IMAGES)]
    pub images: Vec<String>,
    /// The content of the file.
    #[serde(skip)]
    pub content: ManifestsFile,
}

/// The content of an operator's manifests file; empty until the file was read.
#[derive(Clone, Default)]
pub struct ManifestsFile(Option<Arc<Read>>);

struct Read {
    /// The text, or why it could not be read, as the end of a sentence.
    text: Result<String, String>,
    digest: Digest,
    /// The parsed text. Parsing takes some 100 ms, and only fleets that name the version need it.
    release: OnceLock<Result<Release, OperatorFault>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperatorFault {
    /// A stable identifier for programs.
    pub code: &'static str,
    /// One sentence without a full stop.
    pub message: String,
    pub hint: String,
}

impl ManifestsFile {
    /// Takes the bytes of the file, or why they could not be read, as the end of a sentence.
    pub fn of(bytes: Result<Vec<u8>, String>) -> Self {
        let digest = Digest::of(bytes.as_deref().unwrap_or_default());
        let text = bytes
            .and_then(|bytes| String::from_utf8(bytes).map_err(|_| "the file is not UTF-8 text".to_owned()));
        Self(Some(Arc::new(Read { text, digest, release: OnceLock::new() })))
    }

    fn digest(&self) -> Option<&Digest> {
        self.0.as_ref().map(|read| &read.digest)
    }
}

/// Compares the bytes alone.
impl PartialEq for ManifestsFile {
    fn eq(&self, other: &Self) -> bool {
        self.digest() == other.digest()
    }
}

/// Prints the digest: the text is long, and the debug output is hashed to tell whether settings changed.
impl fmt::Debug for ManifestsFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.digest().fmt(f)
    }
}

impl OperatorsConfig {
    /// Returns a version of the Strimzi operator, checked.
    ///
    /// # Errors
    /// If the settings don't have that version, or its manifests don't match their digest or contain
    /// something that is not allowed.
    pub fn strimzi(&self, version: &str) -> Result<&Release, OperatorFault> {
        let release = self.strimzi.get(version).ok_or_else(|| self.unknown(version))?;
        let Some(read) = &release.content.0 else {
            return Err(unreadable(version, release, "the file has not been read yet"));
        };
        let checked = read.release.get_or_init(|| match &read.text {
            Ok(text) => release::check(version, release, text, &read.digest),
            Err(reason) => Err(unreadable(version, release, reason)),
        });
        checked.as_ref().map_err(Clone::clone)
    }

    fn unknown(&self, version: &str) -> OperatorFault {
        let known: Vec<&str> = self.strimzi.keys().map(String::as_str).collect();
        let choose = match known.as_slice() {
            [] => String::new(),
            known => format!("choose one of {}, or ", known.join(", ")),
        };
        OperatorFault {
            code: "unknown-operator-version",
            message: format!("the settings of the installation have no manifests of Strimzi {version}"),
            hint: format!(
                "{choose}have the administrators of the installation add it under `[operators.strimzi.\"{version}\"]`, \
                    or install the operator yourself and set `strimzi: existing`"
            ),
        }
    }

    pub(super) fn out_of_bounds(&self) -> Option<String> {
        self.strimzi.iter().find_map(|(version, release)| {
            let at = |key: &str| format!("`operators.strimzi.\"{version}\".{key}`");
            let is_version =
                version.split('.').count() == 3 && version.split('.').all(|it| it.parse::<u32>().is_ok());
            let OperatorRelease { manifests, sha256, images, .. } = release;
            if !is_version {
                Some(format!("the name of `operators.strimzi.\"{version}\"` must be a version such as 1.2.0"))
            } else if manifests.contains("://") {
                Some(format!(
                    "{} is a URL, and only files are supported: download it and set the file",
                    at("manifests")
                ))
            } else if !is_sha256(sha256) {
                Some(format!(
                    "{} must be 64 hexadecimal digits in lower case, as sha256sum prints them",
                    at("sha256")
                ))
            } else if images.is_empty() || !images.iter().all(|it| is_image_prefix(it)) {
                Some(format!(
                    "{} must list the allowed prefixes of image names, each up to a slash: \
                              `quay.io/strimzi/`",
                    at("images")
                ))
            } else {
                None
            }
        })
    }
}

/// Whether a text is a SHA-256 digest as sha256sum prints it.
pub(super) fn is_sha256(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

pub(super) fn is_image_prefix(prefix: &str) -> bool {
    prefix.len() > 1 && prefix.ends_with('/')
}

fn unreadable(version: &str, release: &OperatorRelease, reason: &str) -> OperatorFault {
    OperatorFault {
        code: "operator-manifests-unreadable",
        message: format!(
            "the manifests of Strimzi {version} can't be read from `{}`: {reason}",
            release.manifests
        ),
        hint:
            "have the administrators of the installation restore the file, or set another one in the settings"
                .to_owned(),
    }
}
