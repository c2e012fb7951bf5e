//! The provider's side of the launcher: starting it from sealed memory, and handing it one plan at a time.

use std::io::{self, IoSlice, IoSliceMut, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use eyot::{Error, ErrorKind};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{MemfdFlags, Mode, OFlags, SealFlags};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};
use rustix::time::Timespec;

use super::{GUEST, GUEST_AND_ANSWER, MAX_PLAN_BYTES};
use crate::cgroup::{CgroupCause, GroupDescriptors, Home, Place, scope_command};
use crate::host::SetupFailure;
use crate::plan::{Launched, Plan};

static LAUNCHER: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/eyot-launcher"));

/// A running launcher. Dropping it ends the launcher; its sandboxes live on.
pub(crate) struct Launcher {
    socket: Mutex<OwnedFd>,
    process: Child,
    home: Result<Home, CgroupCause>,
}

/// What every new guest is given: the stream to its maker, the listener for others, its configuration; and its control
/// groups.
pub(crate) struct GuestDescriptors {
    pub stream: OwnedFd,
    pub listener: OwnedFd,
    pub config: OwnedFd,
    /// Where the listeners of the network `egress` are sent, if it has that.
    pub egress: Option<OwnedFd>,
    pub groups: GroupDescriptors,
}

impl GuestDescriptors {
    /// In the order in which the launcher takes them apart.
    fn in_order(&self) -> Vec<BorrowedFd<'_>> {
        let guest = [&self.stream, &self.listener, &self.config].into_iter();
        let groups = self.groups.memory_events.iter().chain(&self.groups.into).chain(&self.groups.tasks);
        guest.chain(groups).chain(&self.egress).map(AsFd::as_fd).collect()
    }
}

/// How long the user manager may take to give the launcher a scope.
const SCOPE_PATIENCE: Duration = Duration::from_secs(10);

impl Launcher {
    /// Starts a launcher where it can give sandboxes control groups, if there is such a place, and hands it the guest's
    /// program.
    pub(crate) fn start() -> eyot::Result<Self> {
        let started = match Place::find() {
            Place::Here(home) => Self::start_plainly(Ok(home)),
            Place::Nowhere(cause) => Self::start_plainly(Err(cause)),
            Place::UserManager => Self::start_in_scope().or_else(|error| {
                tracing::warn!(%error, "get a control group from the user manager; limits are not enforced");
                Self::start_plainly(Err(CgroupCause::NoScope { reason: crate::sentence(&error) }))
            }),
        };
        started.map_err(|error| SetupFailure::new("start the sandbox launcher", "", error).into_error())
    }

    fn start_plainly(home: Result<Home, CgroupCause>) -> io::Result<Self> {
        let program = sealed("eyot-launcher", LAUNCHER)?;
        let mut command = Command::new(format!("/proc/self/fd/{}", program.as_raw_fd()));
        command.env_clear().stdout(Stdio::null());
        Self::spawn(command, GUEST, home)
    }

    /// Through the user manager. It must be there before it can be put into a group of its own.
    fn start_in_scope() -> io::Result<Self> {
        let mut command = scope_command("/proc/self/fd/1");
        // What the manager's program becomes must be open when it does: the standard output is.
        command.stdout(Stdio::from(sealed("eyot-launcher", LAUNCHER)?));
        let mut launcher = Self::spawn(command, GUEST_AND_ANSWER, Err(CgroupCause::NotDelegated))?;
        if let Err(error) = launcher.wait_for_answer() {
            launcher.process.kill()?;
            return Err(error);
        }
        launcher.home = Home::around(launcher.process.id());
        Ok(launcher)
    }

