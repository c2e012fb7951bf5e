//! Faults that a test plans for the calls to a stand-in, and the calls that came.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Semaphore;

/// The faults to come, and the calls that came.
pub struct PlannedFaults<F>(Arc<Shared<F>>);

struct Shared<F> {
    planned: Mutex<VecDeque<(&'static str, F)>>,
    asked: Mutex<Vec<String>>,
    arrived: Semaphore,
    released: Semaphore,
}

impl<F> Clone for PlannedFaults<F> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<F> Default for PlannedFaults<F> {
    fn default() -> Self {
        let (planned, asked) = (Mutex::default(), Mutex::default());
        Self(Arc::new(Shared { planned, asked, arrived: Semaphore::new(0), released: Semaphore::new(0) }))
    }
}

fn locked<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

#[allow(dead_code, reason = "not all that use a stand-in plan faults")]
impl<F> PlannedFaults<F> {
    /// Plans a fault for the next call of a name.
    pub fn plan(&self, call: &'static str, fault: F) {
        locked(&self.0.planned).push_back((call, fault));
    }

    /// Plans a fault for the next calls of a name.
    pub fn plan_times(&self, call: &'static str, fault: F, times: usize)
    where
        F: Clone,
    {
        (0..times).for_each(|_| self.plan(call, fault.clone()));
    }

    /// Notes a call, and takes the fault that is planned for it.
    pub fn take(&self, call: &str) -> Option<F> {
        self.take_where(call, |name, _| name == call)
    }

    /// Notes a call, and takes the first fault that is planned for such a one.
    pub fn take_where(&self, call: &str, is_for: impl Fn(&str, &F) -> bool) -> Option<F> {
        locked(&self.0.asked).push(call.to_owned());
        let mut planned = locked(&self.0.planned);
        let at = planned.iter().position(|(name, fault)| is_for(name, fault))?;
        planned.remove(at).map(|(_, fault)| fault)
    }

    /// Counts the calls of a name.
    pub fn count(&self, call: &str) -> usize {
        self.count_where(|asked| asked == call)
    }

    /// Counts the calls of a kind.
    pub fn count_where(&self, is_one: impl Fn(&str) -> bool) -> usize {
        locked(&self.0.asked).iter().filter(|asked| is_one(asked)).count()
    }

    /// Waits until a call is held.
    pub async fn arrived(&self) {
        self.0.arrived.acquire().await.expect("it is never closed").forget();
    }

    /// Says that a call is held.
    pub fn arrive(&self) {
        self.0.arrived.add_permits(1);
    }

    /// Holds a call until it is let go.
    pub async fn hold(&self) {
        self.arrive();
        self.0.released.acquire().await.expect("it is never closed").forget();
    }

    /// Lets a held call go on.
    pub fn release(&self) {
        self.0.released.add_permits(1);
    }
}
