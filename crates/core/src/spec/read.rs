//! Reads a snapshot into documents, file by file, valid and invalid ones together.

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::names::{Digest, Kind, ResourceKey, SpecPath};
use crate::parallel;
use crate::problem::{Location, Origin, Problem};
use crate::spec::check::{self, Checked, SpecFinding};
use crate::spec::redact;
use crate::spec::remnants::{self, Remnants};
use crate::spec::text::MaskedText;
use crate::spec::yaml::{self, Node, Span, YamlDocument};
use crate::spec::{
    Document, Documents, Fields, InvalidDocument, ParsedFile, Safeguards, Snapshot, SnapshotEntry, Spec,
    Unreadable, identity, rules,
};

/// The most problems that are reported of one file: more than anybody fixes before the next run.
const MAX_PROBLEMS: usize = 100;

/// Reads a tree. A file that is unchanged since `previous` is not parsed again.
pub fn read(snapshot: &Snapshot, previous: Option<&Documents>) -> Documents {
    // Both are in the order of paths.
    let mut known = previous.into_iter().flat_map(|previous| &previous.files).peekable();
    let mut changed = Vec::new();
    let unchanged = snapshot.entries.iter().filter_map(|(path, entry)| {
        while known.next_if(|(its, _)| *its < path).is_some() {}
        let file = known.next_if(|(its, _)| *its == path).filter(|(path, file)| is_of(file, path, entry));
        if file.is_none() {
            changed.push((path, entry));
        }
        file.map(|(path, file)| (path.clone(), Arc::clone(file)))
    });
    let mut files: BTreeMap<_, _> = unchanged.collect();
    files.extend(parallel::map(&changed, |(path, entry)| {
        let file = match entry {
            SnapshotEntry::File { bytes, digest } => read_file(path, bytes, digest),
            SnapshotEntry::Unreadable { code, message, hint } => unread(path, (code, message, hint)),
        };
        ((*path).clone(), Arc::new(file))
    }));
    Documents {
        source: snapshot.source.clone(),
        revision: snapshot.revision.clone(),
        commit: snapshot.commit.clone(),
        skipped: snapshot
            .skipped
            .iter()
            .map(|(path, bytes)| (path.clone(), described(path, bytes)))
            .collect(),
        files,
    }
}

/// Whether a file was parsed from this entry.
fn is_of(file: &ParsedFile, path: &SpecPath, entry: &SnapshotEntry) -> bool {
    match entry {
        SnapshotEntry::File { digest, .. } => file.digest.as_ref() == Some(digest),
        SnapshotEntry::Unreadable { code, message, hint } => {
            file.digest.is_none() && file.problems == unread(path, (code, message, hint)).problems
        }
    }
}

/// A file whose bytes the source could not read.
fn unread(path: &SpecPath, (code, message, hint): (&str, &str, &str)) -> ParsedFile {
    let problem = Problem::error(code, message).hint(hint);
    unreadable(path, None, problem.at(Location::file(path.clone()), ""))
}

impl Documents {
    /// Returns the tree with some files replaced by these bytes or removed. A replaced file is parsed only if
    /// its bytes differ from both this tree and `previous`.
    pub fn with_files(
        &self,
        files: &[(SpecPath, Option<Vec<u8>>)],
        previous: Option<&Documents>,
    ) -> Documents {
        let mut documents = self.clone();
        for (path, bytes) in files {
            let digest = bytes.as_deref().map(Digest::of);
            let known = |tree: &Documents| {
                tree.files.get(path).filter(|file| digest.is_some() && file.digest == digest).cloned()
            };
            let read = || Some(Arc::new(read_file(path, bytes.as_deref()?, digest.as_ref()?)));
            let content = digest.as_ref().map_or("nothing", Digest::as_str);
            documents.revision = Digest::of(format!("{} {path} {content}", documents.revision)).to_string();
            match known(self).or_else(|| previous.and_then(known)).or_else(read) {
                Some(file) => documents.files.insert(path.clone(), file),
                None => documents.files.remove(path),
            };
        }
        documents
    }
}

