//! The protections that really hold around a container's guest. The maker only asked its engine for
//! them.

use std::io;

use super::sys;
use crate::protocol::Protections;

/// Reads the protections, before other programs run in the container.
pub fn look() -> io::Result<Protections> {
    Ok(Protections {
        no_new_privileges: sys::has_no_new_privileges()?,
        seccomp: sys::has_seccomp_filter(),
        readonly_rootfs: sys::is_read_only("/")?,
        kernel_release: sys::kernel_release()?,
    })
}
