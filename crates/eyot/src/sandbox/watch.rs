//! Watching a place: what the driver tells relative to it is told by whole paths.

use futures_util::StreamExt;
use futures_util::stream::BoxStream;

use super::Sandbox;
use crate::capabilities::Capability;
use crate::error::{Error, Result};
use crate::path::ConfinedPath;
use crate::watch::{MAX_WATCHED_DIRECTORIES, WatchEvent, WatchOptions};

impl Sandbox {
    /// Tells what happens to a file, or to the names in a directory, from the moment that this returns: everything in
    /// its order, with whole paths. `not_found` if there is nothing, `permission` if it may not be read; `quota` when
    /// there are too many directories below it or too many watches in the sandbox (native: 16).
    ///
    /// Symbolic links lead to what is watched, and are not followed below it. The stream ends after
    /// the place itself is told as removed, which it also is when its path leads elsewhere;
    /// dropping it ends the watch. If it is not read, it holds nothing up: what is lost is told as
    /// one [`crate::WatchEventKind::Overflow`]. What is made faster than it can be watched may be
    /// told as created alone.
    pub async fn watch(
        &self,
        path: &str,
        options: WatchOptions,
    ) -> Result<BoxStream<'static, Result<WatchEvent>>> {
        let place = self.place(path)?;
        let itself = place.path.as_str().to_owned();
        self.watch_at(&place, path, itself, options).await
    }

    /// The same for a place that is shown as `shown` in errors and as `itself` in events.
    pub(crate) async fn watch_at(
        &self,
        place: &ConfinedPath,
        shown: &str,
        itself: String,
        options: WatchOptions,
    ) -> Result<BoxStream<'static, Result<WatchEvent>>> {
        self.require(Capability::Watch, "watch", &[])?;
        if !(1..=MAX_WATCHED_DIRECTORIES).contains(&options.max_directories) {
            let reason =
                format!("must be from 1 to {MAX_WATCHED_DIRECTORIES}, not {}", options.max_directories);
            return Err(Error::invalid("max_directories", reason));
        }
        let events = self.driver().watch(place, options).await.map_err(self.failed("watch", shown))?;
        let (sandbox, shown) = (self.clone(), shown.to_owned());
        let directory = match itself.as_str() {
            "." => String::new(),
            path => format!("{}/", path.trim_end_matches('/')),
        };
        let told = events.map(move |event| {
            event.map(|event| event.below(&directory, &itself)).map_err(sandbox.failed("watch", &shown))
        });
        Ok(told.boxed())
    }
}
