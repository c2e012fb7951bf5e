//! Commands that a tool runs. Each piece of output is handed over as it comes, and progress is
//! reported.

use std::time::{Duration, Instant};

use bytes::Bytes;
use eyot::{Command, Error, ErrorKind, ExecOptions, ExecResult, LogStream, Result, Sandbox};

use super::context::{ToolContext, ToolProgress};

/// The pause between two reports of a call's progress.
const PROGRESS_PAUSE: Duration = Duration::from_millis(200);

/// The sandbox that a call means, for a tool that settles its cancel itself: making one may be given up too.
pub(super) async fn sandbox(context: &ToolContext) -> Result<Sandbox> {
    tokio::select! {
        biased;
        sandbox = context.sandbox(None) => sandbox,
        () = context.cancel.cancelled() => Err(Error::new(ErrorKind::Cancelled, "Operation aborted")),
    }
}

/// Runs a command to its end; or until `take`, which gets each piece of output, answers false: then its process tree is
/// killed and there is no result. The result's own output is empty.
pub(super) async fn run(
    context: &ToolContext,
    sandbox: &Sandbox,
    line: String,
    options: ExecOptions,
    mut take: impl FnMut(LogStream, &Bytes) -> bool + Send,
) -> Result<Option<ExecResult>> {
    let options = ExecOptions { cancel: Some(context.cancel.clone()), max_output_bytes: Some(0), ..options };
    let events = sandbox.exec_stream(Command::Shell(line), options).await?;
    let mut progress = ProgressReporter::default();
    let take = |stream, piece: &Bytes| {
        progress.report(context, piece);
        take(stream, piece)
    };
    events.collect_while(take).await
}

/// Reports the progress of a call by its output.
#[derive(Debug, Default)]
pub(super) struct ProgressReporter {
    bytes: u64,
    told: Option<Instant>,
}

impl ProgressReporter {
    /// Tells of a piece of output: how much there was so far, and the last line of this.
    pub(super) fn report(&mut self, context: &ToolContext, piece: &[u8]) {
        self.bytes += piece.len() as u64;
        let is_early = self.told.is_some_and(|told| told.elapsed() < PROGRESS_PAUSE);
        if context.progress.is_none() || is_early {
            return;
        }
        self.told = Some(Instant::now());
        let text = String::from_utf8_lossy(piece);
        let last = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
        context.report(ToolProgress::new(self.bytes, last));
    }
}

/// Refuses an argument with a null byte, which no word of a shell can have, by its own name.
pub(super) fn no_null(name: &str, value: Option<&str>) -> Result<()> {
    if value.is_some_and(|value| value.contains('\0')) {
        Err(Error::invalid(name, "must not contain a null byte"))
    } else {
        Ok(())
    }
}

/// A text as one word of a shell.
pub(super) fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// The end of what a command wrote to one of its streams.
#[derive(Debug)]
pub(super) struct OutputTail {
    kept: Vec<u8>,
    max_bytes: usize,
    dropped: bool,
}

impl OutputTail {
    /// Nothing yet; at least the last `max_bytes` will be kept, and at most twice as much.
    pub(super) fn new(max_bytes: usize) -> Self {
        Self { kept: Vec::new(), max_bytes, dropped: false }
    }

    pub(super) fn push(&mut self, piece: &[u8]) {
        self.kept.extend_from_slice(piece);
        if self.kept.len() > 2 * self.max_bytes {
            self.kept.drain(..self.kept.len() - self.max_bytes);
            self.dropped = true;
        }
    }

    /// As text; a character that was cut in two is left out.
    pub(super) fn text(&self) -> String {
        let is_inside = |byte: &&u8| **byte & 0xC0 == 0x80;
        let cut = if self.dropped { self.kept.iter().take(3).take_while(is_inside).count() } else { 0 };
        String::from_utf8_lossy(&self.kept[cut..]).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quote_in_a_word_stays_a_quote() {
        assert_eq!(quote("it's"), r"'it'\''s'");
        assert_eq!(quote("$(x) \n"), "'$(x) \n'");
    }

    #[test]
    fn a_tail_keeps_the_end_and_no_half_character() {
        let mut tail = OutputTail::new(4);
        "äöüäöü".bytes().for_each(|byte| tail.push(&[byte]));
        assert!("äöüäöü".ends_with(&tail.text()) && tail.text().len() >= 3, "{}", tail.text());
    }
}
