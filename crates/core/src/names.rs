//! Identifiers as types that are valid by construction, so they need no second check.

mod digest;
mod json;
mod keys;
mod line;
mod quantity;
mod resource_map;
mod side_by_side;

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use smol_str::SmolStr;

pub use digest::Digest;
pub use json::Json;
pub use keys::{FleetKey, ObjectKey, ResourceKey, SecretRef, SpecPath};
pub use line::{count, is_deceptive, log_line, one_line, tenths};
pub use quantity::{QUANTITY_SUFFIXES, quantity};
pub use resource_map::{OrganizationPart, ResourceMap, is_same};
pub use side_by_side::side_by_side;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not {expected}")]
pub struct InvalidName {
    pub text: String,
    /// A description of a valid text, with an article, for a sentence.
    pub expected: &'static str,
}

/// Implements the conversions that all checked string types share.
macro_rules! checked_string {
    ($name:ident) => {
        impl $name {
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
        impl FromStr for $name {
            type Err = InvalidName;
            fn from_str(text: &str) -> Result<Self, InvalidName> {
                Self::try_from(text.to_owned())
            }
        }
        impl From<$name> for String {
            fn from(name: $name) -> String {
                name.0.to_string()
            }
        }
        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }
        impl std::borrow::Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }
    };
}
use checked_string;

/// The name of an organization, a fleet, a cluster, an identity provider or a cloud account: lower-case
/// letters, digits and single hyphens, starting with a letter, at most 32 characters. Clones share the text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Identifier(SmolStr);

impl Identifier {
    /// In characters. Two identifiers and our prefix nearly fill the 63 characters that Kubernetes allows for
    /// a namespace.
    pub const MAX_LENGTH: usize = 32;
    pub const EXPECTED: &'static str = "an identifier: lower-case letters, digits and single hyphens, \
         starting with a letter, at most 32 characters";
    /// The identifier of the organization that always exists and administers the others.
    pub const ROOT: &'static str = "root";
    /// The same rule as a regular expression. A hyphen is followed by a letter or digit, so `--` doesn't match.
    pub const PATTERN: &'static str = "^[a-z](-?[a-z0-9])*$";

    pub fn root() -> Self {
        Self(Self::ROOT.into())
    }
}

checked_string!(Identifier);

impl TryFrom<String> for Identifier {
    type Error = InvalidName;
    fn try_from(text: String) -> Result<Self, InvalidName> {
        let bytes = text.as_bytes();
        let fits = bytes.len() <= Self::MAX_LENGTH
            && bytes.first().is_some_and(u8::is_ascii_lowercase)
            && bytes.last().is_some_and(|&b| b != b'-')
            && bytes.iter().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || *b == b'-')
            && !text.contains("--");
        if fits { Ok(Self(text.into())) } else { Err(InvalidName { text, expected: Self::EXPECTED }) }
    }
}

impl JsonSchema for Identifier {
    fn schema_name() -> Cow<'static, str> {
        "Identifier".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "pattern": Self::PATTERN,
            "minLength": 1,
            "maxLength": Self::MAX_LENGTH,
            "x-expected": Self::EXPECTED,
        })
    }
}

/// A DNS domain, lower case: at least two labels of at most 63 characters, at most 253 in all.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Domain(Arc<str>);

impl Domain {
    /// In characters (RFC 1035, section 2.3.4, without the root's dot).
    pub const MAX_LENGTH: usize = 253;
    /// In characters (RFC 1035, section 2.3.4).
    pub const MAX_LABEL: usize = 63;
    pub const EXPECTED: &'static str = "a domain: at least two labels of letters, digits and hyphens, \
         separated by dots, each at most 63 characters, at most 253 in all";
    /// The same rule as a regular expression, without the limit on the total length.
    pub const PATTERN: &'static str =
        "^[A-Za-z0-9]([-A-Za-z0-9]{0,61}[A-Za-z0-9])?(\\.[A-Za-z0-9]([-A-Za-z0-9]{0,61}[A-Za-z0-9])?)+$";

    /// Whether `self` is `other` or a subdomain of it.
    pub fn is_within(&self, other: &Domain) -> bool {
        self == other || self.0.strip_suffix(other.as_str()).is_some_and(|rest| rest.ends_with('.'))
    }

