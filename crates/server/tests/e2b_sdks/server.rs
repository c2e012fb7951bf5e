//! A server on loopback over native sandboxes that speaks E2B's API.

use std::process::Command;
use std::sync::Arc;

use eyot::SandboxProvider;
use eyot_native::{NativeOptions, NativeProvider};
use eyot_server::e2b::{E2bApi, E2bServerOptions};
use libtest_mimic::Failed;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

/// The key of the tests. It has the form of E2B's keys.
const KEY: &str = "e2b_0123456789abcdef0123456789abcdef01234567";

pub struct Server {
    url: String,
    api: E2bApi,
    native: Arc<NativeProvider>,
    runtime: Runtime,
    _state: tempfile::TempDir,
}

impl Server {
    pub fn start() -> Result<Self, Failed> {
        let state = tempfile::tempdir()?;
        let runtime = Runtime::new()?;
        let options = NativeOptions { state: state.path().join("state"), ..NativeOptions::default() };
        let native = NativeProvider::new(options)?;
        let options =
            E2bServerOptions { api_key: KEY.to_owned(), domain: "e2b.test".to_owned(), clock_skew_s: 0 };
        let api = E2bApi::new(native.clone(), options);
        let served = api.clone();
        let url = runtime.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await?;
            let url = format!("http://{}", listener.local_addr()?);
            tokio::spawn(async move { served.serve(listener).await });
            Ok::<_, std::io::Error>(url)
        })?;
        Ok(Self { url, api, native, runtime, _state: state })
    }

    /// Tells a program of the SDK where the server is.
    pub fn around<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command.env("E2B_API_URL", &self.url).env("E2B_SANDBOX_URL", &self.url).env("E2B_API_KEY", KEY)
    }

    /// Looks that no sandbox is left.
    pub fn end(self) -> Result<(), Failed> {
        let left = self.runtime.block_on(self.native.list())?;
        if left.is_empty() { Ok(()) } else { Err(format!("{} sandboxes are left", left.len()).into()) }
    }
}

impl Drop for Server {
    /// Removes what a case that failed has left.
    fn drop(&mut self) {
        self.runtime.block_on(async {
            self.api.end().await.expect("sandboxes that can be destroyed");
            for left in self.native.list().await.expect("a list") {
                self.native.remove(left.id.as_str()).await.expect("a sandbox that can be removed");
            }
        });
    }
}
