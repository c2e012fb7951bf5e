//! A server on loopback over native sandboxes, and a client for it.

use std::sync::Arc;

use eyot::{SandboxName, SandboxProvider};
use eyot_engine::{Engine, PoolOptions};
use eyot_native::{NativeOptions, NativeProvider};
use eyot_providers::remote::{RemoteOptions, RemoteProvider};
use eyot_server::api::{Access, Api, Listener, ServeOptions, serve};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// A server that lives as long as the tests, in a runtime of its own.
pub struct Ground {
    provider: Arc<RemoteProvider>,
    native: Arc<NativeProvider>,
    stop: CancellationToken,
    serving: Option<JoinHandle<()>>,
    server: Runtime,
    _state: tempfile::TempDir,
}

impl Ground {
    pub fn new() -> Self {
        let state = tempfile::tempdir().expect("a folder for the state");
        let folder = state.path().join("state");
        let server = Runtime::new().expect("a runtime");
        let stop = CancellationToken::new();
        let (provider, native, serving) = server.block_on(async {
            let native =
                NativeProvider::new(NativeOptions { state: folder.clone(), ..NativeOptions::default() })
                    .expect("a provider");
            let engine = Engine::open(native.clone(), &folder).await.expect("an engine");
            let api = Api::new(engine, Access::Keys, |name| PoolOptions { name, ..PoolOptions::default() });
            // The suite opens a private network to see that it can be.
            let api = api.opening_private_networks();
            let pool = SandboxName::parse("conformance").expect("a name");
            let api = api.changing_images_by(vec![pool.clone()]);
            let key = api.keys().create(pool.clone(), vec![pool]).await.expect("a key");
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
            let address = format!("http://{}", listener.local_addr().expect("an address"));
            let stopped = stop.clone();
            let serving = tokio::spawn(async move {
                let options = ServeOptions::default();
                let served = serve(&api, Listener::Tcp(listener), options, stopped).await;
                assert!(served.is_ok(), "{served:?}");
            });
            let address = address.parse().expect("an address");
            let options = RemoteOptions { address, ca_certificate: None, key: Some(key.secret), pool: None };
            let provider = RemoteProvider::open(options).await.expect("a server that answers");
            (provider, native, serving)
        });
        Self { provider, native, stop, serving: Some(serving), server, _state: state }
    }

    pub fn provider(&self) -> Arc<dyn SandboxProvider> {
        self.provider.clone()
    }
}

impl Drop for Ground {
    /// Ends the server, which finishes what it was asked for, and removes what a case that was given up
    /// on has left.
    fn drop(&mut self) {
        self.stop.cancel();
        let Some(serving) = self.serving.take() else { return };
        self.server.block_on(async {
            serving.await.expect("a server that ends");
            for left in self.native.list().await.expect("a list") {
                eprintln!("the sandbox {} was left, and is removed", left.id);
                self.native.remove(left.id.as_str()).await.expect("a sandbox that can be removed");
            }
        });
    }
}
