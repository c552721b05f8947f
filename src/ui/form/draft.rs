//! The values of forms, between their last step and the click that carries it out. They may contain secrets,
//! which no page shows, so they stay in the daemon's memory: for a while, and for its session alone.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use uuid::Uuid;
use zeroize::Zeroize as _;

use crate::names::Kind;
use crate::parallel::locked;

/// How long a draft is kept.
pub const KEPT: Duration = Duration::from_mins(30);

/// The number of drafts in all and of one person, and their size in bytes together. The oldest ones go first.
const DRAFTS: usize = 200;
const DRAFTS_OF_ONE: usize = 5;
const BYTES: usize = 16 << 20;

/// The most fields of a form. The largest has 70, each with the value that the record had.
const FIELDS: usize = 300;

/// In front of a field's name: the value that the record had when the form was shown.
const BEFORE: &str = "before:";

/// The values of a form's fields by name.
#[derive(Clone, Default)]
pub struct Typed(Vec<(String, String)>);

#[derive(Clone)]
pub struct Draft {
    pub id: Uuid,
    /// The form token of its session.
    session: String,
    /// The e-mail address of its person.
    owner: String,
    at: Instant,
    /// `None` if it is no form of a resource.
    pub kind: Option<Kind>,
    pub target: Target,
    pub typed: Typed,
}

/// The resource that a form changes.
#[derive(Clone, PartialEq, Eq)]
pub enum Target {
    New,
    Known {
        organization: String,
        name: String,
        /// The tag of the record that the form was filled from.
        etag: String,
    },
}

#[derive(Default)]
pub struct Drafts(Mutex<VecDeque<Draft>>);

impl Typed {
    /// The fields of a form whose names are JSON pointers, trimmed, with plain line ends.
    pub fn of(pairs: &[(String, String)]) -> Typed {
        let own = pairs.iter().filter(|(name, _)| name.trim_start_matches(BEFORE).starts_with('/'));
        let own = own.map(|(name, text)| (name.clone(), text.trim().replace("\r\n", "\n")));
        Typed(own.take(FIELDS).collect())
    }

    /// Empty if there is no such field.
    pub fn text(&self, pointer: &str) -> &str {
        let found = self.0.iter().find(|(name, _)| name == pointer);
        found.map(|(_, text)| text.as_str()).unwrap_or_default()
    }

    pub fn has(&self, pointer: &str) -> bool {
        self.0.iter().any(|(name, _)| name == pointer)
    }

    /// The name of the hidden field with the value that the record had.
    pub fn before(pointer: &str) -> String {
        format!("{BEFORE}{pointer}")
    }

    /// Whether the person changed a field since the form was shown; `None` if the form doesn't say what it was.
    pub fn is_changed(&self, pointer: &str) -> Option<bool> {
        let before = Typed::before(pointer);
        self.has(&before).then(|| self.text(&before) != self.text(pointer))
    }

    /// Leaves out a field, whose text is wiped.
    pub fn remove(&mut self, pointer: &str) {
        self.0.iter_mut().filter(|(name, _)| name == pointer).for_each(|(_, text)| text.zeroize());
        self.0.retain(|(name, _)| name != pointer);
    }

    fn size(&self) -> usize {
        self.0.iter().map(|(name, text)| name.len() + text.len()).sum()
    }

    pub fn set(&mut self, pointer: &str, text: &str) {
        self.remove(pointer);
        self.0.push((pointer.to_owned(), text.to_owned()));
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, text)| (name.as_str(), text.as_str()))
    }
}

impl Drop for Typed {
    fn drop(&mut self) {
        self.0.iter_mut().for_each(|(_, text)| text.zeroize());
    }
}

