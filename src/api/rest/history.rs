//! The git history of resources.
//!
//! A repository is shared by organizations, so a commit may tell of others. Its author is shown to members if
//! they know that person as a member, and its subject if it changed nothing outside of their folder.

use std::time::{Duration, Instant};

use axum::http::StatusCode;

use super::page;
use super::{Answered, Call, written};
use crate::api::answer::{CommitAuthor, ResourceCommit, ResourceHistory};
use crate::http::problem::ProblemDocument;
use crate::names::{ResourceKey, SpecPath};
use crate::record::timestamp;
use crate::source::git::history::{FileCommit, HistoryQuery};
use crate::spec::Spec;
use crate::state::is_same_email;

/// How many commits an answer has at most.
const MOST: usize = 50;

/// How long commits are searched for one answer. A client continues with the token.
const LONGEST: Duration = Duration::from_millis(150);

const IN_FOLDER: &str = "the specs are in a folder and not in a git repository";

const CUT: &str = "older commits can't be read: the repository is incomplete or damaged";

const SHARED_FILE: &str = "the file of the resource may also describe resources of other organizations";

pub(super) fn list(call: &Call) -> Answered {
    let (key, _) = call.found_key()?;
    Ok(written(StatusCode::OK, &call.history(&key)?))
}

impl Call {
    fn history(&self, key: &ResourceKey) -> Result<ResourceHistory, ProblemDocument> {
        let none = |reason: &str| {
            Ok(ResourceHistory { items: Vec::new(), next_page_token: None, reason: Some(reason.to_owned()) })
        };
        let Some(mirror) = self.service.writer.mirror() else { return none(IN_FOLDER) };
        let Some(path) = self.last_path_of(key) else { return none(self.reason_without_document(key)) };
        if !self.caller.is_super() && !self.is_own_file(key, path) {
            return none(SHARED_FILE);
        }
        let from = match self.query.get("page_token") {
            None => Vec::new(),
            Some(token) => {
                let text = page::read(token).ok_or_else(page::invalid_token)?;
                text.split(' ').map(str::to_owned).collect()
            }
        };
        let until = Instant::now() + LONGEST;
        let found = mirror.history(&HistoryQuery { path, from: &from, most: MOST, until });
        let found = found.map_err(|error| {
            tracing::warn!(%error, hint = error.hint(), "cannot read the history of a spec");
            let why = "the git repository of the specs can't be read";
            ProblemDocument::unavailable(why, Duration::from_secs(10))
                .hint("try again in a moment; look for the cause in the log of `streamfleet serve`")
        })?;
        let found = found.ok_or_else(page::invalid_token)?;
        let items = found.commits.into_iter().map(|commit| self.commit(key, path, commit)).collect();
        let next_page_token = (!found.next.is_empty()).then(|| page::token(&found.next.join(" ")));
        let reason = found.is_cut.then(|| CUT.to_owned());
        Ok(ResourceHistory { items, next_page_token, reason })
    }

    /// The file with the document of a resource, or the last file that had it.
    fn last_path_of(&self, key: &ResourceKey) -> Option<&SpecPath> {
        let removed = || self.pending.get(key).map(|written| &written.path);
        let recorded = || self.made.round.checked.recorded.resources.get(key)?.durable.path.as_ref();
        self.path_of(key).or_else(removed).or_else(recorded)
    }

    /// Whether a file describes nothing of other organizations.
    fn is_own_file(&self, key: &ResourceKey, path: &SpecPath) -> bool {
        let is_of_one = || self.made.documents.files.get(path).map(|file| file.is_of_one(&key.organization));
        path.top_folder() == Some(key.organization.as_str()) || is_of_one() == Some(true)
    }

    fn commit(&self, key: &ResourceKey, path: &SpecPath, commit: FileCommit) -> ResourceCommit {
        let FileCommit { id, at, name, email, subject, is_within } = commit;
        let is_super = self.caller.is_super();
        let is_within = is_within && path.top_folder() == Some(key.organization.as_str());
        let author = (is_super || self.is_member(key, &email)).then_some(CommitAuthor { name, email });
        let subject = Some(subject).filter(|_| is_super || is_within);
        ResourceCommit { id, at: timestamp(at), author, subject, path: path.clone() }
    }

    /// Whether an address is one of the members of a resource's organization, whom its members know.
    fn is_member(&self, key: &ResourceKey, email: &str) -> bool {
        let organization = ResourceKey::organization(&key.organization);
        self.resource(&organization).is_some_and(|resource| match &resource.spec {
            Spec::Organization(spec) => spec.members.iter().any(|member| is_same_email(&member.email, email)),
            _ => false,
        })
    }
}
