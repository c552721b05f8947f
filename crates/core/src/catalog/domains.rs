//! Which organization owns a base domain.
//!
//! An organization's `domains` grant it these domains and everything below them. An administrator's file that
//! describes a base domain grants that one. If several organizations are granted a domain, the longest
//! matching grant wins, so that a part of a domain can be given to another organization; among equal grants,
//! the first applied resource wins. `root` may have any domain. So may an organization without `domains` if
//! it is the only one beside `root`: there is no other to take it from.

use std::collections::{BTreeMap, BTreeSet};

use crate::catalog::draft::{CatalogDraft, CatalogFinding};
use crate::names::{Domain, Identifier, Kind, ResourceKey};
use crate::problem::Problem;
use crate::spec::Document;

pub(super) fn check(draft: &mut CatalogDraft) {
    let mut documents: Vec<&Document> = sound_documents(draft);
    documents.sort_by_cached_key(|document| (draft.seniority(&document.key), document.key.clone()));
    let administered = documents.iter().filter(|document| is_administered(draft, document));
    let administered: Vec<&ResourceKey> = administered.map(|document| &document.key).collect();
    let kept = kept(draft, &documents);
    let kept_administered = kept.iter().copied().filter(|key| is_recorded_administered(draft, key));
    let grants = Grants::of(draft, administered.iter().copied().chain(kept_administered));
    let only = only_organization(draft).cloned();
    let (mut owned, mut held) = (OwnedDomains::default(), Vec::new());
    let is_others = |held: &ResourceKey, key: &ResourceKey| {
        held.organization != key.organization && reversed(&key.name).starts_with(&reversed(&held.name))
    };
    administered.into_iter().chain(kept).for_each(|key| owned.insert(key.clone()));
    for document in documents {
        let key = &document.key;
        let Ok(domain) = key.name.parse::<Domain>() else { continue };
        let of_root = key.organization.as_str() == Identifier::ROOT;
        let spec = draft.organization(&key.organization);
        // The base domain waits for its organization, which may grant the domain.
        if spec.is_none() && !of_root {
            owned.insert(key.clone());
            continue;
        }
        let domains = spec.and_then(|spec| spec.domains.as_ref());
        let is_named = domains.is_some_and(|domains| domains.contains(&domain));
        let may_have_any = domains.is_none() && (of_root || only.as_ref() == Some(&key.organization));
        let finding = if domain.is_public_suffix() && !is_named {
            public_suffix(&key.organization, &domain)
        } else if is_administered(draft, document) {
            continue;
        } else if grants.length(&key.organization, &domain) == 0 && !may_have_any {
            not_named(&key.organization, &domain, domains.is_some())
        } else if grants.of_another(&key.organization, &domain)
            || owned.by_another(key, &domain, &grants)
            || held.iter().any(|held| is_others(held, key))
        {
            taken(&key.organization, &domain)
        } else {
            owned.insert(key.clone());
            continue;
        };
        // The domain stays as it was applied, with its host names, so others may have neither it nor a part of it.
        if draft.record(key).is_some() {
            held.push(key.clone());
        }
        draft.refuse(document, [finding]);
    }
}

fn public_suffix(organization: &Identifier, domain: &Domain) -> CatalogFinding {
    let problem = Problem::error(
        "public-suffix",
        format!("`{domain}` is a public suffix: others can register names below it"),
    )
    .hint(format!(
        "use a domain of your own below it; if you own all of it, a super user can add `domains: [{domain}]` to \
         organization `{organization}`"
    ));
    CatalogFinding::new("/domain", "a public suffix", problem)
}

/// The message says nothing about other organizations: it must not disclose whether the domain is free.
fn not_named(organization: &Identifier, domain: &Domain, has_some: bool) -> CatalogFinding {
    let add = match has_some {
        true => format!("add `{domain}` to the `domains` of organization `{organization}`"),
        false => format!("add `domains: [{domain}]` to organization `{organization}`"),
    };
    let problem = Problem::error(
        "domain-not-named",
        format!("organization `{organization}` may not use `{domain}`: its `domains` don't contain it"),
    )
    .hint(format!("{add}; only super users can do that"));
    CatalogFinding::new("/domain", "not in its `domains`", problem)
}

fn taken(organization: &Identifier, domain: &Domain) -> CatalogFinding {
    let problem =
        Problem::error("domain-taken", format!("`{domain}` overlaps a domain of another organization")).hint(
            format!(
                "use another domain, or have a super user assign this one in the `domains` of organization `{organization}`"
            ),
        );
    CatalogFinding::new("/domain", "belongs to another organization", problem)
}

/// Returns the only organization beside `root`. One that is being deleted counts too.
fn only_organization<'d>(draft: &'d CatalogDraft<'_>) -> Option<&'d Identifier> {
    let named = draft.claims.keys().chain(draft.recorded.resources.keys());
    let mut others = named
        .filter(|key| key.kind == Kind::Organization && key.name != Identifier::ROOT)
        .map(|key| &key.organization);
    let first = others.next()?;
    others.all(|other| other == first).then_some(first)
}

