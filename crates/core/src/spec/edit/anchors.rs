//! Ignores unused anchors: changing an anchored value without aliases changes nothing else.

use std::collections::BTreeSet;

use crate::spec::yaml::{Node, Span, YamlContent};

pub fn without_unused<'a>(root: &Node<'a>) -> Node<'a> {
    let mut used = BTreeSet::new();
    collect(root, &mut used);
    let mut root = root.clone();
    clear(&mut root, &used);
    root
}

/// Collects the positions of the anchors that have aliases.
fn collect(node: &Node<'_>, used: &mut BTreeSet<(usize, usize)>) {
    used.extend(node.target.map(place));
    match &node.content {
        YamlContent::Mapping(entries) => {
            entries.iter().flat_map(|entry| [&entry.key, &entry.value]).for_each(|node| collect(node, used));
        }
        YamlContent::Sequence(items) => items.iter().for_each(|item| collect(item, used)),
        YamlContent::Scalar { .. } | YamlContent::Tagged => {}
    }
}

fn clear(node: &mut Node<'_>, used: &BTreeSet<(usize, usize)>) {
    node.anchored &= used.contains(&place(node.span));
    match &mut node.content {
        YamlContent::Mapping(entries) => {
            let nodes = entries.iter_mut().flat_map(|entry| [&mut entry.key, &mut entry.value]);
            nodes.for_each(|node| clear(node, used));
        }
        YamlContent::Sequence(items) => items.iter_mut().for_each(|item| clear(item, used)),
        YamlContent::Scalar { .. } | YamlContent::Tagged => {}
    }
}

fn place(span: Span) -> (usize, usize) {
    (span.start, span.end)
}
