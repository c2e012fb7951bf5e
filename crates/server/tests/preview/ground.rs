//! A server on loopback over native sandboxes, with keys of two tenants; and requests written byte by byte.

use std::net::SocketAddr;

use eyot::{CancellationToken, SandboxName};
use eyot_engine::{Engine, PoolOptions};
use eyot_native::{NativeOptions, NativeProvider};
use eyot_server::api::{Access, Api, Listener, ServeOptions, serve};
use reqwest::{Method, Response};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::state_folder::StateFolder;

/// The port that the sandboxes' server listens on.
pub const PORT: u16 = 8000;

pub struct Ground {
    pub engine: Engine,
    pub address: SocketAddr,
    pub ours: String,
    pub theirs: String,
    client: reqwest::Client,
    stop: CancellationToken,
    _state: StateFolder,
}

impl Drop for Ground {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

pub fn name(text: &str) -> SandboxName {
    SandboxName::parse(text).unwrap()
}

/// Returns the options of the pool with this name.
pub fn options(name: SandboxName) -> PoolOptions {
    PoolOptions { name, ..PoolOptions::default() }
}

impl Ground {
    pub async fn new() -> Self {
        Self::with(ServeOptions::default()).await
    }

    pub async fn with(serve_options: ServeOptions) -> Self {
        Self::of(serve_options, Access::Keys).await
    }

    pub async fn of(serve_options: ServeOptions, access: Access) -> Self {
        let state = StateFolder::new();
        let folder = state.path();
        let native =
            NativeProvider::new(NativeOptions { state: folder.clone(), ..NativeOptions::default() }).unwrap();
        let engine = Engine::open(native, &folder).await.unwrap();
        let api = Api::new(engine.clone(), access, options);
        let key = async |who: &str| api.keys().create(name(who), vec![name(who)]).await.unwrap().secret;
        let (ours, theirs) = (key("ours").await, key("theirs").await);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        tokio::spawn(async move { serve(&api, Listener::Tcp(listener), serve_options, stopped).await });
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        Self { engine, address, ours, theirs, client, stop, _state: state }
    }

    /// Tells the server to stop.
    pub fn stop(&self) {
        self.stop.cancel();
    }

    /// Sends a request to the API with a key.
    pub async fn api(&self, key: &str, method: Method, path: &str, body: &Value) -> Response {
        let request = self.client.request(method, format!("http://{}{path}", self.address));
        let request = request.bearer_auth(key).header("content-type", "application/json");
        request.body(serde_json::to_vec(body).unwrap()).send().await.unwrap()
    }

    pub async fn post(&self, path: &str, body: Value) -> Response {
        self.api(&self.ours, Method::POST, path, &body).await
    }

    /// Creates a sandbox of ours and returns its id.
    pub async fn sandbox(&self, name: &str) -> String {
        let made = self.post("/v1/sandboxes", json!({ "spec": { "name": name } })).await;
        assert_eq!(made.status(), 201);
        value(made).await["id"].as_str().unwrap().to_owned()
    }

    /// Opens a preview of a sandbox's port.
    pub async fn preview(&self, id: &str, port: u16, body: Value) -> Preview {
        let made = self.post(&format!("/v1/sandboxes/{id}/ports/{port}/preview"), body).await;
        assert_eq!(
            (made.status().as_u16(), &made.headers()["cache-control"]),
            (201, &"no-store".parse().unwrap())
        );
        let answer = value(made).await;
        let text = |key: &str| answer[key].as_str().unwrap_or_default().to_owned();
        Preview { url: text("url"), path_url: text("path_url"), token: text("token"), answer }
    }

    /// Sends bytes and reads until the connection ends.
    pub async fn raw(&self, bytes: impl AsRef<[u8]>) -> Answer {
        let mut stream = self.connection().await;
        stream.write_all(bytes.as_ref()).await.unwrap();
        let mut text = Vec::new();
        stream.read_to_end(&mut text).await.unwrap();
        Answer { text: String::from_utf8_lossy(&text).into_owned() }
    }

    pub async fn connection(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// Requests a path of a host, with these header lines.
    pub async fn get(&self, host: &str, path: &str, lines: &[&str]) -> Answer {
        self.raw(request("GET", host, path, lines)).await
    }

    /// Requests an address as a browser that opens it does.
    pub async fn visit(&self, url: &str, lines: &[&str]) -> Answer {
        let (host, path) = parts(url);
        self.get(&host, &path, lines).await
    }
}

/// Makes a request, the last of its connection.
pub fn request(method: &str, host: &str, path: &str, lines: &[&str]) -> String {
    let lines: String = lines.iter().map(|line| format!("{line}\r\n")).collect();
    format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{lines}\r\n")
}

/// Splits an address into host and path.
pub fn parts(url: &str) -> (String, String) {
    let rest = url.strip_prefix("http://").unwrap();
    let (host, path) = rest.split_once('/').unwrap();
    (host.to_owned(), format!("/{path}"))
}

pub struct Preview {
    pub url: String,
    pub path_url: String,
    pub token: String,
    pub answer: Value,
}

impl Preview {
    /// Returns the preview's own host, with the port.
    pub fn host(&self) -> String {
        parts(&self.url).0
    }

    /// Returns the header that opens it.
    pub fn header(&self) -> String {
        format!("Eyot-Preview-Token: {}", self.token)
    }
}

/// An answer, read to the end of the connection.
pub struct Answer {
    pub text: String,
}

impl Answer {
    pub fn status(&self) -> u16 {
        self.text.split(' ').nth(1).unwrap_or_else(|| panic!("{:?}", self.text)).parse().unwrap()
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        let head = self.text.split("\r\n\r\n").next().unwrap();
        let lines = head.lines().filter_map(|line| line.split_once(": "));
        lines.into_iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    pub fn body(&self) -> &str {
        self.text.split_once("\r\n\r\n").unwrap().1
    }

    /// Returns the cookie that the answer sets, in the form that a request has.
    pub fn cookie(&self) -> String {
        let cookie = self.header("set-cookie").unwrap().split(';').next().unwrap();
        format!("Cookie: {cookie}")
    }
}

pub async fn value(response: Response) -> Value {
    serde_json::from_slice(&response.bytes().await.unwrap()).unwrap()
}
