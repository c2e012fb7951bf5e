//! Limits by control groups: where the groups of sandboxes may go on this host ([`Home`]), and the groups of one sandbox
//! ([`Groups`]). Own code, because what there is to do is to write a handful of files.
//!
//! Entering a group by a write to `cgroup.procs` takes up to 20 ms (an RCU grace period). A sandbox
//! avoids that: on v2 it is born in its group (`CLONE_INTO_CGROUP`), on v1 it moves itself by
//! writing `0` to `tasks`, for which the kernel does not wait for other threads. Existing groups
//! are not changed, except that controllers are switched on in groups that are delegated to Eyot.

mod group;
mod home;
mod places;
mod position;
mod scope;
mod setting;
mod usage;

use std::fmt;
use std::path::PathBuf;

pub(crate) use group::{GroupDescriptors, GroupPlan, freeze, let_die, remove};
pub(crate) use home::{CgroupPlace, Home};
pub(crate) use places::{groups_of, note};
pub(crate) use position::limiting_v1;
pub(crate) use scope::command as scope_command;
pub use setting::DEFAULT_MEMORY_MIB;
pub(crate) use setting::GroupRequest;
pub(crate) use usage::{UsageReader, measure};

/// A control group controller that limits sandboxes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum CgroupController {
    /// Processor time.
    Cpu,
    /// Memory.
    Memory,
    /// Processes and threads.
    Pids,
}

impl CgroupController {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Cpu, Self::Memory, Self::Pids];

    /// The kernel's name for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Memory => "memory",
            Self::Pids => "pids",
        }
    }
}

/// The reason why control groups limit sandboxes not at all, or not with all controllers.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum CgroupCause {
    /// No control groups are mounted where this process can see its own.
    NotMounted,
    /// The own group can't be written to: a container's are often mounted read-only.
    NotWritable {
        /// The group's directory.
        group: PathBuf,
    },
    /// Other processes are in the only group that could be used; while there are, it passes on no controllers.
    Occupied {
        /// The group's directory.
        group: PathBuf,
    },
    /// No group was delegated to this ordinary user, and no user manager can be reached.
    NotDelegated,
    /// The user manager did not start a scope for the launcher.
    NoScope {
        /// The failure, in words.
        reason: String,
    },
    /// A controller does not exist, or is not passed on to the group.
    NoController {
        /// The missing controller.
        controller: CgroupController,
        /// The group whose children lack it.
        group: PathBuf,
    },
}

impl fmt::Display for CgroupCause {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotMounted => write!(out, "no control groups are mounted here"),
            Self::NotWritable { group } => {
                write!(out, "the control group `{}` can't be written to", group.display())
            }
            Self::Occupied { group } => {
                let group = group.display();
                write!(out, "other processes are in the control group `{group}`, which so can't be divided")
            }
            Self::NotDelegated => {
                write!(out, "no control group was delegated to this user, and no user manager can be reached")
            }
            Self::NoScope { reason } => write!(out, "the user manager started no scope: {reason}"),
            Self::NoController { controller, group } => {
                let (name, group) = (controller.name(), group.display());
                write!(out, "the controller `{name}` is not passed on to the groups below `{group}`")
            }
        }
    }
}

/// The support of control groups for the sandboxes that this process makes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CgroupSupport {
    /// The controllers that limit sandboxes, in order.
    pub controllers: Vec<CgroupController>,
    /// The reason why a controller is missing; `None` when none is.
    pub cause: Option<CgroupCause>,
}

impl CgroupSupport {
    /// No support, for this reason.
    pub(crate) fn none(cause: CgroupCause) -> Self {
        Self { controllers: Vec::new(), cause: Some(cause) }
    }

    /// Tells whether this controller limits sandboxes.
    pub fn has(&self, controller: CgroupController) -> bool {
        self.controllers.contains(&controller)
    }
}
