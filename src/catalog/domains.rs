//! Whose a base domain is. A domain, its parents and its children belong to one organization, unless an
//! administrator's file gives a part of it to another.

use std::collections::BTreeMap;

use crate::catalog::draft::{Draft, Finding};
use crate::names::{Domain, Kind, ResourceKey};
use crate::problem::Problem;
use crate::spec::Document;

/// Refuses base domains that belong to another organization. Who came first keeps a domain.
pub(super) fn check(draft: &mut Draft) {
    let mut documents: Vec<&Document> = sound_documents(draft);
    documents.sort_by_cached_key(|document| (draft.seniority(&document.key), document.key.clone()));
    let mut owned = Owned::default();
    for (key, at) in administered(draft, &documents) {
        owned.insert(key, at);
    }
    for document in documents {
        let Ok(domain) = document.key.name.parse::<Domain>() else { continue };
        if is_administered(draft, document) {
            continue;
        }
        if owned.by_another(&document.key, &domain) {
            let problem = Problem::error(
                "domain-taken",
                format!("`{domain}` overlaps a domain of another organization"),
            )
            .hint(
                "use another domain, or ask the administrator to delegate this one by describing it in an \
                         administrator's file",
            );
            draft.refuse(document, [Finding::new("/domain", "not this organization's", problem)]);
        } else {
            owned.insert(document.key.clone(), Standing { delegated: false });
        }
    }
}

/// How a domain came to be its organization's.
#[derive(Clone, Copy)]
struct Standing {
    /// By an administrator's file: it may lie within another's, and nothing of another's may lie within it.
    delegated: bool,
}

/// The domains that are spoken for.
#[derive(Default)]
struct Owned(BTreeMap<String, Vec<(ResourceKey, Standing)>>);

impl Owned {
    /// Domains are kept under their reversed labels, so that those within one lie next to each other.
    fn insert(&mut self, key: ResourceKey, standing: Standing) {
        self.0.entry(reversed(&key.name)).or_default().push((key, standing));
    }

    /// Whether a domain that no administrator gave lies within another organization's, or has one within itself.
    fn by_another(&self, key: &ResourceKey, domain: &Domain) -> bool {
        let is_foreign = |owner: &ResourceKey| owner.organization != key.organization;
        let own = reversed(domain.as_str());
        let parents =
            own.match_indices('.').map(|(end, _)| &own[..=end]).filter(|parent| parent.len() < own.len());
        let mut above = parents.chain([own.as_str()]).filter_map(|parent| self.0.get(parent)).flatten();
        let mut below = self.0.range(own.clone()..).take_while(|(name, _)| name.starts_with(&own));
        // What an administrator gave to another out of this domain is no reason to refuse the domain.
        above.any(|(owner, _)| is_foreign(owner))
            || below.any(|(name, owners)| {
                *name != own
                    && owners.iter().any(|(owner, standing)| is_foreign(owner) && !standing.delegated)
            })
    }
}

/// `com.example.k.` for `k.example.com`.
fn reversed(domain: &str) -> String {
    domain.split('.').rev().map(|label| format!("{label}.")).collect()
}

fn sound_documents<'a>(draft: &Draft<'a>) -> Vec<&'a Document> {
    let is_sound =
        |document: &&Document| draft.claims.get(&document.key).is_some_and(|claim| claim.faults == 0);
    draft.documents_of(Kind::BaseDomain).into_iter().filter(is_sound).collect()
}

/// What needs no judgement: what administrators gave, and what stays as it was applied.
fn administered(draft: &Draft, sound: &[&Document]) -> Vec<(ResourceKey, Standing)> {
    let given = sound.iter().filter(|document| is_administered(draft, document));
    let given = given.map(|document| (document.key.clone(), Standing { delegated: true }));
    let judged = |key: &ResourceKey| sound.iter().any(|document| document.key == *key);
    let kept = draft.recorded.resources.keys().filter(|key| {
        key.kind == Kind::BaseDomain
            && (draft.claims.contains_key(key) || draft.settled.contains_key(key))
            && !judged(key)
    });
    given
        .chain(kept.map(|key| (key.clone(), Standing { delegated: is_recorded_administered(draft, key) })))
        .collect()
}

fn is_administered(draft: &Draft, document: &Document) -> bool {
    !document.origin.path.top_folder().is_some_and(|folder| draft.organizations.contains(folder))
}

fn is_recorded_administered(draft: &Draft, key: &ResourceKey) -> bool {
    let last_good = draft.record(key).and_then(|record| record.last_good.as_ref());
    last_good.is_none_or(|last_good| {
        !last_good.origin.path.top_folder().is_some_and(|folder| draft.organizations.contains(folder))
    })
}
