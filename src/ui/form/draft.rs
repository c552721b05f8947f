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
const KEPT: Duration = Duration::from_mins(30);

/// The number of drafts in all and of one session. The oldest ones go first.
const DRAFTS: usize = 200;
const DRAFTS_OF_ONE: usize = 5;

/// The values of a form's fields by name.
#[derive(Clone, Default)]
pub struct Typed(Vec<(String, String)>);

#[derive(Clone)]
pub struct Draft {
    pub id: Uuid,
    /// The form token of its session.
    session: String,
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
        let own = pairs.iter().filter(|(name, _)| name.starts_with('/'));
        Typed(own.map(|(name, text)| (name.clone(), text.trim().replace("\r\n", "\n"))).collect())
    }

    /// Empty if there is no such field.
    pub fn text(&self, pointer: &str) -> &str {
        let found = self.0.iter().find(|(name, _)| name == pointer);
        found.map(|(_, text)| text.as_str()).unwrap_or_default()
    }

    pub fn has(&self, pointer: &str) -> bool {
        self.0.iter().any(|(name, _)| name == pointer)
    }

    pub fn set(&mut self, pointer: &str, text: &str) {
        self.0.retain(|(name, _)| name != pointer);
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
    pub fn keep(&self, session: &str, kind: impl Into<Option<Kind>>, target: Target, typed: Typed) -> Uuid {
        let (id, session, at, kind) = (Uuid::now_v7(), session.to_owned(), Instant::now(), kind.into());
        let mut drafts = locked(&self.0);
        drafts.retain(|draft| draft.at.elapsed() < KEPT);
        let own: Vec<Uuid> =
            drafts.iter().filter(|draft| draft.session == session).map(|draft| draft.id).collect();
        if own.len() >= DRAFTS_OF_ONE {
            drafts.retain(|draft| draft.id != own[0]);
        }
        if drafts.len() >= DRAFTS {
            drafts.pop_front();
        }
        drafts.push_back(Draft { id, session, at, kind, target, typed });
        id
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
        let first = drafts.keep("ada", Kind::Cluster, Target::New, typed(" a\r\nb "));
        let found = drafts.find("ada", &first.to_string()).unwrap();
        assert_eq!(found.typed.iter().collect::<Vec<_>>(), [("/identifier", "a\nb")]);
        assert!(drafts.find("eve", &first.to_string()).is_none());
        for _ in 0..DRAFTS_OF_ONE {
            drafts.keep("ada", Kind::Cluster, Target::New, typed("b"));
        }
        assert!(drafts.find("ada", &first.to_string()).is_none());
        assert_eq!(locked(&drafts.0).len(), DRAFTS_OF_ONE);
        for other in 0..DRAFTS {
            drafts.keep(&other.to_string(), Kind::Cluster, Target::New, typed("b"));
        }
        assert_eq!(locked(&drafts.0).len(), DRAFTS);
        let last = locked(&drafts.0).back().unwrap().id;
        drafts.forget(last);
        assert!(drafts.find(&(DRAFTS - 1).to_string(), &last.to_string()).is_none());
    }
}
