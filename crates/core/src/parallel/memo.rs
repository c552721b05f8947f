use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use super::locked;

/// A finding about each key, together with everything that it depends on: whoever asks compares that.
pub struct Memo<K, V>(Mutex<BTreeMap<K, Arc<V>>>);

impl<K, V> Default for Memo<K, V> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

// Updates replace whole values, so a lock that a panic poisoned is safe to use.
impl<K: Ord + Clone, V> Memo<K, V> {
    /// A memo of its own that knows the same.
    pub fn copy(&self) -> Self {
        Self(Mutex::new(locked(&self.0).clone()))
    }

    /// Comparing may take long, so it isn't done here, under the lock.
    pub fn get(&self, key: &K) -> Option<Arc<V>> {
        locked(&self.0).get(key).map(Arc::clone)
    }

    /// `None` forgets the key.
    pub fn put(&self, key: &K, value: Option<V>) {
        let value = value.map(Arc::new);
        let mut values = locked(&self.0);
        let before = match value {
            Some(value) => values.insert(key.clone(), value),
            None => values.remove(key),
        };
        // A large value takes long to drop.
        drop(values);
        drop(before);
    }

    pub fn retain(&self, is_kept: impl Fn(&K) -> bool) {
        let mut values = locked(&self.0);
        let dropped: Vec<_> = values.extract_if(.., |key, _| !is_kept(key)).collect();
        drop(values);
        drop(dropped);
    }
}
