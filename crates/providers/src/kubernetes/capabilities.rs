//! The capabilities of sandboxes that are Pods.

use eyot::{Capabilities, Capability};

/// Returns the capabilities of this provider's sandboxes.
pub fn capabilities() -> Capabilities {
    use Capability::{
        Append, Argv, AtomicWrite, Beneath, Deadlines, Dial, Glob, Grep, KillTree, LiveProcesses, Processes,
        Pty, RangedRead, Reopen, Shell, Signals, Symlinks, Tar, Usage, Watch,
    };
    Capabilities::new([
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
    ])
}
