//! The stacks of a reaper and its child. They are kept for the next command: mapping them and
//! touching their pages costs more than a small command's bookkeeping.

use std::ffi::c_void;
use std::io;
use std::ptr;

/// The bytes of each of the two stacks.
const STACK_BYTES: usize = 32 * 1024;
const GUARD_BYTES: usize = 4096;
const HALF_BYTES: usize = STACK_BYTES + GUARD_BYTES;

/// Two small stacks in one mapping, each with a page below it that can't be touched.
#[derive(Debug)]
pub struct Stacks {
    base: *mut c_void,
}

impl Stacks {
    /// Maps them.
    pub fn new() -> io::Result<Self> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_STACK;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a fresh anonymous mapping at an address of the kernel's choosing aliases nothing.
        let base = unsafe { libc::mmap(ptr::null_mut(), 2 * HALF_BYTES, protection, flags, -1, 0) };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let stacks = Self { base };
        for half in [0, HALF_BYTES] {
            // SAFETY: the page lies within the mapping just made.
            let result = unsafe { libc::mprotect(base.byte_add(half), GUARD_BYTES, libc::PROT_NONE) };
            if result < 0 {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(stacks)
    }

    /// The top of the reaper's.
    pub fn reaper_top(&self) -> *mut c_void {
        self.base.wrapping_byte_add(HALF_BYTES)
    }

    /// The top of the child's.
    pub fn child_top(&self) -> *mut c_void {
        self.base.wrapping_byte_add(2 * HALF_BYTES)
    }
}

impl Drop for Stacks {
    fn drop(&mut self) {
        // SAFETY: the mapping is this struct's own, and whoever ran on it has been waited for.
        let result = unsafe { libc::munmap(self.base, 2 * HALF_BYTES) };
        debug_assert_eq!(result, 0, "unmapping one's own mapping");
    }
}