    fn spawn(mut command: Command, greeting: &[u8], home: Result<Home, CgroupCause>) -> io::Result<Self> {
        let (ours, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        command.stdin(Stdio::from(theirs)).stderr(Stdio::null()).current_dir("/");
        let process = command.spawn()?;
        // With it go this process's copies of what it was given: an end of the other side is to be seen.
        drop(command);
        let launcher = Self { socket: Mutex::new(ours), process, home };
        let guest = sealed("eyot-guest", eyot_guest::PROGRAM)?;
        // A program that its own process can't read makes that process's files in /proc the host root's, not the inner
        // root's: no user inside can then change the guest's oom_score_adj, say.
        rustix::fs::fchmod(&guest, Mode::from_raw_mode(0o111))?;
        send(launcher.socket().as_fd(), greeting, &[guest.as_fd()])?;
        Ok(launcher)
    }

    fn wait_for_answer(&self) -> io::Result<()> {
        let socket = self.socket();
        let timeout = Timespec::try_from(SCOPE_PATIENCE).map_err(io::Error::other)?;
        let mut waited = [PollFd::new(&*socket, PollFlags::IN)];
        if poll(&mut waited, Some(&timeout))? == 0 {
            return Err(io::ErrorKind::TimedOut.into());
        }
        receive(socket.as_fd()).map(drop)
    }

    fn socket(&self) -> MutexGuard<'_, OwnedFd> {
        self.socket.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where its sandboxes' control groups are made, or why nowhere.
    pub(crate) fn home(&self) -> Result<&Home, &CgroupCause> {
        self.home.as_ref()
    }

    /// Has one sandbox made. Blocks for about a millisecond; callers take turns.
    pub(crate) fn launch(&self, plan: &Plan, guest: &GuestDescriptors) -> eyot::Result<(i32, OwnedFd)> {
        let bytes = minicbor::to_vec(plan).map_err(|error| {
            Error::new(ErrorKind::Internal, "create sandbox: write the plan down: failed").with_source(error)
        })?;
        if bytes.len() > MAX_PLAN_BYTES {
            let message = format!(
                "create sandbox: its mounts need a plan of {} bytes; the limit is {MAX_PLAN_BYTES}",
                bytes.len()
            );
            return Err(Error::new(ErrorKind::TooLarge, message));
        }
        let answer = self.exchange(&bytes, guest).map_err(|error| {
            Error::new(ErrorKind::Unavailable, "create sandbox: the sandbox launcher has ended")
                .with_source(error)
        })?;
        match answer {
            (Launched::Running(pid), Some(pidfd)) => Ok((pid, pidfd)),
            (Launched::Running(_), None) => {
                Err(Error::new(ErrorKind::Internal, "create sandbox: no pidfd came back"))
            }
            (Launched::Failed { step, subject, errno }, _) => {
                Err(SetupFailure::new(step, subject, io::Error::from_raw_os_error(errno)).into_error())
            }
        }
    }

    fn exchange(&self, plan: &[u8], guest: &GuestDescriptors) -> io::Result<(Launched, Option<OwnedFd>)> {
        let socket = self.socket();
        send(socket.as_fd(), plan, &guest.in_order())?;
        receive(socket.as_fd())
    }
}

impl Drop for Launcher {
    fn drop(&mut self) {
        // Its socket ends with ours, and it with its socket; waiting for it leaves no zombie behind.
        let socket = self.socket.get_mut().unwrap_or_else(PoisonError::into_inner);
        if rustix::net::shutdown(&*socket, rustix::net::Shutdown::Both).is_ok()
            && let Err(error) = self.process.wait()
        {
            tracing::warn!(%error, "wait for the launcher");
        }
    }
}

/// A program in memory that nobody can change any more, opened read-only.
pub(crate) fn sealed(name: &str, program: &[u8]) -> io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    // Where `vm.memfd_noexec` is 1, a program has to be asked for; kernels before 6.3 don't know the flag.
    let memfd = match rustix::fs::memfd_create(name, flags | MemfdFlags::EXEC) {
        Err(rustix::io::Errno::INVAL) => rustix::fs::memfd_create(name, flags)?,
        made => made?,
    };
    let mut file = std::fs::File::from(memfd);
    file.write_all(program)?;
    rustix::fs::fcntl_add_seals(
        &file,
        SealFlags::SEAL | SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE,
    )?;
    // An open for writing, even one that can't write any more, would make the exec fail with ETXTBSY.
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    Ok(rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?)
}

fn send(socket: BorrowedFd<'_>, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(16))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    ancillary.push(SendAncillaryMessage::ScmRights(descriptors));
    sendmsg(socket, &[IoSlice::new(bytes)], &mut ancillary, SendFlags::NOSIGNAL)?;
    Ok(())
}

fn receive(socket: BorrowedFd<'_>) -> io::Result<(Launched, Option<OwnedFd>)> {
    let mut bytes = [0; 4096];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let message = loop {
        match recvmsg(socket, &mut [IoSliceMut::new(&mut bytes)], &mut ancillary, RecvFlags::CMSG_CLOEXEC) {
            Err(rustix::io::Errno::INTR) => {}
            other => break other?,
        }
    };
    if message.bytes == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let mut pidfd = None;
    for part in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(mut descriptors) = part {
            pidfd = descriptors.next();
        }
    }
    let launched = minicbor::decode(&bytes[..message.bytes]).map_err(io::Error::other)?;
    Ok((launched, pidfd))
}
