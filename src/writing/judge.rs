//! Judges an edited tree: the edit is refused if it adds a problem. Older problems don't count.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::advice;
use super::body::how_secrets;
use super::current_plan::CurrentPlan;
use super::refused::{Shortage, WriteRefusal, invalid, needed, unreadable_state};
use super::write_request::{WriteAction, WriteRequest};
use crate::catalog::{Catalog, Gauge, Hold, Recorded, ResolvedTree};
use crate::http::problem::FieldError;
use crate::names::{FleetKey, Kind, ResourceKey, SpecPath};
use crate::plan::{FieldChange, Verdict, changed_fields, field_effects};
use crate::problem::{Origin, Problem};
use crate::spec::edit::pointer_at;
use crate::spec::{Documents, HEADER, SECRET_FIELDS, Spec};

/// The problems of a tree before an edit.
#[derive(Debug, Clone, Default)]
pub struct KnownProblems {
    /// The number of problems of each kin; line numbers are left out since they shift with an edit.
    problems: BTreeMap<ProblemKin, usize>,
    holds: BTreeMap<ResourceKey, Hold>,
}

/// The key by which problems count as equal, wherever they are in the file.
type ProblemKin = (Option<SpecPath>, String, String);

fn kindred(problem: &Problem) -> ProblemKin {
    let path = problem.location.as_ref().map(|location| location.path.clone());
    (path, problem.code.clone(), problem.message.clone())
}

impl KnownProblems {
    pub fn of(catalog: &Catalog) -> Self {
        let mut problems = BTreeMap::new();
        for problem in &catalog.problems {
            *problems.entry(kindred(problem)).or_default() += 1;
        }
        let held = |(key, hold): (&ResourceKey, &Option<Hold>)| Some((key.clone(), hold.clone()?));
        let holds = catalog.resources.iter().map(|(key, resource)| (key, &resource.hold));
        Self { problems, holds: holds.filter_map(held).collect() }
    }
}

/// A problem of a document with this text, for the caller who sent what is in it.
pub(super) fn fault(text: Option<&str>, what: &WriteAction, problem: &Problem) -> FieldError {
    let place = problem.location.as_ref();
    let pointer = place.and_then(|place| pointer_at(text?, place.line, place.column));
    let pointer = pointer.filter(|pointer| pointer != "/kind");
    let missing = problem.message.strip_prefix("missing key `").and_then(|rest| rest.strip_suffix('`'));
    let pointer = match missing {
        Some(name) => Some(format!("{}/{name}", pointer.unwrap_or_default())),
        None => pointer,
    };
    let is_secret = SECRET_FIELDS.iter().any(|(_, _, secret)| pointer.as_deref() == Some(*secret));
    let hint = match missing {
        Some(_) if is_secret => Some(how_secrets(what).to_owned()),
        _ => advice::hint(problem, pointer.as_deref()),
    };
    FieldError { pointer, detail: advice::detail(problem), hint, file: None, line: None }
}

/// The changed fields of a resource whose new values a plan refuses.
fn refused_fields(catalog: &Catalog, recorded: &Recorded, key: &ResourceKey) -> Vec<FieldChange> {
    let is_refused = |change: &FieldChange| {
        let effect = field_effects::effect_of(key.kind, change);
        effect.is_some_and(|it| matches!(it.verdict, Verdict::Refused | Verdict::BrokerRemoval))
    };
    let changed = catalog.resources.get(key).map(|resource| changed_fields(resource, recorded));
    changed.into_iter().flatten().filter(is_refused).collect()
}

#[derive(Clone, Copy)]
pub struct Edited<'a> {
    pub before: &'a KnownProblems,
    /// The resource's spec before the edit; `None` if there was no valid one.
    pub was: Option<&'a Spec>,
    pub documents: &'a Documents,
    pub catalog: &'a Catalog,
    pub path: &'a SpecPath,
    /// The file's text; `None` if it is removed.
    pub text: Option<&'a str>,
}

