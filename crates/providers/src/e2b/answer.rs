//! Answers over HTTP, of this vendor and of others: read within a bound.

use bytes::{Bytes, BytesMut};
use eyot::{Error, ErrorKind, Result};
use reqwest::Response;
use serde::de::DeserializeOwned;

use crate::root_cause::root_cause;

/// The source of answers: its name in errors, and the longest answer that is read whole, in bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AnswerSource {
    /// `E2B`, `the bridge`.
    pub name: &'static str,
    pub max_bytes: usize,
}

impl AnswerSource {
    /// Reads an answer whole. One past the limit is `unavailable`.
    pub async fn whole(self, mut response: Response) -> Result<Bytes> {
        let mut whole = BytesMut::new();
        while let Some(bytes) = response.chunk().await.map_err(|error| self.unreachable(error))? {
            if whole.len() + bytes.len() > self.max_bytes {
                let reason = format!("it is longer than {} bytes", self.max_bytes);
                return Err(self.unreadable().with_source(reason));
            }
            whole.extend_from_slice(&bytes);
        }
        Ok(whole.freeze())
    }

    /// Reads the JSON of an answer.
    pub async fn read<T: DeserializeOwned>(self, response: Response) -> Result<T> {
        let bytes = self.whole(response).await?;
        serde_json::from_slice(&bytes).map_err(|error| self.unreadable().with_source(error))
    }

    /// Makes the error of an answer that says nothing.
    pub fn unreadable(self) -> Error {
        Error::new(ErrorKind::Unavailable, format!("{}'s answer can't be read", self.name))
    }

    /// Makes the error of a call that did not arrive, or whose answer did not come. Addresses are left out.
    pub fn unreachable(self, error: reqwest::Error) -> Error {
        let was_not_sent = error.is_connect();
        let error = error.without_url();
        let sentence = format!("{} does not answer: {}", self.name, root_cause(&error));
        let told = Error::new(ErrorKind::Unavailable, sentence)
            .with_hint("is its address right, and can this host reach it?")
            .with_source(error);
        if was_not_sent { told.with_no_effect() } else { told }
    }
}
