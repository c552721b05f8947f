//! Edits of flow-style values, in brackets.

use serde_json::{Map, Value};

use super::align::{Step, align};
use super::order::FieldOrder;
use super::refusal::{EditRefusal, RefusalReason};
use super::scalar;
use super::source::Source;
use crate::spec::yaml::{MapEntry, Node, Style, YamlContent};

/// Returns the text of a value in brackets, changed to the wanted value. Unchanged parts keep their text.
/// `around` is the style of the keys around it: if they are quoted, the text is JSON and stays JSON.
pub fn rebuilt(
    source: Source<'_>,
    node: &Node<'_>,
    wanted: &Value,
    around: Style,
    order: &FieldOrder,
) -> Result<String, EditRefusal> {
    let current = source.value(node)?;
    if current == *wanted {
        return Ok(source.slice(node.span.start, node.span.end).to_owned());
    }
    if node.target.is_some() {
        return Err(source.refuse(node.span.start, RefusalReason::Alias));
    }
    if node.anchored {
        return Err(source.refuse(node.span.start, RefusalReason::Anchor));
    }
    match (&node.content, wanted) {
        (YamlContent::Mapping(entries), Value::Object(fields)) => {
            mapping(source, node, entries, fields, order)
        }
        (YamlContent::Sequence(items), Value::Array(new)) => {
            let Value::Array(old) = current else { return Err(unusual(source, node)) };
            let style = items.last().map_or(around, |item| style_of(item, around));
            let mut kept = Vec::new();
            for step in align(&old, new) {
                kept.push(match step {
                    Step::Remove(_) => continue,
                    Step::Keep(i, j) => (Some(i), rebuilt(source, &items[i], &new[j], style, order)?),
                    Step::Insert(j) => (None, fresh(&new[j], style, order)),
                });
            }
            let spans: Vec<_> = items.iter().map(|item| (item.span.start, item.span.end)).collect();
            joined(source, node, &spans, kept)
        }
        // Only one line is available, whatever the style was.
        _ => Ok(fresh(wanted, style_of(node, around), order)),
    }
}

/// Returns the style of new strings in place of a value.
fn style_of(node: &Node<'_>, around: Style) -> Style {
    match &node.content {
        YamlContent::Mapping(entries) => entries.last().map_or(around, |entry| entry.key.style),
        YamlContent::Sequence(items) => items.last().map_or(around, |item| style_of(item, around)),
        _ if node.style == Style::Plain => around,
        _ => node.style,
    }
}

fn mapping(
    source: Source<'_>,
    node: &Node<'_>,
    entries: &[MapEntry<'_>],
    wanted: &Map<String, Value>,
    order: &FieldOrder,
) -> Result<String, EditRefusal> {
    let style = entries.last().map_or(Style::Plain, |entry| entry.key.style);
    let mut kept = Vec::new();
    let mut spans = Vec::new();
    let mut names = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        let name = source.name(entry)?;
        names.push(name);
        let start = entry.key.span.start;
        let is_empty = entry.value.span.start == entry.value.span.end;
        let colon = source.after_colon(entry);
        let end = match is_empty {
            true => colon.unwrap_or(entry.key.span.end),
            false => entry.value.span.end,
        };
        spans.push((start, end));
        let Some(value) = wanted.get(name) else { continue };
        let text = if source.value(&entry.value)? == *value {
            source.slice(start, end).to_owned()
        } else if is_empty {
            let key = source.slice(start, entry.key.span.end);
            format!("{key}: {}", fresh(value, style, &order.within(name)))
        } else {
            let before = source.slice(start, entry.value.span.start);
            before.to_owned() + &rebuilt(source, &entry.value, value, style, &order.within(name))?
        };
        kept.push((Some(index), text));
    }
    let mut added: Vec<_> = wanted.iter().filter(|(name, _)| !names.contains(&name.as_str())).collect();
    added.sort_by_key(|(name, _)| order.rank(name));
    for (name, value) in added {
        kept.push((None, field(name, value, style, order)));
    }
    joined(source, node, &spans, kept)
}

