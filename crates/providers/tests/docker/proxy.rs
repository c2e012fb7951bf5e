//! A proxy before the Engine that can be cut: a socket of the test's own that forwards to the
//! Engine's.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, JoinSet};

/// Returns the socket of the tests' Engine; `None` if it is not on this host.
pub fn engine_socket() -> Option<PathBuf> {
    let named = std::env::var("DOCKER_HOST").unwrap_or_else(|_| "unix:///var/run/docker.sock".to_owned());
    named.strip_prefix("unix://").map(PathBuf::from)
}

/// The fate of requests to remove a container.
#[derive(Debug, Clone, Copy)]
pub enum Removals {
    /// The Engine does them, and nobody is told.
    Unanswered,
    /// They are refused, and the Engine hears nothing of them.
    Refused,
}

/// Forwards while it lives.
pub struct Proxy {
    folder: tempfile::TempDir,
    carrying: Option<JoinHandle<()>>,
    gate: Arc<Gate>,
}

/// The way of requests that are held, and the lines of all.
struct Gate {
    asked: Mutex<Vec<String>>,
    arrived: Semaphore,
    released: Semaphore,
}

impl Proxy {
    /// Makes a socket that no process listens on yet.
    pub fn new() -> std::io::Result<Self> {
        let gate = Gate { asked: Mutex::default(), arrived: Semaphore::new(0), released: Semaphore::new(0) };
        Ok(Self { folder: tempfile::tempdir()?, carrying: None, gate: Arc::new(gate) })
    }

    /// Returns the proxy's address, for a provider.
    pub fn address(&self) -> String {
        format!("unix://{}", self.socket().display())
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("engine.sock")
    }

    /// Starts to forward.
    pub fn open(&mut self, engine: &Path) -> std::io::Result<()> {
        self.cut();
        let (listener, engine) = (UnixListener::bind(self.socket())?, engine.to_owned());
        self.carrying = Some(tokio::spawn(async move {
            let mut streams = JoinSet::new();
            while let Ok((mut near, _)) = listener.accept().await {
                let engine = engine.clone();
                streams.spawn(async move {
                    let mut far = UnixStream::connect(engine).await?;
                    tokio::io::copy_bidirectional(&mut near, &mut far).await
                });
            }
        }));
        Ok(())
    }

    /// Starts to forward all but removals of containers.
    pub fn open_without(&mut self, removals: Removals, engine: &Path) -> std::io::Result<()> {
        self.cut();
        let (listener, engine) = (UnixListener::bind(self.socket())?, engine.to_owned());
        self.carrying = Some(tokio::spawn(async move {
            let mut streams = JoinSet::new();
            while let Ok((near, _)) = listener.accept().await {
                let engine = engine.clone();
                streams.spawn(async move { carry(near, UnixStream::connect(engine).await?, removals).await });
            }
        }));
        Ok(())
    }

    /// Starts to forward, and holds requests whose first line is of this kind.
    pub fn open_holding(&mut self, holds: fn(&str) -> bool, engine: &Path) -> std::io::Result<()> {
        self.cut();
        let (listener, engine) = (UnixListener::bind(self.socket())?, engine.to_owned());
        let gate = Arc::clone(&self.gate);
        self.carrying = Some(tokio::spawn(async move {
            let mut streams = JoinSet::new();
            while let Ok((near, _)) = listener.accept().await {
                let (engine, gate) = (engine.clone(), Arc::clone(&gate));
                streams.spawn(async move {
                    carry_holding(near, UnixStream::connect(engine).await?, holds, &gate).await
                });
            }
        }));
        Ok(())
    }

    /// Waits until a request is held.
    pub async fn arrived(&self) {
        self.gate.arrived.acquire().await.expect("it is never closed").forget();
    }

    /// Lets as many held requests go on.
    pub fn release(&self, count: usize) {
        self.gate.released.add_permits(count);
    }

    /// Counts the requests whose first line has this in it.
    pub fn count(&self, part: &str) -> usize {
        let asked = self.gate.asked.lock().expect("no test panics with it");
        asked.iter().filter(|line| line.contains(part)).count()
    }

    /// Cuts every stream and takes no more. The socket file stays, as after an Engine was killed.
    pub fn cut(&mut self) {
        if let Some(carrying) = self.carrying.take() {
            carrying.abort();
        }
        // Only for the next one to bind; an absent one is fine.
        drop(std::fs::remove_file(self.socket()));
    }
}

fn removes_container(request: &[u8]) -> bool {
    let line = request.split(|byte| *byte == b'\n').next().unwrap_or_default();
    line.starts_with(b"DELETE ") && String::from_utf8_lossy(line).contains("/containers/")
}

/// Carries requests and answers, and holds some requests. A client sends the first line of a request in one piece.
async fn carry_holding(
    near: UnixStream,
    far: UnixStream,
    holds: fn(&str) -> bool,
    gate: &Gate,
) -> std::io::Result<()> {
    let ((mut from_near, mut to_near), (mut from_far, mut to_far)) = (near.into_split(), far.into_split());
    let inward = async {
        let mut asked = vec![0; 64 << 10];
        loop {
            let length = from_near.read(&mut asked).await?;
            if length == 0 {
                return to_far.shutdown().await;
            }
            let line = asked[..length].split(|byte| *byte == b'\r').next().unwrap_or_default();
            let line = String::from_utf8_lossy(line).into_owned();
            if line.ends_with("HTTP/1.1") {
                gate.asked.lock().expect("no test panics with it").push(line.clone());
            }
            if holds(&line) {
                gate.arrived.add_permits(1);
                gate.released.acquire().await.expect("it is never closed").forget();
            }
            to_far.write_all(&asked[..length]).await?;
        }
    };
    let outward = async {
        tokio::io::copy(&mut from_far, &mut to_near).await?;
        to_near.shutdown().await
    };
    tokio::try_join!(inward, outward).map(drop)
}

/// Carries requests and answers until one is to remove a container. A client sends such a request in one piece.
async fn carry(mut near: UnixStream, mut far: UnixStream, removals: Removals) -> std::io::Result<()> {
    let (mut asked, mut answered) = (vec![0; 64 << 10], vec![0; 64 << 10]);
    loop {
        tokio::select! {
            read = near.read(&mut asked) => match read? {
                0 => return far.shutdown().await,
                length if removes_container(&asked[..length]) => {
                    return match removals {
                        Removals::Unanswered => {
                            far.write_all(&asked[..length]).await?;
                            far.read(&mut answered).await.map(drop)
                        }
                        Removals::Refused => {
                            let refusal = b"HTTP/1.1 500 Broken\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}";
                            near.write_all(refusal).await
                        }
                    };
                }
                length => far.write_all(&asked[..length]).await?,
            },
            read = far.read(&mut answered) => match read? {
                0 => return near.shutdown().await,
                length => near.write_all(&answered[..length]).await?,
            },
        }
    }
}
