//! A server for the benchmark, with a sandbox in it, and two connections that stay open: by unix
//! socket, and by TCP.

use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use eyot::wire::{ExecAnswer, ExecBody, SandboxAnswer};
use eyot::{Error, ErrorKind};
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use rustix::process::{Pid, Signal, kill_process};
use serde::de::DeserializeOwned;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::Mutex;

use crate::errors::Failure;

/// A server with a sandbox.
pub struct OverHttp {
    /// The connection by unix socket.
    pub by_socket: OpenConnection,
    /// The connection by TCP on loopback.
    pub by_tcp: OpenConnection,
    server: BenchServer,
}

impl OverHttp {
    /// Starts `eyot serve` on a new state folder in this folder, and creates a sandbox through it.
    pub async fn begin(eyot: &Path, folder: &Path) -> Result<Self, Failure> {
        let (state, socket) = (folder.join("server-state"), folder.join("server.sock"));
        let key = key(eyot, &state).map_err(cannot("make a key"))?;
        let (server, address) =
            BenchServer::start(eyot, &state, &socket).map_err(cannot("start a server"))?;
        let by_socket = UnixStream::connect(&socket).await.map_err(cannot("connect to the server"))?;
        let by_tcp = TcpStream::connect(&address).await.map_err(cannot("connect to the server"))?;
        by_tcp.set_nodelay(true).map_err(cannot("connect to the server"))?;
        let mut by_socket = OpenConnection::open(by_socket, &key).await?;
        let made: SandboxAnswer =
            by_socket.ask(Method::POST, "/v1/sandboxes", r#"{"spec":{}}"#.into()).await?;
        by_socket.sandbox = made.id.to_string();
        let mut by_tcp = OpenConnection::open(by_tcp, &key).await?;
        by_tcp.sandbox.clone_from(&by_socket.sandbox);
        Ok(Self { by_socket, by_tcp, server })
    }

    /// Removes the sandbox and ends the server.
    pub async fn end(mut self) -> Result<(), Failure> {
        let path = format!("/v1/sandboxes/{}", self.by_socket.sandbox);
        self.by_socket.send(Method::DELETE, &path, Bytes::new()).await?;
        drop((self.by_socket, self.by_tcp));
        self.server.end().map_err(cannot("end the server"))
    }
}

fn key(eyot: &Path, state: &Path) -> io::Result<String> {
    let made = Command::new(eyot).args(["keys", "create", "bench", "--state"]).arg(state).output()?;
    Ok(String::from_utf8_lossy(&made.stdout).trim().to_owned())
}

/// The server's process. Dropping it kills the process.
struct BenchServer(Child);

impl BenchServer {
    /// Starts a server and waits until it has printed its address.
    fn start(eyot: &Path, state: &Path, socket: &Path) -> io::Result<(Self, String)> {
        let mut command = Command::new(eyot);
        command.args(["serve", "--listen", "127.0.0.1:0", "--listen"]);
        command.arg(format!("unix:{}", socket.display())).arg("--state").arg(state);
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
        let mut server = Self(child);
        let said = server.0.stderr.take().ok_or_else(|| io::Error::other("it has no standard error"))?;
        for line in BufReader::new(said).lines() {
            if let Some(address) = line?.strip_prefix("eyot: serving at http://") {
                return Ok((server, address.to_owned()));
            }
        }
        Err(io::Error::other("it ended at once"))
    }

    fn end(&mut self) -> io::Result<()> {
        kill_process(Pid::from_child(&self.0), Signal::TERM)?;
        self.0.wait().map(drop)
    }
}

impl Drop for BenchServer {
    fn drop(&mut self) {
        if matches!(self.0.try_wait(), Ok(None)) {
            drop(self.0.kill().and_then(|()| self.0.wait()));
        }
    }
}

/// A connection that stays open.
pub struct OpenConnection {
    sender: Mutex<SendRequest<Full<Bytes>>>,
    key: String,
    sandbox: String,
}

impl OpenConnection {
    async fn open<S>(stream: S, key: &str) -> Result<Self, Failure>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (sender, connection) = handshake(TokioIo::new(stream)).await.map_err(broken)?;
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "the connection to the server broke");
            }
        });
        Ok(Self { sender: Mutex::new(sender), key: key.to_owned(), sandbox: String::new() })
    }

    /// Runs `sh -c true` in the sandbox.
    pub async fn exec(&self) -> Result<(), Failure> {
        let argv = ["sh", "-c", "true"].map(str::to_owned).to_vec();
        let body = serde_json::to_vec(&ExecBody { argv: Some(argv), ..ExecBody::default() });
        let body = body.map_err(|error| Failure::host("write a request", error.into()))?;
        let path = format!("/v1/sandboxes/{}/exec", self.sandbox);
        let answer: ExecAnswer = self.ask(Method::POST, &path, body.into()).await?;
        if answer.outcome.success() { Ok(()) } else { Err(refused(&format!("{:?}", answer.outcome))) }
    }

    async fn ask<T: DeserializeOwned>(&self, method: Method, path: &str, body: Bytes) -> Result<T, Failure> {
        let answer = self.send(method, path, body).await?;
        serde_json::from_slice(&answer).map_err(|error| Failure::host("read an answer", error.into()))
    }

    async fn send(&self, method: Method, path: &str, body: Bytes) -> Result<Bytes, Failure> {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", "localhost")
            .header("authorization", format!("Bearer {}", self.key))
            .header("content-type", "application/json")
            .body(Full::new(body))
            .map_err(|error| refused(&error.to_string()))?;
        let mut sender = self.sender.lock().await;
        sender.ready().await.map_err(broken)?;
        let answer = sender.send_request(request).await.map_err(broken)?;
        let status = answer.status();
        let body = answer.into_body().collect().await.map_err(broken)?.to_bytes();
        if status.is_success() { Ok(body) } else { Err(refused(&String::from_utf8_lossy(&body))) }
    }
}

fn broken(error: hyper::Error) -> Failure {
    Error::new(ErrorKind::Unavailable, "ask the server of the benchmark").with_source(error).into()
}

fn refused(what: &str) -> Failure {
    Error::new(ErrorKind::Internal, format!("ask the server of the benchmark: {what}")).into()
}

fn cannot(what: &'static str) -> impl Fn(io::Error) -> Failure {
    move |error| Failure::host(what, error)
}
