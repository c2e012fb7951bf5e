//! Threads for interpreters. A thread whose work ended by itself takes more for a while, because a new
//! one costs more than a short command.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread::Builder;
use std::time::Duration;

/// Work for a thread. It returns work for the thread's spare time, or `None` if the thread must not take more work.
pub(super) type Work = Box<dyn FnOnce() -> Option<SpareWork> + Send>;

/// Work that no command waits for.
pub(super) type SpareWork = Box<dyn FnOnce() + Send>;

const STACK_BYTES: usize = 16 << 20;
/// The idle time after which a thread does its spare work. Commands often follow each other closely, and if the thread were
/// busy then, the next command would need a new one.
const SPARE_AFTER: Duration = Duration::from_micros(200);
/// A thread waits so long for more work.
const IDLE_FOR: Duration = Duration::from_millis(500);
/// So many threads wait for more work at a time.
const MAX_IDLE: usize = 8;

/// The threads that wait, the last one last.
static IDLE: Mutex<Vec<IdleThread>> = Mutex::new(Vec::new());

/// The number of the next wait.
static NEXT: AtomicU64 = AtomicU64::new(0);

struct IdleThread {
    number: u64,
    work: Sender<Work>,
}

/// Does work on a thread that does nothing else meanwhile.
///
/// # Errors
/// The system starts no thread.
pub(super) fn start(work: Work) -> io::Result<()> {
    let mut work = work;
    while let Some(idle) = take_idle() {
        match idle.work.send(work) {
            Ok(()) => return Ok(()),
            Err(unsent) => work = unsent.0,
        }
    }
    let thread = Builder::new().name("eyot-memory".to_owned()).stack_size(STACK_BYTES);
    thread.spawn(move || serve(work)).map(drop)
}

fn take_idle() -> Option<IdleThread> {
    IDLE.lock().unwrap_or_else(PoisonError::into_inner).pop()
}

/// Does work until none comes any more.
fn serve(first: Work) {
    let mut work = first;
    while let Some(spare) = work() {
        let next = wait(SPARE_AFTER).or_else(|| {
            spare();
            wait(IDLE_FOR)
        });
        work = match next {
            Some(next) => next,
            None => return,
        };
    }
}

/// Waits for more work. `None`: no work came, or enough threads wait.
fn wait(time: Duration) -> Option<Work> {
    let (sender, more) = channel();
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    {
        let mut idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() >= MAX_IDLE {
            return None;
        }
        idle.push(IdleThread { number, work: sender });
    }
    match more.recv_timeout(time) {
        Ok(next) => Some(next),
        Err(RecvTimeoutError::Disconnected) => None,
        Err(RecvTimeoutError::Timeout) => {
            let mut idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner);
            let before = idle.len();
            idle.retain(|thread| thread.number != number);
            let was_taken = idle.len() == before;
            drop(idle);
            // The caller that took this thread sends its work at once.
            was_taken.then(|| more.recv().ok()).flatten()
        }
    }
}
