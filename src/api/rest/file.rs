//! The documents of resources, as their files have them. The text is the one that was planned, in which secrets
//! were masked when it was read: no secret gets here.

use axum::http::StatusCode;

use super::{Answered, Call, missing, written};
use crate::api::answer::SpecFile;
use crate::names::{ResourceKey, SpecPath};
use crate::spec::{DocumentPlace, DocumentText};
use crate::views::records;
use crate::writing::WriteResult;

pub(super) fn read(call: &Call) -> Answered {
    let (key, named) = call.found_key()?;
    if !call.has_record(&key) {
        return Err(missing(key.kind.noun(), named));
    }
    Ok(call.with_current_plan(written(StatusCode::OK, &call.spec_file(&key))))
}

impl Call {
    fn spec_file(&self, key: &ResourceKey) -> SpecFile {
        let (text, revision) = match self.pending.get(key) {
            Some(written) => (self.text_written(written), written.commit.clone()),
            None => (self.text_planned(key), Some(self.made.documents.revision.clone())),
        };
        let (path, text, reason) = match (self.path_of(key), text) {
            (Some(path), Some(text)) => (Some(path.clone()), Some(text), None),
            _ => (None, None, Some(self.reason_without_document(key).to_owned())),
        };
        let (first_line, last_line) = text.as_ref().map(|text| (text.first_line, text.last_line)).unzip();
        let revision = revision.filter(|_| path.is_some());
        SpecFile { path, first_line, last_line, text: text.map(|text| text.text), revision, reason }
    }

    /// The file with the document of a resource; `None` if there is no document.
    pub(super) fn path_of(&self, key: &ResourceKey) -> Option<&SpecPath> {
        match self.pending.get(key) {
            Some(written) => written.resource.is_some().then_some(&written.path),
            None => self.made.round.checked.catalog.resources.get(key)?.current_file.as_ref(),
        }
    }

    fn text_planned(&self, key: &ResourceKey) -> Option<DocumentText> {
        self.made.documents.files.get(self.path_of(key)?)?.text_of(key)
    }

    fn text_written(&self, written: &WriteResult) -> Option<DocumentText> {
        let text = written.resource.as_ref()?.fields.text()?;
        let before = self.made.documents.files.get(&written.path);
        let is_of_one = before.is_none_or(|file| file.is_of_one(&written.key.organization));
        Some(text.document(DocumentPlace { line: written.origin.line, is_valid: true, is_of_one }))
    }

    pub(super) fn reason_without_document(&self, key: &ResourceKey) -> &'static str {
        if records::is_root(key) {
            "organization `root` always exists, and no file describes it"
        } else if self.has_no_spec(key) {
            "its document was removed, and the resource is not deleted yet"
        } else {
            "no readable file describes it; `GET /v1/plan` has the problems of the specs"
        }
    }

    /// Whether there is a record to show.
    fn has_record(&self, key: &ResourceKey) -> bool {
        self.pending.get(key).is_some_and(|written| written.resource.is_some())
            || records::is_known(&self.made.round, key)
    }
}
