//! The values of forms, between their last step and the click that carries it out. They may contain secrets,
//! which no page shows, so they stay in the daemon's memory: for a while, and for their person alone.
//!
//! They outlive a session that ends by itself, so that nothing is typed twice.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use uuid::Uuid;
use zeroize::Zeroize as _;

use crate::api::answer::FleetCheck;
use crate::names::Kind;
use crate::parallel::locked;
use crate::ui::bounded::{Bounds, Kept};
use crate::ui::client::Refusal;

/// How long a draft is kept.
pub const KEPT: Duration = Duration::from_mins(30);

const DRAFTS: usize = 200;
const DRAFTS_OF_ONE: usize = 8;
const BYTES: usize = 16 << 20;
const BOUNDS: Bounds = Bounds { of_one: DRAFTS_OF_ONE, count: DRAFTS, bytes: BYTES };

/// The most fields of a form. The largest has 70, each with the value that the record had.
const FIELDS: usize = 300;

/// The number of sessions whose persons are known.
const SESSIONS: usize = 2_000;

/// In front of a field's name: the value that the record had when the form was shown.
const BEFORE: &str = "before:";

/// The values of a form's fields by name.
#[derive(Clone, Default)]
pub struct Typed(Vec<(String, String)>);

#[derive(Clone)]
pub struct Draft {
    pub id: Uuid,
    holder: DraftHolder,
    at: Instant,
    /// `None` if it is no form of a resource.
    pub kind: Option<Kind>,
    pub target: Target,
    pub typed: Typed,
    /// Why it was not carried out.
    pub refused: Option<Refusal>,
    /// The facts of its Kubernetes cluster.
    pub check: Option<Arc<FleetCheck>>,
}

/// The owner of a draft.
#[derive(Clone, PartialEq, Eq)]
pub struct DraftHolder {
    /// The form token of the session.
    pub session: String,
    /// The e-mail address of the person.
    pub owner: String,
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
pub struct Drafts {
    kept: Mutex<VecDeque<Draft>>,
    /// The persons of sessions, by form token. A session that ended can't be asked whose it was.
    persons: Mutex<HashMap<String, (String, Instant)>>,
}

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

impl DraftHolder {
    /// Whether drafts of `other` are this person's, too.
    pub fn is(&self, other: &DraftHolder) -> bool {
        let is_person = !self.owner.is_empty() && self.owner.eq_ignore_ascii_case(&other.owner);
        is_person || self.session == other.session
    }
}

impl Drafts {
    /// Remembers whose a session is.
    pub fn meet(&self, holder: &DraftHolder) {
        let mut persons = locked(&self.persons);
        if persons.len() >= SESSIONS
            && !persons.contains_key(&holder.session)
            && let Some(oldest) = persons.iter().min_by_key(|(_, (_, at))| *at).map(|(name, _)| name.clone())
        {
            persons.remove(&oldest);
        }
        persons.insert(holder.session.clone(), (holder.owner.clone(), Instant::now()));
    }

    /// The person that the form with this token was shown to, even if the session ended since.
    pub fn holder(&self, form_token: &str) -> Option<DraftHolder> {
        let (owner, _) = locked(&self.persons).get(form_token)?.clone();
        Some(DraftHolder { session: form_token.to_owned(), owner })
    }

    /// Keeps what was typed, and returns the id of the draft.
    pub fn keep(
        &self,
        holder: DraftHolder,
        kind: impl Into<Option<Kind>>,
        target: Target,
        typed: Typed,
    ) -> Uuid {
        let (id, at, kind) = (Uuid::now_v7(), Instant::now(), kind.into());
        self.end_old();
        let draft = Draft { id, holder, at, kind, target, typed, refused: None, check: None };
        BOUNDS.add(&mut locked(&self.kept), draft);
        id
    }

    /// Forgets drafts that are too old.
    pub fn end_old(&self) {
        locked(&self.kept).retain(|draft| draft.at.elapsed() < KEPT);
    }

    /// Forgets the drafts of somebody who signs out.
    pub fn end_session(&self, session: &str) {
        locked(&self.kept).retain(|draft| draft.holder.session != session);
        locked(&self.persons).remove(session);
    }

    /// A draft of this person, which is of this session from now on; `None` if it is too old, or somebody else's.
    pub fn find(&self, holder: &DraftHolder, id: &str) -> Option<Draft> {
        let id: Uuid = id.parse().ok()?;
        let mut drafts = locked(&self.kept);
        let is_meant =
            |draft: &&mut Draft| draft.id == id && draft.holder.is(holder) && draft.at.elapsed() < KEPT;
        let draft = drafts.iter_mut().find(is_meant)?;
        draft.holder.session.clone_from(&holder.session);
        Some(draft.clone())
    }