impl Drafts {
    /// Keeps what was typed, and returns the id of the draft.
    pub fn keep(
        &self,
        (session, owner): (&str, &str),
        kind: impl Into<Option<Kind>>,
        target: Target,
        typed: Typed,
    ) -> Uuid {
        let (id, at, kind) = (Uuid::now_v7(), Instant::now(), kind.into());
        let (session, owner) = (session.to_owned(), owner.to_ascii_lowercase());
        self.end_old();
        let mut drafts = locked(&self.0);
        let own: Vec<Uuid> =
            drafts.iter().filter(|draft| draft.owner == owner).map(|draft| draft.id).collect();
        if own.len() >= DRAFTS_OF_ONE {
            drafts.retain(|draft| draft.id != own[0]);
        }
        let mut size = typed.size() + drafts.iter().map(|draft| draft.typed.size()).sum::<usize>();
        while drafts.len() >= DRAFTS || size > BYTES {
            let Some(oldest) = drafts.pop_front() else { break };
            size -= oldest.typed.size();
        }
        drafts.push_back(Draft { id, session, owner, at, kind, target, typed });
        id
    }

    /// Forgets drafts that are too old.
    pub fn end_old(&self) {
        locked(&self.0).retain(|draft| draft.at.elapsed() < KEPT);
    }

    /// Forgets the drafts of a session that ends.
    pub fn end_session(&self, session: &str) {
        locked(&self.0).retain(|draft| draft.session != session);
    }

    /// A draft of this session; `None` if it is too old, or somebody else's.
    pub fn find(&self, session: &str, id: &str) -> Option<Draft> {
        let id: Uuid = id.parse().ok()?;
        let drafts = locked(&self.0);
        let is_meant =
            |draft: &&Draft| draft.id == id && draft.session == session && draft.at.elapsed() < KEPT;
        drafts.iter().find(is_meant).cloned()
    }

    pub fn forget(&self, id: Uuid) {
        locked(&self.0).retain(|draft| draft.id != id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(text: &str) -> Typed {
        Typed::of(&[("/identifier".to_owned(), text.to_owned()), ("csrf".to_owned(), "x".to_owned())])
    }

    #[test]
    fn a_draft_is_of_its_session_alone_and_the_oldest_go_first() {
        let drafts = Drafts::default();
        let first = drafts.keep(("ada", "ada@x.example"), Kind::Cluster, Target::New, typed(" a\r\nb "));
        let found = drafts.find("ada", &first.to_string()).unwrap();
        assert_eq!(found.typed.iter().collect::<Vec<_>>(), [("/identifier", "a\nb")]);
        assert!(drafts.find("eve", &first.to_string()).is_none());
        for _ in 0..DRAFTS_OF_ONE {
            drafts.keep(("ada", "ada@x.example"), Kind::Cluster, Target::New, typed("b"));
        }
        assert!(drafts.find("ada", &first.to_string()).is_none());
        assert_eq!(locked(&drafts.0).len(), DRAFTS_OF_ONE);
        for other in 0..DRAFTS {
            drafts.keep((&other.to_string(), &other.to_string()), Kind::Cluster, Target::New, typed("b"));
        }
        assert_eq!(locked(&drafts.0).len(), DRAFTS);
        let last = locked(&drafts.0).back().unwrap().id;
        drafts.forget(last);
        assert!(drafts.find(&(DRAFTS - 1).to_string(), &last.to_string()).is_none());
    }

    #[test]
    fn what_is_kept_is_bounded_and_ends_with_its_session() {
        let drafts = Drafts::default();
        let large = "x".repeat(BYTES / 3);
        let ids: Vec<_> = (0..4)
            .map(|one| drafts.keep(("s", &one.to_string()), None, Target::New, typed(&large)))
            .collect();
        let kept = |id: &Uuid| drafts.find("s", &id.to_string()).is_some();
        assert_eq!(ids.iter().map(kept).collect::<Vec<_>>(), [false, false, true, true]);
        drafts.end_session("s");
        assert!(!ids.iter().any(kept));
        let many: Vec<_> = (0..9_999).map(|one| (format!("/{one}"), String::new())).collect();
        assert_eq!(Typed::of(&many).0.len(), FIELDS);
    }

    #[test]
    fn a_form_knows_what_its_person_changed() {
        let pairs = [("before:/a", "1"), ("/a", "2"), ("before:/b", "1"), ("/b", "1\r\n"), ("/c", "1")];
        let typed = Typed::of(&pairs.map(|(name, text)| (name.to_owned(), text.to_owned())));
        assert_eq!(["/a", "/b", "/c"].map(|name| typed.is_changed(name)), [Some(true), Some(false), None]);
    }
}
