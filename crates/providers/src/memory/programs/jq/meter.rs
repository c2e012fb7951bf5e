//! The limits of one run of `jq`: memory, depth, and its command's end. The library calls back
//! wherever it works on a value or calls a definition; there the run ends if it must. There is no
//! other way out of the library than unwinding.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::memory::programs::worker::STACK_BYTES;

/// The bytes that the values of one run may take.
const MAX_BYTES: usize = 128 << 20;
/// The stack that calls within calls may take. The rest is for letting go of what they made.
const MAX_STACK_BYTES: usize = 48 << 20;
const _: () = assert!(MAX_STACK_BYTES < STACK_BYTES / 4, "most of the stack is for what is let go of");
/// The levels of a value.
pub(super) const MAX_DEPTH: u32 = 10_000;
/// The steps that one output may take through what is not there. Each may be part of a path that the
/// library keeps, and lets go of by calls within calls.
const MAX_NULL_STEPS: u32 = 500_000;
/// So often the flag of the end is looked at.
const LOOK_EVERY: u32 = 64;

/// The reason why a run was ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Abort {
    Ended,
    Memory,
    Stack,
    Depth,
}

impl Abort {
    pub(super) fn text(self) -> &'static str {
        match self {
            Self::Ended => "ended",
            Self::Memory => "the values take more than 128 MiB",
            Self::Stack => "calls are nested too deep",
            Self::Depth => "a value is nested too deep",
        }
    }
}

struct JqMeter {
    used: Cell<usize>,
    base: Cell<usize>,
    ticks: Cell<u32>,
    null_steps: Cell<u32>,
    stop: RefCell<Option<Arc<AtomicBool>>>,
}

thread_local! {
    static METER: JqMeter = const {
        JqMeter {
            used: Cell::new(0),
            base: Cell::new(0),
            ticks: Cell::new(0),
            null_steps: Cell::new(0),
            stop: RefCell::new(None),
        }
    };
}

/// Begins to measure this thread, and calls a function that may be ended.
pub(super) fn measured<T>(stop: Arc<AtomicBool>, run: impl FnOnce() -> T) -> Result<T, Abort> {
    METER.with(|meter| {
        meter.base.set(stack_address());
        *meter.stop.borrow_mut() = Some(stop);
    });
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).map_err(|payload| {
        match payload.downcast::<Abort>() {
            Ok(abort) => *abort,
            Err(payload) => std::panic::resume_unwind(payload),
        }
    })
}

/// Ends the run. No message of a panic is printed.
pub(super) fn abort(reason: Abort) -> ! {
    std::panic::resume_unwind(Box::new(reason))
}

#[inline(never)]
fn stack_address() -> usize {
    let here = 0_u8;
    std::ptr::from_ref(&here).addr()
}

/// Ends the run here if it must end.
pub(super) fn tick() {
    METER.with(|meter| {
        let ticks = meter.ticks.get().wrapping_add(1);
        meter.ticks.set(ticks);
        let base = meter.base.get();
        if base != 0 && base.abs_diff(stack_address()) > MAX_STACK_BYTES {
            abort(Abort::Stack);
        }
        if ticks.is_multiple_of(LOOK_EVERY) {
            let stop = meter.stop.borrow();
            if stop.as_ref().is_some_and(|stop| stop.load(Ordering::Relaxed)) {
                drop(stop);
                abort(Abort::Ended);
            }
        }
    });
}

/// Notes a step through what is not there.
pub(super) fn null_step() {
    let steps = METER.with(|meter| meter.null_steps.replace(meter.null_steps.get() + 1));
    if steps > MAX_NULL_STEPS {
        abort(Abort::Depth);
    }
}

/// Forgets the steps through what is not there: an output has come of them.
pub(super) fn restart_steps() {
    METER.with(|meter| meter.null_steps.set(0));
}

/// Ends the run if so many more bytes are too many.
pub(super) fn check(more: usize) {
    if METER.with(|meter| meter.used.get().saturating_add(more)) > MAX_BYTES {
        abort(Abort::Memory);
    }
}

/// The size of what a value holds.
pub(super) trait Footprint {
    fn bytes(&self) -> usize;
    fn depth(&self) -> u32;
}

/// Something whose bytes are counted while it lives.
pub(super) struct MeteredValue<T: Footprint> {
    inner: T,
    charged: usize,
    depth: u32,
}

impl<T: Footprint> MeteredValue<T> {
    pub(super) fn new(inner: T) -> Self {
        let (bytes, depth) = (inner.bytes(), inner.depth());
        check(bytes);
        if depth > MAX_DEPTH {
            abort(Abort::Depth);
        }
        METER.with(|meter| meter.used.set(meter.used.get() + bytes));
        Self { inner, charged: bytes, depth }
    }

    pub(super) fn depth(&self) -> u32 {
        self.depth
    }

    /// Changes it; what is put in has this depth at most.
    pub(super) fn change<R>(&mut self, depth: u32, change: impl FnOnce(&mut T) -> R) -> R {
        self.depth = self.depth.max(depth + 1);
        if self.depth > MAX_DEPTH {
            abort(Abort::Depth);
        }
        let changed = change(&mut self.inner);
        let bytes = self.inner.bytes();
        if bytes > self.charged {
            check(bytes - self.charged);
        }
        METER.with(|meter| meter.used.set((meter.used.get() + bytes).saturating_sub(self.charged)));
        self.charged = bytes;
        changed
    }

    /// Takes it out.
    pub(super) fn into_inner(mut self) -> T
    where
        T: Default,
    {
        std::mem::take(&mut self.inner)
    }
}

impl<T: Footprint> std::ops::Deref for MeteredValue<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.inner
    }
}

impl<T: Footprint + Clone> Clone for MeteredValue<T> {
    fn clone(&self) -> Self {
        check(self.charged);
        Self::new(self.inner.clone())
    }
}

impl<T: Footprint> Drop for MeteredValue<T> {
    fn drop(&mut self) {
        METER.with(|meter| meter.used.set(meter.used.get().saturating_sub(self.charged)));
    }
}
