//! Whether a Prometheus on the cluster reads what a fleet has for it. Clusters never wait for that.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use super::context::{PreflightContext, PreflightFinding, listed};
use super::facts::PreflightFacts;
use crate::component::{
    self, MONITORING_API, Manifest, PrometheusSelectors, Requirement, SelectedKind, Unselected,
};
use crate::names::{Kind, ObjectKey, ResourceKey};
use crate::plan::Verb;
use crate::plan::compare::diff::Differences;
use crate::plan::model::site::FleetInputs;
use crate::plan::world::PlanContext;

/// Drops the changes of objects that can't be there, so that everything else of their resource goes on: [`missing`]
/// tells of them. A resource that is being deleted is left as it is.
pub(in crate::plan) fn leave_out(
    world: &PlanContext,
    site: &FleetInputs,
    facts: &PreflightFacts,
    differences: &mut BTreeMap<ResourceKey, Differences>,
) {
    let namespace = missing_namespace(world, site, facts);
    for (owner, differences) in differences.iter_mut().filter(|(owner, _)| world.absence(owner).is_none()) {
        let is_homeless = |object: &ObjectKey| {
            owner.kind == Kind::Fleet && namespace.is_some() && object.namespace.as_deref() == namespace
        };
        differences.found.retain(|difference| {
            let step = &difference.step;
            !(is_unserved(facts, &step.object) || step.verb != Verb::Delete && is_homeless(&step.object))
        });
    }
    differences.retain(|_, differences| !differences.is_empty());
}

/// Whether an object that others do without is of a kind that the server doesn't have.
fn is_unserved(facts: &PreflightFacts, object: &ObjectKey) -> bool {
    let kinds = facts.kinds.get(&object.api_version);
    component::is_optional(object) && kinds.is_some_and(|kinds| !kinds.contains(&object.kind))
}

/// The namespace that the fleet names for alerts and dashboards, if there is none of that name.
fn missing_namespace<'a>(
    world: &PlanContext<'a>,
    site: &FleetInputs,
    facts: &PreflightFacts,
) -> Option<&'a str> {
    let monitoring = world.catalog.fleets.get(site.fleet)?.spec.advanced_config.prometheus()?;
    let namespace = monitoring.namespace.as_deref()?;
    facts.namespaces.as_ref().is_some_and(|there| !there.contains_key(namespace)).then_some(namespace)
}

const MISSING: &str = "MonitoringMissing";

/// The definitions, or the namespace, without which objects are left out.
pub(super) fn missing(look: &PreflightContext) -> Vec<PreflightFinding> {
    let lacks = |object: &&Manifest| is_unserved(look.facts, &object.key);
    let kinds: BTreeSet<&String> = look.all_desired().filter(lacks).map(|object| &object.key.kind).collect();
    let kinds: Vec<String> = kinds.into_iter().cloned().collect();
    let definitions = (!kinds.is_empty()).then(|| {
        let why = format!(
            "the cluster doesn't have {} of {MONITORING_API}, so no Prometheus reads the clusters' metrics; everything \
             else of them is applied",
            listed(&kinds)
        );
        let remedy = "install the Prometheus operator with its resource definitions, or set `prometheus: none` in \
                      `advanced_config.monitoring` of the fleet";
        PreflightFinding::warning(MISSING, why, remedy)
    });
    let namespace = missing_namespace(look.world, look.site, look.facts).map(|namespace| {
        let why = format!("there is no namespace {namespace}, where the fleet's alerts and dashboards belong");
        let remedy = "create it, or name another one in `advanced_config.monitoring.namespace` of the fleet, or none to \
                      get one of streamfleet's own";
        PreflightFinding::warning(MISSING, why, remedy)
    });
    definitions.into_iter().chain(namespace).collect()
}

/// Objects that no Prometheus takes, each reason once. Without any Prometheus, something else may read them.
pub(super) fn unselected(look: &PreflightContext) -> Vec<PreflightFinding> {
    let Some(prometheuses) = look.facts.prometheuses.as_deref().filter(|found| !found.is_empty()) else {
        return Vec::new();
    };
    let mut found: BTreeMap<Reasons, Vec<&ObjectKey>> = BTreeMap::new();
    for object in look.all_desired().filter(|object| !is_unserved(look.facts, &object.key)) {
        let Some(kind) = SelectedKind::of(&object.key.kind) else { continue };
        if let Some(why) = reasons(look, prometheuses, kind, object) {
            found.entry((kind, why)).or_default().push(&object.key);
        }
    }
    found.iter().filter_map(|(reason, objects)| finding(reason, objects, prometheuses)).collect()
}

