//! The program of the launcher. It takes orders, makes sandboxes, answers with their pidfds, and
//! reaps them. When its socket closes it ends, and sandboxes that are begun but not finished end
//! with it. Running sandboxes live on.

use std::collections::HashMap;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::process::ExitCode;

use rustix::event::epoll;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::MAX_PLAN_BYTES;
use super::make::{Descriptors, DoneChild, Failed, PendingChild, replace_root};
use crate::plan::{Launched, LauncherOrder, Plan};
use crate::sys;

/// The mark of the socket's events. Events of children carry the number of their descriptor.
const SOCKET: u64 = u64::MAX;

/// The launcher's `main` when it is a process. Its socket is standard input, because that is passed
/// on without more effort.
pub fn main() -> ExitCode {
    // A terminal's Ctrl-C is meant for the provider's process, never for sandboxes that outlive it.
    let served = rustix::process::setsid()
        .map_err(io::Error::from)
        .and_then(|_| raise_open_files())
        .and_then(|open_files| serve(io::stdin().as_fd(), open_files, true));
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// Takes orders until the socket closes. Sandboxes begin with the limit `open_files`. A root that was replaced may stay for a while
/// where this is a process of its own: the child that keeps it has a copy of every descriptor of this process.
pub(crate) fn serve(socket: BorrowedFd<'_>, open_files: Rlimit, old_roots_stay: bool) -> io::Result<()> {
    let mut launcher = LauncherServer::new(socket, open_files, old_roots_stay)?;
    let mut received = Received::default();
    while launcher.wait_for_message(socket)? {
        if !received.receive(socket)? {
            return Ok(());
        }
        launcher.answer(socket, &mut received)?;
    }
    Ok(())
}

/// Raises the limit of open files, because the launcher keeps a descriptor for every sandbox.
/// Returns the previous limit, which sandboxes begin with.
fn raise_open_files() -> io::Result<Rlimit> {
    let before = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: before.maximum, maximum: before.maximum })?;
    Ok(before)
}

/// One message from the provider.
#[derive(Default)]
struct Received {
    bytes: Vec<u8>,
    descriptors: Vec<OwnedFd>,
}

impl Received {
    /// Receives one message; `false` at the end of the stream.
    fn receive(&mut self, socket: BorrowedFd<'_>) -> io::Result<bool> {
        self.bytes.resize(MAX_PLAN_BYTES, 0);
        self.descriptors.clear();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(16))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let mut buffers = [IoSliceMut::new(&mut self.bytes)];
        let message = recvmsg(socket, &mut buffers, &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
        for part in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(descriptors) = part {
                self.descriptors.extend(descriptors);
            }
        }
        self.bytes.truncate(message.bytes);
        Ok(message.bytes > 0)
    }
}

/// The launcher's state between orders.
struct LauncherServer {
    epoll: OwnedFd,
    guest: Option<OwnedFd>,
    begun: HashMap<u64, Result<PendingChild, Failed>>,
    children: HashMap<RawFd, LiveChild>,
    open_files: Rlimit,
    old_roots_stay: bool,
}

/// A child that the launcher will reap.
struct LiveChild {
    pidfd: OwnedFd,
    /// The memory of one that holds an old root. Dropping this ends the child.
    _memory: Option<PendingChild>,
}

impl LauncherServer {
    fn new(socket: BorrowedFd<'_>, open_files: Rlimit, old_roots_stay: bool) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, socket, epoll::EventData::new_u64(SOCKET), epoll::EventFlags::IN)?;
        let (begun, children) = (HashMap::new(), HashMap::new());
        Ok(Self { epoll, guest: None, begun, children, open_files, old_roots_stay })
    }

    /// Waits for a message, and reaps children that end meanwhile.
    fn wait_for_message(&mut self, _socket: BorrowedFd<'_>) -> io::Result<bool> {
        loop {
            let mut events =
                [epoll::Event { flags: epoll::EventFlags::empty(), data: epoll::EventData::new_u64(0) }; 32];
            let count = match epoll::wait(&self.epoll, &mut events[..], None) {
                Err(rustix::io::Errno::INTR) => continue,
                other => other?,
            };
            let ready: Vec<u64> = events[..count].iter().map(|event| event.data.u64()).collect();
            for child in ready.iter().filter(|ready| **ready != SOCKET) {
                self.reap(*child as RawFd)?;
            }
            if ready.contains(&SOCKET) {
                return Ok(true);
            }
        }
    }

    fn reap(&mut self, number: RawFd) -> io::Result<()> {
        if let Some(child) = self.children.remove(&number) {
            // The provider has the same pidfd open, so closing it here alone would leave it registered: the
            // next child to get this number would be taken for one that has ended, and waited for.
            epoll::delete(&self.epoll, &child.pidfd)?;
            sys::wait_and_reap(child.pidfd.as_fd());
        }
        Ok(())
    }

