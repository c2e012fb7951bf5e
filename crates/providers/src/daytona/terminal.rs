//! A stream to the guest of a sandbox: a terminal of the toolbox, whose shell becomes the guest's relay.

use std::time::Duration;

use bytes::Bytes;
use eyot::{Error, ErrorKind, Result};
use futures_util::{SinkExt, StreamExt};
use tokio::io::DuplexStream;
use tokio_tungstenite::tungstenite::Message;
use uuid::Uuid;

use super::toolbox::DaytonaToolbox;
use crate::terminal_guest::{GuestLife, TerminalSocket, through};

/// The longest wait for the shell of a terminal.
const PATIENCE: Duration = Duration::from_secs(30);
/// The most bytes that a shell may print before it does what it is told.
const MAX_GREETING_BYTES: usize = 1 << 20;
/// The longest wait for the end of a terminal that is of no more use.
const END_PATIENCE: Duration = Duration::from_secs(30);

/// Opens a stream to the guest of this life.
pub(super) async fn open(toolbox: &DaytonaToolbox, life: &GuestLife) -> Result<DuplexStream> {
    let mut terminal =
        OpenTerminal { toolbox: toolbox.clone(), name: Some(format!("eyot-{}", Uuid::new_v4())) };
    let late = |_| {
        let message = format!("Daytona opened no terminal within {} s", PATIENCE.as_secs());
        Error::new(ErrorKind::Unavailable, message)
    };
    let begun = tokio::time::timeout(PATIENCE, terminal.begin(life)).await.map_err(late);
    match begun.and_then(|begun| begun) {
        Ok(socket) => Ok(through(socket, async move { terminal.end().await })),
        Err(error) => {
            terminal.end().await;
            Err(error)
        }
    }
}

/// A terminal that this process uses. It is ended when it is dropped.
struct OpenTerminal {
    toolbox: DaytonaToolbox,
    name: Option<String>,
}

impl OpenTerminal {
    async fn begin(&self, life: &GuestLife) -> Result<TerminalSocket> {
        let name = self.name.as_deref().unwrap_or_default();
        self.toolbox.begin_terminal(name).await?;
        let mut socket = self.toolbox.connect_terminal(name).await?;
        let lost = |error| {
            Error::new(ErrorKind::Unavailable, "the terminal was lost when it was opened").with_source(error)
        };
        socket.send(Message::Binary(first_line(life).into())).await.map_err(lost)?;
        until_mark(&mut socket, &mark(life)).await?;
        // The shell waits for one byte, so that nothing comes between the mark and this side's reading on.
        socket.send(Message::Binary(Bytes::from_static(b"."))).await.map_err(lost)?;
        Ok(socket)
    }

    /// Ends the terminal.
    async fn end(&mut self) {
        if let Some(name) = &self.name {
            end(&self.toolbox, name).await;
            self.name = None;
        }
    }
}

impl Drop for OpenTerminal {
    fn drop(&mut self) {
        let (Some(name), Ok(runtime)) = (self.name.take(), tokio::runtime::Handle::try_current()) else {
            return;
        };
        let toolbox = self.toolbox.clone();
        runtime.spawn(async move { end(&toolbox, &name).await });
    }
}

async fn end(toolbox: &DaytonaToolbox, name: &str) {
    match tokio::time::timeout(END_PATIENCE, toolbox.end_terminal(name)).await {
        Ok(Ok(())) => {}
        // With its sandbox, it may be gone already. Its relay ends when it is not spoken to.
        Ok(Err(error)) => tracing::debug!(%error, "a terminal could not be ended"),
        Err(_) => tracing::debug!("a terminal could not be ended in time"),
    }
}

/// Returns the text that the shell prints when it does what it was told. What was typed, which a terminal shows, does not
/// have it.
fn mark(life: &GuestLife) -> String {
    format!("{}-ready", life.key)
}

/// Returns the line that makes the relay of the shell. Its blank keeps it out of a shell's history.
fn first_line(life: &GuestLife) -> String {
    let (key, directory) = (&life.key, life.directory());
    format!(
        " stty raw -echo && printf '%s-%s' {key} ready && head -c 1 >/dev/null && exec {directory}/stream\r"
    )
}

/// Reads until the mark, with which what has come ends.
async fn until_mark(socket: &mut TerminalSocket, mark: &str) -> Result<()> {
    let lost = || Error::new(ErrorKind::Unavailable, "the terminal was lost when it was opened");
    let (mut read, mut total) = (Vec::new(), 0);
    loop {
        let bytes = match socket.next().await {
            Some(Ok(Message::Binary(bytes))) => bytes,
            // What the toolbox says of its terminal.
            Some(Ok(Message::Text(_) | Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => continue,
            Some(Ok(Message::Close(_))) | None => return Err(lost()),
            Some(Err(error)) => return Err(lost().with_source(error)),
        };
        total += bytes.len();
        read.extend_from_slice(&bytes);
        if read.ends_with(mark.as_bytes()) {
            return Ok(());
        }
        if total > MAX_GREETING_BYTES {
            return Err(lost().with_source("its shell says something else without an end"));
        }
        let past = read.len().saturating_sub(mark.len());
        read.drain(..past);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_typed_does_not_have_the_mark() {
        let life = GuestLife::generate();
        assert!(!first_line(&life).contains(&mark(&life)));
    }
}
