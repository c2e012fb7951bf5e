//! New connections. A process inside the sandbox must never become a client of its own guest.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use super::connection::Connection;
use super::guest::{Guest, GuestEnd};
use super::outbox::Outbox;
use super::poll::PollToken;

/// The most connections at once.
const MOST_CONNECTIONS: usize = 256;

fn admit(guest: &mut Guest, stream: UnixStream) {
    if !guest.access.lets_in(&stream) || guest.connections.len() >= MOST_CONNECTIONS {
        return;
    }
    // Without room to watch it, it is closed again.
    drop(guest.add_connection(OwnedFd::from(stream), false));
}

fn pause_listener(guest: &mut Guest) {
    if let Some(listener) = &guest.listener {
        guest.listener_rests = guest.poll.remove(listener.as_fd()).is_ok();
    }
}

impl Guest {
    /// Accepts the connections that wait.
    pub(super) fn on_listener(&mut self) {
        loop {
            let Some(accepted) = self.listener.as_ref().map(|listener| listener.accept()) else {
                return;
            };
            match accepted {
                Ok((stream, _)) => admit(self, stream),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if matches!(error.raw_os_error(), Some(libc::ECONNABORTED | libc::EINTR)) => {}
                // No descriptor is left. The listener would be ready for ever, so it rests until
                // something is closed.
                Err(_) => return pause_listener(self),
            }
        }
    }

    /// Serves a stream from now on.
    pub(super) fn add_connection(&mut self, stream: OwnedFd, is_makers: bool) -> io::Result<()> {
        let id = self.next_id();
        let outbox = Outbox::new(stream, Arc::clone(&self.poll), PollToken::Connection(id))?;
        outbox.rest(self.held_for.is_some());
        self.connections.insert(id, Connection::new(id, Arc::new(outbox), is_makers));
        Ok(())
    }

    /// Something was closed: the listener may work again.
    pub(super) fn wake_listener(&mut self) {
        if let Some(listener) = self.listener.as_ref().filter(|_| self.listener_rests) {
            self.listener_rests = self.poll.add_reader(listener.as_fd(), PollToken::Listener).is_err();
        }
    }

    /// Forgets a connection that is gone. Its calls have no caller any more, and the commands that
    /// belong to them die.
    pub(super) fn lose_connection(&mut self, id: u32) {
        let Some(mut connection) = self.connections.remove(&id) else {
            return;
        };
        connection.outbox.close();
        for (number, call) in std::mem::take(&mut connection.calls) {
            self.abandon(id, number, &call);
        }
        if connection.is_makers && !self.adopted {
            self.ending = Some(GuestEnd::NeverAdopted);
        }
        // A client that only checks for a listener, or reads the sandbox's state, has not used the
        // sandbox.
        if connection.has_used {
            self.activity.note();
        }
        self.wake_listener();
    }
}
