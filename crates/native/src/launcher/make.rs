//! Making one sandbox in two steps. First its initial process is cloned into new namespaces and
//! waits. When the plan arrives, the launcher does the parts that must be done from outside, and
//! the process carries out the plan.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::rc::Rc;

use rustix::process::{Resource, Rlimit, getrlimit};

use super::account;
use super::child::{ChildMemory, NO_CORE_DUMPS};
use super::devices;
use super::source::BindSource;
use crate::disk_ids::DiskIds;
use crate::plan::{Account, Bind, IdMap, IdRange, IdRun, Plan, Step};
use crate::sys::{self, ChildGate, ChildStack, NewNamespaces};

/// A sandbox's initial process, which waits for its plan in the launcher's memory. Dropping this
/// value ends it.
pub(crate) struct PendingChild {
    gate: Rc<ChildGate>,
    /// Boxed, because the child knows the address.
    shared: Box<ChildMemory>,
    _stack: ChildStack,
    child: Option<(i32, OwnedFd)>,
}

/// A process that has carried out its plan.
pub(crate) struct DoneChild {
    pub pid: i32,
    pub pidfd: OwnedFd,
    /// The memory that it was made with. It takes its time to close, so the answer goes first.
    pub memory: PendingChild,
    /// The copied mounts that it has attached.
    pub taken: Vec<OwnedFd>,
}

impl PendingChild {
    /// Clones the process. `account` is charged for it, if there is one. With `into_group` it is
    /// born in that v2 control group.
    pub(crate) fn new(
        own_network: bool,
        account: Option<Account>,
        into_group: Option<BorrowedFd<'_>>,
    ) -> Result<Self, Failed> {
        Self::within(NewNamespaces::OfSandbox { own_network }, account, into_group)
    }

    /// Clones the process that replaces the root of a living sandbox.
    pub(crate) fn of_living() -> Result<Self, Failed> {
        Self::within(NewNamespaces::None, None, None)
    }

    fn within(
        namespaces: NewNamespaces,
        account: Option<Account>,
        into_group: Option<BorrowedFd<'_>>,
    ) -> Result<Self, Failed> {
        let gate = ChildGate::new().map_err(|error| Failed::at("make a gate", error))?;
        let gate = Rc::new(gate);
        let mut stack = ChildStack::new().map_err(|error| Failed::at("map a stack", error))?;
        let mut shared = Box::new(ChildMemory::new(Rc::clone(&gate)));
        let mut clone = || sys::clone_child(namespaces, into_group, &gate, &mut stack, &mut *shared);
        let child = match account {
            Some(account) => account::charge(account, clone),
            None => clone(),
        };
        let child = child.map_err(|error| Failed::at("create the namespaces", error))?;
        Ok(Self { gate, shared, _stack: stack, child: Some(child) })
    }

    /// Closes what came with the plan, once the child has done its work: a child that stays has copies of its own.
    pub(crate) fn close_descriptors(&mut self) {
        self.shared.set_descriptors(None, Descriptors::default());
    }

    fn pid(&self) -> i32 {
        self.child.as_ref().map_or(0, |(pid, _)| *pid)
    }

    /// Has the process carry out the plan and start the guest. Blocks until the guest's exec.
    pub(crate) fn finish(
        mut self,
        plan: Plan,
        guest: Option<BorrowedFd<'_>>,
        descriptors: Descriptors,
        open_files: Rlimit,
    ) -> Result<DoneChild, Failed> {
        let taken = prepare_from_outside(&plan, self.pid(), &mut self.shared)?;
        self.shared.set_descriptors(guest, descriptors);
        self.shared.set_open_files(open_files);
        self.carry_out(plan, taken)
    }

    /// Has the process carry out the plan, and waits until it has done so. It has the copied mounts `taken` to attach.
    fn carry_out(mut self, plan: Plan, taken: Vec<OwnedFd>) -> Result<DoneChild, Failed> {
        self.shared.set_plan(plan);
        self.gate.open().map_err(|error| Failed::at("open the gate", error))?;
        self.gate.wait_until_done();
        if let Some(failed) = self.shared.failure() {
            return Err(failed);
        }
        if self.shared.has_vanished() {
            let ended = Failed::at("replace the root", io::ErrorKind::UnexpectedEof.into());
            return Err(Failed { is_closed: true, ..ended });
        }
        let none = || Failed::at("start the guest", io::ErrorKind::NotFound.into());
        let (pid, pidfd) = self.child.take().ok_or_else(none)?;
        Ok(DoneChild { pid, pidfd, memory: self, taken })
    }
}

