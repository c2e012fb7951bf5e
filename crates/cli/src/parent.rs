//! The process that a server ends with (`--parent-pid`), however that process ends: killed by
//! SIGKILL, it could not tell us.

use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::errors::Failure;

/// A process of this host, by descriptor: its number may be reused as soon as it has ended.
pub struct Parent(AsyncFd<OwnedFd>);

impl Parent {
    /// Opens the process of this number.
    ///
    /// # Errors
    /// A usage error if there is none: the program that wanted this server has already ended.
    pub fn open(pid: i32) -> Result<Self, Failure> {
        let gone = || Failure::usage(format!("`--parent-pid {pid}`: there is no such process (any more)"));
        let pid = Pid::from_raw(pid).ok_or_else(gone)?;
        let opened = match pidfd_open(pid, PidfdFlags::empty()) {
            Err(Errno::SRCH | Errno::INVAL) => return Err(gone()),
            opened => opened.map_err(std::io::Error::from),
        };
        let watched = opened.and_then(watched);
        Ok(Self(watched.map_err(|error| Failure::host("watch the parent process", error))?))
    }

    /// Waits until the process has ended.
    pub async fn ended(&self) -> Result<(), Failure> {
        let ended = self.0.readable().await.map(drop);
        ended.map_err(|error| Failure::host("watch the parent process", error))
    }
}

#[expect(
    deprecated,
    reason = "the replacement is unsafe for types that may change their descriptor; OwnedFd does not"
)]
fn watched(pidfd: OwnedFd) -> std::io::Result<AsyncFd<OwnedFd>> {
    AsyncFd::with_interest(pidfd, Interest::READABLE)
}
