use std::collections::BTreeMap;
use std::collections::btree_map;
use std::fmt;
use std::ops::Index;
use std::sync::Arc;

use super::{Identifier, ResourceKey, side_by_side};

/// A map by resources. Clones share what each organization has until it is changed, so that organizations of which
/// nothing changed are told by an address.
#[derive(Clone)]
pub struct ResourceMap<V>(BTreeMap<Identifier, OrganizationPart<V>>);

/// The entries of one organization.
pub type OrganizationPart<V> = Arc<BTreeMap<ResourceKey, V>>;

impl<V> ResourceMap<V> {
    pub fn get(&self, key: &ResourceKey) -> Option<&V> {
        self.0.get(&key.organization)?.get(key)
    }

    pub fn contains_key(&self, key: &ResourceKey) -> bool {
        self.get(key).is_some()
    }

    /// The entries by their keys.
    pub fn iter(&self) -> impl Iterator<Item = (&ResourceKey, &V)> {
        self.into_iter()
    }

    pub fn keys(&self) -> impl Iterator<Item = &ResourceKey> {
        self.0.values().flat_map(|part| part.keys())
    }

    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.0.values().flat_map(|part| part.values())
    }

    /// The organizations with their entries. None is empty.
    pub fn organizations(&self) -> impl Iterator<Item = (&Identifier, &OrganizationPart<V>)> {
        self.0.iter()
    }

    pub fn of(&self, organization: &Identifier) -> Option<&OrganizationPart<V>> {
        self.0.get(organization)
    }

    /// The keys that another map doesn't have.
    pub fn missing_from<'a, W>(&'a self, other: &'a ResourceMap<W>) -> impl Iterator<Item = &'a ResourceKey> {
        let organizations = side_by_side(&self.0, &other.0);
        let own = organizations.filter_map(|(_, own, other)| Some((own?, other)));
        let keys = own.flat_map(|(own, other)| {
            side_by_side(own, other.map_or(const { &BTreeMap::new() }, |other| &**other))
        });
        keys.filter(|(_, own, other)| own.is_some() && other.is_none()).map(|(key, ..)| key)
    }

    pub fn len(&self) -> usize {
        self.0.values().map(|part| part.len()).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Replaces what some organizations have by what they have in another map.
    pub fn replace(&mut self, other: Self, is_meant: impl Fn(&Identifier) -> bool) {
        self.0.retain(|organization, _| !is_meant(organization));
        self.0.extend(other.0.into_iter().filter(|(organization, _)| is_meant(organization)));
    }

    /// The keys of either map with their values there, without those of organizations that share them.
    pub fn unshared<'a>(
        &'a self,
        other: &'a Self,
    ) -> impl Iterator<Item = (&'a ResourceKey, Option<&'a V>, Option<&'a V>)> {
        let organizations = side_by_side(&self.0, &other.0);
        let unshared = organizations.filter(|(_, own, other)| !is_same(*own, *other));
        unshared.flat_map(|(_, own, other)| {
            let [own, other] =
                [own, other].map(|part| part.map_or(const { &BTreeMap::new() }, |part| &**part));
            side_by_side(own, other)
        })
    }
}

/// Whether both are the same by their address, or missing.
pub fn is_same<T: ?Sized>(one: Option<&Arc<T>>, other: Option<&Arc<T>>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => Arc::ptr_eq(one, other),
        (None, None) => true,
        _ => false,
    }
}

impl<V: Clone> ResourceMap<V> {
    pub fn insert(&mut self, key: ResourceKey, value: V) -> Option<V> {
        let part = self.0.entry(key.organization.clone()).or_default();
        Arc::make_mut(part).insert(key, value)
    }

    pub fn remove(&mut self, key: &ResourceKey) -> Option<V> {
        let part = self.0.get_mut(&key.organization).filter(|part| part.contains_key(key))?;
        let removed = Arc::make_mut(part).remove(key);
        if part.is_empty() {
            self.0.remove(&key.organization);
        }
        removed
    }

    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.0.values_mut().flat_map(|part| Arc::make_mut(part).values_mut())
    }

    pub fn get_mut(&mut self, key: &ResourceKey) -> Option<&mut V> {
        let part = self.0.get_mut(&key.organization).filter(|part| part.contains_key(key))?;
        Arc::make_mut(part).get_mut(key)
    }

    /// Shares with another map what comes out the same: a value by `share`, and an organization with only such values.
    pub fn share(&mut self, other: &Self, share: impl Fn(&mut V, &V) -> bool) {
        for (organization, part) in &mut self.0 {
            let Some(its) = other.0.get(organization).filter(|its| !Arc::ptr_eq(part, its)) else { continue };
            let mut is_all = part.len() == its.len();
            for (key, value) in Arc::make_mut(part) {
                is_all &= its.get(key).is_some_and(|its| share(value, its));
            }
            if is_all {
                *part = Arc::clone(its);
            }
        }
    }
}

