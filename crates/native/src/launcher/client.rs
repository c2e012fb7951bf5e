//! The provider's side of the launcher. It starts the launcher from sealed memory and sends it one
//! plan at a time.

use std::error::Error as StdError;
use std::fmt;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use eyot::internal::system_reason;
use eyot::{Error, ErrorKind};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};
use rustix::process::{Resource, getrlimit};
use rustix::time::Timespec;

use super::MAX_PLAN_BYTES;
use super::guest_file::CheckedGuest;
use super::program::serve;
use super::program_file::{sealed_guest, sealed_launcher};
use crate::cgroup::{CgroupCause, CgroupPlace, GroupDescriptors, Home, scope_command};
use crate::host::SetupFailure;
use crate::plan::{Account, Launched, LauncherOrder, Plan, Step};
use crate::state::StateDir;
use crate::sys;

/// A running launcher. Dropping it ends the launcher; the sandboxes keep running.
pub(crate) struct Launcher {
    socket: OwnedFd,
    /// Held from an order to its answer, so that answers can't be mixed up.
    turn: Mutex<()>,
    begun: AtomicU64,
    kind: Kind,
    guest: Mutex<GuestDelivery>,
    home: Result<Home, CgroupCause>,
}

/// The state of a living sandbox after its root was closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NewRoot {
    /// The new root took its place.
    InPlace,
    /// The old one is closed, and nothing took its place.
    Missing,
}

enum Kind {
    Process(Child),
    /// The launcher runs as a thread of this process.
    Thread {
        /// Other processes of this user could read this process's memory before the launcher
        /// started.
        was_dumpable: bool,
    },
}

/// The guest's program for a new launcher.
enum GuestProgram {
    /// The file in the state folder, on a read-only mount that only this descriptor leads to.
    Mounted(OwnedFd),
    /// The file in the state folder. Only the child of a sandbox can mount it: see
    /// [`Step::GuestFile`].
    InPlans,
    /// Sealed memory, because the state folder can't hold a program.
    Memory,
}

impl GuestProgram {
    /// Finds the program in the state folder, and puts it there if it is missing.
    fn find(state: &StateDir) -> Self {
        let found = CheckedGuest::ready(state).and_then(|guest| {
            if rustix::process::geteuid().is_root() {
                guest.mount().map(Self::Mounted)
            } else {
                Ok(guest.path().map_or(Self::Memory, |_| Self::InPlans))
            }
        });
        found.unwrap_or_else(|error| {
            tracing::debug!(%error, "take the guest's program from the state folder; it is copied into memory");
            Self::Memory
        })
    }

    /// Takes the program's descriptor; `None` if plans name the file.
    fn into_descriptor(self) -> io::Result<Option<OwnedFd>> {
        match self {
            Self::Mounted(mount) => Ok(Some(mount)),
            Self::InPlans => Ok(None),
            Self::Memory => sealed_guest().map(Some),
        }
    }

    /// Begins the delivery to a launcher that is a thread. Another thread copies into memory
    /// meanwhile, because that takes as long as all other work before the first sandbox.
    fn begin_delivery(self) -> io::Result<GuestDelivery> {
        match self {
            Self::Mounted(mount) => Ok(GuestDelivery::Ready(mount)),
            Self::InPlans => Ok(GuestDelivery::Missing),
            Self::Memory => std::thread::Builder::new().spawn(sealed_guest).map(GuestDelivery::BeingCopied),
        }
    }
}

/// The delivery of the guest's program to the launcher.
enum GuestDelivery {
    /// The program is still to be sent.
    Ready(OwnedFd),
    /// A thread copies it into memory.
    BeingCopied(JoinHandle<io::Result<OwnedFd>>),
    /// The launcher has it.
    Delivered,
    /// The launcher has none. Plans name the file; for a plan that does not, the program is copied
    /// into memory.
    Missing,
}

