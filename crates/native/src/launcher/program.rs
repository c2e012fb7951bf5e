//! What runs in the launcher: it takes a plan and its descriptors, makes the child, does for it what only the
//! outside can do, and answers with a pidfd. It ends when its socket does; the sandboxes live on.

use std::collections::HashMap;
use std::fs;
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

use super::child::Shared;
use super::source::Source;
use super::{GUEST_AND_ANSWER, MAX_PLAN_BYTES};
use crate::plan::{Bind, IdMap, Launched, Plan, RANGE_LEN, Step};
use crate::sys::{self, ChildStack, Gate};

/// The descriptor of the socket to the provider: standard input, which is what can be handed over without more.
const SOCKET: RawFd = 0;

/// The launcher's `main`.
pub fn main() -> ExitCode {
    match serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn serve() -> io::Result<()> {
    let socket = io::stdin();
    let socket = socket.as_fd();
    debug_assert_eq!(socket.as_raw_fd(), SOCKET);
    // A terminal's Ctrl-C is meant for the provider's process, never for sandboxes that outlive it.
    rustix::process::setsid()?;
    let open_files = raise_open_files()?;
    let mut launcher = Launcher::new(socket, open_files)?;
    let mut received = Received::default();
    while launcher.wait_for_message(socket)? {
        if !received.receive(socket)? {
            return Ok(());
        }
        launcher.answer(socket, &mut received)?;
    }
    Ok(())
}

/// The launcher keeps a descriptor for every sandbox. Returns what the limit was: sandboxes are to begin with that.
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
    /// Receives one message; `false` at the end.
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

/// What the launcher keeps between sandboxes.
struct Launcher {
    epoll: OwnedFd,
    guest: Option<OwnedFd>,
    children: HashMap<RawFd, OwnedFd>,
    open_files: Rlimit,
}

impl Launcher {
    fn new(socket: BorrowedFd<'_>, open_files: Rlimit) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, socket, epoll::EventData::new_u64(SOCKET as u64), epoll::EventFlags::IN)?;
        Ok(Self { epoll, guest: None, children: HashMap::new(), open_files })
    }

    /// Waits for a message, reaping guests that end meanwhile.
    fn wait_for_message(&mut self, _socket: BorrowedFd<'_>) -> io::Result<bool> {
        loop {
            let mut events =
                [epoll::Event { flags: epoll::EventFlags::empty(), data: epoll::EventData::new_u64(0) }; 32];
            let count = match epoll::wait(&self.epoll, &mut events[..], None) {
                Err(rustix::io::Errno::INTR) => continue,
                other => other?,
            };
            let ready: Vec<RawFd> = events[..count].iter().map(|event| event.data.u64() as RawFd).collect();
            for child in ready.iter().filter(|fd| **fd != SOCKET) {
                if let Some(pidfd) = self.children.remove(child) {
                    // The provider has the same pidfd open, so closing it here alone would leave it registered: the
                    // next child to get this number would be taken for one that has ended, and waited for.
                    epoll::delete(&self.epoll, &pidfd)?;
                    sys::wait_and_reap(pidfd.as_fd());
                }
            }
            if ready.contains(&SOCKET) {
                return Ok(true);
            }
        }
    }

    /// The first message brings the guest's program; every other a plan with its descriptors.
    fn answer(&mut self, socket: BorrowedFd<'_>, received: &mut Received) -> io::Result<()> {
        if self.guest.is_none() {
            self.guest = received.descriptors.pop();
            return match received.bytes == GUEST_AND_ANSWER {
                true => reply(socket, &Launched::Running(std::process::id() as i32), None),
                false => Ok(()),
            };
        }
        match self.launch(received) {
            Ok((pid, pidfd)) => {
                reply(socket, &Launched::Running(pid), Some(pidfd.as_fd()))?;
                epoll::add(
                    &self.epoll,
                    &pidfd,
                    epoll::EventData::new_u64(pidfd.as_raw_fd() as u64),
                    epoll::EventFlags::IN,
                )?;
                self.children.insert(pidfd.as_raw_fd(), pidfd);
                Ok(())
            }
            Err(Failed { step, subject, error }) => {
                let errno = error.raw_os_error().unwrap_or(libc::EINVAL);
                reply(socket, &Launched::Failed { step, subject, errno }, None)
            }
        }
    }

    fn launch(&self, received: &mut Received) -> Result<(i32, OwnedFd), Failed> {
        let invalid = || Failed::at("read the plan", io::Error::from_raw_os_error(libc::EINVAL));
        let plan: Plan = minicbor::decode(&received.bytes).map_err(|_| invalid())?;
        let descriptors = Descriptors::sort(std::mem::take(&mut received.descriptors), &plan);
        let descriptors = descriptors.ok_or_else(invalid)?;
        let guest = self.guest.as_ref().ok_or_else(invalid)?;
        let gate = Gate::new();
        if matches!(plan.map, IdMap::Single { .. }) {
            // Nothing is to be done for it from outside: it need not wait for a wake-up.
            gate.open();
        }
        let mut stack = ChildStack::new().map_err(|error| Failed::at("map a stack", error))?;
        let mut shared =
            Shared::new(&plan, &gate, guest.as_raw_fd(), descriptors.guest.iter().map(AsRawFd::as_raw_fd));
        shared.set_group_tasks(descriptors.group_tasks.iter().map(AsRawFd::as_raw_fd));
        shared.set_open_files(self.open_files);
        if let Some(socket) = &descriptors.egress {
            shared.set_egress(socket.as_fd());
        }
        let into_group = descriptors.into_group.as_ref().map(AsFd::as_fd);
        let (pid, pidfd) = sys::clone_child(plan.own_network, into_group, &gate, &mut stack, &mut shared)
            .map_err(|error| Failed::at("create the namespaces", error))?;
        let prepared = prepare_from_outside(&plan, pid, &mut shared);
        if prepared.is_err() {
            shared.give_up();
        }
        gate.open();
        gate.wait_until_left();
        let failed = match (prepared, shared.failure()) {
            (Err(failed), _) => failed,
            (Ok(_), Some((index, error))) => Failed::of_step(&plan, index, error),
            (Ok(_), None) => return Ok((pid, pidfd)),
        };
        sys::wait_and_reap(pidfd.as_fd());
        Err(failed)
    }
}

/// What comes with a plan, by what it is for: first the guest's own, then the v2 group, the v1 groups, and where the
/// listeners of the network `egress` go.
struct Descriptors {
    guest: Vec<OwnedFd>,
    into_group: Option<OwnedFd>,
    group_tasks: Vec<OwnedFd>,
    egress: Option<OwnedFd>,
}

impl Descriptors {
    fn sort(mut all: Vec<OwnedFd>, plan: &Plan) -> Option<Self> {
        let egress = if plan.steps.contains(&Step::EgressSockets) { Some(all.pop()?) } else { None };
        let tasks = plan.steps.iter().find_map(|step| match step {
            Step::EnterGroups(count) => usize::try_from(*count).ok(),
            _ => None,
        });
        let group_tasks = all.split_off(all.len().checked_sub(tasks.unwrap_or(0))?);
        let into_group = if plan.into_group { Some(all.pop()?) } else { None };
        GUEST_DESCRIPTORS.contains(&all.len()).then_some(Self { guest: all, into_group, group_tasks, egress })
    }
}

/// How many descriptors a guest is given.
const GUEST_DESCRIPTORS: std::ops::RangeInclusive<usize> = 3..=4;

/// What failed while a sandbox was made.
struct Failed {
    step: String,
    subject: String,
    error: io::Error,
}

impl Failed {
    fn at(step: &str, error: io::Error) -> Self {
        Self { step: step.to_owned(), subject: String::new(), error }
    }

    fn of_step(plan: &Plan, index: usize, error: io::Error) -> Self {
        match plan.steps.get(index) {
            Some(step) => Self { step: step.name().to_owned(), subject: step.subject().to_owned(), error },
            None => Self::at("start the guest", error),
        }
    }
}

/// What only somebody outside the new user namespace can do for the child: map a range of ids, and take host paths
/// with the host's eyes. Returns the taken trees, which the child still has to attach.
fn prepare_from_outside(plan: &Plan, pid: i32, shared: &mut Shared<'_>) -> Result<Vec<OwnedFd>, Failed> {
    let IdMap::Range { base } = plan.map else {
        return Ok(Vec::new());
    };
    let map = format!("0 {base} {RANGE_LEN}");
    for file in ["uid_map", "gid_map"] {
        fs::write(format!("/proc/{pid}/{file}"), &map).map_err(|error| Failed::at("map the ids", error))?;
    }
    let namespace = fs::File::open(format!("/proc/{pid}/ns/user"))
        .map_err(|error| Failed::at("open the user namespace", error))?
        .into();
    let mut taken = Vec::new();
    for (index, step) in plan.steps.iter().enumerate() {
        let Step::Bind(bind) = step else { continue };
        if bind.taken_by_launcher {
            let tree = take(bind, &namespace).map_err(|error| Failed::of_step(plan, index, error))?;
            shared.set_tree(index, tree.as_raw_fd());
            taken.push(tree);
        }
    }
    Ok(taken)
}

fn take(bind: &Bind, namespace: &OwnedFd) -> io::Result<OwnedFd> {
    let tree = sys::take_tree(&Source::open(&bind.source)?.path(), bind.recursive)?;
    if bind.idmapped {
        sys::map_tree_ids(&tree, namespace)?;
    }
    Ok(tree)
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
