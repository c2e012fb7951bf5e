//! The rule for who may connect to the guest.

use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

use super::sys;

/// The rule for who may connect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccessRule {
    /// Every process that finds the socket.
    Open,
    /// Processes outside of this pid namespace, whose numbers are not known in here.
    Outsiders,
    /// Processes of this user: the guest's own.
    User(u32),
    /// This process alone, which has checked whom it connects for.
    Itself,
}

impl AccessRule {
    pub fn lets_in(self, stream: &UnixStream) -> bool {
        match self {
            Self::Open => true,
            Self::Outsiders => sys::peer(stream.as_fd()).is_ok_and(|peer| peer.pid == 0),
            Self::User(uid) => sys::peer(stream.as_fd()).is_ok_and(|peer| peer.uid == uid),
            Self::Itself => sys::peer(stream.as_fd()).is_ok_and(|peer| peer.pid == own_pid()),
        }
    }
}

fn own_pid() -> i32 {
    i32::try_from(std::process::id()).unwrap_or(-1)
}
