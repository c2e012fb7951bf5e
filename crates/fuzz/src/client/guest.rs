//! A guest that says what it was given, whatever it hears, and then ends.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use async_trait::async_trait;
use eyot::{Capabilities, DiskEnforcement, Enforcement, Isolation, LimitsEnforced, NetworkMode, SandboxPath};
use eyot_guest::client::{Destroyer, GuestDriverParts};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The stream to such a guest.
pub struct Guest {
    says: Vec<u8>,
    said: usize,
    at_a_time: usize,
}

impl Guest {
    /// Says these bytes, so many at a time (0: 128).
    pub fn new(says: Vec<u8>, at_a_time: u8) -> Self {
        Self { says, said: 0, at_a_time: if at_a_time == 0 { 128 } else { at_a_time.into() } }
    }
}

impl AsyncRead for Guest {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let count = (self.says.len() - self.said).min(self.at_a_time).min(into.remaining());
        into.put_slice(&self.says[self.said..self.said + count]);
        self.said += count;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Guest {
    fn poll_write(self: Pin<&mut Self>, _context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// Returns the facts that a driver knows about such a sandbox.
pub fn parts() -> GuestDriverParts {
    let none = Enforcement::None;
    let isolation = Isolation {
        provider: "fuzz".to_owned(),
        shares_host_kernel: true,
        namespaces: Vec::new(),
        identity: None,
        no_new_privileges: false,
        capabilities: Vec::new(),
        seccomp: false,
        runtime: None,
        guest_out_of_reach: true,
        shared_files: Vec::new(),
        user_counts: None,
        seccomp_instructions: None,
        landlock_abi: None,
        network: NetworkMode::None,
        readonly_rootfs: false,
        cgroup_controllers: Vec::new(),
        limits: LimitsEnforced { memory: none, cpus: none, pids: none, disk: DiskEnforcement::None },
    };
    GuestDriverParts {
        provider: "fuzz".to_owned(),
        workdir: SandboxPath::root(),
        capabilities: Capabilities::new([]),
        isolation,
        destroyer: Arc::new(NoDestroyer),
        meter: None,
    }
}

struct NoDestroyer;

#[async_trait]
impl Destroyer for NoDestroyer {
    async fn destroy(&self) -> eyot::Result<()> {
        Ok(())
    }
}
