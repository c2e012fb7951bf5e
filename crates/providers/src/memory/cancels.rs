//! The flags that the interpreters of one command look at wherever they work without waiting.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// The flags of one command: its own interpreter's, and those of its children.
#[derive(Debug, Default)]
pub(super) struct CancelFlags {
    state: Mutex<FlagState>,
}

#[derive(Debug, Default)]
struct FlagState {
    is_set: bool,
    flags: Vec<Weak<AtomicBool>>,
}

impl CancelFlags {
    /// Adds the flag of an interpreter. It is set at once if the others are.
    pub(super) fn add(&self, flag: &Arc<AtomicBool>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.flags.retain(|flag| flag.strong_count() > 0);
        state.flags.push(Arc::downgrade(flag));
        if state.is_set {
            flag.store(true, Ordering::Relaxed);
        }
    }

    /// Forgets all of them: what they belong to may serve another command.
    pub(super) fn forget(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).flags.clear();
    }

    /// Sets all of them, and those that come later.
    pub(super) fn set(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.is_set = true;
        for flag in state.flags.iter().filter_map(Weak::upgrade) {
            flag.store(true, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_that_comes_late_is_set_like_the_others() {
        let flags = CancelFlags::default();
        let [early, late] = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
        flags.add(&early);
        flags.set();
        flags.add(&late);
        assert!(early.load(Ordering::Relaxed) && late.load(Ordering::Relaxed));
    }

    #[test]
    fn a_flag_that_is_forgotten_is_not_set() {
        let flags = CancelFlags::default();
        let flag = Arc::new(AtomicBool::new(false));
        flags.add(&flag);
        flags.forget();
        flags.set();
        assert!(!flag.load(Ordering::Relaxed));
    }
}
