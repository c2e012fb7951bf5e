//! Changing a file from what it holds: read, change and write, with nobody else's change in between.
//!
//! The lock is held per sandbox, not per path: two paths can be one file (links, spellings), and only the sandbox knows.
//! It holds among all who change files this way in this process, whichever handle they have. Commands inside, and other
//! processes that have the sandbox open, are not held up; what they read is the old or the new file, never a mixture.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};

use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use tokio::sync::OwnedMutexGuard;

use super::Sandbox;
use crate::error::{Error, ErrorKind, Result};
use crate::files::{ByteRange, WriteOptions};
use crate::spec::SandboxId;

type Lock = tokio::sync::Mutex<()>;

/// The lock of every sandbox in which files are being changed.
static LOCKS: LazyLock<Mutex<HashMap<SandboxId, Weak<Lock>>>> = LazyLock::new(Mutex::default);

impl Sandbox {
    /// Waits until nobody in this process changes a file of this sandbox; others wait until the guard is dropped.
    pub(crate) async fn lock_changes(&self) -> OwnedMutexGuard<()> {
        lock_of(self.id()).lock_owned().await
    }

    /// Replaces a file's content by what `change` makes of it, and says how large it is then. Nothing is written if
    /// `change` fails. `too_large` if the file has, or would get, more than `max_bytes`.
    pub(crate) async fn change(
        &self,
        path: &str,
        max_bytes: u64,
        change: impl FnOnce(Bytes) -> Result<Bytes> + Send,
    ) -> Result<u64> {
        let _guard = self.lock_changes().await;
        let changed = change(self.read_at_most(path, max_bytes).await?)?;
        let options = WriteOptions { max_file_bytes: Some(max_bytes), ..WriteOptions::default() };
        self.write_with(path, changed, options).await
    }

    /// Reads a whole file that has no more than `max_bytes`; a larger one is `too_large` before it is all here.
    pub(crate) async fn read_at_most(&self, path: &str, max_bytes: u64) -> Result<Bytes> {
        let mut stream = self.read_stream(path, ByteRange::default()).await?;
        let mut whole = BytesMut::new();
        while let Some(piece) = stream.next().await {
            whole.extend_from_slice(&piece?);
            if whole.len() as u64 > max_bytes {
                let why = format!("it has more than {max_bytes} bytes, the limit");
                return Err(self.failed("read file", path)(Error::new(ErrorKind::TooLarge, why)));
            }
        }
        Ok(whole.freeze())
    }
}

fn lock_of(sandbox: &SandboxId) -> Arc<Lock> {
    let mut locks = LOCKS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(held) = locks.get(sandbox).and_then(Weak::upgrade) {
        return held;
    }
    locks.retain(|_, lock| lock.strong_count() > 0);
    let lock = Arc::new(Lock::default());
    locks.insert(sandbox.clone(), Arc::downgrade(&lock));
    lock
}
