//! Checks a document against the shape of its kind. Reports all problems at once, and returns the value with
//! loosely written scalars converted.

mod explain;
mod object;
mod scalar;

use serde_json::Value;

use crate::names::Kind;
pub use scalar::nearest;

use crate::problem::{Severity, quote_untrusted};
use crate::spec::redact;
use crate::spec::shape::{self, Rule, Shape};
use crate::spec::yaml::{Node, Scalar, Span, YamlContent};

/// A problem that does not quote its line yet, since all secrets of the file must be known first.
#[derive(Debug)]
pub struct SpecFinding {
    /// `None` for the file as a whole.
    pub span: Option<Span>,
    pub severity: Severity,
    pub code: &'static str,
    pub message: String,
    /// A few words for the underline.
    pub label: String,
    pub related: Vec<(Span, String)>,
    pub hint: Option<String>,
}

impl SpecFinding {
    pub fn new(span: Span, code: &'static str, message: impl Into<String>) -> Self {
        Self {
            span: Some(span),
            severity: Severity::Error,
            code,
            message: message.into(),
            label: String::new(),
            related: Vec::new(),
            hint: None,
        }
    }

    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }

    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

#[derive(Debug)]
pub struct Checked {
    /// The valid fields, converted to their exact form.
    pub value: Value,
    pub findings: Vec<SpecFinding>,
    /// The span of each field, by JSON pointer.
    pub places: Vec<(Box<str>, Span)>,
    /// The spans that must not be shown.
    pub secrets: Vec<Span>,
}

/// Checks the fields of a document, except `apiVersion` and `kind`, which the reader checks.
pub fn check(kind: Kind, root: &Node<'_>) -> Checked {
    let mut checker = Checker::new(kind);
    let place = root.only("kind").map_or(root.span, |node| node.span);
    checker.places.push(("".into(), place));
    let owner = kind.as_str();
    let at = CheckedPosition { pointer: "", place, name: owner, document: true };
    let value = checker.value(shape::of(kind), root, &at).unwrap_or_default();
    checker.refuse_aliases_of_secrets();
    let Checker { findings, places, secrets, .. } = checker;
    Checked { value, findings, places, secrets }
}

struct Checker {
    kind: Kind,
    findings: Vec<SpecFinding>,
    places: Vec<(Box<str>, Span)>,
    secrets: Vec<Span>,
    aliases: Vec<(Span, Span)>,
}

#[derive(Clone, Copy)]
struct CheckedPosition<'p> {
    pointer: &'p str,
    /// The span to underline if the value itself is a poor choice: its key.
    place: Span,
    /// The key, or the kind for a whole document.
    name: &'p str,
    document: bool,
}

impl Checker {
    fn new(kind: Kind) -> Self {
        let (findings, places, secrets, aliases) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { kind, findings, places, secrets, aliases }
    }

    /// Records a finding. Every finding gets a hint, at least the command that explains the field.
    fn refuse(&mut self, mut finding: SpecFinding, at: &CheckedPosition<'_>) {
        finding.hint.get_or_insert_with(|| explain::hint(self.kind, at.pointer));
        self.findings.push(finding);
    }

    /// Returns the exact form of a value; `None` if it is invalid, with the reasons among the findings.
    fn value(&mut self, shape: &Shape, node: &Node<'_>, at: &CheckedPosition<'_>) -> Option<Value> {
        self.aliases.extend(node.target.map(|target| (node.span, target)));
        if shape.secret {
            return self.secret(shape, node, at);
        }
        if matches!(node.content, YamlContent::Tagged) {
            self.tagged(node, at);
            return None;
        }
        match &shape.rule {
            Rule::Object(fields) => self.object(fields, shape, node, at),
            Rule::Map(values) => self.map(values, shape, node, at),
            Rule::List { item, max } => self.list(item, *max, shape, node, at),
            Rule::AnyOf(shapes) => self.any_of(shapes, shape, node, at),
            _ => match scalar::exact(shape, node, at.name) {
                Ok(value) => Some(value),
                Err(finding) => {
                    self.hide_suspects(node);
                    self.refuse(*finding, at);
                    None
                }
            },
        }
    }

