//! The access keys of a cloud account, from an AWS credentials file.

use secrecy::{ExposeSecret as _, SecretString};

#[derive(Clone)]
pub struct AwsLogin {
    pub key: String,
    pub secret: SecretString,
    /// The token of keys that are valid for some time.
    pub token: Option<SecretString>,
}

impl AwsLogin {
    /// Reads the section `[default]`; `None` without both keys.
    pub fn read(file: &SecretString) -> Option<AwsLogin> {
        let mut is_default = false;
        let (mut key, mut secret, mut token) = (None, None, None);
        for line in file.expose_secret().lines().map(str::trim) {
            if let Some(section) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
                is_default = section.trim() == "default";
            } else if let Some((name, value)) = line.split_once('=').filter(|_| is_default) {
                let value = value.trim();
                match name.trim() {
                    "aws_access_key_id" => key = Some(value.to_owned()),
                    "aws_secret_access_key" => secret = Some(SecretString::from(value)),
                    "aws_session_token" => token = Some(SecretString::from(value)),
                    _ => {}
                }
            }
        }
        Some(AwsLogin { key: key.filter(|key| !key.is_empty())?, secret: secret?, token })
    }
}
