//! Limits on what a caller may have planned at a time, derived from the quotas of their organizations.
//! Planning a large proposal takes time and memory that others wait for.

use std::io;

use serde::Serialize;

use super::Call;
use crate::catalog::Gauge;
use crate::http::problem::{FieldError, ProblemDocument};
use crate::spec::{Documents, ParsedFile, Snapshot, SnapshotEntry};
use crate::state::Access;

/// The fleets, and the clusters, that an organization without a quota for them may have planned.
const WITHOUT_QUOTA: usize = 1_000;

/// The documents of each other kind that an organization without a quota for them may have planned. It is
/// lower since an organization shares one base domain, identity provider or cloud account between many
/// clusters.
const OF_EACH_OTHER_KIND: usize = 30;

/// Bytes for each document: in the files, and in the answer, which contains all changes.
const OF_A_DOCUMENT: usize = 16 << 10;
const OF_AN_ANSWER: usize = 256 << 10;

pub(super) struct ProposalLimits {
    documents: usize,
    /// The organizations whose quotas were added up.
    organizations: Vec<String>,
}

impl ProposalLimits {
    /// `None` for super users, who have no limit since they could change the quotas.
    pub fn of(call: &Call) -> Option<ProposalLimits> {
        if call.caller.is_super() {
            return None;
        }
        let capacity = &call.made.round.checked.catalog.capacity;
        let theirs = capacity.iter().filter(|(organization, _)| call.caller.may(organization, Access::Write));
        let quota = |gauge: &Gauge, without: usize| {
            let limit = gauge.limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(without);
            // A lowered quota doesn't remove what exists.
            limit.max(gauge.after as usize)
        };
        let documents = theirs.clone().map(|(_, it)| {
            let main = [&it.fleets, &it.clusters].map(|gauge| quota(gauge, WITHOUT_QUOTA));
            let others = [&it.base_domains, &it.identity_providers, &it.cloud_accounts];
            let others = others.map(|gauge| quota(gauge, OF_EACH_OTHER_KIND));
            // One more for the organization's own document.
            main.into_iter().chain(others).sum::<usize>() + 1
        });
        let documents = documents.sum();
        let organizations = theirs.map(|(organization, _)| organization.to_string()).collect();
        Some(ProposalLimits { documents, organizations })
    }

    /// Checks the total size of the files that differ from the present tree.
    pub fn check_files(&self, snapshot: &Snapshot, present: &Documents) -> Result<(), ProblemDocument> {
        let files = snapshot.entries.iter().map(|(path, entry)| match entry {
            SnapshotEntry::File { bytes, digest } if !present.has_file(path, digest) => bytes.len(),
            _ => 0,
        });
        let skipped = snapshot.skipped.values().map(|bytes| bytes.len());
        self.check(files.chain(skipped).sum(), self.documents * OF_A_DOCUMENT, "bytes")
    }

    /// Checks the number of documents in files that differ from the present tree.
    pub fn check_documents(&self, documents: &Documents, present: &Documents) -> Result<(), ProblemDocument> {
        let number = |file: &ParsedFile| file.documents.len() + file.invalid.len() + file.unreadable.len();
        self.check(documents.changed_since(present).map(number).sum(), self.documents, "documents")
    }

    fn check(&self, number: usize, most: usize, unit: &str) -> Result<(), ProblemDocument> {
        if number <= most {
            return Ok(());
        }
        Err(self.exceeded(format!("the files that differ from the current tree have {number} {unit}"), most))
    }

    /// Serializes an answer, unless it is too large.
    pub fn write(
        allowance: Option<&ProposalLimits>,
        answer: &impl Serialize,
    ) -> Result<Vec<u8>, ProblemDocument> {
        let most = allowance.map_or(usize::MAX, |it| it.documents.saturating_mul(OF_AN_ANSWER));
        written(answer, most).ok_or_else(|| match allowance {
            Some(allowance) => allowance.exceeded("its plan would be longer in bytes".to_owned(), most),
            None => ProblemDocument::internal(),
        })
    }

    fn exceeded(&self, why: String, most: usize) -> ProblemDocument {
        let whose = match self.organizations.as_slice() {
            [one] => format!("organization `{one}`"),
            several => format!("{} organizations", several.len()),
        };
        let why = format!("{why}, and a member of {whose} may plan {most} at a time");
        let hint = "propose less at a time, or ask a super user for higher quotas, which set this limit";
        ProblemDocument::mistakes(vec![FieldError::at("/files", why, hint)]).hint(hint)
    }
}

/// Serializes to at most `most` bytes; `None` if it is longer.
fn written(answer: &impl Serialize, most: usize) -> Option<Vec<u8>> {
    struct Bounded {
        text: Vec<u8>,
        most: usize,
    }
    impl io::Write for Bounded {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if bytes.len() > self.most - self.text.len() {
                return Err(io::ErrorKind::FileTooLarge.into());
            }
            self.text.extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut bounded = Bounded { text: Vec::new(), most };
    serde_json::to_writer(&mut bounded, answer).ok()?;
    Some(bounded.text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_is_too_long_is_none() {
        assert_eq!(written(&[1, 2, 3], 7), Some(b"[1,2,3]".to_vec()));
        assert_eq!(written(&[1, 2, 3], 6), None);
        let allowance = ProposalLimits { documents: 0, organizations: vec!["acme".to_owned()] };
        assert_eq!(
            ProposalLimits::write(Some(&allowance), &"a plan").unwrap_err().detail,
            "its plan would be longer in bytes, and a member of organization `acme` may plan 0 at a time"
        );
        assert_eq!(ProposalLimits::write(None, &1).unwrap(), b"1");
    }
}
