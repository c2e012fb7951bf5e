//! Progress bars for a person who watches: one for each blob that is fetched, or one for a pull of
//! a server.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use eyot::PullObserver;
use eyot_image::{Digest, NoProgress, Progress};
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use crate::output::Output;

/// Returns progress bars if a person watches, and otherwise no progress.
pub fn progress(output: Output) -> Arc<dyn Progress> {
    if output.shows_progress() { Arc::new(Bars::default()) } else { Arc::new(NoProgress) }
}

/// Returns a progress bar for a server's pull of this image if a person watches, and otherwise no
/// progress.
pub fn pull_observer(output: Output, name: &str) -> PullObserver {
    if !output.shows_progress() {
        return Arc::new(|_| {});
    }
    let bar = styled(ProgressBar::new(0)).with_prefix(name.to_owned());
    Arc::new(move |progress| {
        bar.set_length(progress.total_bytes);
        bar.set_position(progress.received_bytes);
        bar.set_message(format!("{}/{} blobs", progress.blobs_done, progress.blobs));
    })
}

fn styled(bar: ProgressBar) -> ProgressBar {
    match ProgressStyle::with_template("{prefix} {bytes:>10}/{total_bytes:<10} {wide_bar} {msg}") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

#[derive(Default)]
struct Bars {
    all: MultiProgress,
    known: Mutex<HashMap<Digest, ProgressBar>>,
}

impl Bars {
    fn with(&self, blob: &Digest, work: impl FnOnce(&ProgressBar)) {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bar) = known.get(blob) {
            work(bar);
        }
    }
}

impl Progress for Bars {
    fn begin(&self, blob: &Digest, total_bytes: u64) {
        let bar =
            styled(self.all.add(ProgressBar::new(total_bytes))).with_prefix(blob.hex()[..12].to_owned());
        self.known.lock().unwrap_or_else(PoisonError::into_inner).insert(blob.clone(), bar);
    }

    fn advance(&self, blob: &Digest, bytes: u64) {
        self.with(blob, |bar| {
            bar.inc(bytes);
            if bar.length() == Some(bar.position()) {
                bar.set_message("unpacking");
            }
        });
    }

    fn finish(&self, blob: &Digest) {
        self.with(blob, |bar| {
            bar.set_position(bar.length().unwrap_or_default());
            bar.finish_with_message("done");
        });
    }
}
