//! Waiting for what a started process does: its end, after it was asked politely; a line of its log; a port that answers.

use std::time::Duration;

use futures_util::StreamExt;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::Sandbox;
use crate::capabilities::Capability;
use crate::error::{Error, ErrorKind, Result};
use crate::exec::Signal;
use crate::process::{LogQuery, LogStream, ProcessId, ProcessInfo};

/// The pause before a port that did not answer is tried again: a sandbox has no way to say that
/// something listens now.
const PORT_RETRY_INTERVAL: Duration = Duration::from_millis(25);
/// The longest line that is looked at; of a longer one, its beginning.
const MAX_LINE_BYTES: usize = 64 * 1024;

impl Sandbox {
    /// Asks a started process to end (SIGTERM to its group), and kills its whole tree if it has not within `grace_ms`
    /// milliseconds. Returns once it has ended; one that had ended before is fine.
    #[doc(alias = "stopProcess")]
    pub async fn stop(&self, process: ProcessId, grace_ms: u64) -> Result<ProcessInfo> {
        let polite = grace_ms > 0 && self.capabilities().has(Capability::Signals);
        if polite {
            let grace = deadline(grace_ms);
            self.kill(process, Some(Signal::TERM)).await?;
            if let Ok(ended) = timeout_at(grace, self.wait(process)).await {
                // The rest of its tree goes too.
                self.kill(process, None).await?;
                return ended;
            }
        }
        self.kill(process, None).await?;
        self.wait(process).await
    }

    /// Waits until a started process has written a line that contains `text`, on either stream, lines of the past
    /// included; returns that line without its end, invalid UTF-8 as U+FFFD. `conflict` if the process ends without one,
    /// `timeout` after `timeout_ms` milliseconds. Lines that are no longer in its log are not found.
    pub async fn wait_for_line(&self, process: ProcessId, text: &str, timeout_ms: u64) -> Result<String> {
        let what = format!("a line with `{text}` from process {process}");
        let until = deadline(timeout_ms);
        let found = timeout_at(until, self.find_line(process, text)).await;
        match found.map_err(|_| self.timeout_error(&what, timeout_ms))?? {
            Some(line) => Ok(line),
            None => {
                let message = format!("wait for {what} in sandbox `{}`: it ended without one", self.name());
                Err(Error::new(ErrorKind::Conflict, message).with_hint("its log says what it did"))
            }
        }
    }

    /// Waits until something listens on a TCP port of the sandbox's own loopback; `timeout` after `timeout_ms`
    /// milliseconds. The port is tried every 25 ms.
    #[doc(alias = "waitForPort")]
    pub async fn wait_for_port(&self, port: u16, timeout_ms: u64) -> Result<()> {
        let until = deadline(timeout_ms);
        loop {
            match timeout_at(until, self.dial(port)).await {
                Ok(Ok(_)) => return Ok(()),
                Ok(Err(error)) if error.kind() != ErrorKind::Unavailable || error.is_sleeping() => {
                    return Err(error);
                }
                Ok(Err(_)) if Instant::now() + PORT_RETRY_INTERVAL < until => {
                    sleep_until(Instant::now() + PORT_RETRY_INTERVAL).await;
                }
                _ => return Err(self.timeout_error(&format!("port {port} to answer"), timeout_ms)),
            }
        }
    }

    fn timeout_error(&self, what: &str, timeout_ms: u64) -> Error {
        let message = format!("wait for {what} in sandbox `{}`: not within {timeout_ms} ms", self.name());
        Error::new(ErrorKind::Timeout, message)
    }

    async fn find_line(&self, process: ProcessId, text: &str) -> Result<Option<String>> {
        let mut log = self.logs(process, LogQuery { follow: true, ..LogQuery::default() }).await?;
        let mut lines = [PartialLine::default(), PartialLine::default()];
        while let Some(chunk) = log.next().await {
            let chunk = chunk?;
            let line = match chunk.stream {
                LogStream::Stdout => &mut lines[0],
                LogStream::Stderr => &mut lines[1],
            };
            if let Some(found) = line.find(&chunk.data, text) {
                return Ok(Some(found));
            }
        }
        // A last line need not have an end.
        Ok(lines.iter().find_map(|line| line.has(text)))
    }
}

fn deadline(timeout_ms: u64) -> Instant {
    let now = Instant::now();
    // A deadline beyond what the clock can say is none.
    now.checked_add(Duration::from_millis(timeout_ms)).unwrap_or(now + Duration::from_secs(1 << 32))
}

/// The line of a stream that has begun.
#[derive(Default)]
struct PartialLine(Vec<u8>);

impl PartialLine {
    /// Takes in bytes; the first line that ends in them and has the text.
    fn find(&mut self, bytes: &[u8], text: &str) -> Option<String> {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            let ends = part.ends_with(b"\n");
            let part = part.strip_suffix(b"\n").unwrap_or(part);
            self.0.extend_from_slice(&part[..part.len().min(MAX_LINE_BYTES.saturating_sub(self.0.len()))]);
            if ends {
                let found = self.has(text);
                self.0.clear();
                if found.is_some() {
                    return found;
                }
            }
        }
        None
    }

    fn has(&self, text: &str) -> Option<String> {
        let line = String::from_utf8_lossy(&self.0);
        let line = line.strip_suffix('\r').unwrap_or(&line);
        (!self.0.is_empty() && line.contains(text)).then(|| line.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_found_however_its_bytes_arrive() {
        for step in [1, 3, 100] {
            let mut line = PartialLine::default();
            let found =
                b"starting\nready on 80\r\nmore\n".chunks(step).find_map(|bytes| line.find(bytes, "ready"));
            assert_eq!(found.as_deref(), Some("ready on 80"), "{step}");
        }
    }

    #[test]
    fn of_an_endless_line_its_beginning_is_kept() {
        let mut line = PartialLine::default();
        for _ in 0..100 {
            assert_eq!(line.find(&[b'x'; 10_000], "y"), None);
        }
        assert_eq!(line.0.len(), MAX_LINE_BYTES);
    }
}
