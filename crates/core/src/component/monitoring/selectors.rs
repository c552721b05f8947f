//! The objects that a Prometheus of the Prometheus operator selects.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::kinds::{POD_MONITOR, PROMETHEUS_RULE};

/// The longest name in Kubernetes. Longer ones are not genuine, and are kept out of messages.
const MAX_NAME: usize = 253;

fn name(text: &str) -> Option<String> {
    (1..=MAX_NAME).contains(&text.len()).then(|| text.to_owned())
}

/// The selectors of a Prometheus object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrometheusSelectors {
    pub namespace: String,
    pub name: String,
    /// Which objects of a kind, and in which namespaces.
    pod_monitors: (Option<LabelSelector>, Option<LabelSelector>),
    rules: (Option<LabelSelector>, Option<LabelSelector>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SelectedKind {
    PodMonitor,
    PrometheusRule,
}

/// A selector by labels. Without requirements it selects everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LabelSelector(Vec<Requirement>);

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Requirement {
    In(String, BTreeSet<String>),
    NotIn(String, BTreeSet<String>),
    Exists(String),
    Absent(String),
}

/// Why a Prometheus doesn't take an object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unselected {
    /// It has no selector of the kind, and so takes no object of it.
    None,
    /// It takes objects of its own namespace only.
    Elsewhere,
    Namespace(Requirement),
    Labels(Requirement),
}

impl SelectedKind {
    pub fn of(kind: &str) -> Option<SelectedKind> {
        match kind {
            kind if kind == POD_MONITOR.kind => Some(SelectedKind::PodMonitor),
            kind if kind == PROMETHEUS_RULE.kind => Some(SelectedKind::PrometheusRule),
            _ => None,
        }
    }

    /// The names of the fields with its selectors.
    pub fn fields(self) -> (&'static str, &'static str) {
        match self {
            SelectedKind::PodMonitor => ("podMonitorSelector", "podMonitorNamespaceSelector"),
            SelectedKind::PrometheusRule => ("ruleSelector", "ruleNamespaceSelector"),
        }
    }
}

impl PrometheusSelectors {
    pub fn of(object: &Value) -> Option<PrometheusSelectors> {
        let text = |field: &str| name(object.pointer("/metadata")?.get(field)?.as_str()?);
        let selector = |field: &str| {
            let selector = object.pointer("/spec")?.get(field).filter(|it| !it.is_null())?;
            Some(LabelSelector::of(selector))
        };
        let both = |kind: SelectedKind| {
            let (objects, namespaces) = kind.fields();
            (selector(objects), selector(namespaces))
        };
        Some(PrometheusSelectors {
            namespace: text("namespace")?,
            name: text("name")?,
            pod_monitors: both(SelectedKind::PodMonitor),
            rules: both(SelectedKind::PrometheusRule),
        })
    }

    /// Why it doesn't take an object with these labels from a namespace with these; `None` if it does, or if the labels
    /// of the namespace matter and aren't known.
    pub fn lacks(
        &self,
        kind: SelectedKind,
        labels: &BTreeMap<String, String>,
        (namespace, its_labels): (&str, Option<&BTreeMap<String, String>>),
    ) -> Option<Unselected> {
        let (objects, namespaces) = match kind {
            SelectedKind::PodMonitor => &self.pod_monitors,
            SelectedKind::PrometheusRule => &self.rules,
        };
        let Some(objects) = objects else { return Some(Unselected::None) };
        match namespaces {
            None if self.namespace != namespace => return Some(Unselected::Elsewhere),
            None => {}
            Some(selector) => {
                let unfit = its_labels.and_then(|labels| selector.unfit(labels));
                if let Some(unfit) = unfit {
                    return Some(Unselected::Namespace(unfit.clone()));
                }
            }
        }
        objects.unfit(labels).cloned().map(Unselected::Labels)
    }
}

impl LabelSelector {
    /// Requirements that can't be read are left out: nothing is concluded from them.
    fn of(selector: &Value) -> LabelSelector {
        let labels = selector.get("matchLabels").and_then(Value::as_object).into_iter().flatten();
        let equal = |(label, value): (&String, &Value)| {
            Some(Requirement::In(name(label)?, BTreeSet::from([name(value.as_str()?)?])))
        };
        let expressions = selector.get("matchExpressions").and_then(Value::as_array).into_iter().flatten();
        LabelSelector(labels.filter_map(equal).chain(expressions.filter_map(Requirement::of)).collect())
    }

    fn unfit(&self, labels: &BTreeMap<String, String>) -> Option<&Requirement> {
        self.0.iter().find(|requirement| !requirement.fits(labels))
    }
}

impl Requirement {
    fn of(expression: &Value) -> Option<Requirement> {
        let label = name(expression.get("key")?.as_str()?)?;
        let values = expression.get("values").and_then(Value::as_array).into_iter().flatten();
        let values = values.filter_map(|value| name(value.as_str()?)).collect();
        match expression.get("operator")?.as_str()? {
            "In" => Some(Requirement::In(label, values)),
            "NotIn" => Some(Requirement::NotIn(label, values)),
            "Exists" => Some(Requirement::Exists(label)),
            "DoesNotExist" => Some(Requirement::Absent(label)),
            _ => None,
        }
    }

    fn fits(&self, labels: &BTreeMap<String, String>) -> bool {
        match self {
            Requirement::In(label, values) => labels.get(label).is_some_and(|value| values.contains(value)),
            Requirement::NotIn(label, values) => {
                !labels.get(label).is_some_and(|value| values.contains(value))
            }
            Requirement::Exists(label) => labels.contains_key(label),
            Requirement::Absent(label) => !labels.contains_key(label),
        }
    }

    /// The label that fulfils it; `None` if a label has to go instead.
    pub fn wanted(&self) -> Option<(&str, &str)> {
        match self {
            Requirement::In(label, values) => Some((label, values.first()?)),
            Requirement::Exists(label) => Some((label, "true")),
            Requirement::NotIn(..) | Requirement::Absent(_) => None,
        }
    }

    pub fn label(&self) -> &str {
        match self {
            Requirement::In(label, _)
            | Requirement::NotIn(label, _)
            | Requirement::Exists(label)
            | Requirement::Absent(label) => label,
        }
    }
}
