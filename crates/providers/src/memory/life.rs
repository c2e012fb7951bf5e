//! One life of a sandbox, from its create or wake to its sleep or end: what runs in it.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Instant;

use eyot::{Error, ErrorKind, Result};
use tokio_util::sync::CancellationToken;

use super::activity::SandboxUse;
use super::clock::DeadlineClock;
use super::kept::KeptJobs;
use super::processes::StartedJobs;
use super::running_job::RunningJob;
use super::tasks::Tasks;

/// The killed commands whose threads may still work. A program that does not look up, such as a
/// filter of jq without output, keeps its thread; so many may not take all processors.
const MAX_STUCK: usize = 4;

/// The way in which a life ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LifeEnd {
    /// Put to sleep.
    Sleep,
    /// Destroyed.
    Destroy,
    /// Over the time to live.
    Expiry,
    /// Nobody used it for too long.
    Idleness,
}

/// A sandbox that is awake, and everything that runs in it.
pub(super) struct SandboxLife {
    /// Told apart from every other life.
    pub token: String,
    pub began: Instant,
    pub tasks: Arc<Tasks>,
    pub processes: StartedJobs,
    pub kept: KeptJobs,
    pub activity: Arc<SandboxUse>,
    /// Cancelled when it has ended.
    pub over: CancellationToken,
    end: OnceLock<LifeEnd>,
    /// The end of the sandbox itself, the same for all of its lives.
    gone: Arc<OnceLock<LifeEnd>>,
    jobs: Mutex<Vec<Weak<RunningJob>>>,
}

impl SandboxLife {
    /// Begins a life. Its processes are numbered behind `last_process`.
    pub(super) fn new(last_process: u32, clock: &DeadlineClock, gone: Arc<OnceLock<LifeEnd>>) -> Arc<Self> {
        Arc::new(Self {
            token: uuid::Uuid::new_v4().simple().to_string(),
            began: Instant::now(),
            tasks: Arc::default(),
            processes: StartedJobs::new(last_process, clock.clone()),
            kept: KeptJobs::new(clock.clone()),
            activity: Arc::new(SandboxUse::new()),
            over: CancellationToken::new(),
            end: OnceLock::new(),
            gone,
            jobs: Mutex::default(),
        })
    }

    fn jobs(&self) -> MutexGuard<'_, Vec<Weak<RunningJob>>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has a command end with this life.
    ///
    /// # Errors
    /// The life has ended meanwhile; or `quota`: too many killed commands have not ended. The command ends too.
    pub(super) fn register(&self, job: &Arc<RunningJob>, sandbox: &str) -> Result<()> {
        let mut jobs = self.jobs();
        jobs.retain(|job| job.strong_count() > 0);
        let stuck = jobs.iter().filter_map(Weak::upgrade).filter(|job| job.is_stuck()).count();
        if stuck >= MAX_STUCK {
            drop(jobs);
            job.kill();
            let reason = format!("{stuck} commands that were killed still work on; wait until they end");
            return Err(Error::new(ErrorKind::Quota, reason));
        }
        if self.end.get().is_none() {
            jobs.push(Arc::downgrade(job));
            return Ok(());
        }
        drop(jobs);
        job.end_with_sandbox();
        self.check(sandbox)
    }

    /// Ends everything. Only the first end counts.
    pub(super) fn end(&self, how: LifeEnd) {
        let jobs = {
            let mut jobs = self.jobs();
            if self.end.set(how).is_err() {
                return;
            }
            std::mem::take(&mut *jobs)
        };
        for job in jobs.iter().filter_map(Weak::upgrade) {
            job.end_with_sandbox();
        }
        self.over.cancel();
    }

    /// Refuses whatever is asked of a life that has ended.
    pub(super) fn check(&self, sandbox: &str) -> Result<()> {
        match self.gone.get().or_else(|| self.end.get()) {
            None => Ok(()),
            Some(end) => Err(end.refusal(sandbox)),
        }
    }
}

impl LifeEnd {
    /// Returns the error that handles of such a life give.
    pub(super) fn refusal(self, sandbox: &str) -> Error {
        match self {
            Self::Sleep => Error::sleeping(sandbox),
            Self::Destroy => Error::destroyed(sandbox),
            Self::Expiry => Error::expired(sandbox),
            Self::Idleness => Error::past_deadline(sandbox),
        }
    }
}
