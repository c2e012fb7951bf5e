//! Timeouts and retries of models behind an HTTP API.

use serde::{Deserialize, Serialize};

/// Timeouts and retries of a model behind an HTTP API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct ModelOptions {
    /// The time limit for connecting, in milliseconds. The default is 10,000.
    pub connect_timeout_ms: u64,
    /// The longest from the request to the beginning of its answer, and between two pieces of it, in milliseconds: 600,000. A
    /// local server may load a model first.
    pub answer_timeout_ms: u64,
    /// The longest in which nothing at all comes of an answer, not even a sign of life, in milliseconds: 120,000.
    pub idle_timeout_ms: u64,
    /// The most tries of a turn that fails before its first event. The default is 3; with 1, nothing is retried.
    pub tries: u32,
    /// The wait after the first try, in milliseconds. The default is 500. It doubles with each try, and is shortened by up to
    /// a quarter at random, so that clients that failed together don't retry together.
    pub first_wait_ms: u64,
    /// The longest wait between tries, in milliseconds. The default is 30,000.
    pub longest_wait_ms: u64,
    /// The longest wait that a provider may ask for, in milliseconds. The default is 60,000. Beyond it, the error is returned.
    pub longest_retry_after_ms: u64,
}

impl Default for ModelOptions {
    fn default() -> Self {
        Self {
            connect_timeout_ms: 10_000,
            answer_timeout_ms: 600_000,
            idle_timeout_ms: 120_000,
            tries: 3,
            first_wait_ms: 500,
            longest_wait_ms: 30_000,
            longest_retry_after_ms: 60_000,
        }
    }
}