/// A sandbox whose namespaces are being made. Dropping it gives up the sandbox.
pub(crate) struct PendingSandbox<'a> {
    launcher: &'a Launcher,
    number: u64,
    finished: bool,
}

/// The descriptors for a new guest: the stream to its maker, the listener for other clients, its
/// configuration, and its control groups.
pub(crate) struct GuestDescriptors {
    pub stream: OwnedFd,
    pub listener: OwnedFd,
    pub config: OwnedFd,
    /// The sandbox's disk, if it has one.
    pub disk: Option<OwnedFd>,
    /// The socket that receives the listeners of the network `egress`, if the sandbox has that.
    pub egress: Option<OwnedFd>,
    pub groups: GroupDescriptors,
}

impl GuestDescriptors {
    /// Lists the descriptors in the order in which the launcher takes them apart.
    fn in_order(&self) -> Vec<BorrowedFd<'_>> {
        let guest = [&self.stream, &self.listener, &self.config].into_iter();
        let groups = self.groups.memory_events.iter().chain(&self.groups.tasks);
        guest.chain(groups).chain(&self.disk).chain(&self.egress).map(AsFd::as_fd).collect()
    }
}

/// The longest wait for the user manager to give the launcher a scope.
const SCOPE_PATIENCE: Duration = Duration::from_secs(10);

impl Launcher {
    /// Starts a launcher, in a place where it can make control groups for sandboxes if there is
    /// one. With `in_process` it is a thread, unless that place needs a process.
    pub(crate) fn start(state: &StateDir, in_process: bool) -> eyot::Result<Self> {
        let started = match CgroupPlace::find() {
            CgroupPlace::Here(home) => Self::start_plainly(state, in_process, Ok(home)),
            CgroupPlace::Nowhere(cause) => Self::start_plainly(state, in_process, Err(cause)),
            CgroupPlace::UserManager => Self::start_in_scope(state).or_else(|error| {
                tracing::warn!(%error, "get a control group from the user manager; limits are not enforced");
                let cause = CgroupCause::NoScope { reason: system_reason(&error) };
                Self::start_plainly(state, in_process, Err(cause))
            }),
        };
        started.map_err(not_started)
    }

    fn start_plainly(
        state: &StateDir,
        in_process: bool,
        home: Result<Home, CgroupCause>,
    ) -> io::Result<Self> {
        if in_process {
            return Self::start_thread(state, home);
        }
        let program = sealed_launcher()?;
        let mut command = Command::new(format!("/proc/self/fd/{}", program.as_raw_fd()));
        command.env_clear().stdout(Stdio::null());
        Self::spawn(command, GuestProgram::find(state), false, home)
    }

    fn start_thread(state: &StateDir, home: Result<Home, CgroupCause>) -> io::Result<Self> {
        let (ours, theirs) = sockets()?;
        let open_files = getrlimit(Resource::Nofile);
        let guest = GuestProgram::find(state).begin_delivery()?;
        std::thread::Builder::new().name("eyot-launcher".to_owned()).spawn(move || {
            if let Err(error) = serve(theirs.as_fd(), open_files, false) {
                tracing::debug!(%error, "the launcher's thread ended");
            }
        })?;
        let was_dumpable = sys::is_dumpable();
        Ok(Self::new(ours, Kind::Thread { was_dumpable }, guest, home))
    }

    fn new(socket: OwnedFd, kind: Kind, guest: GuestDelivery, home: Result<Home, CgroupCause>) -> Self {
        let (turn, begun, guest) = (Mutex::new(()), AtomicU64::new(0), Mutex::new(guest));
        Self { socket, turn, begun, kind, guest, home }
    }

