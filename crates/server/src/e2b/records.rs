//! The sandboxes that E2B's API has made, by their ids.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use eyot::{Sandbox, SandboxId};
use tokio::sync::Notify;

use super::process_table::ProcessTable;
use super::watch::KeptWatches;

/// The sandboxes.
#[derive(Default)]
pub(super) struct Records(Mutex<BTreeMap<String, Arc<SandboxRecord>>>);

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
    state: Mutex<State>,
    changed: Notify,
}

struct State {
    /// Another handle after every pause.
    sandbox: Sandbox,
    ends: SystemTime,
    is_paused: bool,
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
            state: Mutex::new(State { sandbox: new.sandbox, ends, is_paused: false }),
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

    /// Waits until its time is over. A paused sandbox has no end.
    pub async fn wait_for_end(&self) {
        loop {
            let changed = self.changed.notified();
            let left = match &*self.lock() {
                State { is_paused: true, .. } => None,
                state => Some(state.ends.duration_since(SystemTime::now()).unwrap_or_default()),
            };
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
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn add(&self, record: Arc<SandboxRecord>) {
        self.lock().insert(record.id.clone(), record);
    }

    pub fn get(&self, id: &str) -> Option<Arc<SandboxRecord>> {
        self.lock().get(id).cloned()
    }

    /// Finds the sandbox that a request with this key has made.
    pub fn by_idempotency_key(&self, key: &str) -> Option<Arc<SandboxRecord>> {
        self.lock().values().find(|record| record.idempotency_key.as_deref() == Some(key)).cloned()
    }

    pub fn take(&self, id: &str) -> Option<Arc<SandboxRecord>> {
        self.lock().remove(id)
    }

    pub fn take_all(&self) -> Vec<Arc<SandboxRecord>> {
        std::mem::take(&mut *self.lock()).into_values().collect()
    }

    /// Lists them, the youngest first, as E2B does by default.
    pub fn list(&self) -> Vec<Arc<SandboxRecord>> {
        let mut all: Vec<_> = self.lock().values().cloned().collect();
        all.sort_by(|one, other| (other.started, &other.id).cmp(&(one.started, &one.id)));
        all
    }
}
