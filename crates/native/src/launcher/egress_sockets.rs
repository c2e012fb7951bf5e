//! The listeners of the network `egress`. The child makes them in the sandbox's network namespace,
//! where a socket stays for good, and passes them to the host, which serves them. No process inside
//! has them open, so none can close them.

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType, bind,
    listen, sendmsg, socket_with,
};

/// The number of listeners: HTTP, SOCKS5, DNS over UDP and DNS over TCP, in this order.
pub(crate) const COUNT: usize = 4;
/// The type and the port on 127.0.0.1 of each listener, as `eyot-egress` expects them.
const LISTENERS: [(SocketType, u16); COUNT] = [
    (SocketType::STREAM, 3128),
    (SocketType::STREAM, 1080),
    (SocketType::DGRAM, 53),
    (SocketType::STREAM, 53),
];
/// The number of connections that wait in the kernel when the program serves as many as it may.
const BACKLOG: i32 = 1024;

/// Makes the listeners and sends them over `socket`. The child keeps none.
pub(super) fn open_and_send(socket: Option<BorrowedFd<'_>>) -> io::Result<()> {
    let socket = socket.ok_or_else(|| io::Error::from_raw_os_error(libc::EBADF))?;
    let listeners =
        LISTENERS.iter().map(|(kind, port)| open(*kind, *port)).collect::<io::Result<Vec<_>>>()?;
    let descriptors: Vec<BorrowedFd<'_>> = listeners.iter().map(AsFd::as_fd).collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(COUNT))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    ancillary.push(SendAncillaryMessage::ScmRights(&descriptors));
    sendmsg(socket, &[IoSlice::new(b"sockets")], &mut ancillary, SendFlags::NOSIGNAL)?;
    Ok(())
}

fn open(kind: SocketType, port: u16) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::INET, kind, flags, None)?;
    bind(&socket, &SocketAddr::from((Ipv4Addr::LOCALHOST, port)))?;
    if kind == SocketType::STREAM {
        listen(&socket, BACKLOG)?;
    }
    Ok(socket)
}

#[cfg(all(test, feature = "provider"))]
mod tests {
    use super::*;

    #[test]
    fn the_ports_are_those_that_the_program_and_the_variables_have() {
        let ports = LISTENERS.map(|(_, port)| port);
        let (http, socks, dns) = (eyot_egress::HTTP_PORT, eyot_egress::SOCKS_PORT, eyot_egress::DNS_PORT);
        assert_eq!(ports, [http, socks, dns, dns]);
        assert_eq!(COUNT, eyot_egress::control::SANDBOX_SOCKETS);
    }
}
