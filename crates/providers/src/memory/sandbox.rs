//! A sandbox in memory as its provider keeps it, asleep or awake.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use eyot::internal::now_ms;
use eyot::{
    Capabilities, Error, ErrorKind, IdleAction, Isolation, Lifecycle, Result, SandboxInfo, SandboxStatus,
};

use super::clock::{DeadlineClock, Scheduled};
use super::files::MemoryFiles;
use super::image_table::MemoryImage;
use super::known_programs::KnownPrograms;
use super::life::{LifeEnd, SandboxLife};
use super::prepared::PreparedShells;
use super::shell_factory::ShellFactory;
use super::snapshot_table::KeptFiles;

/// Lets go of a sandbox that has ended.
pub(super) type ForgetSandbox = Box<dyn Fn(&MemorySandbox) + Send + Sync>;

/// A sandbox.
pub(super) struct MemorySandbox {
    pub info: SandboxInfo,
    pub env: BTreeMap<String, String>,
    pub host_name: String,
    pub files: MemoryFiles,
    pub factory: ShellFactory,
    pub capabilities: Capabilities,
    pub isolation: Isolation,
    pub clock: DeadlineClock,
    pub programs: Arc<KnownPrograms>,
    pub prepared: Arc<PreparedShells>,
    /// Lets go of it once it has ended.
    pub forget: ForgetSandbox,
    pub condition: Mutex<SandboxCondition>,
    /// The persistent workspace was made with it.
    pub has_made_workspace: bool,
    /// The persistent workspace stays, whatever the spec says.
    pub keeps_workspace: AtomicBool,
    /// The image that it was made from, or the one below its snapshot.
    pub image: Option<Arc<MemoryImage>>,
    /// The snapshot that its files came from, or its last one.
    pub base: Mutex<Option<Arc<KeptFiles>>>,
}

/// The part of a sandbox that changes.
pub(super) struct SandboxCondition {
    pub lifecycle: Lifecycle,
    pub life: Arc<SandboxLife>,
    /// The end of the sandbox, once it has ended for good.
    gone: Arc<OnceLock<LifeEnd>>,
    is_asleep: bool,
    expiry: Option<Scheduled>,
    idling: Option<Scheduled>,
}

impl SandboxCondition {
    pub(super) fn new(lifecycle: Lifecycle, clock: &DeadlineClock) -> Self {
        let gone: Arc<OnceLock<LifeEnd>> = Arc::default();
        let life = SandboxLife::new(0, clock, gone.clone());
        Self { lifecycle, life, gone, is_asleep: false, expiry: None, idling: None }
    }
}

impl MemorySandbox {
    fn lock(&self) -> MutexGuard<'_, SandboxCondition> {
        self.condition.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the facts about it now.
    pub(super) fn info(&self) -> SandboxInfo {
        let condition = self.lock();
        let mut info = self.info.clone();
        info.spec.lifecycle = condition.lifecycle.clone();
        info.status = if condition.is_asleep { SandboxStatus::Sleeping } else { SandboxStatus::Running };
        info.life = condition.life.token.clone();
        info
    }

    /// The snapshot below its present changes.
    pub(super) fn base(&self) -> MutexGuard<'_, Option<Arc<KeptFiles>>> {
        self.base.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something with its files while it sleeps: whoever wakes it waits.
    ///
    /// # Errors
    /// `conflict`: it does not sleep.
    pub(super) fn while_asleep<T>(&self, what: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let condition = self.lock();
        if let Some(end) = condition.gone.get() {
            return Err(end.refusal(self.info.name.as_str()));
        }
        if !condition.is_asleep {
            let message = format!("{what}: the sandbox does not sleep");
            return Err(Error::new(ErrorKind::Conflict, message).with_hint("put it to sleep first"));
        }
        work()
    }

    /// Opens it as it is.
    ///
    /// # Errors
    /// The sandbox sleeps.
    pub(super) fn open(&self) -> Result<(SandboxInfo, Arc<SandboxLife>)> {
        let life = {
            let condition = self.lock();
            if condition.is_asleep {
                return Err(Error::sleeping(&self.info.name));
            }
            condition.life.clone()
        };
        life.check(self.info.name.as_str())?;
        Ok((self.info(), life))
    }

    /// Ends everything in it and keeps its files.
    pub(super) fn sleep(&self) {
        let (life, idling) = {
            let mut condition = self.lock();
            condition.is_asleep = true;
            (condition.life.clone(), condition.idling.take())
        };
        drop(idling);
        life.end(LifeEnd::Sleep);
    }

