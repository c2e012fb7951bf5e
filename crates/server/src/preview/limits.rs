//! The time limits of previews, and the most at once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use eyot::{SandboxId, SandboxName};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The time limits of previews, and the most at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PreviewLimits {
    /// The time to connect to a port inside; by default 10 seconds.
    pub connect: Duration,
    /// The time in which something must listen on the port after the sandbox was woken; by default
    /// 10 seconds.
    pub after_wake: Duration,
    /// The time until the head of an answer comes, counted anew from every piece of the request's
    /// body; by default 120 seconds.
    pub first_byte: Duration,
    /// The most requests and WebSockets of one sandbox at once; by default 128. Further ones are
    /// refused.
    pub per_sandbox: usize,
    /// The most of one pool at once; by default 512.
    pub per_pool: usize,
    /// The most of one listener at once; by default 2,048. The other half of its connections is for
    /// the API.
    pub at_once: usize,
}

impl Default for PreviewLimits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            after_wake: Duration::from_secs(10),
            first_byte: Duration::from_secs(120),
            per_sandbox: 128,
            per_pool: 512,
            at_once: 2048,
        }
    }
}

/// The places for requests: of the listener, of each pool, and of each sandbox.
pub(super) struct Places {
    limits: PreviewLimits,
    all: Arc<Semaphore>,
    taken: Mutex<HashMap<String, Arc<Semaphore>>>,
}

/// A place in use. Dropping it frees the place.
pub(super) struct PlaceInUse {
    _of: [OwnedSemaphorePermit; 3],
}

impl Places {
    pub fn new(limits: PreviewLimits) -> Self {
        let all = Arc::new(Semaphore::new(limits.at_once.min(Semaphore::MAX_PERMITS)));
        Self { limits, all, taken: Mutex::default() }
    }

    /// Takes a place; `None`: all are taken.
    pub fn take(&self, pool: &SandboxName, sandbox: &SandboxId) -> Option<PlaceInUse> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        // Whoever has a place holds the semaphores that it is of.
        taken.retain(|_, places| Arc::strong_count(places) > 1);
        // A sandbox's id has a sign that no pool's name has.
        let mut of = |whose: &str, each: usize| {
            let places = taken.entry(whose.to_owned()).or_insert_with(|| Arc::new(Semaphore::new(each)));
            Arc::clone(places).try_acquire_owned().ok()
        };
        let of_sandbox = of(sandbox.as_str(), self.limits.per_sandbox)?;
        let of_pool = of(pool.as_str(), self.limits.per_pool)?;
        Some(PlaceInUse { _of: [of_sandbox, of_pool, Arc::clone(&self.all).try_acquire_owned().ok()?] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sandbox_a_pool_and_a_listener_have_their_places_and_no_more_until_one_is_given_back() {
        let places = Places::new(PreviewLimits {
            per_sandbox: 2,
            per_pool: 3,
            at_once: 4,
            ..PreviewLimits::default()
        });
        let pool = |name: &str| SandboxName::parse(name).unwrap();
        let (one, other, third) = (SandboxId::generate(), SandboxId::generate(), SandboxId::generate());
        let (a, b) = (pool("a"), pool("b"));
        let held = (places.take(&a, &one).unwrap(), places.take(&a, &one).unwrap());
        assert!(places.take(&a, &one).is_none());
        let of_other = places.take(&a, &other).unwrap();
        assert!(places.take(&a, &other).is_none());
        let of_third = places.take(&b, &third).unwrap();
        assert!(places.take(&b, &third).is_none());
        drop(held.0);
        let again = places.take(&a, &one).unwrap();
        drop((held.1, of_other, of_third, again));
        assert!(places.take(&b, &other).is_some());
        assert_eq!(places.taken.lock().unwrap().len(), 2);
    }
}