    fn tagged(&mut self, node: &Node<'_>, at: &CheckedPosition<'_>) {
        let finding = SpecFinding::new(place(node, at), "yaml-tag", format!("`{}` has a YAML tag", at.name))
            .label("tags are not supported")
            .hint("remove the word that begins with `!`; quote the value if it is a string");
        self.findings.push(finding);
    }

    fn list(
        &mut self,
        item: &Shape,
        max: usize,
        shape: &Shape,
        node: &Node<'_>,
        at: &CheckedPosition<'_>,
    ) -> Option<Value> {
        let YamlContent::Sequence(nodes) = &node.content else {
            self.wrong_type(shape, node, at);
            return None;
        };
        if nodes.len() > max {
            let message = format!("`{}` has {} entries, at most {max} are allowed", at.name, nodes.len());
            self.refuse(SpecFinding::new(place(node, at), "too-long", message), at);
        }
        let mut values = Vec::with_capacity(nodes.len());
        for (index, node) in nodes.iter().enumerate() {
            let pointer = format!("{}/{index}", at.pointer);
            let spot = place(node, &CheckedPosition { place: node.span, ..*at });
            self.places.push((pointer.as_str().into(), spot));
            let inner = CheckedPosition { pointer: &pointer, place: spot, name: at.name, document: false };
            values.extend(self.value(item, node, &inner));
        }
        Some(Value::Array(values))
    }

    fn any_of(
        &mut self,
        shapes: &[Shape],
        shape: &Shape,
        node: &Node<'_>,
        at: &CheckedPosition<'_>,
    ) -> Option<Value> {
        let fitting = shapes.iter().find_map(|shape| scalar::exact(shape, node, at.name).ok());
        if fitting.is_none() {
            self.wrong_type(shape, node, at);
        }
        fitting
    }

    fn wrong_type(&mut self, shape: &Shape, node: &Node<'_>, at: &CheckedPosition<'_>) {
        // In the place of an object with a secret, a value is likely that secret.
        let is_secret = shape.holds_secret();
        match is_secret {
            true => self.hide(node),
            false => self.hide_suspects(node),
        }
        let message = format!("`{}`: expected {}, found {}", at.name, shape.expected, found(node, is_secret));
        self.refuse(SpecFinding::new(place(node, at), "wrong-type", message), at);
    }

    /// Checks a secret: the value itself, or an object of one of several forms. It is hidden unless it is
    /// only a secret's name.
    fn secret(&mut self, shape: &Shape, node: &Node<'_>, at: &CheckedPosition<'_>) -> Option<Value> {
        let Rule::AnyOf(forms) = &shape.rule else { return None };
        let known = self.findings.len();
        let value = match &node.content {
            _ if node.target.is_some() => {
                self.findings.push(alias_of_secret(node.span));
                None
            }
            YamlContent::Tagged => {
                self.tagged(node, at);
                None
            }
            YamlContent::Mapping(entries) => self.secret_form(forms, entries, at),
            YamlContent::Scalar { text, .. } if matches!(node.scalar(), Some(Scalar::String(t)) if !t.is_empty()) => {
                Some(Value::String(text.to_string()))
            }
            _ => {
                self.wrong_type(shape, node, at);
                None
            }
        };
        let named = value.as_ref().is_some_and(|v| v.get("from_file").or(v.get("from_env")).is_some());
        if !named || self.findings.len() > known {
            self.hide(node);
        }
        value
    }

