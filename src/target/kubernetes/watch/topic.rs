//! What is watched on a cluster: one connection each.

use crate::names::ObjectKey;
use crate::target::kubernetes::health::{self, Kind};
use crate::target::kubernetes::inventory;

/// What everything that we make is labelled with.
const MANAGED: (&str, &str) = ("app.kubernetes.io/managed-by", "streamfleet");

/// [`MANAGED`] as a selector has it in a URL.
pub(in crate::target::kubernetes) const SELECTOR: &str = "app.kubernetes.io%2Fmanaged-by%3Dstreamfleet";

/// What an object is watched for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Purpose {
    /// It should be as we applied it.
    Ours,
    /// It says what is ours.
    Inventory,
    /// Clusters are judged by it.
    Health,
    /// Clusters are judged by it, and where it has our label it should be as we applied it. One connection serves both, so
    /// that the server can't choose by labels: it tells of what others made, too.
    OursAndHealth,
}

impl Purpose {
    /// Whether a plan depends on it.
    pub(super) fn is_planned(self) -> bool {
        self != Purpose::Health
    }

    /// Whether clusters are judged by it.
    pub(super) fn is_judged(self) -> bool {
        matches!(self, Purpose::Health | Purpose::OursAndHealth)
    }
}

/// One kind of object that is watched.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Topic {
    pub(super) api_version: String,
    pub(super) kind: String,
    /// None for all namespaces.
    pub(super) namespace: Option<String>,
    /// Which objects, as a URL's query; empty for all.
    pub(super) query: String,
    pub(super) purpose: Purpose,
}

impl Topic {
    /// The objects of ours of the kind that an object is. Secrets are watched namespace by namespace, as the rights for them
    /// are given.
    pub(super) fn of(key: &ObjectKey) -> Topic {
        let (api_version, kind) = (key.api_version.as_str(), key.kind.as_str());
        if health::is_of_ours(api_version, kind) {
            return Topic::both(api_version, kind);
        }
        let topic = Topic::everywhere(api_version, kind, labelled(SELECTOR), Purpose::Ours);
        let is_secret = (api_version, kind) == ("v1", "Secret");
        Topic { namespace: key.namespace.clone().filter(|_| is_secret), ..topic }
    }

    /// What the cluster remembers.
    pub(super) fn inventory() -> Topic {
        Topic {
            api_version: "v1".to_owned(),
            kind: "ConfigMap".to_owned(),
            namespace: Some(inventory::NAMESPACE.to_owned()),
            query: labelled(inventory::SELECTOR),
            purpose: Purpose::Inventory,
        }
    }

    /// A kind by which clusters are judged.
    pub(super) fn health(kind: &Kind) -> Topic {
        let Kind { api_version, kind, selector, .. } = *kind;
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

/// Whether an object has our label.
pub(super) fn is_labelled(object: &serde_json::Value) -> bool {
    let (label, value) = MANAGED;
    object.pointer("/metadata/labels").and_then(|labels| labels.get(label)?.as_str()) == Some(value)
}
