//! Keys by which DNS servers know who changes a zone (TSIG, RFC 8945), as BIND's tools write them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use secrecy::SecretSlice;

/// A key, as the server has it, too.
pub struct TsigKey {
    pub name: String,
    pub algorithm: TsigAlgorithm,
    pub secret: SecretSlice<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TsigAlgorithm {
    HmacSha256,
    HmacSha384,
    HmacSha512,
}

impl TsigKey {
    /// Reads `key "name" { algorithm hmac-sha256; secret "…"; };`.
    ///
    /// # Errors
    /// What is wrong with it, as a clause without any of its text.
    pub fn parse(text: &str) -> Result<TsigKey, &'static str> {
        let (head, body) = text.split_once('{').ok_or("it has no `{`, as in `key \"name\" { … };`")?;
        let name = head.trim().strip_prefix("key").ok_or("it doesn't begin with `key`")?;
        let name = name.trim().trim_matches('"').trim_end_matches('.');
        let is_label = |label: &str| {
            let is_fit = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
            (1..=63).contains(&label.len()) && label.chars().all(is_fit)
        };
        if name.len() > 253 || !name.split('.').all(is_label) {
            return Err("its name is no domain name");
        }
        let body = body.split_once('}').ok_or("it has no `}`")?.0;
        let field = |wanted: &str| {
            let statements = body.split(';').map(str::trim);
            let mut found = statements.filter_map(|statement| statement.split_once(char::is_whitespace));
            found.find(|(key, _)| *key == wanted).map(|(_, value)| value.trim().trim_matches('"'))
        };
        let algorithm = match field("algorithm").ok_or("it has no `algorithm`")?.trim_end_matches('.') {
            "hmac-sha256" => TsigAlgorithm::HmacSha256,
            "hmac-sha384" => TsigAlgorithm::HmacSha384,
            "hmac-sha512" => TsigAlgorithm::HmacSha512,
            _ => return Err("its algorithm is none of hmac-sha256, hmac-sha384 and hmac-sha512"),
        };
        let secret = field("secret").ok_or("it has no `secret`")?;
        let secret = STANDARD.decode(secret).map_err(|_| "its `secret` is not base64")?;
        if secret.is_empty() {
            return Err("its `secret` is empty");
        }
        Ok(TsigKey { name: name.to_owned(), algorithm, secret: SecretSlice::from(secret) })
    }
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret as _;

    use super::*;

    #[test]
    fn a_key_is_read_as_its_tools_write_it() {
        let text = "key \"ours.example.\" {\n\talgorithm hmac-sha512;\n\tsecret \"YWJj\";\n};\n";
        let key = TsigKey::parse(text).ok().unwrap();
        assert_eq!((key.name.as_str(), key.algorithm), ("ours.example", TsigAlgorithm::HmacSha512));
        assert_eq!(key.secret.expose_secret(), b"abc");
        for (text, expected) in [
            ("", "it has no `{`, as in `key \"name\" { … };`"),
            ("zone \"a\" {}", "it doesn't begin with `key`"),
            ("key \"a b\" {}", "its name is no domain name"),
            ("key a { algorithm hmac-sha256; }", "it has no `secret`"),
            ("key a { secret \"YQ==\"; }", "it has no `algorithm`"),
            (
                "key a { algorithm hmac-md5; secret \"YQ==\"; }",
                "its algorithm is none of hmac-sha256, hmac-sha384 and hmac-sha512",
            ),
            ("key a { algorithm hmac-sha256; secret \"hunter2!\"; }", "its `secret` is not base64"),
            ("key a { algorithm hmac-sha256; secret \"\"; }", "its `secret` is empty"),
            ("key a { algorithm hmac-sha256; secret \"YQ==\";", "it has no `}`"),
        ] {
            assert_eq!(TsigKey::parse(text).err(), Some(expected), "{text}");
        }
    }
}
