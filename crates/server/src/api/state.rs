//! State that all requests share: the engine, its pools, the keys, and open handles.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use eyot::{Error, ErrorKind, Result, Sandbox, SandboxId, SandboxName};
use eyot_agent::Agents;
use eyot_engine::store::RowState;
use eyot_engine::{Engine, PoolOptions, PoolProvider, SandboxPool};

use super::access::{Access, Caller};
use super::handles::{Handles, Held};
use super::keys::Keys;
use super::metrics::Metrics;
use super::rates::Rates;
use super::sessions::PageSessions;
use super::turns::RequestTurns;
use crate::http::limits::ServeLimits;
use crate::preview::Grants;
use crate::problem::Refusal;

/// Returns the options with which a pool is opened that a request names.
pub type OptionsOfPool = dyn Fn(SandboxName) -> PoolOptions + Send + Sync;

/// The HTTP API over one engine. Clones share one state and are cheap: each layer of a request
/// makes some.
#[derive(Clone)]
pub struct Api(Arc<Options>);

#[derive(Clone)]
struct Options {
    inner: Arc<Inner>,
    limits: Arc<ServeLimits>,
    turns: Arc<RequestTurns>,
    rates: Arc<Rates>,
    metrics: Arc<Metrics>,
    may_open_private_networks: bool,
    may_use_host_networks: bool,
    /// The names of the keys that may read the metrics.
    metrics_keys: Vec<SandboxName>,
    /// The names of the keys that may import and remove images.
    image_keys: Vec<SandboxName>,
    agents: Option<Agents>,
}

struct Inner {
    engine: Engine,
    keys: Keys,
    access: Access,
    options: Box<OptionsOfPool>,
    pools: Mutex<BTreeMap<SandboxName, Arc<PoolProvider>>>,
    /// Open handles by id, so that a request by id need not ask the store.
    handles: Mutex<Handles>,
    /// The sessions of browsers that signed in.
    sessions: PageSessions,
    /// The grants to see previews.
    grants: Grants,
}

impl Api {
    /// Makes the API over this engine for the callers that `access` lets in. `options` returns the
    /// options with which a pool is opened.
    pub fn new(
        engine: Engine,
        access: Access,
        options: impl Fn(SandboxName) -> PoolOptions + Send + Sync + 'static,
    ) -> Self {
        let keys = Keys::new(Arc::clone(engine.store()));
        let (pools, handles, sessions, grants) = Default::default();
        let options = Box::new(options);
        let inner = Inner { engine, keys, access, options, pools, handles, sessions, grants };
        let limits = ServeLimits::default();
        let turns = Arc::new(RequestTurns::new(limits.max_requests_per_key));
        let rates = Arc::new(Rates::new(&limits));
        Self(Arc::new(Options {
            inner: Arc::new(inner),
            limits: Arc::new(limits),
            turns,
            rates,
            metrics: Arc::new(Metrics::new()),
            may_open_private_networks: false,
            may_use_host_networks: false,
            metrics_keys: Vec::new(),
            image_keys: Vec::new(),
            agents: None,
        }))
    }

    fn with(self, change: impl FnOnce(Options) -> Options) -> Self {
        Self(Arc::new(change(Arc::unwrap_or_clone(self.0))))
    }

    /// Sets the limits. Clones that were made before are not changed.
    #[must_use]
    pub fn limited(self, limits: ServeLimits) -> Self {
        let turns = Arc::new(RequestTurns::new(limits.max_requests_per_key));
        let rates = Arc::new(Rates::new(&limits));
        self.with(|options| Options { limits: Arc::new(limits), turns, rates, ..options })
    }

    /// Lets every key open private networks, and single addresses of the host, by rules of the
    /// network `egress`.
    #[must_use]
    pub fn opening_private_networks(self) -> Self {
        self.with(|options| Options { may_open_private_networks: true, ..options })
    }

    pub(super) fn may_open_private_networks(&self) -> bool {
        self.0.may_open_private_networks
    }

    /// Lets specs name the host's own network and the networks of its container engine. For a
    /// server whose clients may use its host anyway.
    #[must_use]
    pub fn using_host_networks(self) -> Self {
        self.with(|options| Options { may_use_host_networks: true, ..options })
    }

    /// Lets the keys of these names read the metrics, which are about the whole server. By default
    /// no key may; if the server needs no key, everybody may.
    #[must_use]
    pub fn showing_metrics_to(self, keys: Vec<SandboxName>) -> Self {
        self.with(|options| Options { metrics_keys: keys, ..options })
    }

