//! The objects that were read to judge health.

use serde::Deserialize;

use crate::catalog::Condition;
use crate::component::kind::KubernetesKind;
use crate::names::Json;

/// One list of objects that health is judged by.
#[derive(Debug, Clone, Copy)]
pub struct HealthQuery {
    pub kind: &'static KubernetesKind,
    /// The selector, as a part of the URL's query. Empty for all objects.
    pub selector: &'static str,
}

impl PartialEq for HealthQuery {
    /// A kind is the same only in the same row: components select different objects of it.
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.kind, other.kind) && self.selector == other.selector
    }
}

/// The objects that were read, by query, or why they can't be read.
#[derive(Debug, Default)]
pub struct ReadObjects(Vec<(HealthQuery, Result<Vec<Json>, Condition>)>);

impl ReadObjects {
    pub fn add(&mut self, query: HealthQuery, objects: Result<Vec<Json>, Condition>) {
        self.0.push((query, objects));
    }

    pub fn has(&self, query: HealthQuery) -> bool {
        self.0.iter().any(|(known, _)| *known == query)
    }

    /// The objects of a kind; `None` if they weren't or couldn't be read.
    pub fn of(&self, kind: &'static KubernetesKind) -> Option<impl Iterator<Item = &Json>> {
        let lists = || {
            let of_kind = self.0.iter().filter(move |(query, _)| std::ptr::eq(query.kind, kind));
            of_kind.filter_map(|(_, objects)| objects.as_ref().ok())
        };
        lists().next()?;
        Some(lists().flatten())
    }

    pub fn all(&self) -> impl Iterator<Item = &Json> {
        self.0.iter().filter_map(|(_, objects)| objects.as_ref().ok()).flatten()
    }

    pub fn refusals(&self) -> impl Iterator<Item = &Condition> {
        self.0.iter().filter_map(|(_, objects)| objects.as_ref().err())
    }
}

/// An object's namespace, parsed without the rest of the object.
pub fn object_namespace(object: &Json) -> String {
    #[derive(Deserialize)]
    struct Placed {
        metadata: Metadata,
    }
    #[derive(Deserialize)]
    struct Metadata {
        namespace: Option<String>,
    }
    object.read::<Placed>().ok().and_then(|it| it.metadata.namespace).unwrap_or_default()
}
