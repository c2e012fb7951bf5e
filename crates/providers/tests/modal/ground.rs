//! A stand-in, and a provider for it.

use std::path::Path;
use std::sync::Arc;

use eyot_providers::e2b::Secret;
use eyot_providers::modal::{ModalOptions, ModalProvider};

use crate::stand_in::{StandIn, TOKEN_ID, TOKEN_SECRET};

pub use crate::vendor::block_on;

/// A stand-in, and the provider for it.
pub struct Ground {
    pub stand_in: StandIn,
    state: tempfile::TempDir,
    provider: Arc<ModalProvider>,
}

impl Ground {
    /// Starts a stand-in with a clock that is wrong by so many seconds.
    pub fn new(clock_skew_s: i64) -> Self {
        let state = tempfile::tempdir().expect("a folder for the state");
        let stand_in = block_on(StandIn::start(clock_skew_s));
        let provider = ModalProvider::new(options_for(&stand_in.url, state.path())).expect("a provider");
        Self { stand_in, state, provider }
    }

    pub fn provider(&self) -> Arc<ModalProvider> {
        self.provider.clone()
    }

    /// Returns the options of a provider for this stand-in.
    pub fn options(&self) -> ModalOptions {
        options_for(&self.stand_in.url, self.state.path())
    }
}

fn options_for(url: &str, state: &Path) -> ModalOptions {
    ModalOptions {
        token: Some((Secret::new(TOKEN_ID), Secret::new(TOKEN_SECRET))),
        server_url: url.to_owned(),
        ..ModalOptions::from_environment(state)
    }
}

impl Drop for Ground {
    /// Removes what a case that was given up on has left.
    fn drop(&mut self) {
        block_on(self.stand_in.end());
    }
}