    pub(super) fn metrics_keys(&self) -> &[SandboxName] {
        &self.0.metrics_keys
    }

    /// Lets the keys of these names import and remove images, which all keys share. By default no
    /// key may; if the server needs no key, everybody may.
    #[must_use]
    pub fn changing_images_by(self, keys: Vec<SandboxName>) -> Self {
        self.with(|options| Options { image_keys: keys, ..options })
    }

    pub(super) fn image_keys(&self) -> &[SandboxName] {
        &self.0.image_keys
    }

    /// Serves these agents. The runs of each are those of its caller's pool.
    #[must_use]
    pub fn running_agents(self, agents: Agents) -> Self {
        self.with(|options| Options { agents: Some(agents), ..options })
    }

    pub(super) fn agents(&self) -> Option<&Agents> {
        self.0.agents.as_ref()
    }

    /// Returns the sandboxes of a pool, which is opened when it is first named.
    pub fn sandbox_pool(&self, name: &SandboxName) -> Result<SandboxPool> {
        Ok(self.pool(name)?.pool().clone())
    }

    pub(super) fn may_use_host_networks(&self) -> bool {
        self.0.may_use_host_networks
    }

    pub(super) fn limits(&self) -> &ServeLimits {
        &self.0.limits
    }

    pub(super) fn turns(&self) -> &RequestTurns {
        &self.0.turns
    }

    pub(super) fn rates(&self) -> &Rates {
        &self.0.rates
    }

    pub(super) fn metrics(&self) -> &Metrics {
        &self.0.metrics
    }

    /// Returns the engine.
    pub fn engine(&self) -> &Engine {
        &self.0.inner.engine
    }

    pub(super) fn access(&self) -> Access {
        self.0.inner.access
    }

    pub(super) fn sessions(&self) -> &PageSessions {
        &self.0.inner.sessions
    }

    /// Returns the API keys.
    pub fn keys(&self) -> &Keys {
        &self.0.inner.keys
    }

    /// Returns a pool, which is opened when it is first named.
    pub(super) fn pool(&self, name: &SandboxName) -> Result<Arc<PoolProvider>> {
        if let Some(pool) = lock(&self.0.inner.pools).get(name) {
            return Ok(Arc::clone(pool));
        }
        let options = PoolOptions { name: name.clone(), ..(self.0.inner.options)(name.clone()) };
        let opened = self.0.inner.engine.pool(options)?.as_provider();
        Ok(Arc::clone(lock(&self.0.inner.pools).entry(name.clone()).or_insert(opened)))
    }

    /// Returns the pool of a sandbox, if the caller may use it. A name is looked up in the pool
    /// `named`.
    pub(super) async fn pool_of(
        &self,
        caller: &Caller,
        named: Option<&str>,
        id_or_name: &str,
    ) -> Result<SandboxName, Refusal> {
        let Ok(id) = SandboxId::parse(id_or_name) else { return caller.pool(named) };
        let held = lock(&self.0.inner.handles).get(&id).map(|held| held.pool.clone());
        let pool = match held {
            Some(pool) => Some(pool),
            None => self.0.inner.engine.pool_of(&id).await?,
        };
        pool.filter(|pool| caller.opens(pool)).ok_or_else(|| Refusal::no_sandbox(id_or_name))
    }

    /// Returns a sandbox, by id or name. Without `life`, a sleeping one is woken. With it, only a
    /// sandbox in that very life is returned, and nothing is woken.
    pub(super) async fn sandbox(
        &self,
        caller: &Caller,
        named: Option<&str>,
        id_or_name: &str,
        life: Option<&str>,
    ) -> Result<Sandbox, Refusal> {
        let sandbox = match self.held(caller, id_or_name) {
            Some(sandbox) => sandbox,
            None => {
                let pool = self.pool_of(caller, named, id_or_name).await?;
                match self.held_by_name(&pool, id_or_name).await? {
                    Some(sandbox) => sandbox,
                    None => self.found(pool, id_or_name, life.is_some()).await?,
                }
            }
        };
        match life {
            Some(life) if life != sandbox.info().life => {
                let which = "`Eyot-Life` names another life than the sandbox has now";
                Err(Error::sleeping(sandbox.name()).context(which).into())
            }
            _ => Ok(sandbox),
        }
    }

