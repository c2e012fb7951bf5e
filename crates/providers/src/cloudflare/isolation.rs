//! The protections of a sandbox: what the vendor promises, and what the guest found in force.

use eyot::{Error, ErrorKind, Isolation, NetworkMode, Result, SandboxSpec, UserCounts};
use eyot_guest::protocol::Protections;

use super::NAME;

/// Returns what the vendor promises: each sandbox is a virtual machine. Its limits are the instance type's.
pub(super) fn promised() -> Isolation {
    Isolation {
        shares_host_kernel: false,
        network: NetworkMode::Bridge,
        // Commands are of the guest's own user.
        guest_out_of_reach: false,
        user_counts: Some(UserCounts::Shared),
        ..Isolation::none(NAME)
    }
}

/// Adds what the guest found in force.
pub(super) fn found(protections: Option<&Protections>) -> Result<Isolation> {
    let silent = || Error::new(ErrorKind::Setup, "the sandbox's guest does not say what protects it");
    let protections = protections.ok_or_else(silent)?;
    Ok(Isolation {
        no_new_privileges: protections.no_new_privileges,
        seccomp: protections.seccomp,
        readonly_rootfs: protections.readonly_rootfs,
        ..promised()
    })
}

/// Refuses a spec that requires more than is promised.
pub(super) fn refuse_required(spec: &SandboxSpec) -> Result<()> {
    let isolation = promised();
    match spec.require.iter().find(|requirement| !isolation.holds(**requirement)) {
        Some(_) => Err(eyot::SandboxOperationUnsupported::new("create", NAME, &["require"]).into()),
        None => Ok(()),
    }
}
