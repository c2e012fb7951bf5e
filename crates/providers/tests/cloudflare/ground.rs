//! A stand-in of the bridge on loopback, and a provider for it.

use std::path::PathBuf;
use std::sync::Arc;

use axum::Router;
use eyot_providers::cloudflare::{CloudflareOptions, CloudflareProvider};
use eyot_providers::e2b::Secret;
use tokio::net::TcpListener;

use crate::left::remove_left;
use crate::stand_in::Containers;
use crate::stand_in::bridge::{StandInBridge, routes};

pub use crate::vendor::block_on;

/// The key of the tests.
pub const KEY: &str = "cf_0123456789abcdef0123456789abcdef";
/// The containers of a stand-in at once.
const MOST: usize = 200;

/// A stand-in, and the provider for it.
pub struct Ground {
    pub bridge: Arc<StandInBridge>,
    pub url: String,
    state: tempfile::TempDir,
    provider: Arc<CloudflareProvider>,
}

impl Ground {
    pub fn new() -> Self {
        Self::with(MOST, |router| router)
    }

    /// Starts a stand-in for so many containers, whose routes pass through `around`.
    pub fn with(most: usize, around: impl FnOnce(Router) -> Router) -> Self {
        let state = tempfile::tempdir().expect("a folder for the state");
        let containers = Containers::new(state.path(), most);
        let bridge = Arc::new(StandInBridge { containers, key: KEY.to_owned() });
        let router = around(routes(Arc::clone(&bridge)));
        let url = block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
            let url = format!("http://{}", listener.local_addr().expect("an address"));
            tokio::spawn(async move { axum::serve(listener, router).await });
            url
        });
        let provider =
            CloudflareProvider::new(options(&url, state.path().join("records"))).expect("a provider");
        Self { bridge, url, state, provider }
    }

    pub fn provider(&self) -> Arc<CloudflareProvider> {
        Arc::clone(&self.provider)
    }

    /// Returns the options of a provider with the same records.
    pub fn options(&self) -> CloudflareOptions {
        options(&self.url, self.state.path().join("records"))
    }
}

fn options(url: &str, records: PathBuf) -> CloudflareOptions {
    CloudflareOptions { url: Some(url.to_owned()), api_key: Some(Secret::new(KEY)), records }
}

impl Drop for Ground {
    /// Removes what a case that was given up on has left.
    fn drop(&mut self) {
        block_on(async {
            let native = &self.bridge.containers.native;
            remove_left(&**native).await;
        });
    }
}
