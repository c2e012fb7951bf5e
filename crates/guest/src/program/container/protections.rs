//! What really holds around a container's guest: whoever made it only asked its engine for it.

use std::io;

use super::sys;
use crate::protocol::Protections;

/// Looks, before anybody else runs in the container.
pub fn look() -> io::Result<Protections> {
    Ok(Protections {
        no_new_privileges: sys::has_no_new_privileges()?,
        seccomp: sys::has_seccomp_filter(),
        readonly_rootfs: sys::is_read_only("/")?,
        kernel_release: sys::kernel_release()?,
    })
}
