//! The sandboxes that E2B's API has made, by their ids.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use eyot::internal::KeyedTurns;
use eyot::{Sandbox, SandboxId};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::process_table::ProcessTable;
use super::watch::KeptWatches;

/// The sandboxes.
#[derive(Default)]
pub(super) struct Records {
    by_id: Mutex<BTreeMap<String, Arc<SandboxRecord>>>,
    /// Taken by creates with a key.
    pub creates: KeyedTurns,
}

/// One sandbox.
pub(super) struct SandboxRecord {
    pub id: String,
    pub template: String,
    pub metadata: BTreeMap<String, String>,
    pub variables: BTreeMap<String, String>,
    /// The token that envd wants in `X-Access-Token`.
    pub access_token: String,
    pub allow_internet_access: Option<bool>,
    pub started: SystemTime,
    /// Set if it is paused at its deadline; else it is killed.
    pub auto_pause: bool,
    /// The key that the request for its create had.
    pub idempotency_key: Option<String>,
    pub processes: ProcessTable,
    pub watchers: KeptWatches,
    /// Held by whoever pauses, resumes or kills it.
    pub turn: tokio::sync::Mutex<()>,
    /// Cancelled once it is destroyed.
    pub gone: CancellationToken,
    state: Mutex<State>,
    changed: Notify,
}

struct State {
    /// Another handle after every pause.
    sandbox: Sandbox,
    ends: SystemTime,
    is_paused: bool,
    /// It is being destroyed: for its clients it is gone.
    is_ending: bool,
}

impl State {
    /// Returns the time that is left; `None`: it has no end.
    fn left(&self) -> Option<Duration> {
        let has_end = !self.is_paused && !self.is_ending;
        has_end.then(|| self.ends.duration_since(SystemTime::now()).unwrap_or_default())
    }
}

/// The parts of a new record.
pub(super) struct NewSandboxRecord {
    pub sandbox: Sandbox,
    pub template: String,
    pub metadata: BTreeMap<String, String>,
    pub variables: BTreeMap<String, String>,
    pub access_token: String,
    pub allow_internet_access: Option<bool>,
    pub auto_pause: bool,
    pub idempotency_key: Option<String>,
    pub timeout_s: u64,
}

/// Returns E2B's form of a sandbox's id: letters and digits alone, since it is a part of host names.
pub(super) fn e2b_id(id: &SandboxId) -> String {
    id.as_str().replacen("sb_", "i", 1)
}

impl SandboxRecord {
    pub fn new(new: NewSandboxRecord) -> Self {
        let started = SystemTime::now();
        let ends = started + Duration::from_secs(new.timeout_s);
        Self {
            id: e2b_id(new.sandbox.id()),
            template: new.template,
            metadata: new.metadata,
            variables: new.variables,
            access_token: new.access_token,
            allow_internet_access: new.allow_internet_access,
            started,
            auto_pause: new.auto_pause,
            idempotency_key: new.idempotency_key,
            processes: ProcessTable::default(),
            watchers: KeptWatches::default(),
            turn: tokio::sync::Mutex::default(),
            gone: CancellationToken::new(),
            state: Mutex::new(State { sandbox: new.sandbox, ends, is_paused: false, is_ending: false }),
            changed: Notify::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Only plain values are written.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the handle.
    pub fn sandbox(&self) -> Sandbox {
        self.lock().sandbox.clone()
    }

    /// Notes that it was woken: none of its processes and watches is left.
    pub fn set_woken(&self, sandbox: Sandbox) {
        self.processes.clear();
        self.watchers.clear();
        self.lock().sandbox = sandbox;
        self.set_paused(false);
    }

    /// Returns the time at which it ends.
    pub fn ends(&self) -> SystemTime {
        self.lock().ends
    }

    pub fn is_paused(&self) -> bool {
        self.lock().is_paused
    }

    pub fn set_paused(&self, is_paused: bool) {
        self.lock().is_paused = is_paused;
        self.changed.notify_one();
    }

    pub fn is_ending(&self) -> bool {
        self.lock().is_ending
    }

    pub fn set_ending(&self, is_ending: bool) {
        self.lock().is_ending = is_ending;
        self.changed.notify_one();
    }

    /// Sets the time that is left, in seconds. With `extend_only` a shorter one changes nothing.
    pub fn set_timeout(&self, timeout_s: u64, extend_only: bool) {
        let ends = SystemTime::now() + Duration::from_secs(timeout_s);
        let mut state = self.lock();
        if !extend_only || ends > state.ends {
            state.ends = ends;
        }
        drop(state);
        self.changed.notify_one();
    }

    /// Tells whether its time is over.
    pub fn is_over(&self) -> bool {
        self.lock().left() == Some(Duration::ZERO)
    }

    /// Waits until its time is over. A paused sandbox has no end.
    pub async fn wait_for_end(&self) {
        loop {
            let changed = self.changed.notified();
            let left = self.lock().left();
            match left {
                None => changed.await,
                Some(Duration::ZERO) => return,
                Some(left) => drop(tokio::time::timeout(left, changed).await),
            }
        }
    }
}

impl Records {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Arc<SandboxRecord>>> {
        self.by_id.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn add(&self, record: Arc<SandboxRecord>) {
        self.lock().insert(record.id.clone(), record);
    }

    pub fn get(&self, id: &str) -> Option<Arc<SandboxRecord>> {
        self.lock().get(id).filter(|record| !record.is_ending()).cloned()
    }

    /// Finds the sandbox that a request with this key has made.
    pub fn by_idempotency_key(&self, key: &str) -> Option<Arc<SandboxRecord>> {
        self.list().into_iter().find(|record| record.idempotency_key.as_deref() == Some(key))
    }

    /// Forgets a sandbox, and ends what waits for the end of its time.
    pub fn remove(&self, id: &str) -> Option<Arc<SandboxRecord>> {
        let removed = self.lock().remove(id);
        removed.inspect(|record| record.gone.cancel())
    }

    /// Returns all that there are, also those that are being destroyed.
    pub fn all(&self) -> Vec<Arc<SandboxRecord>> {
        self.lock().values().cloned().collect()
    }

    /// Lists them, the youngest first, as E2B does by default.
    pub fn list(&self) -> Vec<Arc<SandboxRecord>> {
        let mut all = self.all();
        all.retain(|record| !record.is_ending());
        all.sort_by(|one, other| (other.started, &other.id).cmp(&(one.started, &one.id)));
        all
    }
}
