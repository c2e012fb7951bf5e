//! API keys. Whoever shows one may use its pools and no others; only its hash is kept.

use std::sync::Arc;

use eyot::store::{KeyRow, Store};
use eyot::{Error, ErrorKind, FolderChanges, Result, SandboxName};
use sha2::{Digest, Sha256};

use super::random::random;

/// What every key begins with, so that scanners for secrets know one.
const PREFIX: &str = "eyot_";
/// The longest text that is looked at as a key, in bytes.
const MAX_BYTES: usize = 256;

/// The keys of a state folder.
#[derive(Clone)]
pub struct Keys {
    store: Arc<Store>,
}

/// A key that was just made. Its secret is shown once.
#[derive(Debug)]
pub struct NewKey {
    /// What is known of it.
    pub row: KeyRow,
    /// What its holder shows.
    pub secret: String,
}

impl Keys {
    /// Those of this store.
    pub fn new(store: Arc<Store>) -> Self {
        Self { store }
    }

    /// Makes a key for these pools, the first of which is meant where a request names none. `already_exists`: a key of that
    /// name is in use.
    pub async fn create(&self, name: SandboxName, pools: Vec<SandboxName>) -> Result<NewKey> {
        let (id, secret) = (format!("key_{}", random::<8>()?), format!("{PREFIX}{}", random::<32>()?));
        let hash = hash(&secret);
        let row = self.ask(move |store| store.add_key(&id, &name, &pools, hash)).await?;
        Ok(NewKey { row, secret })
    }

    /// All of them, revoked ones too.
    pub async fn list(&self) -> Result<Vec<KeyRow>> {
        self.ask(Store::keys).await
    }

    /// Tells when some process may have changed them.
    pub(super) async fn changes(&self) -> Result<Option<FolderChanges>> {
        self.ask(Store::changes).await
    }

    /// Revokes one by id or name. From now on nobody gets in with it, and servers end what it began.
    pub async fn revoke(&self, id_or_name: &str) -> Result<KeyRow> {
        let id_or_name = id_or_name.to_owned();
        self.ask(move |store| store.revoke_key(&id_or_name)).await
    }

    /// Whose key this is. A wrong one takes as long as a right one: what is looked up is its hash, which tells nothing of it.
    pub(super) async fn holder(&self, shown: &str) -> Result<Option<KeyRow>> {
        self.holder_of_hash(hash(&shown[..shown.floor_char_boundary(MAX_BYTES)])).await
    }

    /// Whose key has this hash.
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