    /// Starts the launcher through the user manager. It must run before it can be put into a group
    /// of its own.
    fn start_in_scope(state: &StateDir) -> io::Result<Self> {
        let mut command = scope_command("/proc/self/fd/1");
        // What the manager's program becomes must be open when it does: the standard output is.
        command.stdout(Stdio::from(sealed_launcher()?));
        let guest = GuestProgram::find(state);
        let mut launcher = Self::spawn(command, guest, true, Err(CgroupCause::NotDelegated))?;
        let answered = launcher.wait_for_answer();
        let Kind::Process(process) = &mut launcher.kind else { return Ok(launcher) };
        if let Err(error) = answered {
            process.kill()?;
            return Err(error);
        }
        launcher.home = Home::around(process.id());
        Ok(launcher)
    }

    /// Starts the launcher as a process. With `answer` it will say that it runs.
    fn spawn(
        mut command: Command,
        guest: GuestProgram,
        answer: bool,
        home: Result<Home, CgroupCause>,
    ) -> io::Result<Self> {
        let (ours, theirs) = sockets()?;
        command.stdin(Stdio::from(theirs)).stderr(Stdio::null()).current_dir("/");
        let process = command.spawn()?;
        // With it go this process's copies of what it was given: an end of the other side is to be seen.
        drop(command);
        let mut launcher = Self::new(ours, Kind::Process(process), GuestDelivery::Missing, home);
        let guest = guest.into_descriptor()?;
        launcher.send_guest(guest.as_ref(), answer)?;
        if guest.is_some() {
            launcher.guest = Mutex::new(GuestDelivery::Delivered);
        }
        Ok(launcher)
    }

    fn send_guest(&self, guest: Option<&OwnedFd>, answer: bool) -> io::Result<()> {
        let descriptors: Vec<BorrowedFd<'_>> = guest.into_iter().map(AsFd::as_fd).collect();
        self.order(&LauncherOrder::Guest { answer }, &descriptors)
    }

    fn order(&self, order: &LauncherOrder, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        send(self.socket.as_fd(), &minicbor::to_vec(order).map_err(io::Error::other)?, descriptors)
    }

