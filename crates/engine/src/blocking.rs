//! Blocking work, from async code.

use eyot::{Error, ErrorKind, Result};

/// Runs blocking work on a thread that may block. Once begun it is carried out, even if the caller
/// stops waiting.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| Error::new(ErrorKind::Internal, "a blocking task ended early").with_source(error))?
}
