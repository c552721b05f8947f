//! Computes the edits of block-style text: which bytes are replaced so that a document has the wanted value.

mod list;

use std::ops::Range;

use serde_json::{Map, Value};

use super::flow;
use super::order::FieldOrder;
use super::refusal::{EditRefusal, RefusalReason};
use super::scalar::{self, BlockLines};
use super::source::Source;
use super::write::IndentStyle;
use crate::spec::yaml::{MapEntry, Node, Style, YamlContent};

pub struct TextEdit {
    pub range: Range<usize>,
    pub text: String,
}

pub struct DocumentEdits<'a> {
    pub source: Source<'a>,
    pub house: IndentStyle,
    /// Whether each item of a list keeps its comments, and none takes over another's.
    pub items_apart: bool,
    pub edits: Vec<TextEdit>,
}

#[derive(Clone, Copy)]
struct ValuePosition {
    /// The byte after the colon or dash.
    from: usize,
    /// The column of the key or dash.
    column: usize,
    is_item: bool,
}

impl DocumentEdits<'_> {
    pub fn document(
        &mut self,
        root: &Node<'_>,
        wanted: &Value,
        order: &FieldOrder,
    ) -> Result<(), EditRefusal> {
        match (&root.content, wanted) {
            (YamlContent::Mapping(_), Value::Object(_)) if root.anchored => {
                Err(self.source.refuse(root.span.start, RefusalReason::Anchor))
            }
            (YamlContent::Mapping(entries), Value::Object(fields)) if root.style == Style::Block => {
                self.mapping(entries, fields, None, order)
            }
            (YamlContent::Mapping(_), Value::Object(_)) => {
                let text = flow::rebuilt(self.source, root, wanted, Style::Plain, order)?;
                self.edit(root.span.start..root.span.end, text);
                Ok(())
            }
            _ => Err(self.source.refuse(root.span.start, RefusalReason::Unusual)),
        }
    }

    pub fn apply(mut self) -> Result<String, EditRefusal> {
        // At one position, insertions come before removals.
        self.edits.sort_by_key(|edit| (edit.range.start, edit.range.end));
        let mut after = String::with_capacity(self.source.text.len());
        let mut at = 0;
        for edit in &self.edits {
            let apart = self.source.text.get(at..edit.range.start);
            let apart = apart.ok_or_else(|| self.source.refuse(edit.range.start, RefusalReason::Unproven))?;
            after.push_str(apart);
            after.push_str(&edit.text);
            at = edit.range.end;
        }
        after.push_str(self.source.slice(at, self.source.text.len()));
        Ok(after)
    }

    fn edit(&mut self, range: Range<usize>, text: impl Into<String>) {
        let text = text.into();
        if self.source.slice(range.start, range.end) != text {
            self.edits.push(TextEdit { range, text });
        }
    }

    fn value(
        &mut self,
        node: &Node<'_>,
        wanted: &Value,
        place: ValuePosition,
        order: &FieldOrder,
    ) -> Result<(), EditRefusal> {
        let current = self.source.value(node)?;
        if current == *wanted {
            return Ok(());
        }
        if node.target.is_some() {
            return Err(self.source.refuse(node.span.start, RefusalReason::Alias));
        }
        if node.anchored {
            return Err(self.source.refuse(node.span.start, RefusalReason::Anchor));
        }
        match (&node.content, wanted, &current) {
            (YamlContent::Mapping(entries), Value::Object(fields), _)
                if node.style == Style::Block && stays(entries, fields) =>
            {
                self.mapping(entries, fields, Some(place.from), order)
            }
            (YamlContent::Sequence(items), Value::Array(new), Value::Array(old))
                if node.style == Style::Block && !new.is_empty() =>
            {
                self.sequence(items, old, new, place.from, order)
            }
            (YamlContent::Mapping(_), Value::Object(_), _)
            | (YamlContent::Sequence(_), Value::Array(_), _)
                if node.style == Style::Flow && !self.outgrows_brackets(node, &current, wanted) =>
            {
                let text = flow::rebuilt(self.source, node, wanted, Style::Plain, order)?;
                self.edit(node.span.start..node.span.end, text);
                Ok(())
            }
            _ => self.replace(node, wanted, place, order),
        }
    }

    /// Whether a value in brackets becomes a text of several lines, which is more readable below its key.
    fn outgrows_brackets(&self, node: &Node<'_>, current: &Value, wanted: &Value) -> bool {
        let comment = self.source.slice(node.span.start, node.span.end).contains('#');
        !comment && has_lines(wanted) && !has_lines(current)
    }

    /// Changes a mapping. `from` is the byte after its colon or dash; a document has none.
    fn mapping(
        &mut self,
        entries: &[MapEntry<'_>],
        wanted: &Map<String, Value>,
        from: Option<usize>,
        order: &FieldOrder,
    ) -> Result<(), EditRefusal> {
        let Some(first) = entries.first() else { return Ok(()) };
        let column = self.source.column(first.key.span.start);
        let mut names = Vec::with_capacity(entries.len());
        let mut gone = Vec::with_capacity(entries.len());
        for entry in entries {
            let name = self.source.name(entry)?;
            names.push(name);
            gone.push(!wanted.contains_key(name));
            if let Some(value) = wanted.get(name)
                && self.source.value(&entry.value)? != *value
            {
                self.is_usual(entry, from)?;
                let place = ValuePosition { from: self.source.after_colon(entry)?, column, is_item: false };
                self.value(&entry.value, value, place, &order.within(name))?;
            }
        }
        let mut added: Vec<&String> = wanted.keys().filter(|name| !names.contains(&name.as_str())).collect();
        added.sort_by_key(|name| order.rank(name));
        // Fields that are in the order of their types stay in it.
        let is_ordered = names.is_sorted_by_key(|name| order.rank(name));
        for name in added {
            let rank = if is_ordered { order.rank(name) } else { usize::MAX };
            let before = (0..names.len()).rev().filter(|index| !gone[*index]);
            let index = before.clone().find(|index| order.rank(names[*index]) <= rank);
            let index = index.or_else(|| before.clone().next()).unwrap_or(names.len() - 1);
            self.is_usual(&entries[index], from)?;
            let end = self.extent_end(&entries[index], column)?;
            let line_end = self.source.line_end(end);
            let field = IndentStyle { line_end, ..self.house }.field(name, &wanted[name], column, order);
            self.edit(end..end, line_end.to_owned() + &field);
        }
        for (index, entry) in entries.iter().enumerate().filter(|(index, _)| gone[*index]) {
            self.is_usual(entry, from)?;
            if index == 0 && self.shares_line(entry) {
                self.remove_behind_dash(entries, &gone, column)?;
                continue;
            }
            if self.shares_line(&entries[0]) && gone[..=index].iter().all(|gone| *gone) {
                // It was removed with the first one.
                continue;
            }
            let above = match index.checked_sub(1) {
                Some(index) => self.extent_end(&entries[index], column)?,
                // Comments on top of a document are about all of it.
                None => from.unwrap_or(entry.key.span.start),
            };
            let start = self.with_comments(entry.key.span.start, above, column);
            let above = (0..index).rev().find(|above| !gone[*above]).map(|above| &entries[above].value);
            let end = self.extent_end(entry, column)?;
            self.remove_lines(start, end, above);
        }
        Ok(())
    }

    /// Whether the key follows a dash on its line.
    fn shares_line(&self, entry: &MapEntry<'_>) -> bool {
        let start = entry.key.span.start;
        !self.source.slice(self.source.line_start(start), start).trim_matches(' ').is_empty()
    }

    /// Requires that nothing precedes a key on its line except the dash of the item that it begins.
    fn is_usual(&self, entry: &MapEntry<'_>, from: Option<usize>) -> Result<(), EditRefusal> {
        let start = entry.key.span.start;
        let before = self.source.slice(from.unwrap_or(0).max(self.source.line_start(start)), start);
        match before.trim_matches(' ').is_empty() {
            true if entry.key.target.is_none() && !entry.key.anchored => Ok(()),
            _ if entry.key.anchored => Err(self.source.refuse(start, RefusalReason::Anchor)),
            _ => Err(self.source.refuse(start, RefusalReason::Key)),
        }
    }

    /// Removes the first entries of an item, so that the next one follows the dash.
    fn remove_behind_dash(
        &mut self,
        entries: &[MapEntry<'_>],
        gone: &[bool],
        column: usize,
    ) -> Result<(), EditRefusal> {
        let start = entries[0].key.span.start;
        let Some(next) = gone.iter().position(|gone| !gone) else {
            return Err(self.source.refuse(start, RefusalReason::Unusual));
        };
        let end = self.extent_end(&entries[next - 1], column)?;
        let next = entries[next].key.span.start;
        if self.source.next_line(end) == self.source.line_start(next) {
            self.edit(start..next, "");
        } else {
            // A comment or an empty line is between them, and stays.
            let line = self.source.slice(0, start).trim_end_matches(' ').len();
            self.edit(line..end, "");
        }
        Ok(())
    }

    /// Returns the end of an entry, including the comments after it that are indented further than its key.
    fn extent_end(&self, entry: &MapEntry<'_>, column: usize) -> Result<usize, EditRefusal> {
        let end = self.source.end(&entry.value, self.source.after_colon(entry)?)?;
        Ok(self.with_deeper_comments(end, column))
    }

    fn with_deeper_comments(&self, end: usize, column: usize) -> usize {
        let mut end = self.source.content_end(end);
        loop {
            let next = self.source.next_line(end);
            match self.source.comment_column(next) {
                Some(inner) if inner > column && next < self.source.text.len() => {
                    end = self.source.content_end(next);
                }
                _ => return end,
            }
        }
    }

    /// Returns the start of the line of a byte, or of the comments directly above it at the same indentation,
    /// down to `above`.
    fn with_comments(&self, at: usize, above: usize, column: usize) -> usize {
        let mut start = self.source.line_start(at);
        while start > above {
            let line = self.source.line_start(start - 1);
            if line <= above || self.source.comment_column(line) != Some(column) {
                break;
            }
            start = line;
        }
        start
    }

    /// Removes whole lines with the line end before them, so that the end of the file stays the same. Also
    /// removes the empty lines after them if they would become part of the value above.
    fn remove_lines(&mut self, start: usize, end: usize, above: Option<&Node<'_>>) {
        let mut end = self.source.content_end(end);
        while above.is_some_and(keeps_breaks) && end < self.source.text.len() {
            let next = self.source.next_line(end);
            let next_end = self.source.content_end(next);
            if !self.source.slice(next, next_end).trim_matches(' ').is_empty()
                || next == self.source.text.len()
            {
                break;
            }
            end = next_end;
        }
        match start.checked_sub(1) {
            Some(before) => {
                let before = before - usize::from(self.source.slice(0, before).ends_with('\r'));
                self.edit(before..end, "");
            }
            None => self.edit(0..self.source.next_line(end), ""),
        }
    }

    /// Replaces one value by another, in the same style where possible.
    fn replace(
        &mut self,
        node: &Node<'_>,
        wanted: &Value,
        place: ValuePosition,
        order: &FieldOrder,
    ) -> Result<(), EditRefusal> {
        let source = self.source;
        let end = source.end(node, place.from)?;
        let line_end = source.line_end(place.from);
        let house = IndentStyle { line_end, ..self.house };
        let is_block = matches!(node.style, Style::Literal | Style::Folded);
        let header = if is_block { Some(source.header(node, place.from)?) } else { None };
        let end = match node.style {
            Style::Block => self.with_deeper_comments(end, place.column),
            _ => end,
        };
        // The part on the line of the key or dash, and the lines below.
        let (head, body) = match (header, node.style) {
            (Some((start, header_end)), _) => (start..header_end, source.content_end(header_end)..end),
            (None, Style::Block) if node.span.start < source.content_end(place.from) => {
                (node.span.start..end, end..end)
            }
            (None, Style::Block) => {
                let line = source.content_end(place.from);
                (place.from..place.from, line..end)
            }
            _ if node.span.start == node.span.end => {
                let line = source.content_end(place.from);
                (place.from..place.from, line..line)
            }
            _ => {
                let line = source.content_end(end);
                (node.span.start..end, line..line)
            }
        };
        let (new_head, new_body) = self.fresh(node, wanted, place, &house, order);
        let (new_head, new_body) = if place.is_item
            && new_head.is_empty()
            && source.slice(head.end, source.content_end(head.end)).trim_matches(' ').is_empty()
        {
            // The first line of a collection follows the dash.
            (new_body.trim_start_matches(['\r', '\n', ' ']).to_owned(), String::new())
        } else {
            (new_head, new_body)
        };
        // Empty lines after a block of lines are part of it if its chomping keeps them.
        let body = match header {
            Some((start, header_end)) if source.slice(start, header_end).contains('+') => {
                body.start..source.block_end(node, header_end, true).max(body.start)
            }
            _ => body,
        };
        match (head.is_empty(), new_head.is_empty()) {
            (true, true) => {}
            (true, false) => self.edit(head, format!(" {new_head}")),
            (false, true) => self.edit(source.slice(0, head.start).trim_end().len()..head.end, ""),
            (false, false) => self.edit(head, new_head),
        }
        // Lines that stay keep their line ends, which may differ from those around.
        let (first, last) = same_lines(source.slice(body.start, body.end), &new_body);
        let new_body = new_body.get(first.1..new_body.len() - last.1).unwrap_or_default();
        self.edit(body.start + first.0..body.end - last.0, new_body);
        Ok(())
    }

    /// Returns the text on the line of the key or dash, and the lines below, each with the line end before it.
    fn fresh(
        &self,
        node: &Node<'_>,
        wanted: &Value,
        place: ValuePosition,
        house: &IndentStyle,
        order: &FieldOrder,
    ) -> (String, String) {
        let Value::String(text) = wanted else {
            let text = match (wanted, place.is_item) {
                (Value::Array(items), true) if !items.is_empty() => {
                    house.line_end.to_owned() + &house.items(items, place.column + 2, order)
                }
                (Value::Object(fields), true) if !fields.is_empty() => {
                    house.line_end.to_owned() + &house.fields(fields, place.column + 2, order)
                }
                _ => house.value(wanted, place.column, order),
            };
            return match text.strip_prefix(' ') {
                Some(inline) => (inline.to_owned(), String::new()),
                None => (String::new(), text),
            };
        };
        let is_block = matches!(node.style, Style::Literal | Style::Folded);
        let had_lines = node.scalar().is_some_and(
            |scalar| matches!(scalar, crate::spec::yaml::Scalar::String(old) if old.contains('\n')),
        );
        let stays_quoted = had_lines && matches!(node.style, Style::Single | Style::Double);
        if is_block || (text.contains('\n') && !stays_quoted) {
            let folded = node.style == Style::Folded;
            let (lines, sign) = match BlockLines::of(text, folded) {
                Some(lines) if folded => (Some(lines), '>'),
                Some(lines) => (Some(lines), '|'),
                None => (BlockLines::of(text, false), '|'),
            };
            let old = self.source.header(node, place.from).ok().filter(|_| is_block);
            let old = old.map(|(start, end)| self.source.slice(start, end)).unwrap_or_default();
            // Empty lines after a value that kept none would become part of it.
            if let Some(lines) = lines.filter(|lines| old.contains('+') || !lines.keeps()) {
                let has_column = is_block && node.span.start < node.span.end;
                let own = self.source.column(node.span.start);
                let column = if has_column && own > place.column { own } else { place.column + house.step };
                // An explicit indentation indicator is kept, and a `+` that has nothing to keep.
                let digit = match lines.indicator {
                    true => Some((column - place.column).to_string()),
                    false => old.chars().find(char::is_ascii_digit).map(String::from),
                };
                let chomping = match lines.chomping {
                    "" if old.contains('+') => "+",
                    chomping => chomping,
                };
                let header = format!("{sign}{}{chomping}", digit.unwrap_or_default());
                let is_same = header.len() == old.len() && old.chars().all(|mark| header.contains(mark));
                let header = if is_same { old.to_owned() } else { header };
                return (header, lines.block(column, house.line_end));
            }
        }
        let style = if is_block { Style::Plain } else { node.style };
        (scalar::inline(wanted, style, false), String::new())
    }
}

/// Returns the lengths of the first and of the last lines that two texts share but for their line ends and for
/// spaces on empty lines, in the old text and in the new one. Both begin with a line end.
fn same_lines(old: &str, new: &str) -> ((usize, usize), (usize, usize)) {
    fn lines(text: &str) -> Vec<(&str, usize)> {
        let parts = text.split('\n').skip(1).map(|line| line.strip_suffix('\r').unwrap_or(line));
        let ends = text.split('\n').map(|line| if line.ends_with('\r') { 2 } else { 1 });
        parts.zip(ends).map(|(line, end)| (line, line.len() + end)).collect()
    }
    let (old, new) = (lines(old), lines(new));
    let indentation = |line: &str| line.len() - line.trim_start_matches(' ').len();
    let filled = new.iter().filter(|(line, _)| !line.is_empty());
    let indented = filled.map(|(line, _)| indentation(line)).min().unwrap_or_default();
    let is_empty = |line: &str| indentation(line) == line.len() && line.len() <= indented;
    let same = |((old, _), (new, _)): &(&(&str, usize), &(&str, usize))| {
        old == new || (new.is_empty() && is_empty(old))
    };
    let lengths = |sum: (usize, usize), ((_, old), (_, new)): (&(&str, usize), &(&str, usize))| {
        (sum.0 + old, sum.1 + new)
    };
    let first = old.iter().zip(&new).take_while(same).count();
    let start = old.iter().zip(&new).take(first).fold((0, 0), lengths);
    let rest = old[first..].iter().rev().zip(new[first..].iter().rev());
    (start, rest.take_while(same).fold((0, 0), lengths))
}

fn stays(entries: &[MapEntry<'_>], wanted: &Map<String, Value>) -> bool {
    entries.iter().any(|entry| entry.name().is_some_and(|name| wanted.contains_key(name)))
}

/// Whether a value ends with a block that includes all its trailing line breaks.
fn keeps_breaks(node: &Node<'_>) -> bool {
    match &node.content {
        YamlContent::Scalar { text, .. } => {
            matches!(node.style, Style::Literal | Style::Folded)
                && text.strip_suffix('\n').is_some_and(|text| text.is_empty() || text.ends_with('\n'))
        }
        YamlContent::Sequence(items) => items.last().is_some_and(keeps_breaks),
        YamlContent::Mapping(entries) => entries.last().is_some_and(|entry| keeps_breaks(&entry.value)),
        YamlContent::Tagged => false,
    }
}

fn has_lines(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains('\n'),
        Value::Array(items) => items.iter().any(has_lines),
        Value::Object(fields) => fields.values().any(has_lines),
        _ => false,
    }
}
