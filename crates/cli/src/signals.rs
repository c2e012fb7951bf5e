//! Signals to this program. While it works they become events, so that everything it made is
//! removed before it ends.

use std::io;

use tokio::signal::unix::{Signal as Listener, SignalKind, signal};

/// The meaning of a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignalEvent {
    /// SIGINT: Ctrl-C.
    Interrupt,
    /// SIGTERM, SIGHUP or SIGQUIT, by number: end.
    Terminate(i32),
    /// SIGWINCH: our terminal has another size.
    Resize,
}

impl SignalEvent {
    /// Returns the number of the signal, if it is one that ends us.
    pub fn ends_with(self) -> Option<i32> {
        match self {
            Self::Interrupt => Some(2),
            Self::Terminate(number) => Some(number),
            Self::Resize => None,
        }
    }
}

/// The signals since [`Signals::listen`]. Before that, each has its usual effect.
pub struct Signals {
    interrupt: Listener,
    terminate: Listener,
    hang_up: Listener,
    quit: Listener,
    resize: Listener,
}

impl Signals {
    /// Starts to listen.
    pub fn listen() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
            quit: signal(SignalKind::quit())?,
            resize: signal(SignalKind::window_change())?,
        })
    }

    /// Returns the next signal. The future may be dropped; no signal is lost.
    pub async fn next(&mut self) -> SignalEvent {
        tokio::select! {
            _ = self.interrupt.recv() => SignalEvent::Interrupt,
            _ = self.terminate.recv() => SignalEvent::Terminate(15),
            _ = self.hang_up.recv() => SignalEvent::Terminate(1),
            _ = self.quit.recv() => SignalEvent::Terminate(3),
            _ = self.resize.recv() => SignalEvent::Resize,
        }
    }

    /// Returns the number of the next signal that ends us.
    pub async fn end(&mut self) -> i32 {
        loop {
            if let Some(number) = self.next().await.ends_with() {
                return number;
            }
        }
    }
}
