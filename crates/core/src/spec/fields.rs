use std::sync::Arc;

use crate::names::SpecPath;
use crate::problem::Location;
use crate::spec::text::MaskedText;
use crate::spec::yaml::Span;

/// The location of each field of a document, by JSON pointer: `/advanced_config/version`. The empty pointer
/// is the document. Absent fields have no location.
///
/// Only byte ranges are stored, and lines are quoted on demand: ten thousand documents have a quarter of a
/// million fields, and hardly any of them is ever shown. Values of secret fields are masked in the text.
#[derive(Debug, Clone, Default)]
pub struct Fields(Option<Arc<Places>>);

#[derive(Debug)]
enum Places {
    InText(Arc<MaskedText>, Vec<(Box<str>, Span)>),
    Given(std::collections::BTreeMap<String, Location>),
}

/// Only clones are equal: whatever reads a file again gives all of its documents new fields.
impl PartialEq for Fields {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (None, None) => true,
            _ => false,
        }
    }
}

impl Fields {
    pub(super) fn new(text: Arc<MaskedText>, mut spans: Vec<(Box<str>, Span)>) -> Self {
        // For a duplicate key, the first location is kept.
        spans.sort_by(|a, b| a.0.cmp(&b.0));
        spans.dedup_by(|later, first| later.0 == first.0);
        Self(Some(Arc::new(Places::InText(text, spans))))
    }

    /// Whether no field has a location, as for resources that come from no document.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// The text that the locations are in; `None` if there is none.
    pub fn text(&self) -> Option<&MaskedText> {
        match &**self.0.as_ref()? {
            Places::InText(text, _) => Some(text),
            Places::Given(_) => None,
        }
    }

    pub fn get(&self, pointer: &str) -> Option<Location> {
        match &**self.0.as_ref()? {
            Places::InText(text, spans) => {
                let index = spans.binary_search_by(|(at, _)| (**at).cmp(pointer)).ok()?;
                Some(text.locate(spans[index].1))
            }
            Places::Given(locations) => locations.get(pointer).cloned(),
        }
    }

    /// Returns the location of a field, or of its nearest ancestor that the document contains, or else of the
    /// file.
    pub fn locate(&self, pointer: &str, path: &SpecPath) -> Location {
        let around = std::iter::successors(Some(pointer), |inner| inner.rfind('/').map(|end| &inner[..end]));
        around.filter_map(|pointer| self.get(pointer)).next().unwrap_or_else(|| Location::file(path.clone()))
    }
}

impl From<std::collections::BTreeMap<String, Location>> for Fields {
    fn from(locations: std::collections::BTreeMap<String, Location>) -> Self {
        Self(Some(Arc::new(Places::Given(locations))))
    }
}