/// Why each Prometheus, by its number, doesn't take objects of a kind.
type Reasons = (SelectedKind, Vec<(usize, Unselected)>);

fn reasons(
    look: &PreflightContext,
    prometheuses: &[PrometheusSelectors],
    kind: SelectedKind,
    object: &Manifest,
) -> Option<Vec<(usize, Unselected)>> {
    let namespace = object.key.namespace.as_deref()?;
    let there = look.facts.namespaces.as_ref().and_then(|there| there.get(namespace)).cloned();
    let around = there.or_else(|| {
        let made = look.desired("Namespace").find(|it| it.key.name == namespace)?;
        // Kubernetes adds it to every namespace.
        let name = ("kubernetes.io/metadata.name".to_owned(), namespace.to_owned());
        Some(labels(made).into_iter().chain([name]).collect())
    });
    let labels = labels(object);
    let lacks = |(number, prometheus): (usize, &PrometheusSelectors)| {
        Some((number, prometheus.lacks(kind, &labels, (namespace, around.as_ref()))?))
    };
    // One that takes it is enough.
    prometheuses.iter().enumerate().map(lacks).collect()
}

fn labels(object: &Manifest) -> BTreeMap<String, String> {
    #[derive(Deserialize)]
    struct Labelled {
        metadata: Metadata,
    }
    #[derive(Deserialize)]
    struct Metadata {
        #[serde(default)]
        labels: BTreeMap<String, String>,
    }
    object.body.read::<Labelled>().map(|object| object.metadata.labels).unwrap_or_default()
}

fn finding(
    (kind, reasons): &Reasons,
    objects: &[&ObjectKey],
    prometheuses: &[PrometheusSelectors],
) -> Option<PreflightFinding> {
    let first = objects.first()?;
    let more = match objects.len() {
        1 => String::new(),
        count => format!(" and {} more", count - 1),
    };
    let why = |(number, why): &(usize, Unselected)| {
        let prometheus = prometheuses.get(*number)?;
        let (PrometheusSelectors { namespace, name, .. }, (field, _)) = (prometheus, kind.fields());
        Some(match why {
            Unselected::None => format!("{namespace}/{name} has no `{field}`"),
            Unselected::Elsewhere => format!("{namespace}/{name} takes those of its own namespace only"),
            Unselected::Namespace(lacks) => {
                format!("{namespace}/{name} takes those of namespaces {} only", words(lacks))
            }
            Unselected::Labels(lacks) => format!("{namespace}/{name} takes those {} only", words(lacks)),
        })
    };
    let whys: Vec<String> = reasons.iter().filter_map(why).collect();
    let why = format!("no Prometheus takes {first}{more}: {}", listed(&whys));
    let (number, nearest) = reasons.iter().max_by_key(|(_, why)| why)?;
    let prometheus = prometheuses.get(*number)?;
    Some(PreflightFinding::warning("MonitoringUnselected", why, remedy(*kind, nearest, first, prometheus)))
}

/// `with the label \`release: x\``.
fn words(requirement: &Requirement) -> String {
    match requirement {
        Requirement::In(label, values) => {
            let values: Vec<String> = values.iter().map(|value| format!("`{label}: {value}`")).collect();
            format!("with the label {}", values.join(" or "))
        }
        Requirement::Exists(label) => format!("with a label `{label}`"),
        Requirement::NotIn(label, values) => {
            let values: Vec<String> = values.iter().map(|value| format!("`{label}: {value}`")).collect();
            format!("without the label {}", values.join(" and "))
        }
        Requirement::Absent(label) => format!("without a label `{label}`"),
    }
}

fn remedy(
    kind: SelectedKind,
    nearest: &Unselected,
    object: &ObjectKey,
    prometheus: &PrometheusSelectors,
) -> String {
    let (objects, namespaces) = kind.fields();
    let PrometheusSelectors { namespace, name, .. } = prometheus;
    let open = |field: &str| format!("set `{field}: {{}}` in Prometheus {namespace}/{name}");
    match nearest {
        Unselected::None => open(objects),
        Unselected::Elsewhere => open(namespaces),
        Unselected::Namespace(lacks) => match (lacks.wanted(), &object.namespace) {
            (Some((label, value)), Some(its)) => {
                format!("run `kubectl label namespace {its} {label}={value}`, or {}", open(namespaces))
            }
            _ => open(namespaces),
        },
        Unselected::Labels(lacks) => match lacks.wanted() {
            Some((label, value)) => {
                format!("add `{label}: \"{value}\"` to `advanced_config.monitoring.labels` of the fleet")
            }
            None => {
                format!(
                    "give `{}` another value in `advanced_config.monitoring.labels` of the fleet, or remove it there",
                    lacks.label()
                )
            }
        },
    }
}