/// Returns the resources in a file that is not read as a spec, as far as they can be identified.
fn described(path: &SpecPath, bytes: &[u8]) -> BTreeSet<ResourceKey> {
    let file = read_file(path, bytes, &Digest::of(bytes));
    let documents = file.documents.into_iter().map(|document| document.key);
    documents.chain(file.invalid.into_iter().map(|document| document.key)).collect()
}

/// Reads one file. The result depends on nothing but its path and bytes.
fn read_file(path: &SpecPath, bytes: &[u8], digest: &Digest) -> ParsedFile {
    let text = match decode(path, bytes) {
        Ok(text) => text,
        Err(problem) => return unreadable(path, Some(digest.clone()), *problem),
    };
    let documents = yaml::parse(text);
    let remnants = Remnants::of(text, &documents);
    let drafts: Vec<DocumentDraft> = documents.into_iter().filter_map(read_document).collect();
    let masked = MaskedText::new(path.clone(), text, secrets(text, &drafts));
    let shown = Some(Arc::clone(&masked));
    let mut file =
        ParsedFile { digest: Some(digest.clone()), remnants, text: shown, ..ParsedFile::default() };
    if drafts.is_empty() {
        let problem = Problem::warning("no-document", "the file contains no document").at(masked.whole(), "");
        file.problems.push(problem.hint("restore its document, or remove the file"));
    }
    for draft in drafts {
        draft.finish(&masked, path, &mut file);
    }
    if let Some(conflict) = conflict(text, &masked).filter(|_| file.problems.iter().any(Problem::is_error)) {
        // The conflict causes all other problems of the file.
        file.problems = vec![conflict];
    }
    limit_problems(&mut file.problems, &masked);
    file
}

/// Finds git's conflict markers. No line of a valid document begins with one.
fn conflict(text: &str, masked: &MaskedText) -> Option<Problem> {
    let mut at = 0;
    let mut markers = text.split_inclusive('\n').filter_map(|line| {
        let span = Span { start: at, end: at + line.trim_end().len() };
        at += line.len();
        ["<<<<<<< ", ">>>>>>> "].iter().position(|marker| line.starts_with(marker)).map(|which| (which, span))
    });
    let (_, begin) = markers.find(|(which, _)| *which == 0)?;
    let problem = Problem::error("merge-conflict", "unresolved git merge conflict")
        .at(masked.locate(begin), "it starts here")
        .hint("resolve the conflict and remove the markers; `git status` lists all such files");
    let end = markers.find(|(which, _)| *which == 1);
    Some(match end {
        Some((_, end)) => problem.related(masked.locate(end), "and ends here"),
        None => problem,
    })
}

/// Limits the problems of one file, so that they don't bury those of others.
fn limit_problems(problems: &mut Vec<Problem>, text: &MaskedText) {
    let more = problems.len().saturating_sub(MAX_PROBLEMS);
    if more == 0 {
        return;
    }
    // Errors may have been cut, so the replacement is an error.
    problems.truncate(MAX_PROBLEMS);
    let problem = Problem::error("more-problems", format!("{more} more problems in this file"));
    problems.push(problem.at(text.whole(), "").hint("fix the others first"));
}

