//! The same work on many things, on as many threads as there are processors.

use std::num::NonZero;
use std::panic::resume_unwind;
use std::thread;

/// The number of things for which another thread is worth its start.
const LEAST: usize = 64;
/// The most threads. The work is mostly the kernel's, on the same few directories.
const MOST_THREADS: usize = 8;

/// Cuts `items` into parts, has `work` done on all parts at once, and returns the results in the
/// order of the items.
pub(crate) fn in_parts<'a, T: Sync, R: Send>(
    items: &'a [T],
    work: impl Fn(&'a [T]) -> Vec<R> + Sync,
) -> Vec<R> {
    let processors = thread::available_parallelism().map_or(1, NonZero::get);
    let parts = processors.min(MOST_THREADS).min(items.len() / LEAST);
    if parts < 2 {
        return work(items);
    }
    let mut cut = items.chunks(items.len().div_ceil(parts));
    thread::scope(|scope| {
        let first = cut.next().unwrap_or_default();
        let others: Vec<_> = cut.map(|part| scope.spawn(|| work(part))).collect();
        let mut results = work(first);
        for other in others {
            results.extend(other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        results
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_the_order_of_the_items_however_many_there_are() {
        for count in [0, 1, LEAST, 2 * LEAST, 2 * LEAST + 1, 1000] {
            let items: Vec<usize> = (0..count).collect();
            assert_eq!(in_parts(&items, <[usize]>::to_vec), items);
        }
    }
}
