//! Files whose descriptors are passed to a client on the same machine, which then reads them without
//! the guest. The client decides anew whether it takes a descriptor.

use std::os::fd::BorrowedFd;

use rustix::fs::Advice;

use crate::protocol::{DISK_FILE_SYSTEMS, MAX_PASSED_BYTES, MAX_PAYLOAD_BYTES};

/// Up to this many bytes travel as one frame of data, which is as fast as a descriptor.
const LEAST_BYTES: u64 = MAX_PAYLOAD_BYTES as u64;
/// The kernel reads at most this much ahead at a time.
const AHEAD_BYTES: u64 = 128 * 1024;

/// An overlay, in statfs(2). The client looks where its layers are.
const OVERLAY: i64 = 0x794c_7630;

/// Tells whether a descriptor is worth passing for so many bytes, and is of a kind that clients
/// take.
pub fn is_passable(file: BorrowedFd<'_>, bytes: u64) -> bool {
    bytes > LEAST_BYTES && bytes <= MAX_PASSED_BYTES && is_on_disk(file)
}

/// Tells whether a file is on a disk of this machine.
pub fn is_on_disk(file: BorrowedFd<'_>) -> bool {
    let found = magic(file);
    is_overlay(found) || DISK_FILE_SYSTEMS.iter().any(|(_, number)| found == Some(*number))
}

/// Tells whether a file is on an overlay. Where descriptors are passed that is the sandbox's own,
/// which does not outlive a crash of the host.
pub fn is_on_overlay(file: BorrowedFd<'_>) -> bool {
    is_overlay(magic(file))
}

fn is_overlay(found: Option<i64>) -> bool {
    found == Some(OVERLAY)
}

/// Returns the number of a file's kind of file system.
fn magic(file: BorrowedFd<'_>) -> Option<i64> {
    rustix::fs::fstatfs(file).ok().map(|found| found.f_type & 0xffff_ffff)
}

/// A part of a file that the kernel reads from the disk on the guest's account: the pages are
/// charged to the sandbox's memory and not to the client's.
pub struct ReadAhead {
    at: u64,
    end: u64,
}

impl ReadAhead {
    /// The part of `bytes` from `offset` on.
    pub fn new(offset: u64, bytes: u64) -> Self {
        Self { at: offset, end: offset.saturating_add(bytes) }
    }

    /// Has the kernel begin with the next step. Returns `false` behind the last one.
    pub fn step(&mut self, file: BorrowedFd<'_>) -> bool {
        if self.at >= self.end {
            return false;
        }
        let length = AHEAD_BYTES.min(self.end - self.at);
        // Without it the client reads more slowly, and nothing else.
        rustix::fs::fadvise(file, self.at, std::num::NonZeroU64::new(length), Advice::WillNeed)
            .unwrap_or_default();
        self.at += length;
        true
    }
}