    fn secret_form(
        &mut self,
        forms: &[Shape],
        entries: &[crate::spec::yaml::MapEntry<'_>],
        at: &CheckedPosition<'_>,
    ) -> Option<Value> {
        let fields = || {
            forms.iter().filter_map(|form| match &form.rule {
                Rule::Object(fields) => fields.first(),
                _ => None,
            })
        };
        if let [entry] = entries
            && let Some(field) = fields().find(|field| entry.name() == Some(&field.name))
        {
            let exact = scalar::exact(
                &Shape { secret: true, ..Shape::text(&field.shape) },
                &entry.value,
                &field.name,
            );
            return match exact {
                Ok(value) => Some(serde_json::json!({&field.name: value})),
                Err(finding) => {
                    self.refuse(*finding, at);
                    None
                }
            };
        }
        let names = shape::list(fields().map(|field| field.name.as_str()), "or");
        let message = format!("`{}`: a secret has exactly one key: {names}", at.name);
        let near = match entries {
            [entry] => entry.name().and_then(|name| nearest(name, fields().map(|field| field.name.as_str()))),
            _ => None,
        };
        let hint = match near {
            Some(near) => format!("did you mean `{near}`?"),
            None => "give the secret as a string, or use one of these keys".to_owned(),
        };
        let finding = SpecFinding::new(at.place, "wrong-type", message).hint(hint);
        self.findings.push(finding);
        None
    }

    /// Refuses aliases of secrets: a secret that is also the value of another field would be shown and
    /// recorded with that field.
    fn refuse_aliases_of_secrets(&mut self) {
        let secret =
            |target: &Span| self.secrets.iter().any(|s| s.start < target.end && target.start < s.end);
        let shared = self.aliases.iter().filter(|(_, target)| secret(target));
        let known: Vec<Option<Span>> = self.findings.iter().map(|finding| finding.span).collect();
        let found = shared.filter(|(alias, _)| !known.contains(&Some(*alias)));
        let findings: Vec<SpecFinding> = found.map(|(alias, _)| alias_of_secret(*alias)).collect();
        self.findings.extend(findings);
    }

    /// Hides the values of a misplaced node whose keys look like those of secrets.
    fn hide_suspects(&mut self, node: &Node<'_>) {
        match &node.content {
            YamlContent::Mapping(entries) => {
                for entry in entries {
                    match entry.name().is_none_or(redact::is_suspect) {
                        true => self.hide(&entry.value),
                        false => self.hide_suspects(&entry.value),
                    }
                }
            }
            YamlContent::Sequence(items) => items.iter().for_each(|item| self.hide_suspects(item)),
            YamlContent::Scalar { .. } | YamlContent::Tagged => {}
        }
    }

    /// Hides every value of a node, and the targets of its aliases, but not its keys.
    fn hide(&mut self, node: &Node<'_>) {
        self.secrets.extend(node.target);
        match &node.content {
            YamlContent::Mapping(entries) => entries.iter().for_each(|entry| self.hide(&entry.value)),
            YamlContent::Sequence(items) => items.iter().for_each(|item| self.hide(item)),
            YamlContent::Scalar { .. } | YamlContent::Tagged => self.secrets.push(node.span),
        }
    }
}

impl Shape {
    fn text(of: &Shape) -> Shape {
        let rule = match &of.rule {
            Rule::Text { min, max, pattern, lines } => {
                Rule::Text { min: *min, max: *max, pattern: pattern.clone(), lines: *lines }
            }
            _ => Rule::Anything,
        };
        Shape { rule, expected: of.expected.clone(), secret: of.secret }
    }
}

fn alias_of_secret(alias: Span) -> SpecFinding {
    SpecFinding::new(alias, "alias-of-secret", "an alias can't be used for a secret")
        .hint("give the secret itself, with `from_file`, `from_env` or `encrypted`")
}

/// Returns the best span to underline for a value: a scalar itself, or else its key.
fn place(node: &Node<'_>, at: &CheckedPosition<'_>) -> Span {
    match &node.content {
        YamlContent::Scalar { .. } if node.span.end > node.span.start => node.span,
        _ => at.place,
    }
}

/// Describes a value for `found …`. Never shows a secret.
fn found(node: &Node<'_>, secret: bool) -> String {
    // An alias's target may be a secret elsewhere.
    let shown = |kind: &str, text: &str| match secret || node.target.is_some() {
        true => format!("a {kind}"),
        false => format!("the {kind} `{}`", quote_untrusted(text)),
    };
    match (&node.content, node.scalar()) {
        (YamlContent::Sequence(_), _) => "a list".to_owned(),
        (YamlContent::Mapping(_), _) => "a mapping".to_owned(),
        (_, Some(Scalar::Null)) => "nothing".to_owned(),
        (_, Some(Scalar::String(""))) => "an empty string".to_owned(),
        (_, Some(Scalar::String(text))) => shown("string", text),
        (YamlContent::Scalar { text, .. }, Some(Scalar::Bool(_))) => shown("boolean", text),
        (YamlContent::Scalar { text, .. }, _) => shown("number", text),
        _ => "a tagged value".to_owned(),
    }
}
