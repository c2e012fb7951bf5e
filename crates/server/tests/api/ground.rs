//! A server on loopback over native sandboxes, with a key for each of two tenants.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use eyot::{CancellationToken, SandboxName, SandboxProvider};
use eyot_engine::{Engine, PoolOptions};
use eyot_native::{NativeOptions, NativeProvider};
use eyot_server::api::{Access, Api, Listener, ServeLimits, ServeOptions, serve};
use reqwest::{Method, RequestBuilder, Response};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::state_folder::StateFolder;

pub struct Ground {
    pub api: Api,
    pub address: SocketAddr,
    pub ours: String,
    pub theirs: String,
    client: reqwest::Client,
    stop: CancellationToken,
    serving: JoinHandle<()>,
    state: StateFolder,
}

/// A guest that is stopped. Dropping it continues the guest.
pub struct StoppedGuest(Pid);

impl Drop for StoppedGuest {
    fn drop(&mut self) {
        kill_process(self.0, Signal::CONT).unwrap();
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

pub fn name(text: &str) -> SandboxName {
    SandboxName::parse(text).unwrap()
}

impl Ground {
    pub async fn new() -> Self {
        Self::limited(ServeLimits::default()).await
    }

    pub async fn limited(limits: ServeLimits) -> Self {
        Self::listening(limits, Listener::Tcp).await
    }

    /// Starts a server on the listener that `door` makes of a port.
    pub async fn listening(limits: ServeLimits, door: impl FnOnce(TcpListener) -> Listener) -> Self {
        Self::started(limits, door, |native| native).await
    }

    /// Starts a server over the provider that `wrap` makes of a native one.
    pub async fn over(wrap: impl FnOnce(Arc<NativeProvider>) -> Arc<dyn SandboxProvider>) -> Self {
        Self::started(ServeLimits::default(), Listener::Tcp, wrap).await
    }

    async fn started(
        limits: ServeLimits,
        door: impl FnOnce(TcpListener) -> Listener,
        wrap: impl FnOnce(Arc<NativeProvider>) -> Arc<dyn SandboxProvider>,
    ) -> Self {
        let state = StateFolder::new();
        let folder = state.path();
        let native =
            NativeProvider::new(NativeOptions { state: folder.clone(), ..NativeOptions::default() }).unwrap();
        let engine = Engine::open(wrap(native), &folder).await.unwrap();
        let api = Api::new(engine, Access::Keys, |name| PoolOptions { name, ..PoolOptions::default() })
            .limited(limits)
            .showing_metrics_to(vec![name("prometheus")])
            .changing_images_by(vec![name("images")])
            .running_agents(crate::agents::agents());
        let key = async |who: &str| api.keys().create(name(who), vec![name(who)]).await.unwrap().secret;
        let (ours, theirs) = (key("ours").await, key("theirs").await);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let listener = door(listener);
        let stop = CancellationToken::new();
        let (served, stopped) = (api.clone(), stop.clone());
        let serving = tokio::spawn(async move {
            serve(&served, listener, ServeOptions::default(), stopped).await.unwrap();
        });
        // A connection for each request: one that is idle may be closed just as a request is on its way.
        let client = reqwest::Client::builder().no_proxy().pool_max_idle_per_host(0).build().unwrap();
        Self { api, address, ours, theirs, client, stop, serving, state }
    }

    /// Tells the server to stop.
    pub fn stop(&self) {
        self.stop.cancel();
    }

    /// Waits until the server has ended.
    pub async fn ended(&mut self) {
        (&mut self.serving).await.unwrap();
    }

    /// Returns the state folder.
    pub fn state(&self) -> PathBuf {
        self.state.path()
    }

    /// Stops the guest of a sandbox until the returned value is dropped.
    pub fn stop_guest(&self, id: &str) -> StoppedGuest {
        let ready = std::fs::read_link(self.state().join("sandboxes").join(id).join("ready")).unwrap();
        let ready = ready.to_str().unwrap().to_owned();
        let guest = Pid::from_raw(ready.split(' ').next().unwrap().parse().unwrap()).unwrap();
        kill_process(guest, Signal::STOP).unwrap();
        StoppedGuest(guest)
    }

    /// Makes a request with our key.
    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.as_whom(&self.ours, method, path)
    }

    pub fn as_whom(&self, key: &str, method: Method, path: &str) -> RequestBuilder {
        self.bare(method, path).bearer_auth(key)
    }

    /// Makes a request without a key.
    pub fn bare(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, format!("http://{}{path}", self.address))
    }

    pub async fn post(&self, path: &str, body: Value) -> Response {
        let body = serde_json::to_vec(&body).unwrap();
        self.request(Method::POST, path)
            .header("content-type", "application/json")
            .body(body)
            .send()
            .await
            .unwrap()
    }

    pub async fn get(&self, path: &str) -> Response {
        self.request(Method::GET, path).send().await.unwrap()
    }

    /// Reads the metrics with the key that may.
    pub async fn metrics(&self) -> Response {
        let key = self.api.keys().create(name("prometheus"), vec![name("prometheus")]).await.unwrap();
        let answer = self.as_whom(&key.secret, Method::GET, "/metrics").send().await.unwrap();
        self.api.keys().revoke("prometheus").await.unwrap();
        answer
    }

    /// Creates a sandbox of ours and returns its id.
    pub async fn sandbox(&self, name: &str) -> String {
        let made = self.post("/v1/sandboxes", json!({ "spec": { "name": name } })).await;
        assert_eq!(made.status(), 201);
        value(made).await["id"].as_str().unwrap().to_owned()
    }
}

pub async fn value(response: Response) -> Value {
    serde_json::from_slice(&response.bytes().await.unwrap()).unwrap()
}

/// Returns the kind of a problem. The response must be one.
pub async fn kind(response: Response) -> String {
    assert_eq!(response.headers()["content-type"], "application/problem+json");
    let status = response.status().as_u16();
    let problem = value(response).await;
    assert_eq!(problem["status"], status);
    assert_eq!(problem["type"], format!("urn:eyot:problem:{}", problem["kind"].as_str().unwrap()));
    problem["kind"].as_str().unwrap().to_owned()
}
