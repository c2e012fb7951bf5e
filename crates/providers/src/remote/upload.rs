//! What is sent as a request's body: bytes that may fail on this side.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use eyot::{ByteStream, Error};
use futures_util::{Stream, StreamExt};

/// Remembers what the bytes of a request failed with.
#[derive(Default, Clone)]
pub(super) struct Upload(Arc<Mutex<Option<Error>>>);

impl Upload {
    /// The same bytes, ending the request where they fail.
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

    /// What they failed with.
    pub fn failure(&self) -> Option<Error> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
