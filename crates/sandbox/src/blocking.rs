//! What blocks, from async code.

use crate::error::{Error, ErrorKind, Result};

/// Runs what blocks on a thread that may. Once begun it is carried out, also when nobody waits any more.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| Error::new(ErrorKind::Internal, "a blocking task ended early").with_source(error))?
}