/// Carries out a plan that replaces the root of a living sandbox, of which it has the user namespace, the mount namespace and the
/// guest's process. Returns the process that did it, which
/// stays for a while: what only the old root has used ends with it.
pub(crate) fn replace_root(
    mut child: PendingChild,
    plan: Plan,
    living: [OwnedFd; 3],
    old_root_stays: bool,
) -> Result<DoneChild, Failed> {
    let IdMap::Range(range) = plan.map else {
        return Err(Failed::at("read the plan", io::Error::from_raw_os_error(libc::EINVAL)));
    };
    let [users, mounts, guest] = living;
    let own = users.try_clone().map_err(|error| Failed::at("open its user namespace", error))?;
    let mut users_of_mounts = Namespaces { range, own, others: HashMap::new() };
    let taken = take_trees(&plan, &mut users_of_mounts, &mut child.shared)?;
    let (users, mounts, living_guest) = (Some(users), Some(mounts), Some(guest));
    child.shared.set_descriptors(None, Descriptors { users, mounts, living_guest, ..Descriptors::default() });
    if old_root_stays {
        child.shared.keep_old_root();
    }
    let last = plan.steps.len().saturating_sub(1);
    child
        .carry_out(plan, taken)
        .map_err(|failed| Failed { is_closed: failed.is_closed || failed.index == Some(last), ..failed })
}

impl Drop for PendingChild {
    /// Ends a child that is still in this memory: without a plan where it waits, with an old root where it stays. After a failed
    /// plan it has ended already.
    fn drop(&mut self) {
        if self.gate.is_child_inside() {
            if self.gate.open().is_err() {
                // The child would use this memory after it is freed.
                std::process::abort();
            }
            self.gate.wait_until_left();
        }
        if let Some((_, pidfd)) = self.child.take() {
            sys::wait_and_reap(pidfd.as_fd());
        }
    }
}

/// The descriptors that come with a plan, by use: the guest's own, the v1 groups' files, the disk,
/// and the socket for the listeners of the network `egress`. They arrive in this order. A plan for a living sandbox comes with its
/// user namespace, its mount namespace and its guest's process instead.
#[derive(Default)]
pub(crate) struct Descriptors {
    pub(super) guest: Vec<OwnedFd>,
    pub(super) group_tasks: Vec<OwnedFd>,
    pub(super) disk: Option<OwnedFd>,
    pub(super) egress: Option<OwnedFd>,
    pub(super) users: Option<OwnedFd>,
    pub(super) mounts: Option<OwnedFd>,
    pub(super) living_guest: Option<OwnedFd>,
}

impl Descriptors {
    pub(crate) fn sort(mut all: Vec<OwnedFd>, plan: &Plan) -> Option<Self> {
        let egress = if plan.steps.contains(&Step::EgressSockets) { Some(all.pop()?) } else { None };
        let disk = if plan.steps.contains(&Step::AttachDisk) { Some(all.pop()?) } else { None };
        let tasks = plan.steps.iter().find_map(|step| match step {
            Step::EnterGroups(count) => usize::try_from(*count).ok(),
            _ => None,
        });
        let group_tasks = all.split_off(all.len().checked_sub(tasks.unwrap_or(0))?);
        let of_new = Self { group_tasks, disk, egress, ..Self::default() };
        GUEST_DESCRIPTORS.contains(&all.len()).then_some(Self { guest: all, ..of_new })
    }
}

/// The number of descriptors that a guest gets.
const GUEST_DESCRIPTORS: std::ops::RangeInclusive<usize> = 3..=4;

/// A failed step of making a sandbox, with its reason.
pub(crate) struct Failed {
    pub(crate) step: String,
    pub(crate) subject: String,
    pub(crate) error: io::Error,
    /// The place of the step in the plan.
    index: Option<usize>,
    /// The root of a living sandbox was closed before.
    pub(crate) is_closed: bool,
}

impl Failed {
    pub(crate) fn at(step: &str, error: io::Error) -> Self {
        Self { step: step.to_owned(), subject: String::new(), error, index: None, is_closed: false }
    }

    pub(super) fn of_step(plan: &Plan, index: usize, error: io::Error) -> Self {
        match plan.steps.get(index) {
            Some(step) => {
                let (name, subject) = (step.name().to_owned(), step.subject().to_owned());
                Self { step: name, subject, error, index: Some(index), is_closed: false }
            }
            None => Self::at("start the guest", error),
        }
    }
}

