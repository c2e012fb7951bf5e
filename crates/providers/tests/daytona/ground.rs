//! A stand-in of Daytona on loopback, and a provider for it.

use std::sync::Arc;

use eyot_providers::daytona::{DaytonaOptions, DaytonaProvider};
use eyot_providers::e2b::Secret;

use crate::stand_in::{KEY, StandIn};

pub use crate::vendor::block_on;

/// A stand-in, and the provider for it.
pub struct Ground {
    pub stand_in: StandIn,
    state: tempfile::TempDir,
    provider: Arc<DaytonaProvider>,
}

impl Ground {
    pub fn new() -> Self {
        Self::skewed(0)
    }

    /// Starts a stand-in whose clock is wrong by so many seconds.
    pub fn skewed(clock_skew_s: i64) -> Self {
        let state = tempfile::tempdir().expect("a folder for the state");
        let stand_in = block_on(StandIn::start(clock_skew_s));
        let provider = DaytonaProvider::new(options(&stand_in.url, state.path())).expect("a provider");
        Self { stand_in, state, provider }
    }

    pub fn provider(&self) -> Arc<DaytonaProvider> {
        Arc::clone(&self.provider)
    }

    /// Returns the options of a provider with the same notes.
    pub fn options(&self) -> DaytonaOptions {
        options(&self.stand_in.url, self.state.path())
    }
}

fn options(url: &str, state: &std::path::Path) -> DaytonaOptions {
    DaytonaOptions {
        api_url: url.to_owned(),
        api_key: Some(Secret::new(KEY)),
        ..DaytonaOptions::from_environment(state)
    }
}

impl Drop for Ground {
    /// Removes what a case that was given up on has left.
    fn drop(&mut self) {
        block_on(self.stand_in.end());
    }
}
