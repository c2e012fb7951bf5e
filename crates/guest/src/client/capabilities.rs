//! The capabilities that every sandbox with a guest has, wherever it runs.

use eyot::Capability;
use eyot::Capability::{
    Append, Argv, AtomicWrite, Beneath, Deadlines, Dial, Glob, Grep, KillTree, LiveProcesses, Processes, Pty,
    RangedRead, Reopen, Shell, Signals, Symlinks, Tar, Usage, Watch,
};

/// The capabilities of the guest. A provider adds those of its own.
pub const GUEST_CAPABILITIES: [Capability; 20] = [
    Append,
    Argv,
    AtomicWrite,
    Beneath,
    Deadlines,
    Dial,
    Glob,
    Grep,
    KillTree,
    LiveProcesses,
    Processes,
    Pty,
    RangedRead,
    Reopen,
    Shell,
    Signals,
    Symlinks,
    Tar,
    Usage,
    Watch,
];
