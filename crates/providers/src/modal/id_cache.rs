//! Ids of Modal's that are known for a while. Modal may remove what they name, and another program may make it anew.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The time for which an id is taken for true.
const KNOWN_FOR: Duration = Duration::from_secs(5 * 60);

/// Ids by name.
#[derive(Default)]
pub(super) struct IdCache(Mutex<BTreeMap<String, (String, Instant)>>);

impl IdCache {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, (String, Instant)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the id of a name, if it was noted a short while ago.
    pub fn get(&self, name: &str) -> Option<String> {
        self.get_at(name, Instant::now())
    }

    fn get_at(&self, name: &str, now: Instant) -> Option<String> {
        let known = self.lock();
        let (id, noted) = known.get(name)?;
        (now.saturating_duration_since(*noted) < KNOWN_FOR).then(|| id.clone())
    }

    pub fn note(&self, name: &str, id: &str) {
        self.lock().insert(name.to_owned(), (id.to_owned(), Instant::now()));
    }

    /// Forgets all.
    pub fn forget(&self) {
        self.lock().clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_known_for_a_while_and_until_it_is_forgotten() {
        let (known, before) = (IdCache::default(), Instant::now());
        known.note("a", "ap-1");
        assert_eq!(known.get("a").as_deref(), Some("ap-1"));
        assert!(known.get_at("a", before + KNOWN_FOR - Duration::from_millis(1)).is_some());
        assert_eq!(known.get_at("a", Instant::now() + KNOWN_FOR), None);
        known.forget();
        assert_eq!(known.get("a"), None);
    }
}
