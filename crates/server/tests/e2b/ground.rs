//! A server of E2B's API over native sandboxes whose lives the test holds up, or lets fail.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use eyot::{
    Capabilities, Created, Error, ErrorKind, Isolation, Result, SandboxInfo, SandboxKeeper, SandboxProvider,
    ValidSpec,
};
use eyot_native::{NativeOptions, NativeProvider};
use eyot_server::e2b::{E2bApi, E2bServerOptions};
use reqwest::{Method, RequestBuilder, Response};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use crate::state_folder::StateFolder;

pub const KEY: &str = "e2b_0123456789abcdef0123456789abcdef01234567";
pub const DOMAIN: &str = "e2b.test";

/// A turnstile: who comes waits until it is let through, once it is closed.
pub struct Turnstile {
    pub arrived: Semaphore,
    released: Semaphore,
}

impl Turnstile {
    fn open() -> Self {
        Self { arrived: Semaphore::new(0), released: Semaphore::new(Semaphore::MAX_PERMITS) }
    }

    pub fn close(&self) {
        self.released.forget_permits(Semaphore::MAX_PERMITS);
    }

    pub fn release(&self) {
        self.released.add_permits(1);
    }

    async fn pass(&self) {
        self.arrived.add_permits(1);
        self.released.acquire().await.unwrap().forget();
    }
}

/// Native sandboxes with these lives.
pub struct Lives {
    pub native: Arc<NativeProvider>,
    pub sleeps: Turnstile,
    pub creates: Turnstile,
    /// The destroys that fail before one succeeds.
    pub failures: Arc<AtomicUsize>,
    /// Everything that began or ended, in order.
    pub log: Arc<Mutex<Vec<&'static str>>>,
}

struct Keeper {
    created: Arc<dyn eyot::SandboxDriver>,
    failures: Arc<AtomicUsize>,
    log: Arc<Mutex<Vec<&'static str>>>,
}

#[async_trait]
impl SandboxKeeper for Keeper {
    async fn destroy(&self) -> Result<()> {
        self.log.lock().unwrap().push("destroy");
        let one_less = |left: usize| left.checked_sub(1);
        if self.failures.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less).is_ok() {
            return Err(Error::new(ErrorKind::Unavailable, "not now"));
        }
        self.created.destroy().await
    }

    async fn abandon(&self) -> Result<()> {
        self.created.abandon().await
    }
}

impl Lives {
    fn kept(&self, mut created: Created) -> Created {
        let (failures, log) = (Arc::clone(&self.failures), Arc::clone(&self.log));
        created.keeper = Some(Arc::new(Keeper { created: Arc::clone(&created.driver), failures, log }));
        created
    }

    fn note(&self, what: &'static str) {
        self.log.lock().unwrap().push(what);
    }
}

#[async_trait]
impl SandboxProvider for Lives {
    fn name(&self) -> &str {
        self.native.name()
    }

    fn capabilities(&self) -> &Capabilities {
        self.native.capabilities()
    }

    async fn isolation(&self) -> Result<Isolation> {
        self.native.isolation().await
    }

    async fn create(&self, spec: &ValidSpec) -> Result<Created> {
        self.creates.pass().await;
        Ok(self.kept(self.native.create(spec).await?))
    }

    async fn open(&self, id_or_name: &str) -> Result<Created> {
        Ok(self.kept(self.native.open(id_or_name).await?))
    }

    async fn list(&self) -> Result<Vec<SandboxInfo>> {
        self.native.list().await
    }

    async fn remove(&self, id_or_name: &str) -> Result<()> {
        self.native.remove(id_or_name).await
    }

    async fn sleep(&self, id_or_name: &str) -> Result<()> {
        self.sleeps.pass().await;
        self.native.sleep(id_or_name).await?;
        self.note("slept");
        Ok(())
    }

    async fn wake(&self, id_or_name: &str) -> Result<Created> {
        Ok(self.kept(self.native.wake(id_or_name).await?))
    }
}

pub struct Ground {
    pub lives: Arc<Lives>,
    pub url: String,
    client: reqwest::Client,
    _state: StateFolder,
}

/// A sandbox, and the token for what is inside.
pub struct Made {
    pub id: String,
    pub token: String,
}

impl Ground {
    pub async fn new() -> Self {
        let state = StateFolder::new();
        let options = NativeOptions { state: state.path(), ..NativeOptions::default() };
        let lives = Arc::new(Lives {
            native: NativeProvider::new(options).unwrap(),
            sleeps: Turnstile::open(),
            creates: Turnstile::open(),
            failures: Arc::default(),
            log: Arc::default(),
        });
        let options =
            E2bServerOptions { api_key: KEY.to_owned(), domain: DOMAIN.to_owned(), clock_skew_s: 0 };
        let api = E2bApi::new(lives.clone(), options);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { api.serve(listener).await });
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        Self { lives, url, client, _state: state }
    }

    /// Begins a request with the key.
    pub fn request(&self, method: Method, path: &str, body: &Value) -> RequestBuilder {
        let request = self.client.request(method, format!("{}{path}", self.url)).header("X-API-Key", KEY);
        request.header("Content-Type", "application/json").body(body.to_string())
    }

    pub async fn send(&self, method: Method, path: &str, body: &Value) -> Response {
        self.request(method, path, body).send().await.unwrap()
    }

    pub async fn create(&self, body: Value) -> Made {
        let made = self.send(Method::POST, "/v2/sandboxes", &body).await;
        assert_eq!(made.status(), 201);
        let made = value(made).await;
        let text = |key: &str| made[key].as_str().unwrap().to_owned();
        Made { id: text("sandboxID"), token: text("envdAccessToken") }
    }

    /// Calls envd as a user.
    pub async fn envd(&self, made: &Made, user: &str, path: &str, body: &Value) -> Response {
        let request = self.request(Method::POST, path, body).header("E2b-Sandbox-Id", &made.id);
        request.header("X-Access-Token", &made.token).basic_auth(user, Some("")).send().await.unwrap()
    }

    /// Tells whether a sandbox is listed.
    pub async fn lists(&self, id: &str) -> bool {
        let listed = value(self.send(Method::GET, "/v2/sandboxes", &Value::Null).await).await;
        listed.as_array().unwrap().iter().any(|sandbox| sandbox["sandboxID"] == id)
    }

    pub fn log(&self) -> Vec<&'static str> {
        self.lives.log.lock().unwrap().clone()
    }
}

pub async fn value(response: Response) -> Value {
    serde_json::from_slice(&response.bytes().await.unwrap()).unwrap()
}