    /// Begins a sandbox: the launcher makes its namespaces while the plan is worked out. `account`
    /// is charged for it, if it is to have a range. With `into_group` the sandbox is born in that
    /// v2 control group.
    pub(crate) fn begin(
        &self,
        own_network: bool,
        account: Option<Account>,
        into_group: Option<BorrowedFd<'_>>,
    ) -> eyot::Result<PendingSandbox<'_>> {
        let number = self.begun.fetch_add(1, Ordering::Relaxed);
        let descriptors: Vec<BorrowedFd<'_>> = into_group.into_iter().collect();
        let into_group = into_group.is_some();
        let order = LauncherOrder::Begin { sandbox: number, own_network, into_group, account };
        self.order(&order, &descriptors).map_err(ended)?;
        Ok(PendingSandbox { launcher: self, number, finished: false })
    }

    /// Begins to replace the root of a living sandbox: the launcher makes the process that does it.
    pub(crate) fn begin_replacement(&self) -> eyot::Result<PendingSandbox<'_>> {
        let number = self.begun.fetch_add(1, Ordering::Relaxed);
        self.order(&LauncherOrder::BeginReplacement { number }, &[]).map_err(ended)?;
        Ok(PendingSandbox { launcher: self, number, finished: false })
    }

    fn wait_for_answer(&self) -> io::Result<()> {
        let timeout = Timespec::try_from(SCOPE_PATIENCE).map_err(io::Error::other)?;
        let mut waited = [PollFd::new(&self.socket, PollFlags::IN)];
        if poll(&mut waited, Some(&timeout))? == 0 {
            return Err(io::ErrorKind::TimedOut.into());
        }
        receive(self.socket.as_fd()).map(drop)
    }

    /// Tells whether the launcher has closed its end of the socket.
    pub(crate) fn has_ended(&self) -> bool {
        let mut waited = [PollFd::new(&self.socket, PollFlags::empty())];
        poll(&mut waited, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
    }

    /// Returns the place for the sandboxes' control groups, or the reason why there is none.
    pub(crate) fn home(&self) -> Result<&Home, &CgroupCause> {
        self.home.as_ref()
    }

    /// Returns the file of the guest's program for the next plan; `None` if the launcher has the
    /// program, or the state folder can't hold it any more.
    pub(crate) fn guest_file(&self, state: &StateDir) -> Option<CheckedGuest> {
        if !matches!(*lock(&self.guest), GuestDelivery::Missing) {
            return None;
        }
        let found = CheckedGuest::ready(state);
        found
            .inspect_err(|error| tracing::debug!(%error, "take the guest's program from the state folder"))
            .ok()
    }

    /// Gives the launcher the guest's program, unless it has it or the plan names the file.
    fn deliver_guest(&self, plan: &Plan) -> io::Result<()> {
        if plan.steps.iter().any(|step| matches!(step, Step::GuestFile(_))) {
            return Ok(());
        }
        let mut delivery = lock(&self.guest);
        let program = match std::mem::replace(&mut *delivery, GuestDelivery::Missing) {
            GuestDelivery::Ready(program) => program,
            GuestDelivery::BeingCopied(copying) => {
                copying.join().map_err(|_| io::Error::other("a thread ended early"))??
            }
            GuestDelivery::Missing => sealed_guest()?,
            GuestDelivery::Delivered => {
                *delivery = GuestDelivery::Delivered;
                return Ok(());
            }
        };
        self.send_guest(Some(&program), false)?;
        *delivery = GuestDelivery::Delivered;
        Ok(())
    }

    /// Has the launcher end a sandbox that was begun. Returns when nothing of it is left.
    fn abandon(&self, sandbox: u64) -> io::Result<()> {
        let _turn = lock(&self.turn);
        self.order(&LauncherOrder::Abandon { sandbox }, &[])?;
        let answer = receive(self.socket.as_fd());
        self.restore_dumpable();
        answer.map(drop)
    }

    fn exchange(
        &self,
        order: &[u8],
        descriptors: &[BorrowedFd<'_>],
    ) -> io::Result<(Launched, Option<OwnedFd>)> {
        self.exchange_and(order, descriptors, || {})
    }

    /// Exchanges an order for its answer, and does something else while the launcher works.
    fn exchange_and(
        &self,
        order: &[u8],
        descriptors: &[BorrowedFd<'_>],
        meanwhile: impl FnOnce(),
    ) -> io::Result<(Launched, Option<OwnedFd>)> {
        let _turn = lock(&self.turn);
        send(self.socket.as_fd(), order, descriptors)?;
        meanwhile();
        let answer = receive(self.socket.as_fd());
        self.restore_dumpable();
        answer
    }

    /// Makes this process dumpable again. The launcher's thread and the child change their user,
    /// and that takes the mark from the memory that they share with the process.
    fn restore_dumpable(&self) {
        if matches!(self.kind, Kind::Thread { was_dumpable: true, .. })
            && let Err(error) = sys::set_dumpable()
        {
            tracing::debug!(%error, "make this process dumpable again");
        }
    }
}

impl PendingSandbox<'_> {
    /// Has the launcher carry out the plan. Blocks for about a millisecond; callers take turns.
    pub(crate) fn finish(mut self, plan: Plan, guest: &GuestDescriptors) -> eyot::Result<(i32, OwnedFd)> {
        let launcher = self.launcher;
        launcher.deliver_guest(&plan).map_err(not_started)?;
        let order = LauncherOrder::Finish { sandbox: self.number, plan };
        let bytes = encode(&order)?;
        self.finished = true;
        match launcher.exchange(&bytes, &guest.in_order()).map_err(ended)? {
            (Launched::Running(pid), Some(pidfd)) => Ok((pid, pidfd)),
            (
                Launched::Running(_) | Launched::Abandoned | Launched::RootReplaced | Launched::RootClosed,
                _,
            ) => Err(Error::new(ErrorKind::Internal, "create sandbox: no pidfd came back")),
            (Launched::Failed { step, subject, errno }, _) => {
                Err(SetupFailure::new(step, subject, io::Error::from_raw_os_error(errno)).into_error())
            }
        }
    }
}

impl PendingSandbox<'_> {
    /// Has the launcher put another root in the place of the one of a living sandbox, of which it gets the user namespace, the mount
    /// namespace and the guest's process. Blocks for a millisecond, and does something else `meanwhile`.
    pub(crate) fn replace_root(
        mut self,
        plan: Plan,
        living: [BorrowedFd<'_>; 3],
        meanwhile: impl FnOnce(),
    ) -> eyot::Result<NewRoot> {
        let order = encode(&LauncherOrder::ReplaceRoot { number: self.number, plan })?;
        self.finished = true;
        match self.launcher.exchange_and(&order, &living, meanwhile) {
            Ok((Launched::RootReplaced, _)) => Ok(NewRoot::InPlace),
            Ok((Launched::Failed { step, subject, errno }, _)) => {
                Err(SetupFailure::new(step, subject, io::Error::from_raw_os_error(errno)).into_error())
            }
            // A launcher that has ended may have closed it before.
            Ok(_) | Err(_) => Ok(NewRoot::Missing),
        }
    }
}

impl Drop for PendingSandbox<'_> {
    fn drop(&mut self) {
        // One that was finished is not known any more. A launcher that has ended has given up everything.
        if !self.finished
            && let Err(error) = self.launcher.abandon(self.number)
        {
            tracing::debug!(%error, "give up a sandbox that was begun");
        }
    }
}

