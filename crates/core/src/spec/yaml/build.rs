//! Builds trees from parser events without recursion, on an explicit stack. Its depth is limited, so that
//! dropping a tree can't overflow the call stack either.

use std::borrow::Cow;
use std::collections::BTreeMap;

use granit_parser::{Event, Parser, ScalarStyle, StrInput, StructureStyle};

use super::{MAX_DEPTH, MAX_NODES, MapEntry, Node, Span, Style, SyntaxError, YamlContent, YamlDocument};

/// Reads all documents of a text. A syntax error affects only its own document; the ones after it are still
/// read.
pub fn parse(text: &str) -> Vec<YamlDocument<'_>> {
    let options = granit_parser::options! {
        emit_comments: false,
        flow_nesting_limit: MAX_DEPTH,
        block_nesting_limit: MAX_DEPTH,
    };
    let mut reader = TreeBuilder {
        text,
        parser: Parser::new_from_str_with_options(text, options),
        nodes: 0,
        documents: Vec::new(),
    };
    while reader.document() {}
    reader.documents
}

struct TreeBuilder<'a> {
    text: &'a str,
    parser: Parser<'a, StrInput<'a>>,
    nodes: usize,
    documents: Vec<YamlDocument<'a>>,
}

impl<'a> TreeBuilder<'a> {
    fn document(&mut self) -> bool {
        let mut start = None;
        let read = self.root(&mut start);
        let failed = match &read {
            Ok(Ended::Document(_)) => false,
            Ok(Ended::Stream) => return false,
            Err(error) => {
                start = start.or(Some(error.at));
                true
            }
        };
        let within_limits = self.nodes <= MAX_NODES;
        let root = read.map(|ended| match ended {
            Ended::Document(root) => root.filter(|node| !node.is_null()),
            Ended::Stream => None,
        });
        self.documents.push(YamlDocument { start: start.unwrap_or(0), root });
        // Documents that recovery can't reach are still covered by the failed one, which makes deletions
        // wait.
        !failed || (within_limits && matches!(self.parser.proceed_next_document(), Ok(true)))
    }

    /// Reads to the end of a document, or detects the end of the stream.
    fn root(&mut self, start: &mut Option<usize>) -> Result<Ended<'a>, SyntaxError> {
        let mut builder = Builder::default();
        loop {
            let Some(next) = self.parser.next_event() else {
                return match start {
                    Some(at) => Err(SyntaxError::incomplete(*at)),
                    None => Ok(Ended::Stream),
                };
            };
            let (event, span) = next.map_err(|error| SyntaxError::scan(&error, self.text))?;
            let end = self.text.len();
            let span = span
                .byte_range()
                .map_or(Span { start: end, end }, |range| Span { start: range.start, end: range.end });
            match event {
                Event::StreamEnd => return Ok(Ended::Stream),
                Event::DocumentStart(..) => *start = Some(span.start),
                Event::DocumentEnd => return Ok(Ended::Document(builder.root)),
                _ => builder.event(event, span, &mut self.nodes)?,
            }
        }
    }
}

enum Ended<'a> {
    Document(Option<Node<'a>>),
    Stream,
}

struct Open<'a> {
    span: Span,
    anchor: usize,
    tagged: bool,
    style: Style,
    /// The children; for a mapping, keys and values alternate.
    children: Vec<Node<'a>>,
    mapping: bool,
    /// The number of levels below this one.
    height: usize,
}

struct Anchor<'a> {
    node: Node<'a>,
    nodes: usize,
    height: usize,
}

#[derive(Default)]
struct Builder<'a> {
    open: Vec<Open<'a>>,
    anchors: BTreeMap<usize, Anchor<'a>>,
    root: Option<Node<'a>>,
}

