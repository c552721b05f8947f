//! Identity providers: how the clients of a cluster authenticate.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::names::Identifier;

/// An OAuth 2 issuer whose tokens a cluster accepts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IdentityProvider {
    /// The organization that owns the identity provider. It can't change.
    pub organization: Identifier,
    /// The identity provider's name, unique in its organization. It can't change.
    pub identifier: Identifier,
    /// The issuer that tokens must name, an https URL.
    #[schemars(length(max = 2000), regex(pattern = r"^https://[^\s]+$"), extend("x-expected" = "an https URL"), example = &"https://login.example.com/realms/acme")]
    pub issuer: String,
    /// The https URL at which the issuer publishes its keys.
    #[schemars(length(max = 2000), regex(pattern = r"^https://[^\s]+$"), extend("x-expected" = "an https URL"), example = &"https://login.example.com/realms/acme/protocol/openid-connect/certs")]
    pub jwks_uri: String,
    /// The https URL at which clients get their tokens. It is shown to clients and not used by brokers.
    #[serde(default)]
    #[schemars(length(max = 2000), regex(pattern = r"^https://[^\s]+$"), extend("x-expected" = "an https URL"), example = &"https://login.example.com/realms/acme/protocol/openid-connect/token")]
    pub token_endpoint: Option<String>,
    /// The audience that tokens must name.
    #[schemars(length(min = 1, max = 500))]
    pub audience: String,
    /// The claim that names the user. By default `sub`.
    #[serde(default)]
    #[schemars(length(max = 200))]
    pub username_claim: Option<String>,
    /// The claim that lists the user's groups, as a JSON path. By default `$.groups`. Kafka's own authorizer
    /// ignores groups; a schema registry grants its rights by them, and needs a path of names.
    #[serde(default)]
    #[schemars(length(max = 200))]
    pub groups_claim: Option<String>,
    /// The CA certificates, in PEM, to verify the issuer's certificate with. By default the public ones.
    #[serde(default)]
    #[schemars(extend("x-lines" = true))]
    pub ca_cert: Option<String>,
}

/// The default claim with the user's groups.
const GROUPS_CLAIM: &str = "$.groups";

impl IdentityProvider {
    /// The JSON path of the claim with the user's groups.
    pub fn groups_claim(&self) -> &str {
        self.groups_claim.as_deref().unwrap_or(GROUPS_CLAIM)
    }

    /// That path as names, from the outermost claim on; `None` if it is more than a path of names.
    pub fn groups_path(&self) -> Option<Vec<&str>> {
        names_of(self.groups_claim())
    }
}

fn names_of(json_path: &str) -> Option<Vec<&str>> {
    let mut rest = json_path.strip_prefix('$')?;
    let mut names = Vec::new();
    while !rest.is_empty() {
        let (name, after) = match rest.strip_prefix('[') {
            Some(bracket) => {
                let quote = bracket.chars().next().filter(|it| ['\'', '"'].contains(it))?;
                let (name, after) = bracket.get(1..)?.split_once(quote)?;
                (name, after.strip_prefix(']')?)
            }
            None => {
                let dotted = rest.strip_prefix('.')?;
                dotted.split_at(dotted.find(['.', '[']).unwrap_or(dotted.len()))
            }
        };
        // The rest of what JSON paths can say: all fields, filters, functions, escaped characters.
        if name.is_empty() || name.contains(['*', '"', '\\', '(', '@', '?']) {
            return None;
        }
        names.push(name);
        rest = after;
    }
    (!names.is_empty()).then_some(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_json_path_of_names_is_read() {
        let names: [(&str, &[&str]); 4] = [
            ("$.groups", &["groups"]),
            ("$.realm_access.roles", &["realm_access", "roles"]),
            ("$['https://example.com/groups']", &["https://example.com/groups"]),
            ("$[\"a\"]['b c'].d", &["a", "b c", "d"]),
        ];
        for (path, names) in names {
            assert_eq!(names_of(path).as_deref(), Some(names), "{path}");
        }
        for path in ["$", "groups", "$..groups", "$.*", "$.groups[0]", "$.groups[?(@.x)]", "$['a", "$[", "$."]
        {
            assert_eq!(names_of(path), None, "{path}");
        }
    }
}
