//! API keys. A key opens its own pools and no others. Only its hash is kept.

use std::sync::Arc;

use eyot::{Error, ErrorKind, Result, SandboxName};
use eyot_engine::FolderChanges;
use eyot_engine::store::{KeyRow, Store};
use sha2::{Digest, Sha256};

use crate::random_hex::random_hex;

/// The prefix of every key, by which secret scanners recognise one.
const PREFIX: &str = "eyot_";
/// The longest text that is taken for a key, in bytes. The rest is cut off.
const MAX_BYTES: usize = 256;

/// The keys of a state folder.
#[derive(Clone)]
pub struct Keys {
    store: Arc<Store>,
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
        Self { store }
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
    pub(super) async fn changes(&self) -> Result<Option<FolderChanges>> {
        self.ask(Store::changes).await
    }

    /// Revokes a key, by id or name. It opens nothing from now on, and servers end what it began.
    pub async fn revoke(&self, id_or_name: &str) -> Result<KeyRow> {
        let id_or_name = id_or_name.to_owned();
        self.ask(move |store| store.revoke_key(&id_or_name)).await
    }

    /// Returns the key that has this secret. The look-up is by the secret's hash, so its duration
    /// says nothing about the secret.
    pub(super) async fn holder(&self, shown: &str) -> Result<Option<KeyRow>> {
        self.holder_of_hash(hash(&shown[..shown.floor_char_boundary(MAX_BYTES)])).await
    }

    /// Returns the key whose secret has this hash.
    pub(super) async fn holder_of_hash(&self, hash: [u8; 32]) -> Result<Option<KeyRow>> {
        match self.store.key_of_hash_at_once(hash) {
            Some(found) => found,
            None => self.ask(move |store| store.key_of_hash(hash)).await,
        }
    }

    async fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&Store) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let store = Arc::clone(&self.store);
        let asked = tokio::task::spawn_blocking(move || question(&store)).await;
        asked.map_err(|error| Error::new(ErrorKind::Internal, "look a key up").with_source(error))?
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
}
