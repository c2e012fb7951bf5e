//! A progress bar for a person who waits. Short work shows none.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use eyot::ByteStream;
use futures_util::TryStreamExt;
use indicatif::{ProgressBar, ProgressStyle};
use tokio::time::{interval, timeout};

use crate::output::Output;

/// The time after which a bar is shown.
const PATIENCE: Duration = Duration::from_millis(300);
const REDRAW: Duration = Duration::from_millis(100);

/// Counts the bytes of a copy. The total is known if `expect` was called.
#[derive(Debug, Clone, Default)]
pub struct ByteMeter(Arc<Counters>);

#[derive(Debug, Default)]
struct Counters {
    bytes: AtomicU64,
    total: AtomicU64,
}

impl ByteMeter {
    /// Sets the total number of bytes.
    pub fn expect(&self, total: u64) {
        self.0.total.store(total, Ordering::Relaxed);
    }

    /// Returns the same stream, with its bytes counted.
    pub fn count(&self, stream: ByteStream) -> ByteStream {
        let meter = self.clone();
        Box::pin(stream.inspect_ok(move |bytes: &Bytes| meter.add(bytes.len() as u64)))
    }

    /// Adds a number of bytes.
    pub fn add(&self, bytes: u64) {
        self.0.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Returns the number of bytes so far.
    pub fn bytes(&self) -> u64 {
        self.0.bytes.load(Ordering::Relaxed)
    }
}

/// Waits for `work`. If a person watches, it shows meanwhile what `meter` has counted.
pub async fn watch<T>(output: Output, meter: &ByteMeter, work: impl Future<Output = T>) -> T {
    if !output.shows_progress() {
        return work.await;
    }
    let mut work = pin!(work);
    if let Ok(done) = timeout(PATIENCE, &mut work).await {
        return done;
    }
    let bar = bar(meter.0.total.load(Ordering::Relaxed));
    let mut redraw = interval(REDRAW);
    loop {
        tokio::select! {
            done = &mut work => {
                bar.finish_and_clear();
                return done;
            }
            _ = redraw.tick() => bar.set_position(meter.bytes()),
        }
    }
}

fn bar(total: u64) -> ProgressBar {
    let (bar, template) = match total {
        0 => (ProgressBar::new_spinner(), "{spinner} {bytes} {bytes_per_sec}"),
        total => (ProgressBar::new(total), "{bytes}/{total_bytes} {wide_bar} {bytes_per_sec} {eta}"),
    };
    // It was begun before there was a bar, which matters to the speed that is shown.
    let bar = bar.with_elapsed(PATIENCE);
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
