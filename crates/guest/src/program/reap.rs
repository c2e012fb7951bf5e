//! Children that have ended, taken from the kernel exactly once each.

use super::sys;
use crate::protocol::Status;

/// A child that has ended and was waited for. Only [`next_reaped`] makes one, so it proves that the
/// process is gone.
#[derive(Debug)]
pub struct ChildExit {
    pid: i32,
    wait_status: i32,
}

impl ChildExit {
    /// Returns the number of the process.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Returns the exit code, or as an error the signal that killed the process.
    pub fn status(&self) -> Result<i32, i32> {
        sys::decode_wait_status(self.wait_status)
    }
}

/// The next child that has ended, if there is one.
pub fn next_reaped() -> Option<ChildExit> {
    let (pid, wait_status) = sys::reap().ok()??;
    Some(ChildExit { pid, wait_status })
}

/// A wait status as the protocol has it.
pub fn status_of(wait_status: i32) -> Status {
    match sys::decode_wait_status(wait_status) {
        Ok(code) => Status::Exited(code),
        Err(signal) => Status::Signaled(signal),
    }
}
