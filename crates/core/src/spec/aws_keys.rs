//! The access keys of a cloud account, from an AWS credentials file.

use secrecy::{ExposeSecret as _, SecretString};

#[derive(Clone)]
pub struct AwsKeys {
    pub id: String,
    pub secret: SecretString,
    /// The token of keys that are valid for some time.
    pub token: Option<SecretString>,
}

impl AwsKeys {
    /// Reads the section `[default]`.
    ///
    /// # Errors
    /// What is wrong with it, as a clause without any of its text.
    pub fn parse(file: &SecretString) -> Result<AwsKeys, &'static str> {
        let (mut is_default, mut has_default) = (false, false);
        let (mut id, mut secret, mut token) = (None, None, None);
        // Editors of some systems put a mark before the first character.
        let text = file.expose_secret().trim_start_matches('\u{feff}');
        for line in text.lines().map(str::trim) {
            if let Some(section) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
                is_default = section.trim() == "default";
                has_default |= is_default;
            } else if let Some((name, value)) = line.split_once('=').filter(|_| is_default) {
                let value = value.trim();
                match name.trim() {
                    "aws_access_key_id" => id = Some(value.to_owned()),
                    "aws_secret_access_key" => secret = Some(SecretString::from(value)),
                    "aws_session_token" => token = Some(SecretString::from(value)),
                    _ => {}
                }
            }
        }
        let is_word = |value: &str| {
            !value.is_empty() && value.chars().all(|c| c.is_ascii_graphic() && !matches!(c, '"' | '\'' | ';'))
        };
        let id = id.ok_or(match has_default {
            true => "its section `[default]` has no `aws_access_key_id`",
            false => "it has no section `[default]`",
        })?;
        let secret = secret.ok_or("its section `[default]` has no `aws_secret_access_key`")?;
        if !is_word(&id) {
            return Err("its `aws_access_key_id` is empty, or has quotes, blanks or a comment in it");
        }
        if !is_word(secret.expose_secret()) {
            return Err("its `aws_secret_access_key` is empty, or has quotes, blanks or a comment in it");
        }
        Ok(AwsKeys { id, secret, token })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_as_the_tools_of_aws_write_them() {
        let parse = |text: &str| AwsKeys::parse(&SecretString::from(text));
        let (id, secret) = ("aws_access_key_id = AKIA", "aws_secret_access_key=s/e+c=");
        let keys = parse(&format!(
            "\u{feff}[other]\naws_access_key_id = b\n[ default ]\r\n{id}\r\n{secret}\naws_session_token = t\n"
        ));
        let keys = keys.ok().unwrap();
        assert_eq!((keys.id.as_str(), keys.secret.expose_secret()), ("AKIA", "s/e+c="));
        assert_eq!(keys.token.unwrap().expose_secret(), "t");
        let bad_id = "its `aws_access_key_id` is empty, or has quotes, blanks or a comment in it";
        for (text, expected) in [
            ("hunter2".to_owned(), "it has no section `[default]`"),
            (format!("[kafka]\n{id}\n{secret}"), "it has no section `[default]`"),
            (format!("{id}\n{secret}"), "it has no section `[default]`"),
            (
                "[default]\nAWS_ACCESS_KEY_ID=a\n".to_owned(),
                "its section `[default]` has no `aws_access_key_id`",
            ),
            (format!("[default]\n{id}"), "its section `[default]` has no `aws_secret_access_key`"),
            (format!("[default]\naws_access_key_id = \"AKIA\"\n{secret}"), bad_id),
            (format!("[default]\n{id} ; mine\n{secret}"), bad_id),
            (
                format!("[default]\n{id}\naws_secret_access_key =\n"),
                "its `aws_secret_access_key` is empty, or has quotes, blanks or a comment in it",
            ),
        ] {
            assert_eq!(parse(&text).err(), Some(expected), "{text}");
        }
    }
}
