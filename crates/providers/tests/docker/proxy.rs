//! A proxy before the Engine that can be cut: a socket of the test's own that forwards to the
//! Engine's.

use std::path::{Path, PathBuf};

use tokio::net::{UnixListener, UnixStream};
use tokio::task::{JoinHandle, JoinSet};

/// Returns the socket of the tests' Engine; `None` if it is not on this host.
pub fn engine_socket() -> Option<PathBuf> {
    let named = std::env::var("DOCKER_HOST").unwrap_or_else(|_| "unix:///var/run/docker.sock".to_owned());
    named.strip_prefix("unix://").map(PathBuf::from)
}

/// Forwards while it lives.
pub struct Proxy {
    folder: tempfile::TempDir,
    carrying: Option<JoinHandle<()>>,
}

impl Proxy {
    /// Makes a socket that no process listens on yet.
    pub fn new() -> std::io::Result<Self> {
        Ok(Self { folder: tempfile::tempdir()?, carrying: None })
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

    /// Cuts every stream and takes no more. The socket file stays, as after an Engine was killed.
    pub fn cut(&mut self) {
        if let Some(carrying) = self.carrying.take() {
            carrying.abort();
        }
        // Only for the next one to bind; an absent one is fine.
        drop(std::fs::remove_file(self.socket()));
    }
}