/// Decodes a file that may be parsed: not too long, UTF-8, printable.
fn decode<'a>(path: &SpecPath, bytes: &'a [u8]) -> Result<&'a str, Box<Problem>> {
    if bytes.len() > yaml::MAX_BYTES {
        let message = format!("the file has {} bytes, more than 1 MiB", bytes.len());
        let hint = "split the file; a certificate or kubeconfig needs a few KiB";
        let problem = Problem::error("file-too-large", message).at(Location::file(path.clone()), "");
        return Err(Box::new(problem.hint(hint)));
    }
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let before = bytes.get(..error.valid_up_to()).unwrap_or_default();
        let problem = Problem::error("not-utf8", "the file is not UTF-8 text");
        let label = "invalid byte here";
        Box::new(problem.at(end_of(path, before), label).hint("save the file as UTF-8"))
    })?;
    if let Some((at, character)) = yaml::control_character(text) {
        let code = u32::from(character);
        let message =
            format!("the file contains the control character U+{code:04X}, which YAML does not allow");
        let hint = "remove it; in a value, write it as an escape in double quotes";
        let problem = Problem::error("control-character", message);
        let place = end_of(path, bytes.get(..at).unwrap_or_default());
        return Err(Box::new(problem.at(place, "reading stopped here").hint(hint)));
    }
    Ok(text.strip_prefix('\u{feff}').unwrap_or(text))
}

/// Returns the location after the decodable part of a file, quoted only up to there: in the rest, secrets
/// couldn't be recognized.
fn end_of(path: &SpecPath, before: &[u8]) -> Location {
    let before = before.strip_prefix("\u{feff}".as_bytes()).unwrap_or(before);
    let text = String::from_utf8_lossy(before) + "\u{fffd}";
    let span = Span { start: before.len(), end: text.len() };
    MaskedText::new(path.clone(), &text, redact::suspects(&text)).locate(span)
}

fn unreadable(path: &SpecPath, digest: Option<Digest>, problem: Problem) -> ParsedFile {
    let origin = Origin { path: path.clone(), line: 1 };
    ParsedFile { digest, unreadable: vec![place(origin)], problems: vec![problem], ..ParsedFile::default() }
}

fn place(origin: Origin) -> Unreadable {
    let top_folder = origin.path.top_folder().map(str::to_owned);
    Unreadable { origin, top_folder }
}

/// A document whose locations don't quote lines yet, since all secrets of the file must be known first.
struct DocumentDraft {
    start: usize,
    outcome: DocumentOutcome,
    /// Whether its structure is known, and with it all its secrets.
    structured: bool,
    findings: Vec<SpecFinding>,
    places: Vec<(Box<str>, Span)>,
    secrets: Vec<Span>,
}

enum DocumentOutcome {
    Good(ResourceKey, Box<Spec>),
    Invalid(ResourceKey, Safeguards),
    Unreadable,
}

impl DocumentDraft {
    fn unreadable(start: usize, findings: Vec<SpecFinding>) -> Self {
        let outcome = DocumentOutcome::Unreadable;
        Self { start, outcome, structured: false, findings, places: Vec::new(), secrets: Vec::new() }
    }

    fn finish(self, text: &Arc<MaskedText>, path: &SpecPath, file: &mut ParsedFile) {
        let origin = Origin { path: path.clone(), line: text.line(self.start).max(1) };
        file.problems.extend(self.findings.into_iter().map(|finding| problem(finding, text)));
        match self.outcome {
            DocumentOutcome::Good(key, spec) => {
                let fields = Fields::new(Arc::clone(text), self.places);
                file.documents.push(Document { key, spec: *spec, origin, fields });
            }
            DocumentOutcome::Invalid(key, safeguards) => {
                file.invalid.push(InvalidDocument { key, origin, safeguards });
            }
            DocumentOutcome::Unreadable => file.unreadable.push(place(origin)),
        }
    }
}

fn problem(finding: SpecFinding, text: &MaskedText) -> Problem {
    let SpecFinding { span, severity, code, message, label, related, hint } = finding;
    let location = span.map_or_else(|| text.whole(), |span| text.locate(span));
    let related = related.into_iter().map(|(span, label)| (text.locate(span), label)).collect();
    Problem { location: Some(location), severity, code: code.to_owned(), message, label, related, hint }
}

