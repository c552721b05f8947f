//! Remnants: documents that are still in a file but have no effect, so that their resources seem to be
//! removed. They are commented out, empty, or part of the text above, as happens when an appended document is
//! indented.

use std::collections::{BTreeMap, BTreeSet};

use crate::names::{Kind, ResourceKey};
use crate::spec::API_VERSION;
use crate::spec::check::SpecFinding;
use crate::spec::yaml::{Node, Scalar, YamlContent, YamlDocument};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Remnants {
    pub blank: bool,
    /// The resources that are described in comments.
    pub commented: BTreeSet<ResourceKey>,
}

impl Remnants {
    pub(super) fn of(text: &str, documents: &[YamlDocument<'_>]) -> Self {
        let is_blank = |document: &YamlDocument<'_>| match &document.root {
            Ok(Some(root)) => matches!(root.scalar(), Some(Scalar::Null)),
            Ok(None) => true,
            Err(_) => false,
        };
        Self { blank: documents.iter().any(is_blank), commented: commented(text) }
    }
}

/// Returns the resources that the comments of a file describe. Comments are rarely valid YAML, but the
/// identity of a document is on a few lines, each with its key.
fn commented(text: &str) -> BTreeSet<ResourceKey> {
    let mut found = BTreeSet::new();
    let mut fields: BTreeMap<&str, &str> = BTreeMap::new();
    for line in text.lines() {
        let comment = line.trim_start().strip_prefix('#');
        let comment = comment.map(|comment| comment.trim_start_matches(['#', '>', '|', ' ', '\t']));
        // Two documents in comments are separated by a line that ends one or begins the other.
        if comment.is_none_or(|comment| comment.starts_with("---") || is_header(comment)) {
            fields.clear();
        }
        let field = comment.and_then(|comment| comment.split_once(':'));
        let Some((key, value)) = field.filter(|(key, _)| IDENTITY_KEYS.contains(key)) else { continue };
        let value = value.split(" #").next().unwrap_or_default();
        // An explanation above the document may contain the same key, so the last one counts.
        fields.insert(key, value.trim().trim_matches(['"', '\'']));
        found.extend(described(&fields));
    }
    found
}

const IDENTITY_KEYS: [&str; 6] = ["kind", "organization", "cluster", "identifier", "name", "domain"];

fn described(fields: &BTreeMap<&str, &str>) -> Option<ResourceKey> {
    let kind: Kind = fields.get("kind")?.parse().ok()?;
    let name = fields.get(kind.name_field())?;
    let organization = match kind {
        Kind::Organization => name,
        _ => fields.get("organization")?,
    };
    let organization = organization.parse().ok()?;
    if kind.is_on_cluster() {
        let cluster = fields.get("cluster")?.parse().ok()?;
        return Some(ResourceKey::on_cluster(kind, &organization, &cluster, name));
    }
    Some(ResourceKey::new(kind, &organization, *name))
}

/// Finds texts in a document that contain another document.
pub(super) fn swallowed(root: &Node<'_>, findings: &mut Vec<SpecFinding>) {
    let values = match &root.content {
        YamlContent::Mapping(entries) => {
            findings.extend(entries.iter().filter(|entry| holds_document(&entry.value)).map(|entry| {
                let name = entry.name().unwrap_or("this key");
                let message = format!("the text of `{name}` contains what looks like another document");
                SpecFinding::new(entry.key.span, "swallowed-document", message)
                    .hint("start that document at the beginning of a line, after a line with `---`")
            }));
            entries.iter().map(|entry| &entry.value).collect()
        }
        YamlContent::Sequence(items) => items.iter().collect(),
        YamlContent::Scalar { .. } | YamlContent::Tagged => Vec::new(),
    };
    // An alias's target is checked where it is written.
    values.into_iter().filter(|value| value.target.is_none()).for_each(|value| swallowed(value, findings));
}

/// Whether a line is the beginning of a spec document, however it is quoted.
fn is_header(line: &str) -> bool {
    let key = line.trim_start().trim_start_matches(['"', '\'']);
    key.starts_with("apiVersion") && key.contains(API_VERSION)
}

fn holds_document(value: &Node<'_>) -> bool {
    matches!(&value.content, YamlContent::Scalar { text, .. } if value.target.is_none() && text.lines().any(is_header))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::yaml;

    fn messages(text: &str) -> Vec<String> {
        let mut findings = Vec::new();
        for document in yaml::parse(text) {
            swallowed(&document.root.unwrap().unwrap(), &mut findings);
        }
        findings.into_iter().map(|finding| finding.message).collect()
    }

    #[test]
    fn a_document_in_a_text_is_found_and_a_kubeconfig_is_none() {
        let document = "    apiVersion: streamfleet/v1\n    kind: Cluster\n";
        let cases = [
            (format!("key: |\n  a\n  ---\n{document}"), vec!["key"]),
            (format!("list:\n- inner: |\n{document}"), vec!["inner"]),
            ("key: |\n  'apiVersion': \"streamfleet/v1\" # its version\n".to_owned(), vec!["key"]),
            ("kubeconfig: |\n  apiVersion: v1\n  kind: Config\n".to_owned(), vec![]),
            ("apiVersion: streamfleet/v1\nkind: Cluster\n".to_owned(), vec![]),
            ("display_name: 'apiVersion: of what'\n".to_owned(), vec![]),
        ];
        for (text, names) in cases {
            let expected: Vec<String> = names
                .into_iter()
                .map(|name| format!("the text of `{name}` contains what looks like another document"))
                .collect();
            assert_eq!(messages(&text), expected, "{text}");
        }
    }

    #[test]
    fn what_is_left_of_a_document_is_found() {
        let whole = "apiVersion: streamfleet/v1\nkind: Cluster\norganization: acme\nidentifier: orders\n";
        let out = |mark: &str| whole.lines().map(|line| format!("{mark}{line}\n")).collect::<String>();
        let cases = [
            (whole.to_owned(), false, vec![]),
            (format!("# yaml-language-server: $schema=cluster.json\n---\n{whole}"), false, vec![]),
            (format!("# kind: of a comment\n{whole}"), false, vec![]),
            (format!("{whole}---\n{}", out("# ")), true, vec!["cluster acme/orders"]),
            (out("#"), false, vec!["cluster acme/orders"]),
            (format!("{whole}{}", out("## ")), false, vec!["cluster acme/orders"]),
            (
                format!("{}\n{}{whole}", out("  #> "), out("# ").replace("orders", "'sales' # all")),
                false,
                vec!["cluster acme/orders", "cluster acme/sales"],
            ),
            (
                format!("# identifier: orders-of-old\n{whole}# ---\n{}", out("# ")),
                false,
                vec!["cluster acme/orders"],
            ),
            (format!("{whole}---\n"), true, vec![]),
            (format!("{whole}---\n~\n"), true, vec![]),
            (format!("{whole}---\nnull\n---\n{whole}"), true, vec![]),
        ];
        for (text, blank, expected) in cases {
            let found = Remnants::of(&text, &yaml::parse(&text));
            let commented: Vec<String> = found.commented.iter().map(ToString::to_string).collect();
            assert_eq!(commented, expected, "{text}");
            assert_eq!(found.blank, blank, "{text}");
        }
    }
}
