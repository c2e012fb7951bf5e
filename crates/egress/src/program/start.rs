//! The start of the program. The configuration and the descriptors come over standard input. Then
//! the process gives up everything it does not need. A failure ends it before it has answered, and
//! with it the create.

use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::{TcpListener, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixListener;

use rustix::fs::{Mode, OFlags};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendFlags, recvmsg};
use rustix::process::{DumpableBehavior, Gid, Uid};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};

use super::{limits, sys};
use crate::control::{MAX_START_BYTES, READY, START_DESCRIPTORS, StartMessage};

/// The message and the descriptors that the program was given.
pub(super) struct Startup {
    pub(super) start: StartMessage,
    /// Readable once the sandbox's guest has ended.
    pub(super) guest: OwnedFd,
    pub(super) control: UnixListener,
    pub(super) http: TcpListener,
    pub(super) socks: TcpListener,
    pub(super) dns_udp: UdpSocket,
    pub(super) dns_tcp: TcpListener,
}

/// Receives the message and the descriptors, and detaches and confines the process.
pub(super) fn start() -> io::Result<Startup> {
    // A terminal's Ctrl-C is meant for the starter, never for a sandbox that outlives it.
    rustix::process::setsid()?;
    sys::detach_from_parent()?;
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    rustix::process::chdir("/")?;
    let startup = receive()?;
    limits::set()?;
    if let Some(id) = startup.start.become_id {
        become_id(id)?;
        // The change of user made it dumpable by `fs.suid_dumpable`.
        rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    }
    rustix::thread::set_no_new_privs(true)?;
    // There is only one thread yet: later threads inherit the filter.
    sys::confine(&startup.start.filter)?;
    Ok(startup)
}

/// Drops every other group, then changes to this group and user for good. The process must have one
/// thread.
fn become_id(id: u32) -> io::Result<()> {
    let (uid, gid) = (Uid::from_raw(id), Gid::from_raw(id));
    set_thread_groups(&[])?;
    set_thread_res_gid(gid, gid, gid)?;
    Ok(set_thread_res_uid(uid, uid, uid)?)
}

/// Tells the starter that the program serves, and closes the connection to it.
pub(super) fn ready() -> io::Result<()> {
    rustix::net::send(io::stdin().as_fd(), READY, SendFlags::NOSIGNAL)?;
    let null = rustix::fs::open("/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    Ok(rustix::stdio::dup2_stdin(&null)?)
}

fn receive() -> io::Result<Startup> {
    let mut bytes = vec![0; MAX_START_BYTES];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(START_DESCRIPTORS))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let message = recvmsg(
        io::stdin().as_fd(),
        &mut [IoSliceMut::new(&mut bytes)],
        &mut ancillary,
        RecvFlags::CMSG_CLOEXEC,
    )?;
    let mut descriptors = Vec::new();
    for part in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(received) = part {
            descriptors.extend(received);
        }
    }
    let start = serde_json::from_slice(&bytes[..message.bytes])?;
    let missing = |_| io::Error::other("a descriptor is missing");
    let [guest, control, http, socks, dns_udp, dns_tcp] =
        <[OwnedFd; START_DESCRIPTORS]>::try_from(descriptors).map_err(missing)?;
    for descriptor in [&control, &http, &socks, &dns_udp, &dns_tcp] {
        rustix::io::ioctl_fionbio(descriptor, true)?;
    }
    Ok(Startup {
        start,
        guest,
        control: control.into(),
        http: http.into(),
        socks: socks.into(),
        dns_udp: dns_udp.into(),
        dns_tcp: dns_tcp.into(),
    })
}