impl<V> Default for ResourceMap<V> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<V> FromIterator<(ResourceKey, V)> for ResourceMap<V> {
    fn from_iter<T: IntoIterator<Item = (ResourceKey, V)>>(entries: T) -> Self {
        let mut parts: BTreeMap<Identifier, Vec<(ResourceKey, V)>> = BTreeMap::new();
        for (key, value) in entries {
            match parts.get_mut(&key.organization) {
                Some(part) => part.push((key, value)),
                None => drop(parts.insert(key.organization.clone(), vec![(key, value)])),
            }
        }
        let part = |entries: Vec<_>| Arc::new(entries.into_iter().collect());
        Self(parts.into_iter().map(|(organization, entries)| (organization, part(entries))).collect())
    }
}

impl<'a, V> IntoIterator for &'a ResourceMap<V> {
    type Item = (&'a ResourceKey, &'a V);
    type IntoIter = std::iter::FlatMap<
        btree_map::Values<'a, Identifier, OrganizationPart<V>>,
        btree_map::Iter<'a, ResourceKey, V>,
        fn(&'a OrganizationPart<V>) -> btree_map::Iter<'a, ResourceKey, V>,
    >;
    fn into_iter(self) -> Self::IntoIter {
        self.0.values().flat_map(|part| part.iter())
    }
}

impl<V> Index<&ResourceKey> for ResourceMap<V> {
    type Output = V;
    fn index(&self, key: &ResourceKey) -> &V {
        &self.0[&key.organization][key]
    }
}

impl<V: PartialEq> PartialEq for ResourceMap<V> {
    fn eq(&self, other: &Self) -> bool {
        self.unshared(other).all(|(_, own, other)| own == other)
    }
}

impl<V: fmt::Debug> fmt::Debug for ResourceMap<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(entries: &[(&str, u32)]) -> ResourceMap<Arc<u32>> {
        let entry = |(key, value): &(&str, u32)| ((*key).to_owned().try_into().unwrap(), Arc::new(*value));
        entries.iter().map(entry).collect()
    }

    fn told(map: &ResourceMap<Arc<u32>>) -> String {
        map.iter().map(|(key, value)| format!("{key}={value} ")).collect()
    }

    fn share(value: &mut Arc<u32>, other: &Arc<u32>) -> bool {
        let is_equal = value == other;
        if is_equal {
            *value = Arc::clone(other);
        }
        is_equal
    }

    #[test]
    fn entries_are_in_the_order_of_their_keys_however_they_came() {
        let entries =
            [("Fleet/acme/eu", 1), ("Fleet/globex/us", 2), ("Cluster/acme/orders", 3), ("Fleet/acme/ap", 4)];
        let mut map = map(&entries);
        assert_eq!(told(&map), "fleet acme/ap=4 fleet acme/eu=1 cluster acme/orders=3 fleet globex/us=2 ");
        assert_eq!((map.len(), map.organizations().count()), (4, 2));
        let key = "Fleet/globex/us".to_owned().try_into().unwrap();
        assert_eq!(map.remove(&key).as_deref(), Some(&2));
        assert_eq!((map.remove(&key), map.get(&key), map.organizations().count()), (None, None, 1));
    }

    #[test]
    fn what_another_map_shares_is_not_compared_and_what_equals_it_is_shared() {
        let before = map(&[("Fleet/acme/eu", 1), ("Fleet/acme/us", 1), ("Fleet/globex/us", 2)]);
        let mut after = before.clone();
        assert_eq!(before.unshared(&after).count(), 0);
        after.insert("Fleet/acme/eu".to_owned().try_into().unwrap(), Arc::new(5));
        let differing: Vec<_> = before.unshared(&after).map(|(key, was, is)| (key.path(), was, is)).collect();
        let [one, five] = [1, 5].map(Arc::new);
        let expected =
            [("acme/eu".to_owned(), Some(&one), Some(&five)), ("acme/us".to_owned(), Some(&one), Some(&one))];
        assert_eq!(differing, expected);
        assert_ne!(before, after);

        let mut fresh = map(&[("Fleet/acme/eu", 5), ("Fleet/acme/us", 1), ("Fleet/globex/us", 2)]);
        fresh.share(&before, share);
        let is_shared = |organization: &str| {
            let organization: Identifier = organization.parse().unwrap();
            is_same(fresh.of(&organization), before.of(&organization))
        };
        assert_eq!([is_shared("acme"), is_shared("globex"), is_shared("initech")], [false, true, true]);
        let us = "Fleet/acme/us".to_owned().try_into().unwrap();
        assert!(Arc::ptr_eq(&fresh[&us], &before[&us]));
        fresh.replace(before.clone(), |organization| organization.as_str() == "acme");
        assert_eq!(fresh, before);
    }

    #[test]
    fn keys_that_another_map_lacks_are_found() {
        let (one, other) =
            (map(&[("Fleet/acme/eu", 1), ("Fleet/globex/us", 2)]), map(&[("Fleet/acme/us", 1)]));
        let missing: Vec<String> = one.missing_from(&other).map(ResourceKey::path).collect();
        assert_eq!(missing, ["acme/eu", "globex/us"]);
        assert_eq!(one.missing_from(&one).count(), 0);
    }
}
