//! The order in which the spec types declare their fields, obtained by deserializing a probe.

use std::cell::Cell;

use serde::de::value::{BorrowedStrDeserializer, Error};
use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde::forward_to_deserialize_any;

use crate::names::Kind;
use crate::spec::{HEADER, Spec};

/// The order of the fields at a path in the documents of a kind.
#[derive(Debug, Clone, Default)]
pub struct FieldOrder {
    kind: Option<Kind>,
    path: Vec<String>,
    /// The names, in order; empty where keys are free.
    names: Vec<&'static str>,
}

impl FieldOrder {
    /// Returns the order of a document's own fields; empty for an unknown kind.
    pub fn of(kind: Option<Kind>) -> Self {
        let names = kind.map(|kind| HEADER.into_iter().chain(fields(kind, &[])).collect());
        Self { kind, path: Vec::new(), names: names.unwrap_or_default() }
    }

    /// Returns the order of the fields within a field, or within each item of it.
    pub fn within(&self, name: &str) -> Self {
        let path: Vec<String> = self.path.iter().cloned().chain([name.to_owned()]).collect();
        let names = self.kind.map(|kind| fields(kind, &path).to_vec()).unwrap_or_default();
        Self { kind: self.kind, path, names }
    }

    /// Returns the position of a field. Unknown fields are last.
    pub fn rank(&self, name: &str) -> usize {
        self.names.iter().position(|known| *known == name).unwrap_or(usize::MAX)
    }
}

fn fields(kind: Kind, path: &[String]) -> Vec<&'static str> {
    let found = Cell::new(&[] as &'static [&'static str]);
    // Always an error: the probe stops at the end of the path.
    let _stopped = Spec::read(kind, Probe { path, found: &found });
    found.get().to_vec()
}

/// A deserializer of a document that has only the fields of the path. It records the field names at its end.
struct Probe<'p> {
    path: &'p [String],
    found: &'p Cell<&'static [&'static str]>,
}

impl<'p: 'de, 'de> Deserializer<'de> for Probe<'p> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        Err(Error::custom("there are no fields here"))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        if self.path.is_empty() {
            self.found.set(fields);
            return Err(Error::custom("found"));
        }
        visitor.visit_map(self)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_seq(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct tuple
        tuple_struct map enum identifier ignored_any
    }
}

impl<'p: 'de, 'de> MapAccess<'de> for Probe<'p> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Error> {
        let Some(name) = self.path.first() else { return Ok(None) };
        seed.deserialize(BorrowedStrDeserializer::new(name)).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        seed.deserialize(Probe { path: self.path.get(1..).unwrap_or_default(), found: self.found })
    }
}

impl<'p: 'de, 'de> SeqAccess<'de> for Probe<'p> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Error> {
        seed.deserialize(Probe { path: self.path, found: self.found }).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_come_in_the_order_of_their_types() {
        let order = FieldOrder::of(Some(Kind::Cluster));
        assert_eq!(order.names[..4], ["apiVersion", "kind", "organization", "infrastructure"]);
        assert_eq!(order.names.last(), Some(&"deletion_protection"));
        let inner = order.within("advanced_config");
        assert_eq!(inner.names[..2], ["number_of_zones", "cluster_access"]);
        assert_eq!(inner.within("tiered_storage_provider").names, ["cloud_account", "cloud_region"]);
        assert_eq!(order.within("tags").names, ["key", "value"]);
        assert_eq!(inner.within("config").names, [""; 0]);
        assert_eq!(order.within("nothing").names, [""; 0]);
        let quotas = FieldOrder::of(Some(Kind::Organization)).within("quotas");
        assert_eq!(
            quotas.names,
            ["fleets", "clusters", "kafka_units", "base_domains", "identity_providers", "cloud_accounts"]
        );
        assert_eq!(FieldOrder::of(None).within("x").rank("y"), usize::MAX);
    }
}