    /// Returns a sandbox as it is. `None`: it sleeps. This does not wake it.
    pub(super) async fn sandbox_as_it_is(
        &self,
        caller: &Caller,
        named: Option<&str>,
        id_or_name: &str,
    ) -> Result<Option<Sandbox>, Refusal> {
        if let Some(sandbox) = self.held(caller, id_or_name) {
            return Ok(Some(sandbox));
        }
        let pool = self.pool_of(caller, named, id_or_name).await?;
        if let Some(sandbox) = self.held_by_name(&pool, id_or_name).await? {
            return Ok(Some(sandbox));
        }
        match self.found(pool, id_or_name, true).await {
            Err(refused) if refused.is_sleeping() => Ok(None),
            found => found.map(Some),
        }
    }

    /// Returns the handle that is held of the sandbox that has this name now. A look into the store is much faster than
    /// another connection to the sandbox.
    async fn held_by_name(&self, pool: &SandboxName, name: &str) -> Result<Option<Sandbox>, Refusal> {
        let Ok(name) = SandboxName::parse(name) else { return Ok(None) };
        let in_pool = pool.clone();
        let row = self.engine().store().ask(move |store| store.sandbox_named(&in_pool, &name)).await?;
        let Some(row) = row.filter(|row| row.state == RowState::Live) else { return Ok(None) };
        let held = lock(&self.0.inner.handles).get(&row.id).cloned();
        let is_usable = |held: &Held| held.pool == *pool && held.sandbox.is_connected();
        Ok(held.filter(is_usable).map(|held| held.sandbox))
    }

    fn held(&self, caller: &Caller, id: &str) -> Option<Sandbox> {
        let id = SandboxId::parse(id).ok()?;
        let held = lock(&self.0.inner.handles).get(&id).cloned()?;
        (caller.opens(&held.pool) && held.sandbox.is_connected()).then_some(held.sandbox)
    }

    async fn found(&self, pool: SandboxName, id_or_name: &str, as_it_is: bool) -> Result<Sandbox, Refusal> {
        let provider = self.pool(&pool)?;
        let found =
            if as_it_is { provider.find(id_or_name).await } else { provider.find_awake(id_or_name).await };
        match found {
            Ok(sandbox) => {
                self.hold(pool, sandbox.clone());
                Ok(sandbox)
            }
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Destroyed) => {
                self.let_go(id_or_name);
                Err(Refusal::no_sandbox(id_or_name))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Forgets a handle. The next request opens another.
    pub(super) fn let_go_of_handle(&self, id: &SandboxId) {
        lock(&self.0.inner.handles).remove(id);
    }

    /// Forgets the handle of a sandbox that is gone, and revokes its previews.
    pub(crate) fn let_go(&self, id_or_name: &str) {
        if let Ok(id) = SandboxId::parse(id_or_name) {
            self.let_go_of_handle(&id);
            self.0.inner.grants.revoke_all(&id);
        }
    }

    /// Returns the grants to see previews.
    pub(crate) fn grants(&self) -> &Grants {
        &self.0.inner.grants
    }

    /// Returns the pool of a sandbox, without asking for a caller's right; `None`: there is no such
    /// sandbox.
    pub(crate) async fn pool_of_any(&self, id: &SandboxId) -> Result<Option<SandboxName>> {
        let held = lock(&self.0.inner.handles).get(id).filter(|held| held.sandbox.is_connected()).cloned();
        match held {
            Some(held) => Ok(Some(held.pool)),
            None => self.0.inner.engine.pool_of(id).await,
        }
    }

    /// Returns a sandbox, without asking for a caller's right, and whether it had to be woken.
    pub(crate) async fn awake(&self, pool: &SandboxName, id: &SandboxId) -> Result<(Sandbox, bool), Refusal> {
        let held = lock(&self.0.inner.handles).get(id).cloned();
        if let Some(held) = held.filter(|held| held.pool == *pool && held.sandbox.is_connected()) {
            return Ok((held.sandbox, false));
        }
        match self.found(pool.clone(), id.as_str(), true).await {
            Err(refused) if refused.is_sleeping() => {
                Ok((self.found(pool.clone(), id.as_str(), false).await?, true))
            }
            found => Ok((found?, false)),
        }
    }

    /// Keeps a handle for later requests, and forgets those whose sandboxes have ended.
    pub(super) fn hold(&self, pool: SandboxName, sandbox: Sandbox) {
        lock(&self.0.inner.handles).hold(Held { pool, sandbox }, self.limits().max_open_sandboxes);
    }
}

/// Locks a mutex, even a poisoned one: only plain values are moved in and out.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
