//! The server: every listener in one thread, until the sandbox's guest has ended.

use std::future::Future;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use tokio::net::{TcpListener, TcpStream, UdpSocket, UnixListener};
use tokio::sync::Semaphore;

use super::gate::Gate;
use super::start::{Startup, ready};
use super::{control, dns, http, limits, socks};

/// The pause after an accept that failed.
const BREATH: Duration = Duration::from_millis(20);

/// The stack of the thread that waits for the guest's end.
const WATCH_STACK: usize = 64 * 1024;

/// Serves until the guest has ended.
pub(super) fn serve(startup: Startup) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(serve_sandbox(startup))
}

async fn serve_sandbox(startup: Startup) -> io::Result<()> {
    let gate = Arc::new(Gate::new(startup.start.sandbox, startup.start.rules));
    let connections = Arc::new(Semaphore::new(limits::connections()));
    let names = Arc::new(Semaphore::new(limits::MAX_LOOKUPS));
    let guest = startup.guest;
    std::thread::Builder::new().stack_size(WATCH_STACK).spawn(move || exit_with(&guest))?;
    let http = TcpListener::from_std(startup.http)?;
    let socks = TcpListener::from_std(startup.socks)?;
    let dns_tcp = TcpListener::from_std(startup.dns_tcp)?;
    let dns_udp = UdpSocket::from_std(startup.dns_udp)?;
    let control = UnixListener::from_std(startup.control)?;

    let of = Arc::clone(&gate);
    let serve_http = move |client| http::serve(Arc::clone(&of), client);
    tokio::spawn(accept(http, Arc::clone(&connections), serve_http));
    let of = Arc::clone(&gate);
    let serve_socks = move |client| {
        let gate = Arc::clone(&of);
        async move { socks::serve(&gate, client).await }
    };
    tokio::spawn(accept(socks, connections, serve_socks));
    let of = Arc::clone(&gate);
    let serve_names = move |client| {
        let gate = Arc::clone(&of);
        async move { dns::serve_tcp(&gate, client).await }
    };
    tokio::spawn(accept(dns_tcp, names, serve_names));
    tokio::spawn(dns::serve_udp(Arc::clone(&gate), dns_udp));
    tokio::spawn(accept_clients(control, gate, startup.start.owner));
    ready()?;
    std::future::pending().await
}

/// Serves the connections of one listener. When all turns are taken, a new connection waits in the
/// listener's queue.
async fn accept<F>(listener: TcpListener, turns: Arc<Semaphore>, serve: impl Fn(TcpStream) -> F)
where
    F: Future<Output = io::Result<()>> + Send + 'static,
{
    while let Ok(turn) = Arc::clone(&turns).acquire_owned().await {
        // The client left again, or there is no free descriptor: the next one may succeed.
        let Ok((client, _)) = listener.accept().await else {
            tokio::time::sleep(BREATH).await;
            continue;
        };
        let served = serve(client);
        tokio::spawn(async move {
            // The client alone learns how its connection ended.
            drop(served.await);
            drop(turn);
        });
    }
}

async fn accept_clients(listener: UnixListener, gate: Arc<Gate>, owner: u32) {
    let turns = Arc::new(Semaphore::new(limits::MAX_CLIENTS));
    while let Ok(turn) = Arc::clone(&turns).acquire_owned().await {
        let Ok((client, _)) = listener.accept().await else {
            tokio::time::sleep(BREATH).await;
            continue;
        };
        let gate = Arc::clone(&gate);
        tokio::spawn(async move {
            // As above.
            drop(control::serve(&gate, owner, client).await);
            drop(turn);
        });
    }
}

/// Ends the process when the guest has ended. It runs in a thread of its own, so that nothing in
/// the event loop can hold it up.
fn exit_with(guest: &OwnedFd) {
    let mut waited = [PollFd::new(guest, PollFlags::IN)];
    while let Err(Errno::INTR) = poll(&mut waited, None) {}
    std::process::exit(0)
}
