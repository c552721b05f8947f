//! The effects on clients if brokers check their tokens differently.

use std::collections::BTreeMap;

use crate::component::Difference;
use crate::component::Verdict::RollingRestart;
use crate::component::consequence::RowVerdict;

/// The listener option that configures the check of tokens.
const CHECK: &str = "/authentication/listenerConfig/oauthbearer.sasl.jaas.config";

/// Options that configure how brokers get the provider's keys and groups. Valid tokens stay valid: issuer,
/// audience and name are checked as before, and Kafka's own authorizer ignores groups.
const SAME_TOKENS: [&str; 4] = [
    "oauth.jwks.endpoint.uri",
    "oauth.ssl.truststore.location",
    "oauth.ssl.truststore.type",
    "oauth.groups.claim",
];

/// Returns the effect of a changed check that accepts the same tokens as before; `None` for any other change.
pub fn with_the_same_tokens(difference: Option<&Difference>) -> Option<RowVerdict> {
    let Difference { pointer, before, after } = difference?;
    if !(pointer.starts_with("/spec/kafka/listeners/") && pointer.ends_with(CHECK)) {
        return None;
    }
    let [(module, before), (same, after)] = [parts(before.as_str()?), parts(after.as_str()?)];
    let mut names = before.keys().chain(after.keys());
    let takes_the_same = names.all(|name| SAME_TOKENS.contains(name) || before.get(name) == after.get(name));
    (module == same && takes_the_same).then_some(RowVerdict::Does(
        RollingRestart,
        "brokers restart one by one and accept the same tokens as before; clients reconnect and continue if brokers \
            can fetch the keys of these tokens"
            .into(),
    ))
}

/// Parses the login module and its options. Rendering writes no quotation marks into values.
fn parts(line: &str) -> (&str, BTreeMap<&str, &str>) {
    let (module, mut rest) = line.split_once(' ').unwrap_or((line, ""));
    let mut options = BTreeMap::new();
    while let Some((name, value)) = rest.split_once("=\"") {
        let (value, further) = value.split_once('"').unwrap_or((value, ""));
        let name = name.trim_start().rsplit(' ').next().unwrap_or_default();
        options.insert(name, value);
        rest = further;
    }
    (module, options)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_where_the_keys_come_from_leaves_the_tokens_as_they_are() {
        let line = |more: &str| {
            json!(format!("a.Module required x=\"unused\" oauth.valid.issuer.uri=\"https://a\" {more};"))
        };
        let pointer = format!("/spec/kafka/listeners/0{CHECK}");
        let keeps = |pointer: &str, before: &str, after: &str| {
            let (before, after) = (line(before), line(after));
            let pointer = pointer.to_owned();
            with_the_same_tokens(Some(&Difference { pointer, before: &before, after: &after })).is_some()
        };
        for (before, after, expected) in [
            ("oauth.jwks.endpoint.uri=\"https://a/b\"", "oauth.jwks.endpoint.uri=\"https://a/c\"", true),
            ("", "oauth.ssl.truststore.location=\"/mnt/ca\" oauth.ssl.truststore.type=\"PEM\"", true),
            ("oauth.groups.claim=\"$.groups\"", "oauth.groups.claim=\"$.roles\"", true),
            ("oauth.client.id=\"a\"", "oauth.client.id=\"b\"", false),
            ("oauth.username.claim=\"sub\"", "", false),
            ("", "oauth.custom.claim.check=\"@['a'] nin ['b=c']\"", false),
            // A value that only looks like an option.
            (
                "oauth.client.id=\"a oauth.groups.claim=\" z=\"1\"",
                "oauth.client.id=\"b oauth.groups.claim=\" z=\"1\"",
                false,
            ),
        ] {
            assert_eq!(keeps(&pointer, before, after), expected, "{before} → {after}");
        }
        assert!(!keeps("/spec/kafka/listeners/0/port", "a=\"1\"", "a=\"1\""));
    }
}
