//! A stand-in of a Kubernetes API server with one node: Pods, Leases, watches, admission and rights, as far as
//! the provider uses them. It holds no limits, so it drops them from Pods without a word, as servers do with
//! what they don't know.

pub mod kubelet;
mod refusals;
mod routes;
pub mod store;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use eyot_providers::kubernetes::{KubernetesOptions, KubernetesProvider};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::{Notify, watch};

use kubelet::Kubelet;
use store::Store;

/// The namespace of the tests.
pub const NAMESPACE: &str = "sandboxes";

/// The server's refusals and faults, and the deletes that it was asked for.
#[derive(Default)]
pub struct Policy {
    /// The most Pods.
    pub quota: Option<usize>,
    /// Denied rights, as `verb plural`.
    pub denied: BTreeSet<String>,
    /// The most memory of a container, in MiB.
    pub most_memory_mib: Option<u64>,
    /// This many calls are refused, because the server has just begun and does not know of all rights yet.
    pub unknown_rights: usize,
    /// The answers to this many creates of Pods are lost: the Pods are made.
    pub lost_creates: usize,
    /// This many creates of Pods find that others change the quota at the same time.
    pub quota_conflicts: usize,
    /// The bodies of every delete.
    pub deletes: Vec<Value>,
    /// Deletes are not answered until this says so.
    pub deletes_may_go_on: Option<watch::Receiver<bool>>,
}

/// The parts that outlive a restart of the server.
pub struct Cluster {
    pub store: Arc<Store>,
    pub kubelet: Arc<Kubelet>,
    pub policy: Mutex<Policy>,
    /// Notified of every delete that came in.
    pub delete_came: Notify,
    node: tokio::runtime::Handle,
}

impl Cluster {
    pub fn policy(&self) -> MutexGuard<'_, Policy> {
        self.policy.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A cluster.
pub struct StandIn {
    pub cluster: Arc<Cluster>,
    state: tempfile::TempDir,
    port: u16,
    server: Mutex<Option<Runtime>>,
    node: Option<Runtime>,
}

impl StandIn {
    pub fn new() -> Self {
        let node = Runtime::new().expect("a runtime for the node");
        let store = Arc::new(Store::new());
        let kubelet = Arc::new(Kubelet::new(Arc::clone(&store)));
        let (policy, delete_came, handle) = (Mutex::default(), Notify::new(), node.handle().clone());
        let cluster = Arc::new(Cluster { store, kubelet, policy, delete_came, node: handle });
        let state = tempfile::tempdir().expect("a folder for the state");
        let mut made = Self { cluster, state, port: 0, server: Mutex::new(None), node: Some(node) };
        made.port = made.start_server(0);
        std::fs::write(made.kubeconfig(), kubeconfig(made.port)).expect("room for a file");
        made
    }

    fn start_server(&self, port: u16) -> u16 {
        let runtime = Runtime::new().expect("a runtime for the server");
        let listener = runtime.block_on(TcpListener::bind(("127.0.0.1", port))).expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let router = routes::router(Arc::clone(&self.cluster));
        runtime.spawn(async move { axum::serve(listener, router).await });
        *self.server.lock().expect("no case panics while it holds it") = Some(runtime);
        port
    }

    /// Stops the server with every connection. Pods run on.
    pub fn stop(&self) {
        let server = self.server.lock().expect("no case panics while it holds it").take();
        server.into_iter().for_each(Runtime::shutdown_background);
    }

    /// Starts the server again, at the same address.
    pub fn start(&self) {
        // A thread of its own: the caller's may belong to a runtime.
        std::thread::scope(|scope| drop(scope.spawn(|| self.start_server(self.port)).join()));
    }

    fn kubeconfig(&self) -> PathBuf {
        self.state.path().join("kubeconfig")
    }

    pub fn options(&self) -> KubernetesOptions {
        KubernetesOptions {
            kubeconfig: Some(self.kubeconfig()),
            ..KubernetesOptions::new(self.state.path().join("state"))
        }
    }

    pub fn provider(&self) -> Arc<KubernetesProvider> {
        KubernetesProvider::new(self.options())
    }
}

impl Drop for StandIn {
    fn drop(&mut self) {
        self.stop();
        // Its processes are killed with their handles.
        self.node.take().into_iter().for_each(Runtime::shutdown_background);
    }
}

fn kubeconfig(port: u16) -> String {
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: test\nclusters:\n- name: test\n  cluster:\n    server: \
         http://127.0.0.1:{port}\ncontexts:\n- name: test\n  context:\n    cluster: test\n    user: test\n    \
         namespace: {NAMESPACE}\nusers:\n- name: test\n  user: {{}}\n"
    )
}
