//! Subscriptions to the events of all agents in this process.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

use eyot::{Error, Result};

use crate::event::AgentEvent;

/// The most events that wait for one subscriber.
pub const MAX_WAITING_EVENTS: usize = 10_000;

struct Subscriber {
    number: u64,
    queue: SyncSender<Arc<AgentEvent>>,
    missed: Arc<AtomicU64>,
}

static SUBSCRIBERS: Mutex<Vec<Subscriber>> = Mutex::new(Vec::new());
static NUMBERS: AtomicU64 = AtomicU64::new(0);

/// A subscription to events. Dropping it ends the subscription; waiting events are still delivered.
#[derive(Debug)]
#[must_use = "a subscription ends when it is dropped"]
pub struct Subscription {
    number: u64,
    missed: Arc<AtomicU64>,
}

/// Subscribes to every event of every agent in this process.
///
/// The subscriber is called on a thread of its own, one event at a time, with the events of a run in order. It may be slow or
/// panic: no agent waits for it, and after a panic it still gets the next event. If it is more than [`MAX_WAITING_EVENTS`]
/// behind, later events are dropped and counted ([`Subscription::missed`]). An error means that the host can't start a thread.
///
/// ```
/// let subscription = eyot_agent::observe(|event| {
///     if let eyot_agent::AgentEventKind::RunEnd { is_error: true, .. } = &event.kind {
///         eprintln!("a run failed: {event:?}");
///     }
/// })?;
/// # drop(subscription);
/// # Ok::<(), eyot::Error>(())
/// ```
pub fn observe(subscriber: impl FnMut(&AgentEvent) + Send + 'static) -> Result<Subscription> {
    let (queue, waiting) = sync_channel(MAX_WAITING_EVENTS);
    let started = std::thread::Builder::new().name("eyot-observer".to_owned());
    started
        .spawn(move || deliver(&waiting, subscriber))
        .map_err(|error| Error::host("start a thread for a subscriber", error))?;
    let (number, missed) = (NUMBERS.fetch_add(1, Ordering::Relaxed), Arc::new(AtomicU64::new(0)));
    lock().push(Subscriber { number, queue, missed: Arc::clone(&missed) });
    Ok(Subscription { number, missed })
}

impl Subscription {
    /// Returns the number of events that were dropped because the subscriber was too slow.
    pub fn missed(&self) -> u64 {
        self.missed.load(Ordering::Relaxed)
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        lock().retain(|subscriber| subscriber.number != self.number);
    }
}

/// Hands an event to every subscriber, without waiting for any.
pub(crate) fn publish(event: &Arc<AgentEvent>) {
    lock().retain(|subscriber| match subscriber.queue.try_send(Arc::clone(event)) {
        Ok(()) => true,
        Err(TrySendError::Full(_)) => {
            subscriber.missed.fetch_add(1, Ordering::Relaxed);
            true
        }
        Err(TrySendError::Disconnected(_)) => false,
    });
}

fn deliver(waiting: &Receiver<Arc<AgentEvent>>, mut subscriber: impl FnMut(&AgentEvent)) {
    while let Ok(event) = waiting.recv() {
        if catch_unwind(AssertUnwindSafe(|| subscriber(&event))).is_err() {
            tracing::error!(event = event.kind.name(), "a subscriber to agents' events panicked");
        }
    }
}

fn lock() -> std::sync::MutexGuard<'static, Vec<Subscriber>> {
    SUBSCRIBERS.lock().unwrap_or_else(PoisonError::into_inner)
}
