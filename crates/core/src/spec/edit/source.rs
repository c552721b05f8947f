use serde_json::{Map, Number, Value};

use super::refusal::{EditRefusal, RefusalReason};
use super::write::IndentStyle;
use crate::spec::yaml::{self, MapEntry, Node, Scalar, Style, YamlContent, YamlDocument};

/// The text of a file, without a byte order mark.
#[derive(Clone, Copy)]
pub struct Source<'a> {
    pub text: &'a str,
}

impl<'a> Source<'a> {
    /// Reads all documents of the file. All have to be valid YAML, since the intent of an invalid one is
    /// unknown.
    pub fn documents(self) -> Result<Vec<YamlDocument<'a>>, EditRefusal> {
        if self.text.len() > yaml::MAX_BYTES {
            let message = "it is larger than 1 MiB".to_owned();
            return Err(EditRefusal::of_file(RefusalReason::Unreadable { message, hint: "split the file" }));
        }
        if let Some((at, _)) = yaml::control_character(self.text) {
            let message = "it contains a control character".to_owned();
            return Err(self.refuse(at, RefusalReason::Unreadable { message, hint: "remove it" }));
        }
        let carriage_return = |(at, _): &(usize, &str)| self.text.as_bytes().get(at + 1) != Some(&b'\n');
        if let Some((at, _)) = self.text.match_indices('\r').find(carriage_return) {
            return Err(self.refuse(at, RefusalReason::CarriageReturn));
        }
        let documents = yaml::parse(self.text);
        match documents.iter().find_map(|document| document.root.as_ref().err()) {
            None => Ok(documents),
            Some(error) => {
                let reason = RefusalReason::Unreadable { message: error.message.clone(), hint: error.hint };
                Err(self.refuse(error.at, reason))
            }
        }
    }

    pub fn refuse(self, at: usize, reason: RefusalReason) -> EditRefusal {
        EditRefusal::at(self.text, at, reason)
    }

    pub fn slice(self, start: usize, end: usize) -> &'a str {
        self.text.get(start..end).unwrap_or_default()
    }

    pub fn line_start(self, at: usize) -> usize {
        self.slice(0, at).rfind('\n').map_or(0, |end| end + 1)
    }

    /// Returns the end of the line of a byte, before the line end.
    pub fn content_end(self, at: usize) -> usize {
        let rest = self.slice(at, self.text.len());
        let line = rest.find('\n').map_or(rest, |end| &rest[..end]);
        at + line.strip_suffix('\r').unwrap_or(line).len()
    }

    /// Returns the start of the line after that of a byte, or the end of the text.
    pub fn next_line(self, at: usize) -> usize {
        self.slice(at, self.text.len()).find('\n').map_or(self.text.len(), |end| at + end + 1)
    }

    pub fn column(self, at: usize) -> usize {
        at - self.line_start(at)
    }

    pub fn line_end(self, at: usize) -> &'static str {
        let end = self.content_end(at);
        let around = if end < self.text.len() { end } else { self.content_end(0) };
        if self.slice(around, self.text.len()).starts_with("\r\n") { "\r\n" } else { "\n" }
    }

    /// Returns the column of a comment that is the whole line.
    pub fn comment_column(self, line_start: usize) -> Option<usize> {
        let line = self.slice(line_start, self.content_end(line_start));
        let content = line.trim_start_matches(' ');
        content.starts_with('#').then(|| line.len() - content.len())
    }

    /// Returns the first byte at or after this one that is not a space, line break, comment or anchor.
    pub fn content_from(self, mut at: usize) -> usize {
        while let Some(c) = self.slice(at, self.text.len()).chars().next() {
            match c {
                ' ' | '\t' | '\n' | '\r' => at += 1,
                '#' => at = self.content_end(at),
                '&' => at += self.slice(at, self.text.len()).find([' ', '\n', '\r']).unwrap_or(1),
                _ => break,
            }
        }
        at
    }

    pub fn after_colon(self, entry: &MapEntry<'_>) -> Result<usize, EditRefusal> {
        let end = entry.key.span.end;
        let rest = self.slice(end, self.text.len());
        let gap = rest.len() - rest.trim_start_matches([' ', '\t']).len();
        match rest[gap..].starts_with(':') {
            true => Ok(end + gap + 1),
            false => Err(self.refuse(entry.key.span.start, RefusalReason::Key)),
        }
    }

    /// Returns the dashes of a list's items. `from` is a byte before the list.
    pub fn dashes(self, items: &[Node<'_>], from: usize) -> Result<Vec<usize>, EditRefusal> {
        let mut dashes = Vec::with_capacity(items.len());
        let mut at = from;
        for item in items {
            let dash = self.content_from(at);
            if !self.slice(dash, self.text.len()).starts_with('-') {
                return Err(self.refuse(item.span.start, RefusalReason::Unusual));
            }
            dashes.push(dash);
            at = self.end(item, dash + 1)?;
        }
        Ok(dashes)
    }

    /// Returns the exclusive end of a value, whose colon or dash ends at `from`. Line breaks after the value
    /// don't belong to it, except those that a `|+` keeps, other than the last.
    pub fn end(self, node: &Node<'_>, from: usize) -> Result<usize, EditRefusal> {
        if node.target.is_some() || node.style == Style::Flow {
            return Ok(node.span.end);
        }
        match &node.content {
            YamlContent::Scalar { .. } if matches!(node.style, Style::Literal | Style::Folded) => {
                let (start, header_end) = self.header(node, from)?;
                Ok(self.block_end(node, header_end, self.slice(start, header_end).contains('+')))
            }
            YamlContent::Scalar { .. } | YamlContent::Tagged if node.span.start == node.span.end => Ok(from),
            YamlContent::Scalar { .. } | YamlContent::Tagged => Ok(node.span.end),
            YamlContent::Sequence(items) => {
                let dash = self.dashes(items, from)?.last().copied();
                items.last().zip(dash).map_or(Ok(node.span.end), |(item, dash)| self.end(item, dash + 1))
            }
            YamlContent::Mapping(entries) => match entries.last() {
                Some(entry) => self.end(&entry.value, self.after_colon(entry)?),
                None => Ok(node.span.end),
            },
        }
    }

    /// Returns the range of a block header, `|` or `>` with its indicators, after a byte.
    pub fn header(self, node: &Node<'_>, from: usize) -> Result<(usize, usize), EditRefusal> {
        let start = self.content_from(from);
        let rest = self.slice(start, self.text.len());
        if !rest.starts_with(['|', '>']) {
            return Err(self.refuse(node.span.start, RefusalReason::Unusual));
        }
        Ok((start, start + rest.find([' ', '\t', '\r', '\n']).unwrap_or(rest.len())))
    }

    pub fn block_end(self, node: &Node<'_>, header_end: usize, keeps: bool) -> usize {
        let start = self.content_end(header_end);
        let mut end = node.span.end.max(start);
        // The parser's span extends into the indentation of the next token.
        if self.slice(self.line_start(end), end).trim_matches(' ').is_empty() {
            end = self.line_start(end).max(start);
        }
        loop {
            let line_start = self.line_start(end);
            let is_blank = self.slice(line_start, end).trim_matches(' ').is_empty();
            if line_start <= start || !is_blank {
                return end;
            }
            // The break before this line.
            end = line_start - 1;
            end -= usize::from(self.slice(0, end).ends_with('\r'));
            if keeps {
                return end;
            }
        }
    }

    pub fn value(self, node: &Node<'_>) -> Result<Value, EditRefusal> {
        let at = node.span.start;
        match &node.content {
            YamlContent::Tagged => Err(self.refuse(at, RefusalReason::Tag)),
            YamlContent::Scalar { text, plain } => match Scalar::resolve(text, *plain) {
                Scalar::Null => Ok(Value::Null),
                Scalar::Bool(value) => Ok(Value::Bool(value)),
                Scalar::String(text) => Ok(Value::String(text.to_owned())),
                Scalar::Integer(number) => {
                    number.map(Value::from).ok_or_else(|| self.refuse(at, RefusalReason::Number))
                }
                Scalar::Float => {
                    let number = text.parse().ok().and_then(Number::from_f64);
                    number.map(Value::Number).ok_or_else(|| self.refuse(at, RefusalReason::Number))
                }
            },
            YamlContent::Sequence(items) => items.iter().map(|item| self.value(item)).collect(),
            YamlContent::Mapping(entries) => {
                let mut fields = Map::new();
                for entry in entries {
                    let name = self.name(entry)?;
                    if fields.insert(name.to_owned(), self.value(&entry.value)?).is_some() {
                        let reason = RefusalReason::DuplicateKey(name.to_owned());
                        return Err(self.refuse(entry.key.span.start, reason));
                    }
                }
                Ok(Value::Object(fields))
            }
        }
    }

    pub fn name<'e>(self, entry: &'e MapEntry<'_>) -> Result<&'e str, EditRefusal> {
        let reason = if entry.is_merge() { RefusalReason::MergeKey } else { RefusalReason::Key };
        entry.name().ok_or_else(|| self.refuse(entry.key.span.start, reason))
    }

    /// Returns the indentation style of these documents. Earlier documents take precedence.
    pub fn indent_style<'d>(self, documents: impl Iterator<Item = &'d Node<'d>>) -> IndentStyle {
        let (mut step, mut list) = (None, None);
        for document in documents {
            self.indentation(document, &mut step, &mut list);
        }
        let IndentStyle { step: two, line_end, .. } = IndentStyle::default();
        let step = step.unwrap_or(two);
        IndentStyle { step, list: list.unwrap_or(step), line_end }
    }

    fn indentation(self, node: &Node<'_>, step: &mut Option<usize>, list: &mut Option<usize>) {
        let entries = node.entries().filter(|_| node.style == Style::Block).unwrap_or_default();
        for entry in entries.iter().filter(|entry| entry.value.target.is_none()) {
            let MapEntry { key, value } = entry;
            let further = |at: usize| self.column(at).checked_sub(self.column(key.span.start));
            let within = match &value.content {
                YamlContent::Mapping(inner) if value.style == Style::Block => {
                    *step = step.or_else(|| further(inner.first()?.key.span.start).filter(|step| *step > 0));
                    value
                }
                YamlContent::Sequence(items) if value.style == Style::Block => {
                    let dashes = self.after_colon(entry).and_then(|from| self.dashes(items, from));
                    *list = list.or_else(|| further(*dashes.ok()?.first()?));
                    value
                }
                _ => continue,
            };
            self.indentation(within, step, list);
        }
    }
}
