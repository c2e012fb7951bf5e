//! E2B's API over Eyot's sandboxes: the REST calls that make and end sandboxes, and envd, which E2B
//! runs in each of them.
//!
//! The vendor's own SDKs work with it once they are given its address (`E2B_API_URL` and
//! `E2B_SANDBOX_URL`). It speaks the JSON forms of the protocol, as these SDKs do. Sandboxes come from a
//! provider that the program passes in. The records of the sandboxes are in memory, so they end with the
//! program; templates, volumes and snapshots are left out.

mod connect;
mod entry;
mod envd;
mod files;
mod filesystem;
mod gateway;
mod input;
mod port;
mod process;
mod process_table;
mod records;
mod refusal;
mod sandboxes;
mod signature;
mod started;
mod transition;
mod watch;

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::from_fn_with_state;
use eyot::SandboxProvider;
use tokio::net::TcpListener;

use records::Records;

/// The largest JSON body of a request, in bytes.
pub(crate) const MAX_JSON_BYTES: usize = 8 << 20;
/// The version of envd whose calls are answered, as the SDKs ask for it.
const ENVD_VERSION: &str = "0.6.4";
/// The port of envd.
const ENVD_PORT: u16 = 49_983;

/// The settings of E2B's API.
#[derive(Clone)]
pub struct E2bServerOptions {
    /// The key that clients give in `X-API-Key`.
    pub api_key: String,
    /// The domain in the names of ports, `{port}-{id}.DOMAIN`.
    pub domain: String,
    /// The difference of the server's clock to the real one, in seconds.
    pub clock_skew_s: i64,
}

impl std::fmt::Debug for E2bServerOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut debug = f.debug_struct("E2bServerOptions");
        debug.field("domain", &self.domain).field("clock_skew_s", &self.clock_skew_s).finish_non_exhaustive()
    }
}

/// E2B's API over the sandboxes of one provider. Clones share their sandboxes.
#[derive(Clone)]
pub struct E2bApi {
    provider: Arc<dyn SandboxProvider>,
    options: Arc<E2bServerOptions>,
    records: Arc<Records>,
}

impl E2bApi {
    /// Makes the API. Nothing is served yet.
    pub fn new(provider: Arc<dyn SandboxProvider>, options: E2bServerOptions) -> Self {
        Self { provider, options: Arc::new(options), records: Arc::default() }
    }

    /// Returns the routes: the REST calls, envd's calls, and the ports of sandboxes.
    pub fn router(&self) -> Router {
        let control =
            sandboxes::routes().route_layer(from_fn_with_state(self.clone(), sandboxes::require_key));
        let inside = process::routes().merge(filesystem::routes()).merge(envd::routes());
        let inside = inside.layer(DefaultBodyLimit::max(MAX_JSON_BYTES)).merge(files::routes());
        let inside = inside.route_layer(from_fn_with_state(self.clone(), gateway::enter));
        control
            .layer(DefaultBodyLimit::max(MAX_JSON_BYTES))
            .merge(inside)
            .layer(from_fn_with_state(self.clone(), port::divert))
            .with_state(self.clone())
    }

    /// Serves the API on a port.
    ///
    /// # Errors
    /// Those of the port.
    pub async fn serve(&self, listener: TcpListener) -> std::io::Result<()> {
        axum::serve(listener, self.router()).await
    }

    /// Destroys every sandbox that is left.
    ///
    /// # Errors
    /// That of the first sandbox that could not be destroyed.
    pub async fn end(&self) -> eyot::Result<()> {
        for record in self.records.all() {
            let _turn = record.turn.lock().await;
            record.sandbox().destroy().await?;
            self.records.remove(&record.id);
        }
        Ok(())
    }

    /// Destroys a sandbox without a word to its clients, as a machine that fails. For tests.
    ///
    /// # Errors
    /// `not_found`, or that of the sandbox.
    pub async fn lose(&self, id: &str) -> eyot::Result<()> {
        let record = self.records.remove(id);
        let record = record.ok_or_else(|| eyot::Error::new(eyot::ErrorKind::NotFound, "no such sandbox"))?;
        record.sandbox().destroy().await
    }
}