    fn answer(&mut self, socket: BorrowedFd<'_>, received: &mut Received) -> io::Result<()> {
        let mut descriptors = std::mem::take(&mut received.descriptors);
        match minicbor::decode(&received.bytes).map_err(io::Error::other)? {
            LauncherOrder::Guest { answer } => {
                self.guest = descriptors.pop();
                if answer {
                    reply(socket, &Launched::Running(std::process::id() as i32), None)
                } else {
                    Ok(())
                }
            }
            LauncherOrder::Begin { sandbox, own_network, into_group, account } => {
                let group = if into_group { descriptors.pop() } else { None };
                let begun = PendingChild::new(own_network, account, group.as_ref().map(AsFd::as_fd));
                self.begun.insert(sandbox, begun);
                Ok(())
            }
            LauncherOrder::Finish { sandbox, plan } => {
                let made = self.finish(sandbox, plan, descriptors);
                self.tell(socket, made, ChildRole::Guest)
            }
            LauncherOrder::BeginReplacement { number } => {
                self.begun.insert(number, PendingChild::of_living());
                Ok(())
            }
            LauncherOrder::ReplaceRoot { number, plan } => {
                let begun = self.begun.remove(&number).ok_or_else(unreadable).flatten();
                let living: Result<[OwnedFd; 3], Failed> = descriptors.try_into().map_err(|_| unreadable());
                let replaced =
                    begun.and_then(|child| replace_root(child, plan, living?, self.old_roots_stay));
                self.tell(socket, replaced, ChildRole::HoldsOldRoot)
            }
            LauncherOrder::Abandon { sandbox } => {
                self.begun.remove(&sandbox);
                reply(socket, &Launched::Abandoned, None)
            }
        }
    }

    fn finish(&mut self, sandbox: u64, plan: Plan, descriptors: Vec<OwnedFd>) -> Result<DoneChild, Failed> {
        let begun = self.begun.remove(&sandbox).ok_or_else(unreadable)??;
        let descriptors = Descriptors::sort(descriptors, &plan).ok_or_else(unreadable)?;
        let guest = self.guest.as_ref().map(AsFd::as_fd);
        begun.finish(plan, guest, descriptors, self.open_files)
    }

    /// Sends the answer, and keeps the child to reap it.
    fn tell(
        &mut self,
        socket: BorrowedFd<'_>,
        made: Result<DoneChild, Failed>,
        role: ChildRole,
    ) -> io::Result<()> {
        let DoneChild { pid, pidfd, mut memory, taken } = match made {
            Ok(made) => made,
            Err(Failed { is_closed: true, .. }) => return reply(socket, &Launched::RootClosed, None),
            Err(Failed { step, subject, error, .. }) => {
                let errno = error.raw_os_error().unwrap_or(libc::EINVAL);
                return reply(socket, &Launched::Failed { step, subject, errno }, None);
            }
        };
        let memory = match role {
            ChildRole::Guest => {
                reply(socket, &Launched::Running(pid), Some(pidfd.as_fd()))?;
                drop(memory);
                None
            }
            ChildRole::HoldsOldRoot => {
                reply(socket, &Launched::RootReplaced, None)?;
                if end_behind_others(pid).is_err() {
                    // It ends at its usual priority.
                }
                memory.close_descriptors();
                Some(memory)
            }
        };
        drop(taken);
        let number = pidfd.as_raw_fd();
        epoll::add(&self.epoll, &pidfd, epoll::EventData::new_u64(number as u64), epoll::EventFlags::IN)?;
        self.children.insert(number, LiveChild { pidfd, _memory: memory });
        Ok(())
    }
}

/// The role of a child that has carried out its plan.
#[derive(Clone, Copy)]
enum ChildRole {
    Guest,
    /// It has replaced the root of a living sandbox, and stays for a while.
    HoldsOldRoot,
}

/// Lets a child of this process end behind what others do. With it ends an overlay, and with 100,000 files that keeps a processor
/// busy for 45 ms.
fn end_behind_others(pid: i32) -> io::Result<()> {
    const LOWEST: i32 = 19;
    let child = rustix::process::Pid::from_raw(pid).ok_or(io::ErrorKind::InvalidInput)?;
    rustix::process::setpriority_process(Some(child), LOWEST)?;
    // The child has a session of its own. Where the kernel shares time between sessions, that one's priority counts.
    std::fs::write(format!("/proc/{pid}/autogroup"), LOWEST.to_string())
}

fn unreadable() -> Failed {
    Failed::at("read the plan", io::Error::from_raw_os_error(libc::EINVAL))
}

fn reply(socket: BorrowedFd<'_>, launched: &Launched, pidfd: Option<BorrowedFd<'_>>) -> io::Result<()> {
    let bytes = minicbor::to_vec(launched).map_err(io::Error::other)?;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    let descriptors: Vec<BorrowedFd<'_>> = pidfd.into_iter().collect();
    if !descriptors.is_empty() {
        ancillary.push(SendAncillaryMessage::ScmRights(&descriptors));
    }
    sendmsg(socket, &[IoSlice::new(&bytes)], &mut ancillary, SendFlags::NOSIGNAL)?;
    Ok(())
}