impl Drop for Launcher {
    fn drop(&mut self) {
        // Its socket ends with ours, and it with its socket; waiting for it leaves no zombie behind.
        if rustix::net::shutdown(&self.socket, rustix::net::Shutdown::Both).is_ok()
            && let Kind::Process(process) = &mut self.kind
            && let Err(error) = process.wait()
        {
            tracing::warn!(%error, "wait for the launcher");
        }
    }
}

/// Returns the bytes of an order with a plan. The launcher could read no more of them.
fn encode(order: &LauncherOrder) -> eyot::Result<Vec<u8>> {
    let bytes = minicbor::to_vec(order).map_err(|error| {
        Error::new(ErrorKind::Internal, "create sandbox: write the plan down: failed").with_source(error)
    })?;
    if bytes.len() > MAX_PLAN_BYTES {
        let message = format!(
            "create sandbox: its mounts need a plan of {} bytes; the limit is {MAX_PLAN_BYTES}",
            bytes.len()
        );
        return Err(Error::new(ErrorKind::TooLarge, message));
    }
    Ok(bytes)
}

/// Makes the error of a launcher that did not start. One that was killed while it started is told
/// from one that this host can't start.
fn not_started(error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset | io::ErrorKind::UnexpectedEof => {
            ended(error)
        }
        _ => SetupFailure::new("start the sandbox launcher", "", error).into_error(),
    }
}

fn ended(error: io::Error) -> Error {
    Error::new(ErrorKind::Unavailable, "create sandbox: the sandbox launcher has ended")
        .with_hint("the next create starts a new one: try again")
        .with_source(LauncherEnded(error))
}

/// The launcher ended before it answered. This is the source of an [`Error`].
#[derive(Debug)]
struct LauncherEnded(io::Error);

impl fmt::Display for LauncherEnded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the sandbox launcher has ended")
    }
}

impl StdError for LauncherEnded {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        Some(&self.0)
    }
}

/// Tells whether a create failed because the launcher ended. All sandboxes that it had begun ended
/// with it.
pub(crate) fn is_launcher_ended(error: &Error) -> bool {
    let mut causes = std::iter::successors(error.source(), |cause| (*cause).source());
    causes.any(|cause| cause.is::<LauncherEnded>())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn sockets() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?)
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
