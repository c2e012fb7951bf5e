//! The named sandboxes of one agent session: made on first use, woken when they are used, moved between.
//!
//! Whoever asks first for a name makes its sandbox, and whoever asks meanwhile waits for that one ([`OnceCell`]). A
//! member whose sandbox has gone to sleep, or is gone, gives up its place to a new one, which wakes or makes it.

mod browse;
mod member;
mod options;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use crate::error::{Error, ErrorKind, Result};
use crate::provider::SandboxProvider;
use crate::sandbox::Sandbox;
use crate::spec::SandboxName;
use crate::transfer::{Transfer, Transferred, transfer};
use browse::Forwards;
use member::{Member, Up};

pub use browse::Preview;
pub use options::{
    DEFAULT_SANDBOX, DEFAULT_SLEEP_AFTER_MS, POOL_WORKDIR, PoolCreate, PoolCreated, PoolEntry, PoolOptions,
    PoolQuotas, PoolStatus, Service,
};

/// How often a use tries again when the sandbox goes to sleep, or is destroyed, right under it.
const TRIES: usize = 4;

/// The named sandboxes of one agent session. Clones are the same pool.
#[derive(Clone)]
pub struct SandboxPool {
    inner: Arc<Inner>,
}

struct Inner {
    provider: Arc<dyn SandboxProvider>,
    options: PoolOptions,
    members: Mutex<BTreeMap<SandboxName, Arc<Member>>>,
    forwards: Forwards,
}

/// A pool that nobody may have open any more.
#[derive(Clone)]
struct WeakPool(Weak<Inner>);

impl WeakPool {
    fn upgrade(&self) -> Option<SandboxPool> {
        self.0.upgrade().map(|inner| SandboxPool { inner })
    }
}

impl SandboxPool {
    fn downgrade(&self) -> WeakPool {
        WeakPool(Arc::downgrade(&self.inner))
    }

    /// A pool of sandboxes of this provider.
    pub fn open(provider: Arc<dyn SandboxProvider>, options: PoolOptions) -> Result<Self> {
        options.template.clone().validate()?;
        let inner = Inner { provider, options, members: Mutex::default(), forwards: Forwards::default() };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// What it was opened with.
    pub fn options(&self) -> &PoolOptions {
        &self.inner.options
    }

    /// Its provider.
    pub fn provider(&self) -> &Arc<dyn SandboxProvider> {
        &self.inner.provider
    }

    /// The sandbox of this name: made if there is none yet, woken if it sleeps. A hundred who ask at once for one that is
    /// not there make one.
    pub async fn get(&self, name: &str) -> Result<Sandbox> {
        let name = SandboxName::parse(name)?;
        let (up, _) = self.up(&name, &PoolCreate::default()).await?;
        Ok(up.sandbox.called(name))
    }

    /// Makes the sandbox of this name unless it is there already; then it stays as it is, awake, and the answer says in
    /// what it differs.
    pub async fn create(&self, name: &str, create: PoolCreate) -> Result<PoolCreated> {
        let sandbox = SandboxName::parse(name)?;
        let (up, created) = self.up(&sandbox, &create).await?;
        let differs = if created { Vec::new() } else { self.differences(&create, &up) };
        Ok(PoolCreated { sandbox, created, image: up.image, differs })
    }

    /// The sandboxes there are, by name.
    pub async fn list(&self) -> Result<Vec<PoolEntry>> {
        let members: Vec<_> =
            self.members().iter().map(|(name, member)| (name.clone(), member.clone())).collect();
        let mut entries = Vec::new();
        for (name, member) in members {
            let Some(up) = member.get() else { continue };
            match up.sandbox.exists("/").await {
                Ok(_) => {
                    entries.push(PoolEntry { name, image: up.image.clone(), status: PoolStatus::Running })
                }
                Err(error) if error.kind() == ErrorKind::Destroyed => self.forget(&name, &member),
                Err(_) => {
                    entries.push(PoolEntry { name, image: up.image.clone(), status: PoolStatus::Sleeping })
                }
            }
        }
        Ok(entries)
    }

    /// Destroys the sandbox of this name; `not_found` if there is none.
    pub async fn remove(&self, name: &str) -> Result<()> {
        let name = SandboxName::parse(name)?;
        let member = self.members().get(&name).cloned();
        let Some((member, up)) = member.and_then(|member| member.get().cloned().map(|up| (member, up)))
        else {
            return Err(self.not_there(&name));
        };
        self.inner.forwards.close(&name);
        up.sandbox.destroy().await?;
        self.forget(&name, &member);
        Ok(())
    }

    /// Copies a file or a tree from one sandbox of the pool to another; see [`transfer()`].
    pub async fn transfer(&self, from: &str, to: &str, what: &Transfer) -> Result<Transferred> {
        let (from, to) = (self.get(from).await?, self.get(to).await?);
        transfer(&from, &to, what).await
    }

    /// Opens a port of a sandbox on the host's loopback: whoever follows the answer's URL talks to that port, HTTP and
    /// WebSocket alike, as long as the pool is open. The sandbox needs no network for it. The same port gives the same URL.
    pub async fn browse(&self, name: &str, port: u16) -> Result<Preview> {
        let name = SandboxName::parse(name)?;
        if port == 0 {
            return Err(Error::invalid("port", "must be from 1 to 65535, not 0"));
        }
        self.get(name.as_str()).await?;
        self.inner.forwards.open(self, &name, port).await
    }

    /// Destroys every sandbox of the pool and closes its ports. The first failure is returned once all were tried.
    pub async fn close(&self) -> Result<()> {
        let names: Vec<_> = self.members().keys().cloned().collect();
        let mut first = Ok(());
        for name in names {
            let removed = self.remove(name.as_str()).await;
            if removed.as_ref().is_err_and(|error| error.kind() != ErrorKind::NotFound) && first.is_ok() {
                first = removed;
            }
        }
        first
    }

    async fn up(&self, name: &SandboxName, create: &PoolCreate) -> Result<(Up, bool)> {
        for _ in 0..TRIES {
            let member = self.member(name);
            let mut created = false;
            let make = async {
                created = true;
                self.make(name, create).await
            };
            let up = member.up(make).await?.clone();
            if created {
                return Ok((up, true));
            }
            match up.sandbox.exists("/").await {
                Ok(_) => return Ok((up, false)),
                Err(error) if error.kind() == ErrorKind::Destroyed => self.forget(name, &member),
                Err(error) => return Err(error),
            }
        }
        let message = format!("use sandbox `{name}`: it is destroyed again and again");
        Err(Error::new(ErrorKind::Conflict, message))
    }

    fn member(&self, name: &SandboxName) -> Arc<Member> {
        Arc::clone(self.members().entry(name.clone()).or_default())
    }

    /// Drops what is known of a sandbox, unless something newer is known.
    fn forget(&self, name: &SandboxName, member: &Arc<Member>) {
        let mut members = self.members();
        if members.get(name).is_some_and(|known| Arc::ptr_eq(known, member)) {
            members.remove(name);
        }
    }

    fn members(&self) -> MutexGuard<'_, BTreeMap<SandboxName, Arc<Member>>> {
        self.inner.members.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn not_there(&self, name: &SandboxName) -> Error {
        let there: Vec<_> = self.members().keys().map(|name| format!("`{name}`")).collect();
        let hint = match there.is_empty() {
            true => "the pool has none".to_owned(),
            false => format!("there are: {}", there.join(", ")),
        };
        Error::new(ErrorKind::NotFound, format!("there is no sandbox `{name}` in this pool")).with_hint(hint)
    }
}