    /// Whether anyone may register names directly below it, as below `co.uk`, by the list at
    /// publicsuffix.org.
    pub fn is_public_suffix(&self) -> bool {
        psl::suffix_str(self.as_str()) == Some(self.as_str())
    }
}

checked_string!(Domain);

impl TryFrom<String> for Domain {
    type Error = InvalidName;
    fn try_from(text: String) -> Result<Self, InvalidName> {
        let label_fits = |label: &str| {
            (1..=Self::MAX_LABEL).contains(&label.len())
                && !label.starts_with('-')
                && !label.ends_with('-')
                && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
        };
        let fits = text.len() <= Self::MAX_LENGTH && text.contains('.') && text.split('.').all(label_fits);
        if fits {
            Ok(Self(text.to_ascii_lowercase().into()))
        } else {
            Err(InvalidName { text, expected: Self::EXPECTED })
        }
    }
}

impl JsonSchema for Domain {
    fn schema_name() -> Cow<'static, str> {
        "Domain".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "pattern": Self::PATTERN,
            "maxLength": Self::MAX_LENGTH,
            "x-expected": Self::EXPECTED,
        })
    }
}

/// The eight kinds of resource that specs describe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Kind {
    /// A tenant of the installation.
    Organization,
    /// A base domain with its certificate.
    BaseDomain,
    /// How clients of a cluster prove their identity.
    IdentityProvider,
    /// Access to a cloud's storage or DNS.
    CloudAccount,
    /// Kubernetes capacity that hosts clusters.
    Fleet,
    /// A Kafka cluster on a fleet.
    Cluster,
    /// A topic of a cluster.
    Topic,
    /// A user of a cluster, with its rights.
    User,
}

impl Kind {
    /// Every kind, in the order in which resources are built: kinds that others refer to come first.
    pub const ALL: [Kind; 8] = [
        Kind::Organization,
        Kind::BaseDomain,
        Kind::IdentityProvider,
        Kind::CloudAccount,
        Kind::Fleet,
        Kind::Cluster,
        Kind::Topic,
        Kind::User,
    ];

