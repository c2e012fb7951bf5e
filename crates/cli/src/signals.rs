//! Signals that reach this program while it works for somebody: they become events, so that whatever was made is
//! removed again before we end.

use std::io;

use tokio::signal::unix::{Signal as Listener, SignalKind, signal};

/// What a signal asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignalEvent {
    /// SIGINT: Ctrl-C.
    Interrupt,
    /// SIGTERM, SIGHUP or SIGQUIT, by number: come to an end.
    Terminate(i32),
    /// SIGWINCH: our terminal has another size.
    Resize,
}

impl SignalEvent {
    /// The number of the signal that ends us, if it is one of those.
    pub fn ends_with(self) -> Option<i32> {
        match self {
            Self::Interrupt => Some(2),
            Self::Terminate(number) => Some(number),
            Self::Resize => None,
        }
    }
}

/// The signals, from the moment of [`Signals::listen`] on: until then each does what it always does.
pub struct Signals {
    interrupt: Listener,
    terminate: Listener,
    hang_up: Listener,
    quit: Listener,
    resize: Listener,
}

impl Signals {
    /// Begins to listen.
    pub fn listen() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
            quit: signal(SignalKind::quit())?,
            resize: signal(SignalKind::window_change())?,
        })
    }

    /// The next signal. May be dropped and called again; nothing is lost.
    pub async fn next(&mut self) -> SignalEvent {
        tokio::select! {
            _ = self.interrupt.recv() => SignalEvent::Interrupt,
            _ = self.terminate.recv() => SignalEvent::Terminate(15),
            _ = self.hang_up.recv() => SignalEvent::Terminate(1),
            _ = self.quit.recv() => SignalEvent::Terminate(3),
            _ = self.resize.recv() => SignalEvent::Resize,
        }
    }

    /// The number of the next signal that ends us.
    pub async fn end(&mut self) -> i32 {
        loop {
            if let Some(number) = self.next().await.ends_with() {
                return number;
            }
        }
    }
}
