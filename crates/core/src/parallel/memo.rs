use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use super::locked;

/// What was found out about each key, together with everything that it depends on: whoever asks compares that.
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
        let mut values = locked(&self.0);
        match value {
            Some(value) => drop(values.insert(key.clone(), Arc::new(value))),
            None => drop(values.remove(key)),
        }
    }

    pub fn retain(&self, is_kept: impl Fn(&K) -> bool) {
        locked(&self.0).retain(|key, _| is_kept(key));
    }
}
