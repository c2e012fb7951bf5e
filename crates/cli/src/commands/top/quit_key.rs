//! The key that ends `eyot top` on a terminal: q, as in other programs of its kind.

use eyot::ByteStream;
use futures_util::StreamExt;

use crate::errors::Failure;
use crate::signals::Signals;
use crate::stdio::stdin_stream;
use crate::terminal::RawMode;

/// The terminal of a person who watches. Signals are listened to because the terminal must be
/// restored before they end us.
pub struct QuitKey {
    _mode: RawMode,
    input: ByteStream,
    signals: Signals,
}

impl QuitKey {
    /// Begins to read keys from our terminal.
    pub fn listen() -> Result<Self, Failure> {
        let signals = Signals::listen()?;
        let input = stdin_stream()?;
        let mode = RawMode::enter_for_keys().map_err(|error| Failure::host("use the terminal", error))?;
        Ok(Self { _mode: mode, input, signals })
    }

    /// Waits for a q.
    ///
    /// # Errors
    /// `Interrupted` if a signal ends us before.
    pub async fn quits(mut self) -> Result<(), Failure> {
        loop {
            tokio::select! {
                signal = self.signals.end() => return Err(Failure::Interrupted(signal)),
                piece = self.input.next() => match piece {
                    Some(Ok(keys)) if keys.contains(&b'q') => return Ok(()),
                    Some(Ok(_)) => {}
                    Some(Err(_)) | None => return Err(Failure::Interrupted(self.signals.end().await)),
                },
            }
        }
    }
}
