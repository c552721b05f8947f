use super::open;
use crate::spec::yaml::{self, Node, YamlContent};

/// Returns the field at a line and column of a file, both counted from 1, as a JSON pointer in its document;
/// `None` if no key and no value begins there.
pub fn pointer_at(text: &str, line: u32, column: u32) -> Option<String> {
    let (_, source) = open(text);
    let before = usize::try_from(line.checked_sub(1)?).ok()?;
    let start: usize = source.text.split_inclusive('\n').take(before).map(str::len).sum();
    let mut characters = source.text.get(start..)?.char_indices();
    let at = start + characters.nth(usize::try_from(column.checked_sub(1)?).ok()?)?.0;
    let documents = yaml::parse(source.text);
    let roots = documents.iter().filter_map(|document| document.root.as_ref().ok()?.as_ref());
    roots.filter_map(|root| find(root, at, "")).next()
}

fn find(node: &Node<'_>, at: usize, pointer: &str) -> Option<String> {
    // The target of an alias is at another position.
    if node.target.is_some() {
        return None;
    }
    match &node.content {
        YamlContent::Mapping(entries) => entries.iter().find_map(|entry| {
            let pointer = format!("{pointer}/{}", escaped(entry.name()?));
            let is_here = entry.key.span.start == at || entry.value.span.start == at;
            let scalar = matches!(entry.value.content, YamlContent::Scalar { .. } | YamlContent::Tagged);
            match is_here && (scalar || entry.key.span.start == at || entry.value.target.is_some()) {
                true => Some(pointer),
                false => find(&entry.value, at, &pointer),
            }
        }),
        YamlContent::Sequence(items) => items.iter().enumerate().find_map(|(index, item)| {
            let pointer = format!("{pointer}/{index}");
            if item.span.start == at { Some(pointer) } else { find(item, at, &pointer) }
        }),
        YamlContent::Scalar { .. } | YamlContent::Tagged => None,
    }
}

pub(super) fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_values_are_found_again_by_their_places() {
        let text = "\u{feff}a: 1\n---\nb:\n  c: 'ä'\n  d/e: [x, {f: 2}]\nä: &x\n  g: 3\nh: *x\n";
        for ((line, column), expected) in [
            ((1, 1), Some("/a")),
            ((1, 4), Some("/a")),
            ((1, 2), None),
            ((2, 1), None),
            ((3, 1), Some("/b")),
            ((4, 3), Some("/b/c")),
            ((4, 6), Some("/b/c")),
            ((5, 3), Some("/b/d~1e")),
            ((5, 9), Some("/b/d~1e/0")),
            ((5, 12), Some("/b/d~1e/1")),
            ((5, 13), Some("/b/d~1e/1/f")),
            ((6, 1), Some("/ä")),
            ((7, 3), Some("/ä/g")),
            ((8, 4), Some("/h")),
            ((0, 0), None),
            ((99, 1), None),
            ((1, 99), None),
        ] {
            assert_eq!(pointer_at(text, line, column).as_deref(), expected, "{line}:{column}");
        }
    }
}
