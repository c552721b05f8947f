//! The topics of watches, one connection each.

use crate::names::ObjectKey;
use crate::target::kubernetes::health::{self, WatchedKind};
use crate::target::kubernetes::inventory;

const MANAGED: (&str, &str) = ("app.kubernetes.io/managed-by", "streamfleet");

/// [`MANAGED`] as a selector, encoded for a URL.
pub(in crate::target::kubernetes) const SELECTOR: &str = "app.kubernetes.io%2Fmanaged-by%3Dstreamfleet";

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Purpose {
    /// They should be as we applied them.
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
        if health::is_of_ours(api_version, kind) {
            return Topic::both(api_version, kind);
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

    pub(super) fn health(kind: &WatchedKind) -> Topic {
        let WatchedKind { api_version, kind, selector, .. } = *kind;
        match health::is_of_ours(api_version, kind) {
            true => Topic::both(api_version, kind),
            false => Topic::everywhere(api_version, kind, selector.to_owned(), Purpose::Health),
        }
    }

    fn both(api_version: &str, kind: &str) -> Topic {
        Topic::everywhere(api_version, kind, String::new(), Purpose::OursAndHealth)
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
