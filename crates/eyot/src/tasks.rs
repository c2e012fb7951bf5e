//! Work that is carried out even if its caller stops waiting.

use crate::error::{Error, ErrorKind, Result};

/// Runs work in a task of its own, and waits for it. A caller that stops waiting leaves nothing
/// half done.
pub async fn run_detached<T: Send + 'static>(
    work: impl Future<Output = Result<T>> + Send + 'static,
) -> Result<T> {
    let done = tokio::spawn(work).await;
    done.map_err(|error| Error::new(ErrorKind::Internal, "a task ended early").with_source(error))?
}
