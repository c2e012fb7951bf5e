//! A stand-in of Daytona: its API and the toolboxes of its sandboxes on loopback, over native sandboxes. `daytona_sdks` runs the
//! vendor's own SDK against it, so that it is not our imagination; what it does where no client of the vendor's looks is a
//! guess.

#[allow(clippy::result_large_err, reason = "a refusal is the response")]
mod api;
mod clock;
mod faults;
#[allow(clippy::result_large_err, reason = "a refusal is the response")]
mod files;
#[allow(clippy::result_large_err, reason = "a refusal is the response")]
mod machine;
#[allow(clippy::result_large_err, reason = "a refusal is the response")]
mod machines;
mod multipart;
#[allow(clippy::result_large_err, reason = "a refusal is the response")]
mod sessions;
mod terminal;
#[allow(clippy::result_large_err, reason = "a refusal is the response")]
mod toolbox;

use std::sync::Arc;

use axum::middleware::from_fn_with_state;
use eyot_native::{NativeOptions, NativeProvider};
use tokio::net::TcpListener;

#[allow(unused_imports, reason = "not all that use the stand-in plan faults")]
pub use faults::{Fault, Faults};
use machines::Machines;

use crate::left::remove_left;

/// The key of the tests.
pub const KEY: &str = "dtn_0123456789abcdef0123456789abcdef";

/// The stand-in.
pub struct StandIn {
    pub native: Arc<NativeProvider>,
    pub faults: Faults,
    pub url: String,
    pub machines: Arc<Machines>,
    _state: tempfile::TempDir,
}

impl StandIn {
    /// Starts it, with a clock that is wrong by so many seconds.
    pub async fn start(clock_skew_s: i64) -> Self {
        let state = tempfile::tempdir().expect("a folder for the state");
        let options = NativeOptions { state: state.path().join("state"), ..NativeOptions::default() };
        let native = NativeProvider::new(options).expect("a provider");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let (url, toolbox) = (format!("http://{address}/api"), format!("http://{address}/toolbox"));
        let machines = Arc::new(Machines::new(Arc::clone(&native), toolbox, clock_skew_s));
        let faults = Faults::default();
        let router = api::routes()
            .merge(toolbox::routes())
            .merge(files::routes())
            .merge(sessions::routes())
            .with_state(Arc::clone(&machines))
            .layer(from_fn_with_state(faults.clone(), faults::around));
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { native, faults, url, machines, _state: state }
    }

    /// Removes what is left.
    pub async fn end(&self) {
        remove_left(&*self.native).await;
    }
}

/// Runs a line in a sandbox past the toolbox, as a program in it does, and returns what it has printed.
pub async fn run_inside(driver: &Arc<dyn eyot::SandboxDriver>, line: &str) -> eyot::Result<String> {
    let argv = ["sh", "-c", line];
    let output = machine::run(driver, &argv, "/", std::collections::BTreeMap::new(), None).await?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
