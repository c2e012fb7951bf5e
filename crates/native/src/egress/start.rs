//! The start of the egress program. There is one process per sandbox, because sandboxes outlive the
//! process that made them and there is no daemon. It holds the guest's pidfd and ends with the
//! guest.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use eyot_egress::control::{READY, START_DESCRIPTORS, StartMessage};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recv, recvmsg, sendmsg, socketpair,
};

use super::control::SOCKET;
use crate::launcher::egress_sockets::COUNT;
use crate::launcher::program_file::sealed;
use crate::record::path_below;

/// The step that starts the program. Errors and tests use this name.
pub(crate) const STEP: &str = "start the egress program";
/// The longest wait for the program to say that it serves. Usually it takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(20);

/// The socket over which the sandbox's child passes its listeners to the host.
pub(crate) struct Channel {
    ours: OwnedFd,
}

impl Channel {
    /// Makes a channel, and the child's end of it.
    pub(crate) fn new() -> io::Result<(Self, OwnedFd)> {
        let (ours, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        Ok((Self { ours }, theirs))
    }

    /// Receives the listeners, which the child sent before it became the guest.
    fn take(self) -> io::Result<Vec<OwnedFd>> {
        let mut bytes = [0; 16];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(COUNT))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
        recvmsg(&self.ours, &mut [IoSliceMut::new(&mut bytes)], &mut ancillary, flags)?;
        let mut sockets = Vec::new();
        for part in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(received) = part {
                sockets.extend(received);
            }
        }
        match sockets.len() {
            COUNT => Ok(sockets),
            _ => Err(io::Error::other("the listeners did not come")),
        }
    }
}

/// The egress program in memory, sealed once for all sandboxes of a provider.
#[derive(Default)]
pub(crate) struct EgressProgram(OnceLock<OwnedFd>);

impl EgressProgram {
    /// Starts the program for a sandbox and waits until it serves. After a failure it has ended, or
    /// ends with the guest.
    pub(crate) fn start(
        &self,
        directory: &Path,
        guest: &OwnedFd,
        channel: Channel,
        start: &StartMessage,
    ) -> io::Result<()> {
        let sockets = channel.take()?;
        let control = listen(directory)?;
        let (ours, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        set_socket_timeout(&ours, Timeout::Recv, Some(PATIENCE))?;
        let mut process = Command::new(format!("/proc/self/fd/{}", self.sealed()?.as_raw_fd()))
            .arg0("eyot-egress")
            .stdin(Stdio::from(theirs))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .env_clear()
            .current_dir("/")
            .spawn()?;
        // It leaves its parent at once, to be nobody's to wait for.
        process.wait()?;
        let mut descriptors = vec![guest.as_fd(), control.as_fd()];
        descriptors.extend(sockets.iter().map(AsFd::as_fd));
        hand_over(ours.as_fd(), &serde_json::to_vec(start)?, &descriptors)?;
        let mut answer = [0; READY.len()];
        let (length, _) = recv(&ours, &mut answer, RecvFlags::empty())?;
        if &answer[..length] == READY { Ok(()) } else { Err(io::Error::other("it ended before it served")) }
    }

    fn sealed(&self) -> io::Result<&OwnedFd> {
        if let Some(program) = self.0.get() {
            return Ok(program);
        }
        let made = sealed("eyot-egress", eyot_egress::PROGRAM)?;
        Ok(self.0.get_or_init(|| made))
    }
}

/// Makes the control socket in the sandbox's directory. Only the owner can connect.
fn listen(directory: &Path) -> io::Result<UnixListener> {
    let (_open, path) = path_below(directory, SOCKET)?;
    let listener = UnixListener::bind(&path)?;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}

fn hand_over(socket: BorrowedFd<'_>, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(START_DESCRIPTORS))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    ancillary.push(SendAncillaryMessage::ScmRights(descriptors));
    sendmsg(socket, &[IoSlice::new(bytes)], &mut ancillary, SendFlags::NOSIGNAL)?;
    Ok(())
}
