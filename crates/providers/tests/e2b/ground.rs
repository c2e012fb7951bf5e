//! A server on loopback that speaks E2B's API over native sandboxes, and a provider for it.

use std::path::Path;
use std::sync::Arc;

use axum::Router;
use eyot_native::{NativeOptions, NativeProvider};
use eyot_providers::e2b::{E2bOptions, E2bProvider, Secret};
use eyot_server::e2b::{E2bApi, E2bServerOptions};
use tokio::net::TcpListener;

use crate::left::remove_left;
pub use crate::vendor::block_on;

/// The key of the tests.
pub const KEY: &str = "e2b_0123456789abcdef0123456789abcdef01234567";

/// A server, and the provider for it.
pub struct Ground {
    pub api: E2bApi,
    pub native: Arc<NativeProvider>,
    url: String,
    state: tempfile::TempDir,
    provider: Arc<E2bProvider>,
}

impl Ground {
    pub fn new() -> Self {
        Self::with(0, |router| router)
    }

    /// Starts a server with a clock of its own, whose routes pass through `around`.
    pub fn with(clock_skew_s: i64, around: impl FnOnce(Router) -> Router) -> Self {
        let state = tempfile::tempdir().expect("a folder for the state");
        let options = NativeOptions { state: state.path().join("state"), ..NativeOptions::default() };
        let native = NativeProvider::new(options).expect("a provider");
        let options =
            E2bServerOptions { api_key: KEY.to_owned(), domain: "e2b.test".to_owned(), clock_skew_s };
        let api = E2bApi::new(native.clone(), options);
        let router = around(api.router());
        let url = block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
            let url = format!("http://{}", listener.local_addr().expect("an address"));
            tokio::spawn(async move { axum::serve(listener, router).await });
            url
        });
        let provider = E2bProvider::new(options_for(&url, state.path())).expect("a provider");
        Self { api, native, url, state, provider }
    }

    pub fn provider(&self) -> Arc<E2bProvider> {
        self.provider.clone()
    }

    /// Returns the options of a provider for this server.
    pub fn options(&self) -> E2bOptions {
        options_for(&self.url, self.state.path())
    }
}

fn options_for(url: &str, state: &Path) -> E2bOptions {
    E2bOptions {
        api_key: Some(Secret::new(KEY)),
        api_url: Some(url.to_owned()),
        sandbox_url: Some(url.to_owned()),
        ..E2bOptions::from_environment(state)
    }
}

impl Drop for Ground {
    /// Removes what a case that was given up on has left.
    fn drop(&mut self) {
        block_on(async {
            self.api.end().await.expect("sandboxes that can be destroyed");
            remove_left(&*self.native).await;
        });
    }
}
