//! API keys. A key opens its own pools and no others. Only its hash is kept.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use eyot::{Result, SandboxName};
use eyot_engine::ChangeWatch;
use eyot_engine::store::{KeyRow, Store};
use sha2::{Digest, Sha256};

use crate::random_hex::random_hex;

/// The prefix of every key, by which secret scanners recognise one.
const PREFIX: &str = "eyot_";
/// The longest text that is taken for a key, in bytes. The rest is cut off.
const MAX_BYTES: usize = 256;
/// The time for which a key that was found is not looked up again. Another process may revoke it
/// meanwhile.
const FRESH: Duration = Duration::from_millis(250);
/// The most keys that are remembered.
const MOST_REMEMBERED: usize = 1000;

/// The keys of a store.
#[derive(Clone)]
pub struct Keys {
    store: Arc<Store>,
    found: Arc<FoundKeys>,
}

/// The keys that were found a moment ago, by the hashes of their secrets, each with the time of its
/// look-up.
#[derive(Default)]
struct FoundKeys(Mutex<HashMap<[u8; 32], (Instant, KeyRow)>>);

impl FoundKeys {
    fn get(&self, hash: &[u8; 32], now: Instant) -> Option<KeyRow> {
        let found = self.lock();
        found
            .get(hash)
            .filter(|(since, _)| now.saturating_duration_since(*since) < FRESH)
            .map(|(_, key)| key.clone())
    }

    fn add(&self, hash: [u8; 32], since: Instant, key: KeyRow) {
        let mut found = self.lock();
        if found.len() >= MOST_REMEMBERED {
            found.clear();
        }
        found.insert(hash, (since, key));
    }

    fn forget_all(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<[u8; 32], (Instant, KeyRow)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A newly created key. Its secret is shown once.
#[derive(Debug)]
pub struct NewKey {
    /// The key's record.
    pub row: KeyRow,
    /// The secret that the holder sends.
    pub secret: String,
}

impl Keys {
    /// Returns the keys of this store.
    pub fn new(store: Arc<Store>) -> Self {
        Self { store, found: Arc::default() }
    }

    /// Creates a key for these pools. The first one is used where a request names none. Fails with
    /// `already_exists` if a key of that name is in use.
    pub async fn create(&self, name: SandboxName, pools: Vec<SandboxName>) -> Result<NewKey> {
        let (id, secret) =
            (format!("key_{}", random_hex::<8>()?), format!("{PREFIX}{}", random_hex::<32>()?));
        let hash = hash(&secret);
        let row = self.ask(move |store| store.add_key(&id, &name, &pools, hash)).await?;
        Ok(NewKey { row, secret })
    }

    /// Lists all keys, including revoked ones.
    pub async fn list(&self) -> Result<Vec<KeyRow>> {
        self.ask(Store::keys).await
    }

    /// Watches the store for changes by any process; `None`: no other process can change it.
    pub(super) async fn changes(&self) -> Result<Option<ChangeWatch>> {
        self.ask(Store::changes).await
    }

    /// Revokes a key, by id or name. It opens nothing from now on, and servers end what it began.
    pub async fn revoke(&self, id_or_name: &str) -> Result<KeyRow> {
        let id_or_name = id_or_name.to_owned();
        let found = Arc::clone(&self.found);
        let revoke = move |store: &Store| {
            let revoked = store.revoke_key(&id_or_name);
            found.forget_all();
            revoked
        };
        self.ask(revoke).await
    }

    /// Returns the key that has this secret. The look-up is by the secret's hash, so its duration
    /// says nothing about the secret.
    pub(super) async fn holder(&self, shown: &str) -> Result<Option<KeyRow>> {
        self.holder_of_hash(hash(&shown[..shown.floor_char_boundary(MAX_BYTES)])).await
    }

    /// Returns the key whose secret has this hash. A key that another process revokes may be found for
    /// a moment longer.
    pub(super) async fn holder_of_hash(&self, hash: [u8; 32]) -> Result<Option<KeyRow>> {
        let since = Instant::now();
        if let Some(key) = self.found.get(&hash, since) {
            return Ok(Some(key));
        }
        let found = match self.store.key_of_hash_at_once(hash) {
            Some(found) => found,
            None => self.ask(move |store| store.key_of_hash(hash)).await,
        }?;
        if let Some(key) = &found {
            self.found.add(hash, since, key.clone());
        }
        Ok(found)
    }

    async fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&Store) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.store.ask(move |store| question(store)).await
    }
}

pub(crate) fn hash(secret: &str) -> [u8; 32] {
    Sha256::digest(secret.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> SandboxName {
        SandboxName::parse(text).unwrap()
    }

    #[tokio::test]
    async fn a_key_opens_its_pools_until_it_is_revoked_and_its_secret_is_not_kept() {
        let keys = Keys::new(Store::in_memory().unwrap());
        let made = keys.create(name("ci"), vec![name("p")]).await.unwrap();
        assert!(made.secret.starts_with(PREFIX) && made.secret.len() == PREFIX.len() + 64);
        assert_eq!(keys.holder(&made.secret).await.unwrap(), Some(made.row.clone()));
        assert!(!format!("{:?}", keys.list().await.unwrap()).contains(&made.secret[PREFIX.len()..]));
        for wrong in ["", "eyot_", &made.secret[..60], &made.secret.to_uppercase()] {
            assert_eq!(keys.holder(wrong).await.unwrap(), None, "{wrong}");
        }
        keys.revoke("ci").await.unwrap();
        assert_eq!(keys.holder(&made.secret).await.unwrap(), None);
    }
    #[tokio::test]
    async fn n4_a_key_that_another_process_revokes_opens_nothing_within_a_second() {
        let store = Store::in_memory().unwrap();
        let keys = Keys::new(Arc::clone(&store));
        let made = keys.create(name("ci"), vec![name("p")]).await.unwrap();
        let begun = Instant::now();
        // Shown again and again, it is looked up again all the same.
        while begun.elapsed() < FRESH / 2 {
            assert_eq!(keys.holder(&made.secret).await.unwrap(), Some(made.row.clone()));
        }
        store.revoke_key("ci").unwrap();
        assert!(FRESH < Duration::from_secs(1));
        tokio::time::sleep(FRESH).await;
        assert_eq!(keys.holder(&made.secret).await.unwrap(), None);
    }

    #[test]
    fn a_found_key_is_remembered_for_a_moment_and_not_too_many_are() {
        let (found, now) = (FoundKeys::default(), Instant::now());
        let pools = vec![name("p")];
        let key = KeyRow { id: "key_1".into(), name: name("ci"), pools, created_ms: 1, revoked_ms: None };
        found.add([7; 32], now, key.clone());
        assert_eq!(found.get(&[7; 32], now + FRESH / 2), Some(key.clone()));
        assert_eq!(found.get(&[8; 32], now), None);
        assert_eq!(found.get(&[7; 32], now + FRESH), None);
        for number in 0..2 * MOST_REMEMBERED as u64 {
            let mut hash = [0; 32];
            hash[..8].copy_from_slice(&number.to_le_bytes());
            found.add(hash, now, key.clone());
            assert!(found.lock().len() <= MOST_REMEMBERED);
        }
    }
}
