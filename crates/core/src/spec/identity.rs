//! Finds which resource a document describes. It is read first and doesn't depend on the rest being valid.

use crate::names::{Domain, Identifier, Kind, ResourceKey, is_topic_name};
use crate::problem::quote_untrusted;
use crate::spec::check::SpecFinding;
use crate::spec::yaml::{Node, Scalar, Span};
use crate::spec::{API_VERSION, BaseDomain, DnsProvider, shape};

/// Returns the kind of a document, or adds a finding.
pub fn kind(root: &Node<'_>, findings: &mut Vec<SpecFinding>) -> Option<Kind> {
    let first = first_key(root);
    let hint = || format!("the kinds are {}", shape::list(Kind::ALL.into_iter().map(Kind::as_str), "and"));
    let Some(node) = root.only("kind") else {
        findings.push(
            SpecFinding::new(first, "missing-key", "missing key `kind`")
                .label("this document has no kind")
                .hint(hint()),
        );
        return None;
    };
    let span = if node.span.end > node.span.start { node.span } else { first };
    let Some(text) = own_string(node) else {
        findings.push(no_string(span, "kind").hint(hint()));
        return None;
    };
    let kind = text.parse().ok();
    if kind.is_none() {
        let near = crate::spec::check::nearest(text, Kind::ALL.into_iter().map(Kind::as_str));
        findings.push(
            SpecFinding::new(span, "unknown-kind", format!("unknown kind `{}`", quote_untrusted(text)))
                .label("not a kind of resource")
                .hint(near.map_or_else(hint, |near| format!("did you mean `{near}`?"))),
        );
    }
    kind
}

/// Checks `apiVersion`. A wrong one makes a document invalid but doesn't affect its identity.
pub fn api_version(root: &Node<'_>, findings: &mut Vec<SpecFinding>) {
    match root.only("apiVersion") {
        None => findings.push(
            SpecFinding::new(first_key(root), "missing-key", "missing key `apiVersion`")
                .label("this document has no version")
                .hint(format!("add `apiVersion: {API_VERSION}`")),
        ),
        Some(node) if own_string(node) == Some(API_VERSION) => {}
        Some(node) => {
            let finding = own_string(node).map_or_else(
                || no_string(node.span, "apiVersion"),
                |text| {
                    SpecFinding::new(
                        node.span,
                        "unknown-version",
                        format!("unknown apiVersion `{}`", quote_untrusted(text)),
                    )
                },
            );
            findings.push(finding.hint(format!("write `apiVersion: {API_VERSION}`")));
        }
    }
}

fn no_string(span: Span, name: &str) -> SpecFinding {
    SpecFinding::new(span, "wrong-type", format!("`{name}` is not a string")).label("found something else")
}

pub fn identity_fields(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Organization => &["identifier"],
        Kind::BaseDomain => &["organization", "domain"],
        Kind::IdentityProvider | Kind::CloudAccount | Kind::Fleet | Kind::Cluster => {
            &["organization", "identifier"]
        }
        Kind::Topic => &["organization", "cluster", "name"],
        Kind::User => &["organization", "cluster", "identifier"],
    }
}

/// Returns the resource that a document describes; `None` if its identity can't be read. The check of its
/// fields reports why; only a derived domain that is too long is reported here.
pub fn key(kind: Kind, root: &Node<'_>, findings: &mut Vec<SpecFinding>) -> Option<ResourceKey> {
    let identifier = |name: &str| root.only(name).and_then(own_string)?.parse::<Identifier>().ok();
    match kind {
        Kind::Organization => Some(ResourceKey::organization(&identifier("identifier")?)),
        Kind::BaseDomain => {
            let organization = identifier("organization")?;
            let node = root.only("domain")?;
            let submitted: Domain = own_string(node)?.parse().ok()?;
            let provider = dns_provider(root)?;
            let Some(derived) = BaseDomain::derive(&organization, &submitted, provider) else {
                findings.push(
                    SpecFinding::new(
                        node.span,
                        "too-long",
                        format!("`domain`: with `{organization}.` in front it is too long"),
                    )
                    .label(format!("at most {} characters in all", Domain::MAX_LENGTH))
                    .hint("use a shorter domain; with managed DNS the organization becomes its first label"),
                );
                return None;
            };
            Some(ResourceKey::new(kind, &organization, derived.as_str()))
        }
        Kind::IdentityProvider | Kind::CloudAccount | Kind::Fleet | Kind::Cluster => {
            Some(ResourceKey::new(kind, &identifier("organization")?, identifier("identifier")?.as_str()))
        }
        Kind::Topic => {
            let name = root.only("name").and_then(own_string).filter(|name| is_topic_name(name))?;
            let (organization, cluster) = (identifier("organization")?, identifier("cluster")?);
            Some(ResourceKey::on_cluster(kind, &organization, &cluster, name))
        }
        Kind::User => {
            let (organization, cluster) = (identifier("organization")?, identifier("cluster")?);
            Some(ResourceKey::on_cluster(kind, &organization, &cluster, identifier("identifier")?.as_str()))
        }
    }
}

/// Returns `None` if the provider is present and unreadable, since the derived domain depends on it.
fn dns_provider(root: &Node<'_>) -> Option<DnsProvider> {
    let mut given = root.entries()?.iter().filter(|entry| entry.name() == Some("dns_provider"));
    let Some(entry) = given.next() else { return Some(DnsProvider::default()) };
    if given.next().is_some() {
        return None;
    }
    match entry.value.scalar()? {
        Scalar::Null | Scalar::String("") => Some(DnsProvider::default()),
        Scalar::String(text) => serde::Deserialize::deserialize(serde::de::value::StrDeserializer::<
            serde::de::value::Error,
        >::new(text))
        .ok(),
        _ => None,
    }
}

fn string<'n>(node: &'n Node<'_>) -> Option<&'n str> {
    match node.scalar()? {
        Scalar::String(text) => Some(text),
        _ => None,
    }
}

/// Returns a string that is not an alias: an alias's target may be a secret, and messages quote this one.
fn own_string<'n>(node: &'n Node<'_>) -> Option<&'n str> {
    string(node).filter(|_| node.target.is_none())
}

fn first_key(root: &Node<'_>) -> Span {
    root.entries().and_then(<[_]>::first).map_or(root.span, |entry| entry.key.span)
}