/// Returns the spans of a file that must not be shown. If a document's structure is unknown, they include
/// everything that looks like a secret.
fn secrets(text: &str, drafts: &[DocumentDraft]) -> Vec<Span> {
    let mut secrets: Vec<Span> = drafts.iter().flat_map(|draft| draft.secrets.iter().copied()).collect();
    if drafts.iter().any(|draft| !draft.structured) {
        secrets.extend(redact::suspects(text));
    }
    secrets.extend(redact::hidden_anywhere(text));
    secrets
}

fn read_document(document: YamlDocument<'_>) -> Option<DocumentDraft> {
    let YamlDocument { start, root } = document;
    match root {
        Ok(None) => None,
        Ok(Some(root)) => Some(read_root(&root)),
        Err(error) => {
            let span = Span { start: error.at, end: error.at };
            let finding = SpecFinding::new(span, error.code, error.message)
                .label("reading stopped here")
                .hint(error.hint);
            Some(DocumentDraft::unreadable(start, vec![finding]))
        }
    }
}

fn read_root(root: &Node<'_>) -> DocumentDraft {
    let start = root.span.start;
    let mut findings = Vec::new();
    if root.entries().is_none() {
        let span = Span { start, end: start };
        let finding =
            SpecFinding::new(span, "wrong-type", "the document is not a mapping of keys and values")
                .hint("begin with `apiVersion` and `kind`");
        return DocumentDraft::unreadable(start, vec![finding]);
    }
    let Some(kind) = identity::kind(root, &mut findings) else {
        return DocumentDraft::unreadable(start, findings);
    };
    identity::api_version(root, &mut findings);
    let key = identity::key(kind, root, &mut findings);
    let Checked { value, findings: found, places, secrets } = check::check(kind, root);
    findings.extend(found);
    remnants::swallowed(root, &mut findings);
    if key.is_none() && findings.is_empty() {
        findings.push(alias_of_identity(kind, root));
    }
    // The rules compare fields with each other, so they only run when every field is valid.
    let spec = if findings.is_empty() { typed(kind, &value, root, &mut findings) } else { None };
    if let Some(spec) = &spec {
        rules::check(spec, &places, &mut findings);
    }
    let outcome = match (key, spec) {
        (None, _) => DocumentOutcome::Unreadable,
        (Some(key), Some(spec)) if findings.is_empty() => DocumentOutcome::Good(key, Box::new(spec)),
        (Some(key), _) => DocumentOutcome::Invalid(key, Safeguards::of_invalid(kind, &value)),
    };
    DocumentDraft { start, outcome, structured: true, findings, places, secrets }
}

/// Reports an identity that is given by an alias, the only remaining reason why it can't be read when every
/// field is valid. An alias's target may be a secret, and identities are shown.
fn alias_of_identity(kind: Kind, root: &Node<'_>) -> SpecFinding {
    let fields = identity::identity_fields(kind).iter().filter_map(|name| Some((*name, root.only(name)?)));
    let mut aliases = fields.filter(|(_, node)| node.target.is_some());
    let (name, span) = aliases.next().map_or(("kind", kind_place(root)), |(name, node)| (name, node.span));
    SpecFinding::new(span, "alias-of-identity", format!("`{name}` can't be an alias"))
        .label("identifies the resource")
        .hint("write the value itself")
}

fn kind_place(root: &Node<'_>) -> Span {
    root.only("kind").map_or(root.span, |node| node.span)
}

fn typed(
    kind: Kind,
    value: &serde_json::Value,
    root: &Node<'_>,
    findings: &mut Vec<SpecFinding>,
) -> Option<Spec> {
    match Spec::read(kind, value) {
        Ok(spec) => Some(spec),
        Err(error) => {
            // The schema accepted something that the type refuses. The error contains no secret: the
            // deserializer of secrets never quotes its input.
            let span = kind_place(root);
            let message =
                format!("this {kind} can't be read: {}", crate::problem::quote_untrusted(&error.to_string()));
            findings.push(
                SpecFinding::new(span, "invalid", message).hint("compare it with the schema of its kind"),
            );
            None
        }
    }
}