impl<'a> Builder<'a> {
    fn event(&mut self, event: Event<'a>, span: Span, nodes: &mut usize) -> Result<(), SyntaxError> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                self.count(1, nodes, span)?;
                let content = scalar(text, style, tag.is_some());
                let node =
                    Node { span, target: None, style: scalar_style(style), anchored: anchor != 0, content };
                self.add(node, anchor, 0, nodes)?;
            }
            Event::SequenceStart(style, anchor, tag) => {
                self.begin(false, style, anchor, tag.is_some(), span, nodes)?;
            }
            Event::MappingStart(style, anchor, tag) => {
                self.begin(true, style, anchor, tag.is_some(), span, nodes)?;
            }
            Event::SequenceEnd | Event::MappingEnd => self.end(span, nodes)?,
            Event::Alias(anchor) => self.alias(anchor, span, nodes)?,
            _ => {}
        }
        Ok(())
    }

    fn count(&self, more: usize, nodes: &mut usize, span: Span) -> Result<(), SyntaxError> {
        *nodes = nodes.saturating_add(more);
        if *nodes > MAX_NODES { Err(SyntaxError::too_many(span.start)) } else { Ok(()) }
    }

    fn begin(
        &mut self,
        mapping: bool,
        style: StructureStyle,
        anchor: usize,
        tagged: bool,
        span: Span,
        nodes: &mut usize,
    ) -> Result<(), SyntaxError> {
        self.count(1, nodes, span)?;
        if self.open.len() >= MAX_DEPTH {
            return Err(SyntaxError::too_deep(span.start));
        }
        let style = if style == StructureStyle::Flow { Style::Flow } else { Style::Block };
        self.open.push(Open { span, anchor, tagged, style, children: Vec::new(), mapping, height: 0 });
        Ok(())
    }

    fn end(&mut self, end: Span, nodes: &mut usize) -> Result<(), SyntaxError> {
        let Some(mut open) = self.open.pop() else { return Ok(()) };
        let span = Span { start: open.span.start, end: end.end.max(open.span.end) };
        let content = match (open.tagged, open.mapping) {
            (true, _) => YamlContent::Tagged,
            (false, true) => YamlContent::Mapping(pairs(std::mem::take(&mut open.children))),
            (false, false) => YamlContent::Sequence(std::mem::take(&mut open.children)),
        };
        let Open { style, anchor, height, .. } = open;
        self.add(
            Node { span, target: None, style, anchored: anchor != 0, content },
            anchor,
            height + 1,
            nodes,
        )
    }

    fn alias(&mut self, anchor: usize, span: Span, nodes: &mut usize) -> Result<(), SyntaxError> {
        let Some(target) = self.anchors.get(&anchor) else {
            return Err(SyntaxError::cyclic(span.start));
        };
        self.count(target.nodes, nodes, span)?;
        if self.open.len() + target.height > MAX_DEPTH {
            return Err(SyntaxError::too_deep(span.start));
        }
        let height = target.height;
        let mut node = target.node.clone();
        node.target = Some(node.target.unwrap_or(node.span));
        node.span = span;
        self.add(node, 0, height, nodes)
    }

    fn add(
        &mut self,
        node: Node<'a>,
        anchor: usize,
        height: usize,
        nodes: &mut usize,
    ) -> Result<(), SyntaxError> {
        if anchor != 0 {
            // The copy for aliases counts too: nested anchors would multiply it.
            let copied = size(&node);
            self.count(copied, nodes, node.span)?;
            self.anchors.insert(anchor, Anchor { node: node.clone(), nodes: copied, height });
        }
        match self.open.last_mut() {
            Some(open) => {
                open.height = open.height.max(height);
                open.children.push(node);
            }
            None => self.root = Some(node),
        }
        Ok(())
    }
}

fn scalar(text: Cow<'_, str>, style: ScalarStyle, tagged: bool) -> YamlContent<'_> {
    if tagged {
        YamlContent::Tagged
    } else {
        YamlContent::Scalar { text, plain: style == ScalarStyle::Plain }
    }
}

fn scalar_style(style: ScalarStyle) -> Style {
    match style {
        ScalarStyle::Plain => Style::Plain,
        ScalarStyle::SingleQuoted => Style::Single,
        ScalarStyle::DoubleQuoted => Style::Double,
        ScalarStyle::Literal => Style::Literal,
        ScalarStyle::Folded => Style::Folded,
    }
}

fn pairs(children: Vec<Node<'_>>) -> Vec<MapEntry<'_>> {
    let mut children = children.into_iter();
    let mut entries = Vec::with_capacity(children.len() / 2);
    while let (Some(key), Some(value)) = (children.next(), children.next()) {
        entries.push(MapEntry { key, value });
    }
    entries
}

/// Returns the number of nodes of a tree. Its depth is limited, so recursion is safe.
fn size(node: &Node<'_>) -> usize {
    1 + match &node.content {
        YamlContent::Scalar { .. } | YamlContent::Tagged => 0,
        YamlContent::Sequence(items) => items.iter().map(size).sum(),
        YamlContent::Mapping(entries) => {
            entries.iter().map(|entry| size(&entry.key) + size(&entry.value)).sum()
        }
    }
}
