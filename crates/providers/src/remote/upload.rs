//! The body of a request: bytes whose source may fail on this side.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use eyot::{ByteStream, Error};
use futures_util::{Stream, StreamExt};

/// Remembers the failure of a body's source.
#[derive(Default, Clone)]
pub(super) struct Upload(Arc<Mutex<Option<Error>>>);

impl Upload {
    /// Passes the bytes on, and ends the request if they fail.
    pub fn watch(&self, content: ByteStream) -> impl Stream<Item = io::Result<Bytes>> + Send + 'static {
        let failure = Arc::clone(&self.0);
        content.map(move |bytes| {
            bytes.map_err(|error| {
                let told = io::Error::other(error.to_string());
                *failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                told
            })
        })
    }

    /// Returns the failure, if there was one.
    pub fn failure(&self) -> Option<Error> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
