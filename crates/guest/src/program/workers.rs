//! The threads that serve file calls, which may wait for a disk. A few stay parked for the next
//! call.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use super::failure::failure;
use super::sys;
use crate::protocol::{Failure, Identity};

/// The most calls that are served at once.
const MOST_WORKERS: usize = 256;
/// The number of idle threads that stay for the next call.
const MOST_PARKED: usize = 4;
const STACK_BYTES: usize = 256 * 1024;

/// The work of a worker. The argument is an error if the thread could not become the workload's
/// user. Then the job must only report that.
pub type Job = Box<dyn FnOnce(Result<(), Failure>) + Send>;

/// The threads that serve file calls.
#[derive(Clone)]
pub struct Workers(Arc<Shared>);

struct Shared {
    user: Option<Identity>,
    state: Mutex<State>,
    work: Condvar,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    threads: usize,
    parked: usize,
}

impl Workers {
    /// No threads yet. Each becomes `user` before it does anything, if there is one.
    pub fn new(user: Option<Identity>) -> Self {
        Self(Arc::new(Shared { user, state: Mutex::default(), work: Condvar::new() }))
    }

    /// Does a job on a thread.
    ///
    /// # Errors
    /// `quota` when all threads are busy or no other can be made; the job is dropped.
    pub fn run(&self, job: Job) -> Result<(), Failure> {
        let mut state = self.0.lock();
        if state.parked > state.jobs.len() {
            state.jobs.push_back(job);
            // The thread would wake up only to wait for the lock.
            drop(state);
            self.0.work.notify_one();
            return Ok(());
        }
        if state.threads >= MOST_WORKERS {
            return Err(failure("quota", format!("{MOST_WORKERS} file calls are being served already")));
        }
        let shared = Arc::clone(&self.0);
        let builder = thread::Builder::new().stack_size(STACK_BYTES);
        let started = builder.spawn(move || shared.serve(job));
        started.map_err(|error| failure("quota", format!("start a thread for a file call: {error}")))?;
        state.threads += 1;
        Ok(())
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn serve(&self, first: Job) {
        let ready = self.user.as_ref().map_or(Ok(()), sys::become_user_for_files);
        let mut job = Some(first);
        while let Some(work) = job {
            work(as_failure(&ready));
            job = self.next();
        }
    }

    fn next(&self) -> Option<Job> {
        let mut state = self.lock();
        if state.parked >= MOST_PARKED {
            state.threads -= 1;
            return None;
        }
        state.parked += 1;
        let mut state = self
            .work
            .wait_while(state, |state| state.jobs.is_empty())
            .unwrap_or_else(PoisonError::into_inner);
        state.parked -= 1;
        state.jobs.pop_front()
    }
}

fn as_failure(ready: &io::Result<()>) -> Result<(), Failure> {
    let say = |error: &io::Error| failure("internal", format!("become the sandbox's user: {error}"));
    ready.as_ref().copied().map_err(say)
}
