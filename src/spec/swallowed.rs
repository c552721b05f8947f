//! Documents that a block of text has swallowed: appended with an indentation, a document becomes a part of the value
//! above it, and what it describes seems to be removed.

use crate::spec::API_VERSION;
use crate::spec::check::Finding;
use crate::spec::yaml::{Content, Node};

/// Finds the texts of a document that hold another.
pub(super) fn check(root: &Node<'_>, findings: &mut Vec<Finding>) {
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
    values.into_iter().filter(|value| value.target.is_none()).for_each(|value| check(value, findings));
}

fn holds_document(value: &Node<'_>) -> bool {
    let is_header = |line: &str| {
        let version = line.trim_start().strip_prefix("apiVersion:");
        version.is_some_and(|version| version.trim().trim_matches(['"', '\'']) == API_VERSION)
    };
    matches!(&value.content, Content::Scalar { text, .. } if value.target.is_none() && text.lines().any(is_header))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::yaml;

    fn messages(text: &str) -> Vec<String> {
        let mut findings = Vec::new();
        for document in yaml::parse(text) {
            check(&document.root.unwrap().unwrap(), &mut findings);
        }
        findings.into_iter().map(|finding| finding.message).collect()
    }

    #[test]
    fn a_document_in_a_text_is_found_and_a_kubeconfig_is_none() {
        let document = "    apiVersion: streamfleet/v1\n    kind: Cluster\n";
        let cases = [
            (format!("key: |\n  a\n  ---\n{document}"), vec!["key"]),
            (format!("list:\n- inner: |\n{document}"), vec!["inner"]),
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
}
