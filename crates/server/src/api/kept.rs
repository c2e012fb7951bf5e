//! What outlives a connection and is found again by its id: streamed commands, terminals. Each is of one sandbox of a pool,
//! and of each kind a pool has so many and no more.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use eyot::{Error, ErrorKind, Result, Sandbox, SandboxId, SandboxName};

use super::random::random;

/// Whose something is, and what it is called.
pub(super) struct Whose {
    pub id: String,
    pool: SandboxName,
    sandbox: SandboxId,
    sandbox_name: SandboxName,
}

impl Whose {
    /// Of this sandbox of this pool, under a new id that nobody guesses.
    pub fn new(prefix: &str, pool: SandboxName, sandbox: &Sandbox) -> Result<Self> {
        let id = format!("{prefix}_{}", random::<16>()?);
        Ok(Self { id, pool, sandbox: sandbox.id().clone(), sandbox_name: sandbox.name().clone() })
    }

    fn is_in(&self, pool: &SandboxName, sandbox: &str) -> bool {
        self.pool == *pool && (self.sandbox.as_str() == sandbox || self.sandbox_name.as_str() == sandbox)
    }
}

/// A kind of things that are kept.
pub(super) trait Keepable {
    /// What one is called: `terminal`.
    const WORD: &'static str;
    /// How many a pool may have at once.
    const MAX_OF_POOL: usize;
    /// How there is room again.
    const HINT: &'static str;

    fn whose(&self) -> &Whose;
}

/// All of a kind that a server keeps.
pub(super) struct Kept<T>(Arc<Mutex<HashMap<String, Arc<T>>>>);

impl<T> Default for Kept<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<T> Clone for Kept<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T: Keepable> Kept<T> {
    fn all(&self) -> MutexGuard<'_, HashMap<String, Arc<T>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `quota`: the pool has as many as it may.
    pub fn check_room(&self, pool: &SandboxName) -> Result<()> {
        check_room(&self.all(), pool)
    }

    /// Keeps one until it is forgotten. `quota`: the pool has as many as it may.
    pub fn add(&self, one: &Arc<T>) -> Result<()> {
        let mut all = self.all();
        check_room(&all, &one.whose().pool)?;
        all.insert(one.whose().id.clone(), Arc::clone(one));
        Ok(())
    }

    /// Knows one no more.
    pub fn remove(&self, one: &T) {
        self.all().remove(&one.whose().id);
    }

    /// Those of a sandbox of a pool, by id or name, in no order.
    pub fn of(&self, pool: &SandboxName, sandbox: &str) -> Vec<Arc<T>> {
        self.all().values().filter(|one| one.whose().is_in(pool, sandbox)).cloned().collect()
    }

    /// The one of this id, if it is in that sandbox of that pool.
    pub fn find(&self, pool: &SandboxName, sandbox: &str, id: &str) -> Result<Arc<T>> {
        let found = self.all().get(id).filter(|one| one.whose().is_in(pool, sandbox)).cloned();
        found.ok_or_else(|| none::<T>(id))
    }
}

/// There is none of this id, or none any more.
pub(super) fn none<T: Keepable>(id: &str) -> Error {
    Error::new(ErrorKind::NotFound, format!("there is no {} `{id}`", T::WORD))
}

fn check_room<T: Keepable>(all: &HashMap<String, Arc<T>>, pool: &SandboxName) -> Result<()> {
    if all.values().filter(|one| one.whose().pool == *pool).count() >= T::MAX_OF_POOL {
        let message =
            format!("this pool has {} {}s, with those that ended and are kept", T::MAX_OF_POOL, T::WORD);
        Err(Error::new(ErrorKind::Quota, message).with_hint(T::HINT))
    } else {
        Ok(())
    }
}