/// The granted domains, which include all below them, with reversed labels; and their organizations.
struct Grants(BTreeMap<String, BTreeSet<Identifier>>);

impl Grants {
    fn of<'k>(draft: &CatalogDraft, administered: impl Iterator<Item = &'k ResourceKey>) -> Grants {
        let mut grants: BTreeMap<String, BTreeSet<Identifier>> = BTreeMap::new();
        for key in administered {
            grants.entry(reversed(&key.name)).or_default().insert(key.organization.clone());
        }
        for (key, _) in draft.settled_of(Kind::Organization) {
            let domains = draft.organization(&key.organization).and_then(|spec| spec.domains.as_ref());
            for domain in domains.into_iter().flatten() {
                grants.entry(reversed(domain.as_str())).or_default().insert(key.organization.clone());
            }
        }
        Grants(grants)
    }

    /// Returns the grants that cover a domain, longest first: the length of the name, and its organizations.
    fn covering(&self, domain: &Domain) -> impl Iterator<Item = (usize, &BTreeSet<Identifier>)> {
        let own = reversed(domain.as_str());
        let ends: Vec<usize> = own.match_indices('.').map(|(end, _)| end + 1).collect();
        ends.into_iter().rev().filter_map(move |end| Some((end, self.0.get(&own[..end])?)))
    }

    /// Returns the length of the longest grant that gives a domain to an organization; 0 if there is none.
    fn length(&self, organization: &Identifier, domain: &Domain) -> usize {
        let own = self.covering(domain).find(|(_, given)| given.contains(organization));
        own.map_or(0, |(length, _)| length)
    }

    fn of_another(&self, organization: &Identifier, domain: &Domain) -> bool {
        self.covering(domain).next().is_some_and(|(_, given)| !given.contains(organization))
    }
}

/// The domains in use, with reversed labels, so that domains within one sort next to it.
#[derive(Default)]
struct OwnedDomains(BTreeMap<String, Vec<ResourceKey>>);

impl OwnedDomains {
    fn insert(&mut self, key: ResourceKey) {
        self.0.entry(reversed(&key.name)).or_default().push(key);
    }

    /// Returns whether a domain lies within another organization's domain or contains one. An inner domain
    /// that its organization was granted by a longer name than the other's doesn't count.
    fn by_another(&self, key: &ResourceKey, domain: &Domain, grants: &Grants) -> bool {
        let own = reversed(domain.as_str());
        let is_foreign = |owner: &&ResourceKey| owner.organization != key.organization;
        let parents = own.match_indices('.').map(|(end, _)| &own[..=end]);
        let mut above = parents.filter_map(|parent| self.0.get(parent)).flatten().filter(is_foreign);
        let mut below = self
            .0
            .range(own.clone()..)
            .take_while(|(name, _)| name.starts_with(&own))
            .filter(|(name, _)| **name != own)
            .flat_map(|(_, owners)| owners)
            .filter(is_foreign);
        let is_given = |within: &Domain, to: &Identifier, by: &Identifier| {
            grants.length(to, within) > grants.length(by, within)
        };
        above.any(|owner| !is_given(domain, &key.organization, &owner.organization))
            || below.any(|owner| {
                let within = owner.name.parse::<Domain>();
                !within.is_ok_and(|within| is_given(&within, &owner.organization, &key.organization))
            })
    }
}

/// `k.example.com` becomes `com.example.k.`.
fn reversed(domain: &str) -> String {
    domain.split('.').rev().map(|label| format!("{label}.")).collect()
}

fn sound_documents<'a>(draft: &CatalogDraft<'a>) -> Vec<&'a Document> {
    let is_sound =
        |document: &&Document| draft.claims.get(&document.key).is_some_and(|claim| claim.faults == 0);
    draft.documents_of(Kind::BaseDomain).into_iter().filter(is_sound).collect()
}

/// Base domains without a valid document stay as they were applied.
fn kept<'a>(draft: &CatalogDraft<'a>, sound: &[&Document]) -> Vec<&'a ResourceKey> {
    let judged = |key: &ResourceKey| sound.iter().any(|document| document.key == *key);
    let recorded = draft.recorded;
    let kept = recorded.resources.keys().filter(|key| {
        key.kind == Kind::BaseDomain
            && (draft.claims.contains_key(key) || draft.settled.contains_key(key))
            && !judged(key)
    });
    kept.collect()
}

fn is_administered(draft: &CatalogDraft, document: &Document) -> bool {
    !document.origin.path.top_folder().is_some_and(|folder| draft.organizations.contains(folder))
}

fn is_recorded_administered(draft: &CatalogDraft, key: &ResourceKey) -> bool {
    let last_good = draft.record(key).and_then(|record| record.cached.last_good.as_ref());
    last_good.is_none_or(|last_good| {
        !last_good.origin.path.top_folder().is_some_and(|folder| draft.organizations.contains(folder))
    })
}