    /// As in documents.
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Organization => "Organization",
            Kind::BaseDomain => "BaseDomain",
            Kind::IdentityProvider => "IdentityProvider",
            Kind::CloudAccount => "CloudAccount",
            Kind::Fleet => "Fleet",
            Kind::Cluster => "Cluster",
            Kind::Topic => "Topic",
            Kind::User => "User",
        }
    }

    /// In a sentence: `base domain`.
    pub fn noun(self) -> &'static str {
        match self {
            Kind::Organization => "organization",
            Kind::BaseDomain => "base domain",
            Kind::IdentityProvider => "identity provider",
            Kind::CloudAccount => "cloud account",
            Kind::Fleet => "fleet",
            Kind::Cluster => "cluster",
            Kind::Topic => "topic",
            Kind::User => "user",
        }
    }

    /// In a path or on the command line, plural: `base-domains`.
    pub fn plural(self) -> &'static str {
        match self {
            Kind::Organization => "organizations",
            Kind::BaseDomain => "base-domains",
            Kind::IdentityProvider => "identity-providers",
            Kind::CloudAccount => "cloud-accounts",
            Kind::Fleet => "fleets",
            Kind::Cluster => "clusters",
            Kind::Topic => "topics",
            Kind::User => "users",
        }
    }

    /// In a path or on the command line, singular: `base-domain`.
    pub fn singular(self) -> &'static str {
        let plural = self.plural();
        plural.strip_suffix('s').unwrap_or(plural)
    }

    /// The field that names a resource of the kind.
    pub fn name_field(self) -> &'static str {
        match self {
            Kind::BaseDomain => "domain",
            Kind::Topic => "name",
            _ => "identifier",
        }
    }

    /// Whether its resources have objects on a fleet's target, and so something to lose.
    pub fn is_on_fleet(self) -> bool {
        matches!(self, Kind::Fleet | Kind::Cluster) || self.is_on_cluster()
    }

    /// Whether resources of other organizations may depend on its resources.
    pub fn concerns_others(self) -> bool {
        matches!(self, Kind::Organization | Kind::BaseDomain)
    }

    /// Whether it is a cluster or on one.
    pub fn is_of_cluster(self) -> bool {
        self == Kind::Cluster || self.is_on_cluster()
    }

    /// Whether its resources belong to a cluster. Their names are `<cluster>/<name>`.
    pub fn is_on_cluster(self) -> bool {
        matches!(self, Kind::Topic | Kind::User)
    }

    /// Parses `cluster`, `clusters` or `Cluster`.
    pub fn meant_by(word: &str) -> Option<Kind> {
        let meant = |kind: &Kind| {
            [kind.singular(), kind.plural(), kind.as_str()].iter().any(|name| name.eq_ignore_ascii_case(word))
        };
        Kind::ALL.into_iter().find(meant)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Kind {
    type Err = InvalidName;
    fn from_str(text: &str) -> Result<Self, InvalidName> {
        Kind::ALL.into_iter().find(|kind| kind.as_str() == text).ok_or_else(|| InvalidName {
            text: text.to_owned(),
            expected: "a kind: Organization, Fleet, Cluster, Topic, User, BaseDomain, IdentityProvider or CloudAccount",
        })
    }
}

/// Whether Kafka allows a topic to have this name.
pub fn is_topic_name(text: &str) -> bool {
    let is_char = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    (1..=MAX_TOPIC_NAME).contains(&text.len()) && text.bytes().all(is_char) && !matches!(text, "." | "..")
}

/// Kafka's limit: a partition's folder has the topic's name.
pub const MAX_TOPIC_NAME: usize = 249;

/// The name of the Kubernetes object of a topic: the topic's own name if Kubernetes allows it, otherwise a
/// readable form of it that ends in eight characters of its hash.
pub fn topic_object(topic: &str) -> String {
    let is_char = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let is_label = |label: &str| {
        !label.is_empty() && label.chars().all(is_char) && !label.starts_with('-') && !label.ends_with('-')
    };
    if topic.split('.').all(is_label) {
        return topic.to_owned();
    }
    let lower = topic.to_ascii_lowercase();
    let parts: Vec<&str> = lower.split(|c| !is_char(c)).map(|part| part.trim_matches('-')).collect();
    let readable = parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-");
    let digest = Digest::of(topic);
    if readable.is_empty() {
        return format!("topic-{}", digest.short());
    }
    let kept = readable[..readable.len().min(MAX_TOPIC_NAME - 9)].trim_end_matches('-');
    format!("{kept}-{}", digest.short())
}

/// The namespace of a cluster: `kafka-<organization>--<cluster>`.
///
/// Kubernetes allows 63 characters. A longer name is cut and ends in eight characters of its hash, so it
/// stays unique and never changes. The `--` separates the two parts unambiguously, since no identifier
/// contains it.
pub fn namespace(organization: &Identifier, cluster: &Identifier) -> String {
    const MAX: usize = 63;
    let full = format!("kafka-{organization}--{cluster}");
    if full.len() <= MAX {
        return full;
    }
    let digest = Digest::of(&full);
    let kept = full[..MAX - 9].trim_end_matches('-');
    format!("{kept}-{}", digest.short())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identifier(text: &str) -> Result<Identifier, InvalidName> {
        text.parse()
    }

    #[test]
    fn identifiers_are_refused_where_kubernetes_or_dns_would_refuse_them() {
        for good in ["a", "acme", "a-1", "eu-west-1", &"a".repeat(32)] {
            assert!(identifier(good).is_ok(), "{good}");
        }
        for bad in ["", "1a", "-a", "a-", "a--b", "A", "a_b", "a.b", "../a", "ä", &"a".repeat(33)] {
            assert!(identifier(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_topic_s_object_has_its_name_where_kubernetes_allows_it() {
        for same in ["orders", "payments.events.v1", "a-1", &"a".repeat(249)] {
            assert!(is_topic_name(same));
            assert_eq!(topic_object(same), same);
        }
        let of = |name: &str| {
            assert!(is_topic_name(name), "{name}");
            let object = topic_object(name);
            let (readable, hash) = object.rsplit_once('-').unwrap();
            assert_eq!(hash.len(), 8);
            readable.to_owned()
        };
        assert_eq!(of("Orders_V1"), "orders-v1");
        assert_eq!(of("orders_v1"), "orders-v1");
        assert_eq!(of("a..b"), "a-b");
        assert_eq!(of("-a-"), "a");
        assert_eq!(of("___"), "topic");
        assert_eq!(of(&"A".repeat(249)).len(), 240);
        assert_ne!(topic_object("Orders_V1"), topic_object("orders_v1"));
        for bad in ["", ".", "..", "a b", "a/b", "ä", &"a".repeat(250)] {
            assert!(!is_topic_name(bad), "{bad}");
        }
        assert!(is_topic_name("...") && is_topic_name("..a"));
    }

    #[test]
    fn domains_are_lower_case_and_have_labels() {
        assert_eq!("K.Example.COM".parse::<Domain>().unwrap().as_str(), "k.example.com");
        for bad in
            ["", "com", "a..b", "-a.com", "a-.com", "a.com.", "a b.com", &format!("{}.com", "a".repeat(64))]
        {
            assert!(bad.parse::<Domain>().is_err(), "{bad}");
        }
        let (parent, child, other): (Domain, Domain, Domain) = (
            "example.com".parse().unwrap(),
            "k.example.com".parse().unwrap(),
            "badexample.com".parse().unwrap(),
        );
        assert!(child.is_within(&parent) && parent.is_within(&parent));
        assert!(!parent.is_within(&child) && !other.is_within(&parent));
    }

    #[test]
    fn a_domain_below_which_strangers_register_names_is_a_public_suffix() {
        let is_public_suffix = |domain: &str| domain.parse::<Domain>().unwrap().is_public_suffix();
        for suffix in ["co.uk", "github.io", "anything.ck", "CO.UK"] {
            assert!(is_public_suffix(suffix), "{suffix}");
        }
        for domain in ["example.com", "k.example.co.uk", "kafka.internal", "kafka.corp.internal", "www.ck"] {
            assert!(!is_public_suffix(domain), "{domain}");
        }
    }

    #[test]
    fn kinds_are_known_by_each_of_their_names() {
        for word in ["BaseDomain", "basedomain", "base-domain", "base-domains"] {
            assert_eq!(Kind::meant_by(word), Some(Kind::BaseDomain), "{word}");
        }
        assert_eq!(Kind::meant_by("base"), None);
    }

    #[test]
    fn spec_paths_stay_in_the_tree() {
        for bad in ["", "/a", "a/", "../a", "a/../b", "./a", "a//b"] {
            assert!(bad.parse::<SpecPath>().is_err(), "{bad}");
        }
        assert_eq!("acme/clusters/a.yaml".parse::<SpecPath>().unwrap().top_folder(), Some("acme"));
        assert_eq!("a.yaml".parse::<SpecPath>().unwrap().top_folder(), None);
    }

    #[test]
    fn keys_survive_being_written_and_read() {
        let organization = identifier("acme").unwrap();
        let resource = ResourceKey::new(Kind::BaseDomain, &organization, "k.example.com");
        assert_eq!(ResourceKey::try_from(String::from(resource.clone())), Ok(resource.clone()));
        assert_eq!(ResourceKey::at(Kind::BaseDomain, &resource.path()), Some(resource.clone()));
        let secret = SecretRef { resource, field: "tls_key".into() };
        assert_eq!(SecretRef::try_from(String::from(secret.clone())), Ok(secret));
        let object = ObjectKey {
            namespace: None,
            kind: "Namespace".into(),
            name: "n".into(),
            api_version: "v1".into(),
        };
        assert_eq!(ObjectKey::try_from(String::from(object.clone())), Ok(object));
    }

    #[test]
    fn what_is_named_by_its_path_is_found_by_it() {
        let organization = ResourceKey::organization(&identifier("acme").unwrap());
        assert_eq!(ResourceKey::at(Kind::Organization, "acme"), Some(organization.clone()));
        let fleet = ResourceKey::at(Kind::Fleet, "acme/eu").unwrap();
        assert_eq!(fleet.as_fleet().map(|fleet| fleet.resource()), Some(fleet));
        assert_eq!(organization.as_fleet(), None);
        for path in ["", "eu", "Acme/eu"] {
            assert_eq!(ResourceKey::at(Kind::Fleet, path), None, "{path}");
        }
    }

    #[test]
    fn long_namespaces_are_cut_and_stay_apart() {
        let long = identifier(&"o".repeat(32)).unwrap();
        let one = namespace(&long, &identifier(&"c".repeat(32)).unwrap());
        let two = namespace(&long, &identifier(&format!("{}d", "c".repeat(31))).unwrap());
        assert!(one.len() <= 63 && two.len() <= 63 && one != two, "{one} {two}");
        assert_eq!(
            namespace(&identifier("acme").unwrap(), &identifier("orders").unwrap()),
            "kafka-acme--orders"
        );
    }
}
