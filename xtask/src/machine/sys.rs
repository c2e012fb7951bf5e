//! The processor's clock, which only an instruction reads.

use std::time::{Duration, Instant};

/// The time for which the two clocks are compared. A few parts in a million are good enough.
const COMPARED: Duration = Duration::from_millis(200);

/// Returns the frequency of the processor's time stamp counter, in kHz.
pub fn time_stamp_khz() -> u128 {
    // SAFETY: every x86_64 processor has the instruction, and it touches nothing.
    let ticks = || unsafe { std::arch::x86_64::_rdtsc() };
    let (since, first) = (Instant::now(), ticks());
    std::thread::sleep(COMPARED);
    let (last, passed) = (ticks(), since.elapsed());
    u128::from(last.wrapping_sub(first)) * 1_000_000 / passed.as_nanos()
}