    /// Keeps what became of a draft, for the page that says it.
    pub fn update(&self, id: Uuid, change: impl FnOnce(&mut Draft)) {
        locked(&self.kept).iter_mut().find(|draft| draft.id == id).map(change);
    }

    pub fn forget(&self, id: Uuid) {
        locked(&self.kept).retain(|draft| draft.id != id);
    }
}

impl Kept for Draft {
    fn is_of_owner(&self, other: &Self) -> bool {
        self.holder.is(&other.holder)
    }

    fn size(&self) -> usize {
        self.typed.0.iter().map(|(name, text)| name.len() + text.len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(text: &str) -> Typed {
        Typed::of(&[("/identifier".to_owned(), text.to_owned()), ("csrf".to_owned(), "x".to_owned())])
    }

    fn holder(session: &str, owner: &str) -> DraftHolder {
        DraftHolder { session: session.to_owned(), owner: owner.to_owned() }
    }

    #[test]
    fn a_draft_is_of_its_person_alone_and_the_oldest_go_first() {
        let drafts = Drafts::default();
        let (ada, eve) = (holder("ada", "ada@x.example"), holder("eve", "eve@x.example"));
        let first = drafts.keep(ada.clone(), Kind::Cluster, Target::New, typed(" a\r\nb "));
        let found = drafts.find(&ada, &first.to_string()).unwrap();
        assert_eq!(found.typed.iter().collect::<Vec<_>>(), [("/identifier", "a\nb")]);
        assert!(drafts.find(&eve, &first.to_string()).is_none());
        // Sessions without an address have no person.
        let nobody = drafts.keep(holder("one", ""), Kind::Cluster, Target::New, typed("a"));
        assert!(drafts.find(&holder("other", ""), &nobody.to_string()).is_none());
        for _ in 0..DRAFTS_OF_ONE {
            drafts.keep(holder("again", "Ada@x.example"), Kind::Cluster, Target::New, typed("b"));
        }
        assert!(drafts.find(&ada, &first.to_string()).is_none());
        assert_eq!(locked(&drafts.kept).len(), DRAFTS_OF_ONE + 1);
        // Others make room with what they have themselves.
        let small = drafts.keep(eve.clone(), Kind::Cluster, Target::New, typed("b"));
        for other in 0..DRAFTS {
            let other = format!("m{}", other / 2);
            drafts.keep(holder(&other, &other), Kind::Cluster, Target::New, typed("b"));
        }
        assert_eq!(locked(&drafts.kept).len(), DRAFTS);
        assert!(drafts.find(&eve, &small.to_string()).is_some());
        let Draft { id: last, holder, .. } = locked(&drafts.kept).back().unwrap().clone();
        drafts.forget(last);
        assert!(drafts.find(&holder, &last.to_string()).is_none());
    }

    #[test]
    fn a_draft_outlives_a_session_that_ends_and_not_one_that_is_signed_out() {
        let drafts = Drafts::default();
        let before = holder("before", "ada@x.example");
        drafts.meet(&before);
        let found = drafts.holder("before").unwrap();
        assert!(found == before && drafts.holder("other").is_none());
        let id = drafts.keep(found, Kind::Cluster, Target::New, typed("a")).to_string();
        let after = holder("after", "ada@x.example");
        assert!(drafts.find(&holder("eve", "eve@x.example"), &id).is_none());
        assert!(drafts.find(&after, &id).is_some());
        // It is of the new session from then on.
        drafts.end_session("before");
        assert!(drafts.holder("before").is_none() && drafts.find(&after, &id).is_some());
        drafts.end_session("after");
        assert!(drafts.find(&after, &id).is_none());
        for one in 0..=SESSIONS {
            drafts.meet(&holder(&one.to_string(), "ada@x.example"));
        }
        assert_eq!(locked(&drafts.persons).len(), SESSIONS);
    }

    #[test]
    fn what_is_kept_is_bounded_and_ends_with_its_session() {
        let drafts = Drafts::default();
        let (ada, large) = (holder("ada", "ada@x.example"), "x".repeat(BYTES / 3));
        let small = drafts.keep(ada.clone(), Kind::Cluster, Target::New, typed("a")).to_string();
        let ids: Vec<_> = (0..4)
            .map(|one| drafts.keep(holder("s", &one.to_string()), None, Target::New, typed(&large)))
            .collect();
        let kept = |id: &Uuid| drafts.find(&holder("s", ""), &id.to_string()).is_some();
        assert_eq!(ids.iter().map(kept).collect::<Vec<_>>(), [false, false, true, true]);
        assert!(drafts.find(&ada, &small).is_some(), "the room was not hers");
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
