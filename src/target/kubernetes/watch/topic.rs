//! The topics of watches, one connection each.

use crate::component::health::HealthQuery;
use crate::component::{KubernetesKind, judged_kinds};
use crate::names::ObjectKey;
use crate::target::kubernetes::inventory;

const MANAGED: (&str, &str) = ("app.kubernetes.io/managed-by", "streamfleet");

/// [`MANAGED`] as a selector, encoded for a URL.
pub(in crate::target::kubernetes) const SELECTOR: &str = "app.kubernetes.io%2Fmanaged-by%3Dstreamfleet";

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Purpose {
    /// The objects should be as we applied them.
    Ours,
    Inventory,
    /// Health is judged by them.
    Health,
    /// Health is judged by them, and those with our label should be as we applied them. One connection serves
    /// both purposes, so the server can't filter by label and also sends foreign objects.
    OursAndHealth,
}

impl Purpose {
    pub(super) fn is_planned(self) -> bool {
        self != Purpose::Health
    }

    pub(super) fn is_judged(self) -> bool {
        matches!(self, Purpose::Health | Purpose::OursAndHealth)
    }
}

/// The objects that one connection watches.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Topic {
    pub(super) api_version: String,
    pub(super) kind: String,
    /// None for all namespaces.
    pub(super) namespace: Option<String>,
    /// The selector, as a part of the URL's query. Empty for all objects.
    pub(super) query: String,
    pub(super) purpose: Purpose,
}

impl Topic {
    /// Our objects of a key's kind. Secrets are watched per namespace, as permissions for them are granted.
    pub(super) fn of(key: &ObjectKey) -> Topic {
        let (api_version, kind) = (key.api_version.as_str(), key.kind.as_str());
        if let Some(judged) = judged_kinds(api_version, kind).find(|judged| judged.is_written()) {
            return Topic::both(judged);
        }
        let topic = Topic::everywhere(api_version, kind, labelled(SELECTOR), Purpose::Ours);
        let is_secret = (api_version, kind) == ("v1", "Secret");
        Topic { namespace: key.namespace.clone().filter(|_| is_secret), ..topic }
    }

    pub(super) fn inventory() -> Topic {
        Topic {
            api_version: "v1".to_owned(),
            kind: "ConfigMap".to_owned(),
            namespace: Some(inventory::NAMESPACE.to_owned()),
            query: labelled(inventory::SELECTOR),
            purpose: Purpose::Inventory,
        }
    }

    pub(super) fn health(query: HealthQuery) -> Topic {
        let HealthQuery { kind, selector } = query;
        match kind.is_written() {
            true => Topic::both(kind),
            false => Topic::everywhere(kind.api_version, kind.kind, selector.to_owned(), Purpose::Health),
        }
    }

    fn both(kind: &KubernetesKind) -> Topic {
        Topic::everywhere(kind.api_version, kind.kind, String::new(), Purpose::OursAndHealth)
    }

    fn everywhere(api_version: &str, kind: &str, query: String, purpose: Purpose) -> Topic {
        let (api_version, kind) = (api_version.to_owned(), kind.to_owned());
        Topic { api_version, kind, namespace: None, query, purpose }
    }
}

fn labelled(selector: &str) -> String {
    format!("labelSelector={selector}")
}

pub(super) fn is_labelled(object: &serde_json::Value) -> bool {
    let (label, value) = MANAGED;
    object.pointer("/metadata/labels").and_then(|labels| labels.get(label)?.as_str()) == Some(value)
}
