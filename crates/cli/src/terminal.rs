//! Our own terminal: its size, and raw mode that always ends.

use std::io::{self, IsTerminal};

use eyot::PtySize;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};

/// Tells whether our standard input is a terminal.
pub fn stdin_is_terminal() -> bool {
    io::stdin().is_terminal()
}

/// Tells whether our standard input and our standard output are terminals.
pub fn is_both_ways() -> bool {
    stdin_is_terminal() && io::stdout().is_terminal()
}

/// Returns the size of the terminal that we read from, or else of the one that we write to.
pub fn size() -> Option<PtySize> {
    let size = tcgetwinsize(io::stdin()).or_else(|_| tcgetwinsize(io::stdout())).ok()?;
    let known = size.ws_row > 0 && size.ws_col > 0;
    known.then_some(PtySize { rows: size.ws_row, cols: size.ws_col })
}

/// Returns the terminal's type (`TERM`) for the program inside. Only names that are safe in any
/// program are returned.
pub fn kind() -> Option<String> {
    let good = |character: char| character.is_ascii_alphanumeric() || "-_.+".contains(character);
    std::env::var("TERM").ok().filter(|term| !term.is_empty() && term.len() <= 64 && term.chars().all(good))
}

/// Raw mode: every key goes to the command as it is, Ctrl-C included. Dropping this restores the
/// terminal, in a panic too.
pub struct RawMode {
    before: Termios,
}

impl RawMode {
    /// Switches the terminal that we read from to raw mode.
    pub fn enter() -> io::Result<Self> {
        Self::change(Termios::make_raw)
    }

    /// Lets each key be read at once and unseen. Ctrl-C stays a signal.
    pub fn enter_for_keys() -> io::Result<Self> {
        Self::change(|mode| mode.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO))
    }

    fn change(change: impl FnOnce(&mut Termios)) -> io::Result<Self> {
        let before = tcgetattr(io::stdin())?;
        let mut mode = before.clone();
        change(&mut mode);
        tcsetattr(io::stdin(), OptionalActions::Drain, &mode)?;
        Ok(Self { before })
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        // Not after a drain: output that was stopped with Ctrl-S would hold us.
        if let Err(error) = tcsetattr(io::stdin(), OptionalActions::Now, &self.before) {
            tracing::debug!(%error, "the terminal is gone, and nothing is left to restore");
        }
    }
}
