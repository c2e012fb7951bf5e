//! The vendor's bridge in workerd, over containers of the stand-in; and the stand-in of the bridge.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use axum::Router;
use eyot::SandboxProvider;
use eyot_providers::cloudflare::{CloudflareOptions, CloudflareProvider};
use eyot_providers::e2b::Secret;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

use crate::npm::NpmPackages;
use crate::stand_in::bridge::{self, StandInBridge};
use crate::stand_in::{Containers, program};

/// The key of the tests.
pub const KEY: &str = "cf_0123456789abcdef0123456789abcdef";
/// The most containers at once.
const MOST: usize = 200;

/// The runtime of the servers and of every case: connections that are kept belong to it.
static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().expect("a runtime"));

/// Runs a case.
pub fn block_on<T>(case: impl Future<Output = T>) -> T {
    RUNTIME.block_on(case)
}

fn serve(router: Router) -> String {
    block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        tokio::spawn(async move { axum::serve(listener, router).await });
        url
    })
}

async fn remove_all(containers: &Containers) {
    for left in containers.native.list().await.expect("a list") {
        containers.native.remove(left.id.as_str()).await.expect("a sandbox that can be removed");
    }
}

/// The stand-in of the bridge.
pub struct StandInServer {
    pub url: String,
    bridge: Arc<StandInBridge>,
    _state: TempDir,
}

impl StandInServer {
    pub fn start() -> Self {
        let state = tempfile::tempdir().expect("a folder for the state");
        let containers = Containers::new(state.path(), MOST);
        let bridge = Arc::new(StandInBridge { containers, key: KEY.to_owned() });
        Self { url: serve(bridge::routes(Arc::clone(&bridge))), bridge, _state: state }
    }
}

impl Drop for StandInServer {
    fn drop(&mut self) {
        block_on(remove_all(&self.bridge.containers));
    }
}

/// The vendor's bridge.
pub struct VendorBridge {
    child: Mutex<(Child, Option<ChildStdin>)>,
    containers: Arc<Containers>,
    provider: Arc<CloudflareProvider>,
    _state: TempDir,
}

impl VendorBridge {
    pub fn start(npm: &NpmPackages) -> Result<Self, String> {
        let state = tempfile::tempdir().expect("a folder for the state");
        let containers = Arc::new(Containers::new(state.path(), MOST));
        let program = serve(program::routes(Arc::clone(&containers)));
        let mut command = npm.command("serve.mjs");
        command
            .args([program.as_str(), KEY])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let failed = |error: std::io::Error| format!("start the vendor's bridge: {error}");
        let mut child = command.spawn().map_err(failed)?;
        let mut lines = BufReader::new(child.stdout.take().expect("it is a pipe")).lines();
        let first = lines
            .by_ref()
            .map_while(Result::ok)
            .find_map(|line| line.strip_prefix("bridge ").map(str::to_owned));
        let url = first.ok_or("the vendor's bridge did not start")?;
        // It logs every call, and must not wait for a reader.
        std::thread::spawn(move || lines.for_each(drop));
        let stdin = child.stdin.take();
        let records = state.path().join("records");
        let options = CloudflareOptions { url: Some(url), api_key: Some(Secret::new(KEY)), records };
        let provider = CloudflareProvider::new(options).map_err(|error| error.to_string())?;
        Ok(Self { child: Mutex::new((child, stdin)), containers, provider, _state: state })
    }

    pub fn provider(&self) -> Arc<dyn SandboxProvider> {
        self.provider.clone()
    }

    /// Ends the bridge, which ends with its input, and its containers.
    pub fn end(&self) {
        let mut child = self.child.lock().unwrap_or_else(PoisonError::into_inner);
        drop(child.1.take());
        child.0.wait().expect("it ends");
        block_on(remove_all(&self.containers));
    }
}
