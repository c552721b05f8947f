//! Documents that are in a file and say nothing, so that what they describe seems to be removed: commented out, empty, or
//! swallowed by the text above, which is what an indentation makes of a document that is appended.

use crate::spec::API_VERSION;
use crate::spec::check::Finding;
use crate::spec::yaml::{Content, Node, Scalar, YamlDocument};

/// Whether a file has a document that is empty or commented out.
pub(super) fn are_in(text: &str, documents: &[YamlDocument<'_>]) -> bool {
    let is_comment = |line: &str| line.trim_start().strip_prefix('#').is_some_and(is_header);
    let is_empty = |document: &YamlDocument<'_>| match &document.root {
        Ok(Some(root)) => matches!(root.scalar(), Some(Scalar::Null)),
        Ok(None) => true,
        Err(_) => false,
    };
    text.lines().any(is_comment) || documents.iter().any(is_empty)
}

/// Finds the texts of a document that hold another.
pub(super) fn swallowed(root: &Node<'_>, findings: &mut Vec<Finding>) {
    let values = match &root.content {
        Content::Mapping(entries) => {
            findings.extend(entries.iter().filter(|entry| holds_document(&entry.value)).map(|entry| {
                let name = entry.name().unwrap_or("this key");
                let message = format!("the text of `{name}` holds what looks like a document of its own");
                Finding::new(entry.key.span, "swallowed-document", message)
                    .hint("begin that document at the start of a line, after a line with `---`")
            }));
            entries.iter().map(|entry| &entry.value).collect()
        }
        Content::Sequence(items) => items.iter().collect(),
        Content::Scalar { .. } | Content::Tagged => Vec::new(),
    };
    // What an alias stands for is looked at where it is written.
    values.into_iter().filter(|value| value.target.is_none()).for_each(|value| swallowed(value, findings));
}

/// Whether a line says that a document of ours begins, however it is quoted.
fn is_header(line: &str) -> bool {
    let key = line.trim_start().trim_start_matches(['"', '\'']);
    key.starts_with("apiVersion") && key.contains(API_VERSION)
}

fn holds_document(value: &Node<'_>) -> bool {
    matches!(&value.content, Content::Scalar { text, .. } if value.target.is_none() && text.lines().any(is_header))
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
                .map(|name| format!("the text of `{name}` holds what looks like a document of its own"))
                .collect();
            assert_eq!(messages(&text), expected, "{text}");
        }
    }

    #[test]
    fn what_is_left_of_a_document_is_found() {
        let whole = "apiVersion: streamfleet/v1\nkind: Cluster\n";
        let cases = [
            (whole.to_owned(), false),
            (format!("# yaml-language-server: $schema=cluster.json\n---\n{whole}"), false),
            (format!("{whole}---\n#  apiVersion: streamfleet/v1\n#  kind: Cluster\n"), true),
            (format!("#apiVersion: streamfleet/v1\n{whole}"), true),
            (format!("{whole}---\n"), true),
            (format!("{whole}---\n~\n"), true),
            (format!("{whole}---\nnull\n---\n{whole}"), true),
        ];
        for (text, expected) in cases {
            assert_eq!(are_in(&text, &yaml::parse(&text)), expected, "{text}");
        }
    }
}