    /// Begins another life of it, if it sleeps.
    pub(super) fn wake(self: &Arc<Self>) -> Result<(SandboxInfo, Arc<SandboxLife>)> {
        let life = {
            let mut condition = self.lock();
            if condition.is_asleep {
                let last = condition.life.processes.last();
                condition.life = SandboxLife::new(last, &self.clock, condition.gone.clone());
                condition.is_asleep = false;
            }
            condition.life.clone()
        };
        self.watch_idleness()?;
        // Whoever puts it to sleep again at this moment comes after this wake.
        let info = SandboxInfo { status: SandboxStatus::Running, life: life.token.clone(), ..self.info() };
        Ok((info, life))
    }

    /// Undoes its create. A persistent workspace that was there before stays.
    pub(super) fn abandon(&self) {
        self.keeps_workspace.store(!self.has_made_workspace, Ordering::Relaxed);
        self.destroy(LifeEnd::Destroy);
    }

    /// Ends it for good.
    pub(super) fn destroy(&self, how: LifeEnd) {
        let (life, schedules) = {
            let mut condition = self.lock();
            condition.gone.get_or_init(|| how);
            (condition.life.clone(), (condition.expiry.take(), condition.idling.take()))
        };
        drop(schedules);
        life.end(how);
        (self.forget)(self);
    }

    /// Changes its deadlines.
    pub(super) fn set_lifecycle(self: &Arc<Self>, lifecycle: &Lifecycle) -> Result<()> {
        let life = {
            let mut condition = self.lock();
            condition.lifecycle = lifecycle.clone();
            condition.life.clone()
        };
        life.activity.note();
        self.watch_deadlines()
    }

    /// Has its deadlines kept from now on.
    pub(super) fn watch_deadlines(self: &Arc<Self>) -> Result<()> {
        let ttl = {
            let condition = self.lock();
            condition.lifecycle.ttl_ms.filter(|_| condition.lifecycle.auto_destroy)
        };
        let scheduled = match ttl {
            None => None,
            Some(ttl) => {
                let age = u64::try_from(now_ms() - self.info.created_ms).unwrap_or(0);
                self.at(Duration::from_millis(ttl.saturating_sub(age)), |sandbox| {
                    sandbox.destroy(LifeEnd::Expiry)
                })?
            }
        };
        let before = std::mem::replace(&mut self.lock().expiry, scheduled);
        drop(before);
        self.watch_idleness()
    }

    fn watch_idleness(self: &Arc<Self>) -> Result<()> {
        let left = {
            let condition = self.lock();
            let lifecycle = &condition.lifecycle;
            let timeout =
                lifecycle.idle_timeout_ms.filter(|_| lifecycle.auto_destroy && !condition.is_asleep);
            timeout
                .map(|timeout| Duration::from_millis(timeout).saturating_sub(condition.life.activity.idle()))
        };
        let scheduled = match left {
            None => None,
            Some(left) => self.at(left, |sandbox| sandbox.look_at_idleness())?,
        };
        let before = std::mem::replace(&mut self.lock().idling, scheduled);
        drop(before);
        Ok(())
    }

    /// The time of an idle sandbox may be over, or it was used meanwhile.
    fn look_at_idleness(self: &Arc<Self>) {
        let action = {
            let condition = self.lock();
            let Some(timeout) = condition.lifecycle.idle_timeout_ms else { return };
            let is_over = condition.life.activity.idle() >= Duration::from_millis(timeout);
            is_over.then_some(condition.lifecycle.on_idle)
        };
        match action {
            Some(IdleAction::Sleep) => self.sleep(),
            Some(_) => self.destroy(LifeEnd::Idleness),
            None => {
                if let Err(error) = self.watch_idleness() {
                    tracing::warn!(%error, sandbox = %self.info.name, "an idle timeout can't be watched");
                }
            }
        }
    }

    fn at(
        self: &Arc<Self>,
        after: Duration,
        action: impl FnOnce(Arc<Self>) + Send + 'static,
    ) -> Result<Option<Scheduled>> {
        // One that is too far off is none.
        let Some(at) = Instant::now().checked_add(after) else { return Ok(None) };
        let sandbox = Arc::downgrade(self);
        let run = move || {
            if let Some(sandbox) = sandbox.upgrade() {
                action(sandbox);
            }
        };
        self.clock.at(at, run).map(Some).map_err(|error| Error::host("watch a deadline", error))
    }
}
