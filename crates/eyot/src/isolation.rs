//! The protections around a sandbox: reported from what was set up, never assumed.

use serde::{Deserialize, Serialize};

use crate::spec::{NetworkMode, Requirement};

/// The correspondence of host users and sandbox users.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum IdentityMap {
    /// One host user is one inner user; there is no inner root.
    Single,
    /// A block of 65,536 host ids of the sandbox's own; host root is not among them.
    Range,
}

/// The means by which a limit is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Enforcement {
    /// By a cgroup controller.
    Cgroup,
    /// By a resource limit of the process's user inside the sandbox.
    Rlimit,
    /// Not at all.
    None,
}

/// The means by which the disk limit is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum DiskEnforcement {
    /// The kernel refuses the write that would exceed it.
    Quota,
    /// It is measured, and noticed late.
    Monitored,
    /// Not at all.
    None,
}

/// The means by which each limit is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LimitsEnforced {
    /// `memory_mib`.
    pub memory: Enforcement,
    /// `cpus`.
    pub cpus: Enforcement,
    /// `pids`.
    pub pids: Enforcement,
    /// `disk_mib`.
    pub disk: DiskEnforcement,
}

/// The user that the kernel counts a sandbox by: its queued signals, timers, inotify instances and message queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum UserCounts {
    /// A host user of the sandbox's own: what is used up inside is missing nowhere else.
    Own,
    /// A user whom other sandboxes or the host's programs have as well: what is used up inside, they lack.
    Shared,
}

/// The protections around a sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Isolation {
    /// The provider.
    pub provider: String,
    /// The kernel is the host's own: a hole in it is a hole in the sandbox.
    pub shares_host_kernel: bool,
    /// The namespaces of its own, such as `user`, `mount`, `pid`.
    pub namespaces: Vec<String>,
    /// The correspondence of users, where there is a user namespace.
    pub identity: Option<IdentityMap>,
    /// `no_new_privs` is set.
    pub no_new_privileges: bool,
    /// The capabilities that the sandbox's processes may hold, such as `CAP_CHOWN`; within its own user namespace.
    pub capabilities: Vec<String>,
    /// A seccomp filter is in force.
    #[serde(default)]
    pub seccomp: bool,
    /// It has this many instructions, where that is known.
    pub seccomp_instructions: Option<u32>,
    /// Landlock is in force, by this ABI.
    pub landlock_abi: Option<u32>,
    /// The network that it may reach.
    pub network: NetworkMode,
    /// The root file system is read-only.
    pub readonly_rootfs: bool,
    /// cgroup controllers in force, such as `memory`.
    pub cgroup_controllers: Vec<String>,
    /// The means by which each limit is held.
    pub limits: LimitsEnforced,
    /// The container engine's runtime, such as `runc`, where there is one.
    #[serde(default)]
    pub runtime: Option<String>,
    /// Nothing inside can signal, read, or pose as the guest, as whatever user it runs.
    #[serde(default)]
    pub guest_out_of_reach: bool,
    /// Paths inside whose files the host or other sandboxes use too, such as a mounted folder. File locks, notifications
    /// and sockets work across them; everywhere else they stay inside.
    #[serde(default)]
    pub shared_files: Vec<String>,
    /// The user that the kernel counts signals, inotify instances and the like by, where that is known.
    #[serde(default)]
    pub user_counts: Option<UserCounts>,
}

impl Isolation {
    /// No protection at all: the host's kernel, users and network. A provider begins here and adds what it has set up, or
    /// what its backend promises.
    ///
    /// ```
    /// let isolation = eyot::Isolation { shares_host_kernel: false, ..eyot::Isolation::none("my-vms") };
    /// assert!(isolation.holds(eyot::Requirement::OwnKernel) && !isolation.holds(eyot::Requirement::Memory));
    /// ```
    pub fn none(provider: &str) -> Self {
        Self {
            provider: provider.to_owned(),
            shares_host_kernel: true,
            namespaces: Vec::new(),
            identity: None,
            no_new_privileges: false,
            capabilities: Vec::new(),
            seccomp: false,
            seccomp_instructions: None,
            landlock_abi: None,
            network: NetworkMode::Host,
            readonly_rootfs: false,
            cgroup_controllers: Vec::new(),
            limits: LimitsEnforced {
                memory: Enforcement::None,
                cpus: Enforcement::None,
                pids: Enforcement::None,
                disk: DiskEnforcement::None,
            },
            runtime: None,
            guest_out_of_reach: false,
            shared_files: Vec::new(),
            user_counts: None,
        }
    }

    /// Returns whether this protection is in force.
    pub fn holds(&self, requirement: Requirement) -> bool {
        match requirement {
            Requirement::Memory => self.limits.memory == Enforcement::Cgroup,
            Requirement::Cpus => self.limits.cpus == Enforcement::Cgroup,
            Requirement::Pids => self.limits.pids != Enforcement::None,
            Requirement::Disk => self.limits.disk == DiskEnforcement::Quota,
            Requirement::Landlock => self.landlock_abi.is_some(),
            Requirement::Seccomp => self.seccomp,
            Requirement::IdentityRange => self.identity == Some(IdentityMap::Range),
            Requirement::OwnKernel => !self.shares_host_kernel,
        }
    }
}