impl Edited<'_> {
    /// Returns warnings about an acceptable edit.
    ///
    /// # Errors
    /// With the problems that the edit would add.
    pub fn judge(&self, request: &WriteRequest) -> Result<Vec<Problem>, WriteRefusal> {
        let key = &request.key;
        let new = self.new_problems();
        let (own, others): (Vec<&Problem>, Vec<&Problem>) =
            self.catalog.problems.iter().partition(|problem| self.is_own(key, problem));
        let errors: Vec<&Problem> = own.iter().copied().filter(|problem| problem.is_error()).collect();
        let is_new = |problem: &&Problem| new.contains(&kindred(problem));
        let broken: Vec<&Problem> =
            others.into_iter().filter(|problem| problem.is_error()).filter(is_new).collect();
        if matches!(request.what, WriteAction::Delete) {
            if !broken.is_empty() {
                return Err(self.still_needed(key, &broken));
            }
            return Ok(Vec::new());
        }
        if !errors.is_empty() || !broken.is_empty() {
            let own = errors.into_iter().map(|problem| self.own_fault(request, problem));
            let others = broken.into_iter().map(|problem| self.fault_elsewhere(request, problem));
            let mut faults: Vec<FieldError> = own.chain(others).collect();
            faults.dedup();
            return Err(invalid(faults));
        }
        if self
            .documents
            .files
            .get(self.path)
            .is_none_or(|file| !file.documents.iter().any(|it| it.key == *key))
        {
            let why = format!("it would no longer be {key}");
            return Err(invalid(vec![FieldError::at("", why, "don't change the fields that identify it")]));
        }
        self.has_room(key)?;
        self.is_held(key)?;
        Ok(own.into_iter().filter(is_new).cloned().collect())
    }

    /// Checks that a plan would carry out the edit: the fleets that it affects are planned without a look at their
    /// targets. Refusals that exist without the edit don't count. With `after_last`, it is judged as if the resource's last
    /// edit had been carried out.
    ///
    /// # Errors
    /// With what a plan would refuse, in its words.
    pub fn is_done(
        &self,
        (made, now): (&CurrentPlan, Timestamp),
        request: &WriteRequest,
        (edited, unedited): (&ResolvedTree, &ResolvedTree),
        after_last: bool,
    ) -> Result<(), WriteRefusal> {
        let key = &request.key;
        let (fleets, fields) = self.affected(key, &edited.recorded);
        let is_same = fields == refused_fields(&unedited.catalog, &edited.recorded, key);
        let pointer = match fields.as_slice() {
            [change] => Some(format!("/{}", change.field.replace('.', "/"))),
            _ => None,
        };
        let refusals = |tree| {
            let applied = after_last.then_some((&*unedited.catalog, key));
            let refusals = made.installation.refusals((tree, applied), &fleets, &made.round.health, now);
            refusals.map_err(unreadable_state)
        };
        let but_for = |problems: Vec<Problem>, known: &[Problem]| -> Vec<Problem> {
            let known: BTreeSet<ProblemKin> = known.iter().map(kindred).collect();
            // Another refused value may have the same words.
            let is_known = |it: &Problem| known.contains(&kindred(it)) && (is_same || !self.is_own(key, it));
            problems.into_iter().filter(|it| it.is_error() && !is_known(it)).collect()
        };
        if fleets.is_empty() {
            return Ok(());
        }
        let mut new = but_for(refusals(edited)?, &made.round.plan.problems);
        if !new.is_empty() {
            // Another writer may have caused the refusal since.
            new = but_for(new, &refusals(unedited)?);
        }
        let faults: Vec<FieldError> =
            new.iter().map(|problem| self.refused(request, problem, pointer.as_ref())).collect();
        if faults.is_empty() { Ok(()) } else { Err(invalid(faults)) }
    }

    /// The fleets whose plans may refuse the edit, and the fields that they would refuse.
    fn affected(&self, key: &ResourceKey, recorded: &Recorded) -> (Vec<FleetKey>, Vec<FieldChange>) {
        let resource = self.catalog.resources.get(key).filter(|_| recorded.resources.contains_key(key));
        let Some(resource) = resource else { return Default::default() };
        let refused = refused_fields(self.catalog, recorded, key);
        let fleets = match key.kind {
            // A new certificate must not cost a plan of every cluster that has it.
            Kind::BaseDomain if refused.is_empty() => Vec::new(),
            Kind::BaseDomain => {
                let on_it = self.catalog.fleets.values().filter(|fleet| fleet.domain.as_ref() == Some(key));
                on_it.map(|fleet| fleet.key.clone()).collect()
            }
            _ => resource.fleet().into_iter().collect(),
        };
        (fleets, refused)
    }

    /// Maps a plan's refusal to a mistake in a field.
    fn refused(&self, request: &WriteRequest, problem: &Problem, pointer: Option<&String>) -> FieldError {
        let fault = match self.is_own(&request.key, problem) {
            true => self.own_fault(request, problem),
            false => self.fault_elsewhere(request, problem),
        };
        // The plan's problem points to a refused field, to another one that changed, or to the document.
        let is_field = |found: &String| !HEADER.iter().any(|name| found.strip_prefix('/') == Some(*name));
        FieldError { pointer: pointer.cloned().or(fault.pointer.filter(is_field)), ..fault }
    }

    fn new_problems(&self) -> BTreeSet<ProblemKin> {
        let mut seen: BTreeMap<ProblemKin, usize> = BTreeMap::new();
        for problem in &self.catalog.problems {
            *seen.entry(kindred(problem)).or_default() += 1;
        }
        let known = |kindred: &ProblemKin| self.before.problems.get(kindred).copied().unwrap_or(0);
        seen.into_iter().filter(|(kindred, count)| *count > known(kindred)).map(|(it, _)| it).collect()
    }

    /// Whether a problem is in the resource's own document.
    fn is_own(&self, key: &ResourceKey, problem: &Problem) -> bool {
        let Some(location) = problem.location.as_ref().filter(|location| location.path == *self.path) else {
            return false;
        };
        let Some(file) = self.documents.files.get(self.path) else { return false };
        let documents = file.documents.iter().map(|document| (Some(&document.key), &document.origin));
        let invalid = file.invalid.iter().map(|document| (Some(&document.key), &document.origin));
        // If no document in the file has the key, an unreadable one is taken for it.
        let is_told = documents.clone().chain(invalid.clone()).any(|(its, _)| its == Some(key));
        let unreadable = file.unreadable.iter().map(|place| (None, &place.origin));
        let mut begins: Vec<(u32, bool)> = documents
            .chain(invalid)
            .chain(unreadable)
            .map(|(its, Origin { line, .. })| (*line, its == Some(key) || (its.is_none() && !is_told)))
            .collect();
        begins.sort_unstable();
        let around = begins.iter().rev().find(|(line, _)| *line <= location.line).or(begins.first());
        around.is_some_and(|(_, is_own)| *is_own)
    }

    fn own_fault(&self, request: &WriteRequest, problem: &Problem) -> FieldError {
        fault(self.text, &request.what, problem)
    }

    /// A mistake outside of the resource's document. Only super users learn about other organizations'
    /// resources.
    fn fault_elsewhere(&self, request: &WriteRequest, problem: &Problem) -> FieldError {
        let place = problem.location.as_ref();
        let concerned = place.and_then(|place| self.document_at(&place.origin()));
        if !request.may_limit && concerned.is_some_and(|other| other.organization != request.key.organization)
        {
            let why = "the change would break resources of another organization";
            return FieldError::at(
                "",
                why,
                "choose another value, or ask the administrators of this installation",
            );
        }
        FieldError {
            pointer: None,
            detail: advice::detail(problem),
            hint: advice::hint(problem, None),
            file: place.map(|place| place.path.to_string()),
            line: place.map(|place| place.line).filter(|line| *line > 0),
        }
    }

    /// The refusal to delete a resource that others need.
    fn still_needed(&self, key: &ResourceKey, broken: &[&Problem]) -> WriteRefusal {
        let places = broken.iter().filter_map(|problem| problem.location.as_ref());
        let by: BTreeSet<&ResourceKey> =
            places.filter_map(|place| self.document_at(&place.origin())).collect();
        needed(key, &by.into_iter().cloned().collect::<Vec<_>>())
    }

    /// The resource whose document contains a location.
    fn document_at(&self, at: &Origin) -> Option<&ResourceKey> {
        let file = self.documents.files.get(&at.path)?;
        let documents = file.documents.iter().map(|document| (document.origin.line, &document.key));
        let invalid = file.invalid.iter().map(|document| (document.origin.line, &document.key));
        let around = documents.chain(invalid).filter(|(line, _)| *line <= at.line);
        around.max_by_key(|(line, _)| *line).map(|(_, key)| key)
    }

    /// Refuses an edit that exceeds a limit, for the resource itself or for those that fitted before.
    fn has_room(&self, key: &ResourceKey) -> Result<(), WriteRefusal> {
        if let Some(shortage) = self.lowered(key) {
            return Err(shortage.into());
        }
        let hold = |resource: &ResourceKey| self.catalog.resources.get(resource)?.hold.as_ref();
        let over = |resource: &ResourceKey| Shortage::of(resource, hold(resource)?);
        let is_news = |resource: &ResourceKey| hold(resource) != self.before.holds.get(resource);
        let was_over = |resource: &ResourceKey| {
            matches!(self.before.holds.get(resource), Some(Hold::OverCapacity { .. }))
        };
        let own = over(key).filter(|_| is_news(key));
        let others = || {
            let mut others = self.catalog.resources.keys().filter(|other| *other != key && !was_over(other));
            others.find_map(over).map(|shortage| self.caused(key, shortage))
        };
        match own.or_else(others) {
            Some(shortage) => Err(shortage.into()),
            None => Ok(()),
        }
    }

    /// A shortage in terms of the edited resource, though the one that would wait is another: the last in
    /// order.
    fn caused(&self, key: &ResourceKey, shortage: Shortage) -> Shortage {
        let in_all = shortage.used.saturating_add(shortage.wanted);
        let wanted = if *key == shortage.limited_by { 0 } else { self.growth(key, &shortage.what) };
        Shortage { key: key.clone(), used: in_all.saturating_sub(wanted), wanted, ..shortage }
    }

    fn growth(&self, key: &ResourceKey, what: &str) -> u32 {
        let was = match self.was {
            Some(Spec::Cluster(cluster)) => Some(cluster.kafka_units),
            _ => None,
        };
        match self.catalog.resources.get(key).map(|resource| &resource.spec) {
            Some(Spec::Cluster(now)) if what.ends_with("kafka_units") => {
                now.kafka_units.saturating_sub(was.unwrap_or(0))
            }
            _ => u32::from(self.was.is_none()),
        }
    }

    /// A limit that the edit lowers below what is in use.
    fn lowered(&self, key: &ResourceKey) -> Option<Shortage> {
        let spec = &self.catalog.resources.get(key)?.spec;
        let limits: Vec<(&str, Option<u32>, Option<u32>, Gauge)> = match (key.kind, spec, self.was) {
            (Kind::Fleet, Spec::Fleet(now), Some(Spec::Fleet(was))) => {
                let fleet = self.catalog.fleets.values().find(|fleet| fleet.key.resource() == *key)?;
                vec![
                    ("max_tenants", Some(was.max_tenants), Some(now.max_tenants), fleet.clusters),
                    (
                        "max_kafka_units",
                        Some(was.max_kafka_units),
                        Some(now.max_kafka_units),
                        fleet.kafka_units,
                    ),
                ]
            }
            (Kind::Organization, Spec::Organization(now), Some(Spec::Organization(was))) => {
                let capacity = self.catalog.capacity.get(&key.organization)?;
                let (was, now) = (&was.quotas, &now.quotas);
                vec![
                    ("quotas.fleets", was.fleets, now.fleets, capacity.fleets),
                    ("quotas.clusters", was.clusters, now.clusters, capacity.clusters),
                    ("quotas.kafka_units", was.kafka_units, now.kafka_units, capacity.kafka_units),
                    ("quotas.base_domains", was.base_domains, now.base_domains, capacity.base_domains),
                    (
                        "quotas.identity_providers",
                        was.identity_providers,
                        now.identity_providers,
                        capacity.identity_providers,
                    ),
                    (
                        "quotas.cloud_accounts",
                        was.cloud_accounts,
                        now.cloud_accounts,
                        capacity.cloud_accounts,
                    ),
                ]
            }
            _ => return None,
        };
        limits.into_iter().find_map(|(what, was, now, gauge)| {
            let (limit, used) = (now?, gauge.before.max(gauge.after));
            let is_lowered = was.is_none_or(|was| limit < was);
            (is_lowered && used > limit).then(|| Shortage {
                key: key.clone(),
                limited_by: key.clone(),
                what: what.to_owned(),
                used,
                wanted: 0,
                limit,
            })
        })
    }

    /// Refuses an edit that would make the resource wait.
    fn is_held(&self, key: &ResourceKey) -> Result<(), WriteRefusal> {
        let hold = self.catalog.resources.get(key).and_then(|resource| resource.hold.as_ref());
        if hold == self.before.holds.get(key) {
            return Ok(());
        }
        match hold {
            Some(Hold::Dependency { on }) => {
                Err(WriteRefusal::Dependency { key: key.clone(), on: on.clone() })
            }
            Some(Hold::Invalid { .. } | Hold::Absent | Hold::Unreadable { .. }) => {
                let why = format!("the current files don't say what {key} is");
                Err(invalid(vec![FieldError::at("", why, "fix the `problems` of `GET /v1/plan`")]))
            }
            Some(Hold::OverCapacity { .. } | Hold::Suspended { .. } | Hold::Certificate { .. }) | None => {
                Ok(())
            }
        }
    }
}
