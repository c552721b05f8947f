//! Changes within brackets.

use serde_json::{Map, Value};

use super::align::{Step, align};
use super::order::Order;
use super::refusal::{Reason, Refusal};
use super::scalar;
use super::source::Source;
use crate::spec::yaml::{Content, Entry, Node, Style};

/// The text of a value in brackets, changed to what is wanted. What stays keeps its text. Around it, keys are written in some
/// style: where they are in quotes it is JSON, and stays so.
pub fn rebuilt(
    source: Source<'_>,
    node: &Node<'_>,
    wanted: &Value,
    around: Style,
    order: &Order,
) -> Result<String, Refusal> {
    let current = source.value(node)?;
    if current == *wanted {
        return Ok(source.slice(node.span.start, node.span.end).to_owned());
    }
    if node.target.is_some() {
        return Err(source.refuse(node.span.start, Reason::Alias));
    }
    if node.anchored {
        return Err(source.refuse(node.span.start, Reason::Anchor));
    }
    match (&node.content, wanted) {
        (Content::Mapping(entries), Value::Object(fields)) => mapping(source, node, entries, fields, order),
        (Content::Sequence(items), Value::Array(new)) => {
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
        // Wherever it was written, there is room for one line only.
        _ => Ok(fresh(wanted, style_of(node, around), order)),
    }
}

/// The style of new strings in the place of a value.
fn style_of(node: &Node<'_>, around: Style) -> Style {
    match &node.content {
        Content::Mapping(entries) => entries.last().map_or(around, |entry| entry.key.style),
        Content::Sequence(items) => items.last().map_or(around, |item| style_of(item, around)),
        _ if node.style == Style::Plain => around,
        _ => node.style,
    }
}

fn mapping(
    source: Source<'_>,
    node: &Node<'_>,
    entries: &[Entry<'_>],
    wanted: &Map<String, Value>,
    order: &Order,
) -> Result<String, Refusal> {
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

/// Brackets around what is kept, with what stood between two of them wherever both are still there.
fn joined(
    source: Source<'_>,
    node: &Node<'_>,
    spans: &[(usize, usize)],
    kept: Vec<(Option<usize>, String)>,
) -> Result<String, Refusal> {
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
        // Empty brackets.
        _ => (inner_end, inner_end),
    };
    let (lead, tail) = (source.slice(inner_start, first), source.slice(last, inner_end));
    let gap = |index: usize| source.slice(spans[index].1, spans[index + 1].0);
    let gaps = spans.len().saturating_sub(1);
    let usual = match gaps {
        0 if lead.contains('\n') => format!(",{}", without_lines(lead)),
        0 => ", ".to_owned(),
        _ => {
            let gap = without_lines(gap(gaps - 1));
            gap.find('\n').map_or(gap.clone(), |end| {
                format!(",{}", &gap[end - usize::from(gap[..end].ends_with('\r'))..])
            })
        }
    };
    let is_kept = |index: usize| kept.iter().any(|(kept, _)| *kept == Some(index));
    let comment = || source.refuse(first, Reason::CommentInBrackets);
    let mut result = format!("{open}{lead}");
    let mut before: Option<Option<usize>> = None;
    for (index, text) in &kept {
        match (before, *index) {
            (None, _) => {}
            (Some(Some(old)), Some(index)) if index == old + 1 => result.push_str(gap(old)),
            // The comment on the line of what stays in front stays, those above what goes go.
            (Some(Some(old)), _) if old < gaps => {
                let short = without_lines(gap(old));
                if is_kept(old + 1) && short.matches('#').count() < gap(old).matches('#').count() {
                    return Err(comment());
                }
                result.push_str(&short);
            }
            _ => result.push_str(&usual),
        }
        result.push_str(text);
        before = Some(*index);
    }
    if kept.is_empty() && (lead.contains('#') || tail.contains('#')) {
        return Err(comment());
    }
    match (kept.is_empty(), spans.is_empty()) {
        (true, _) => result = open.to_string(),
        (false, true) => {}
        (false, false) => result.push_str(tail),
    }
    result.push(close);
    Ok(result)
}

/// What stands between two items, without lines that are comments: the end of the first line and the indentation of the last.
fn without_lines(gap: &str) -> String {
    match (gap.find('\n'), gap.rfind('\n')) {
        (Some(first), Some(last)) => gap[..first].to_owned() + &gap[last..],
        _ => gap.to_owned(),
    }
}

/// A value on one line.
fn fresh(value: &Value, style: Style, order: &Order) -> String {
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

fn field(name: &str, value: &Value, style: Style, order: &Order) -> String {
    let key = scalar::inline(&Value::from(name), style, true);
    format!("{key}: {}", fresh(value, style, &order.within(name)))
}

fn unusual(source: Source<'_>, node: &Node<'_>) -> Refusal {
    source.refuse(node.span.start, Reason::Unusual)
}
