//! A stand-in of Modal: its two gRPC services on loopback, over native sandboxes. `modal_sdk` runs the vendor's own client
//! against it, so that it is not our imagination; what it does where the vendor's client does not look is a guess.

mod clock;
mod command;
mod control;
pub mod faults;
mod records;
mod router;
mod serve;

use std::sync::Arc;

use eyot_native::{NativeOptions, NativeProvider};
use tokio::net::TcpListener;
use tokio_rustls::rustls::ServerConfig;

#[allow(unused_imports, reason = "not all that use the stand-in plan faults")]
pub use faults::{Fault, Faults};
use records::Records;

use crate::left::remove_left;

/// The token of the tests.
pub const TOKEN_ID: &str = "ak-0123456789abcdefABCDEF";
pub const TOKEN_SECRET: &str = "as-fedcba9876543210FEDCBA";

/// The stand-in.
pub struct StandIn {
    pub native: Arc<NativeProvider>,
    pub faults: Faults,
    pub url: String,
    records: Arc<Records>,
    _state: tempfile::TempDir,
}

impl StandIn {
    /// Starts it, with a clock that is wrong by so many seconds.
    pub async fn start(clock_skew_s: i64) -> Self {
        Self::start_with(clock_skew_s, None).await
    }

    /// Starts it over TLS, as `localhost`.
    pub async fn start_with(clock_skew_s: i64, tls: Option<Arc<ServerConfig>>) -> Self {
        let state = tempfile::tempdir().expect("a folder for the state");
        let options = NativeOptions { state: state.path().join("state"), ..NativeOptions::default() };
        let native = NativeProvider::new(options).expect("a provider");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let url = match &tls {
            Some(_) => format!("https://localhost:{port}"),
            None => format!("http://127.0.0.1:{port}"),
        };
        let records = Arc::new(Records::new(native.clone(), url.clone(), clock_skew_s));
        let faults = Faults::default();
        tokio::spawn(serve::serve(listener, tls, Arc::clone(&records), faults.clone()));
        Self { native, faults, url, records, _state: state }
    }

    /// Ends a sandbox as the vendor does when its machine dies.
    pub async fn lose(&self, sandbox_id: &str) {
        self.records.lose(sandbox_id).await;
    }

    /// Returns the ids of the sandboxes that run.
    pub fn running(&self) -> Vec<String> {
        self.records.running()
    }

    /// Refuses the tokens that were given out so far, as if they had run out.
    pub fn expire_tokens(&self) {
        self.records.expire_tokens();
    }

    /// Removes apps and images, as the vendor does when it is asked to on its page.
    pub fn remove_apps_and_images(&self) {
        self.records.remove_apps_and_images();
    }

    /// Removes what is left.
    pub async fn end(&self) {
        for id in self.running() {
            self.lose(&id).await;
        }
        remove_left(&*self.native).await;
    }
}