/// Does what can only be done from outside the new user namespace: maps the range of ids, and
/// copies the mounts of host paths with the host's rights. Returns the copied mounts, which the
/// child still has to attach.
fn prepare_from_outside(plan: &Plan, pid: i32, shared: &mut ChildMemory) -> Result<Vec<OwnedFd>, Failed> {
    let IdMap::Range(range) = plan.map else {
        return Ok(Vec::new());
    };
    let line = |run: IdRun| format!("{} {} {}\n", run.inside, run.host, run.count);
    let map: String = range.runs().map(line).collect();
    let own = map_ids(pid, &[map.clone(), map]).map_err(|error| Failed::at("map the ids", error))?;
    let mut namespaces = Namespaces { range, own, others: HashMap::new() };
    let no_core_dumps = plan.steps.iter().position(|step| *step == Step::NoCoreDumps);
    if let Some(index) = no_core_dumps.filter(|_| getrlimit(Resource::Core).maximum == Some(0)) {
        // Only from outside can a limit of 0, which some hosts begin with, be raised.
        let pid = rustix::process::Pid::from_raw(pid);
        rustix::process::prlimit(pid, Resource::Core, NO_CORE_DUMPS)
            .map_err(|error| Failed::of_step(plan, index, error.into()))?;
    }
    take_trees(plan, &mut namespaces, shared)
}

/// Copies the mounts of host paths that the plan's steps attach.
fn take_trees(
    plan: &Plan,
    namespaces: &mut Namespaces,
    shared: &mut ChildMemory,
) -> Result<Vec<OwnedFd>, Failed> {
    let mut taken = Vec::new();
    for (index, step) in plan.steps.iter().enumerate() {
        let tree = tree_for(step, namespaces).map_err(|error| Failed::of_step(plan, index, error))?;
        if let Some(tree) = tree {
            shared.set_tree(index, tree.as_raw_fd());
            taken.push(tree);
        }
    }
    Ok(taken)
}

/// Makes the detached mount that the child needs for this step, if only the launcher can make it.
fn tree_for(step: &Step, namespaces: &mut Namespaces) -> io::Result<Option<OwnedFd>> {
    match step {
        Step::Bind(bind) if bind.taken_by_launcher => take(bind, namespaces).map(Some),
        Step::Programs(path) => sys::take_tree(&BindSource::open(path)?.path(), false).map(Some),
        Step::OwnDevices => devices::make().map(Some),
        _ => Ok(None),
    }
}

fn take(bind: &Bind, namespaces: &mut Namespaces) -> io::Result<OwnedFd> {
    let tree = sys::take_tree(&BindSource::open(&bind.source)?.path(), bind.recursive)?;
    if let Some(namespace) = namespaces.for_mount(bind.ids)? {
        sys::map_tree_ids(&tree, namespace)?;
    }
    Ok(tree)
}

/// The user namespaces by which the mounts of one sandbox map ids.
struct Namespaces {
    range: IdRange,
    /// The sandbox's own user namespace.
    own: OwnedFd,
    others: HashMap<DiskIds, OwnedFd>,
}

impl Namespaces {
    fn for_mount(&mut self, ids: DiskIds) -> io::Result<Option<&OwnedFd>> {
        let Some(maps) = ids.maps(self.range) else {
            return Ok((ids == DiskIds::Inside).then_some(&self.own));
        };
        let namespace = match self.others.entry(ids) {
            Entry::Occupied(made) => made.into_mut(),
            Entry::Vacant(missing) => missing.insert(user_namespace(&maps)?),
        };
        Ok(Some(namespace))
    }
}

/// Makes a user namespace with these maps and no process in it: the process that it was made with
/// has ended.
fn user_namespace(maps: &[String; 2]) -> io::Result<OwnedFd> {
    let holder = PendingChild::within(NewNamespaces::OfUsers, None, None).map_err(|failed| failed.error)?;
    map_ids(holder.pid(), maps)
}

/// Gives the user namespace of a process its uid map and its gid map, and opens it.
fn map_ids(pid: i32, [uids, gids]: &[String; 2]) -> io::Result<OwnedFd> {
    fs::write(format!("/proc/{pid}/uid_map"), uids)?;
    fs::write(format!("/proc/{pid}/gid_map"), gids)?;
    Ok(fs::File::open(format!("/proc/{pid}/ns/user"))?.into())
}