/// Returns brackets around the remaining items, with the original text between any two that are both still
/// there.
fn joined(
    source: Source<'_>,
    node: &Node<'_>,
    spans: &[(usize, usize)],
    kept: Vec<(Option<usize>, String)>,
) -> Result<String, EditRefusal> {
    let text = source.slice(node.span.start, node.span.end);
    let (Some(open), Some(close)) = (text.chars().next(), text.chars().last()) else {
        return Err(unusual(source, node));
    };
    if !matches!((open, close), ('{', '}') | ('[', ']')) {
        return Err(unusual(source, node));
    }
    let (inner_start, inner_end) = (node.span.start + 1, node.span.end - 1);
    let (first, last) = match (spans.first(), spans.last()) {
        (Some(first), Some(last)) => (first.0, last.1),
        _ => (inner_end, inner_end),
    };
    let (lead, tail) = (source.slice(inner_start, first), source.slice(last, inner_end));
    let gap = |index: usize| source.slice(spans[index].1, spans[index + 1].0);
    let gaps = spans.len().saturating_sub(1);
    let commas = [(lead, 0), (tail, 1)].into_iter().chain((0..gaps).map(|index| (gap(index), 1)));
    if !commas.into_iter().all(|(gap, most)| only_commas(gap, most)) {
        return Err(unusual(source, node));
    }
    let last_gap = if gaps > 0 { gap(gaps - 1) } else { lead };
    let usual = match last_break(last_gap) {
        Some(line_break) => format!(",{line_break}"),
        None if gaps > 0 => last_gap.to_owned(),
        None => ", ".to_owned(),
    };
    let comment = || source.refuse(first, RefusalReason::CommentInBrackets);
    if kept.is_empty() {
        let lost = lead.contains('#') || tail.contains('#');
        return if lost { Err(comment()) } else { Ok(format!("{open}{close}")) };
    }
    let mut result = format!("{open}{lead}");
    let mut before: Option<Option<usize>> = None;
    for (index, text) in &kept {
        // Text on the line of the item before is about that one, and the lines below are about the next one.
        let front = before.flatten().filter(|old| *old < gaps).map(gap);
        let behind = index.and_then(|index| index.checked_sub(1)).map(gap);
        match (before, front, behind.and_then(below)) {
            (None, ..) => {}
            (_, Some(front), Some(below)) => {
                result.extend([beside(front).trim_end_matches([' ', '\t']), below])
            }
            (_, Some(front), None) => result.extend([beside(front), last_break(front).unwrap_or_default()]),
            (_, None, Some(below)) => result.extend([",", below]),
            (_, None, None) => result.push_str(&usual),
        }
        result.push_str(text);
        before = Some(*index);
    }
    if let Some(gap) = before.flatten().filter(|old| *old < gaps).map(gap)
        && beside(gap).contains('#')
    {
        if tail.contains(',') {
            return Err(comment());
        }
        let line_break = if below(tail).is_some() { None } else { last_break(gap) };
        result.extend([beside(gap), line_break.unwrap_or_default()]);
    }
    if !spans.is_empty() {
        result.push_str(tail);
    }
    result.push(close);
    Ok(result)
}

/// Returns the part of a gap on its first line.
fn beside(gap: &str) -> &str {
    below(gap).map_or(gap, |below| &gap[..gap.len() - below.len()])
}

/// Returns the part of a gap on further lines, including the line end before them.
fn below(gap: &str) -> Option<&str> {
    gap.find('\n').map(|end| &gap[end - usize::from(gap[..end].ends_with('\r'))..])
}

/// Returns the last line end of a gap and the indentation after it.
fn last_break(gap: &str) -> Option<&str> {
    gap.rfind('\n').map(|end| &gap[end - usize::from(gap[..end].ends_with('\r'))..])
}

/// Whether the text between two items has only spaces, comments and at most this many commas: no anchor, and
/// no `?`.
fn only_commas(gap: &str, most: usize) -> bool {
    let code: String = gap.lines().filter_map(|line| line.split('#').next()).collect();
    code.matches(',').count() <= most && code.trim_matches([' ', '\t', ',']).is_empty()
}

fn fresh(value: &Value, style: Style, order: &FieldOrder) -> String {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by_key(|(name, _)| order.rank(name));
            let fields: Vec<String> =
                fields.into_iter().map(|(name, value)| field(name, value, style, order)).collect();
            format!("{{{}}}", fields.join(", "))
        }
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(|item| fresh(item, style, order)).collect();
            format!("[{}]", items.join(", "))
        }
        scalar => scalar::inline(scalar, style, true),
    }
}

fn field(name: &str, value: &Value, style: Style, order: &FieldOrder) -> String {
    let key = scalar::inline(&Value::from(name), style, true);
    format!("{key}: {}", fresh(value, style, &order.within(name)))
}

fn unusual(source: Source<'_>, node: &Node<'_>) -> EditRefusal {
    source.refuse(node.span.start, RefusalReason::Unusual)
}
