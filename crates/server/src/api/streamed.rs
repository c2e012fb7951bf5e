//! Commands whose output is streamed and whose stream may be taken up again: they outlive a connection that breaks, for a while.
//!
//! What a command writes is kept until a reader has had it, and [`KEPT_BYTES`] of what readers have had besides, so that one
//! whose connection broke can go on behind the last event that it saw. A command that is further ahead than that waits. One
//! that nobody has read for so long as was agreed is killed, and forgotten.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use eyot::wire::{ExecAnswer, Problem};
use eyot::{Error, ErrorKind, ExecEvent, ExecResult, ExecStream, Result, Sandbox, SandboxName};
use futures_util::Stream;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::exec::answer;
use super::kept::{Keepable, Kept, Whose, none};
use crate::problem::Refusal;

/// How much output may wait for a reader, and how much is kept of what one has had, in bytes each.
pub(super) const KEPT_BYTES: usize = 1 << 20;

/// What a reader is told, each under its number.
#[derive(Clone)]
pub(super) enum Told {
    Stdout(Bytes),
    Stderr(Bytes),
    End(Box<ExecAnswer>),
    Failed(Box<Problem>),
}

impl Told {
    fn of(event: Option<Result<ExecEvent>>) -> Self {
        let failed = |error: Error| Self::Failed(Box::new(Refusal::from(error).problem()));
        match event {
            Some(Ok(ExecEvent::Stdout(bytes))) => Self::Stdout(bytes),
            Some(Ok(ExecEvent::Stderr(bytes))) => Self::Stderr(bytes),
            Some(Ok(ExecEvent::End(result))) => Self::End(Box::new(answer(result).without_output())),
            Some(Err(error)) => failed(error),
            None => failed(Error::new(ErrorKind::Internal, "a command ended without an outcome")),
        }
    }

    /// What it takes to keep it, in bytes.
    fn cost(&self) -> usize {
        let output = match self {
            Self::Stdout(bytes) | Self::Stderr(bytes) => bytes.len(),
            Self::End(_) | Self::Failed(_) => 0,
        };
        size_of::<Self>() + output
    }

    fn is_last(&self) -> bool {
        matches!(self, Self::End(_) | Self::Failed(_))
    }
}

/// The streamed commands of a server.
pub(super) type Streamed = Kept<Run>;

/// A streamed command.
pub(super) struct Run {
    whose: Whose,
    /// Ends the command, whose outcome is then `cancelled`.
    pub cancel: CancellationToken,
    state: Mutex<State>,
    /// Told whenever the state has changed.
    changed: watch::Sender<()>,
}

impl Keepable for Run {
    const WORD: &'static str = "streamed command";
    const MAX_OF_POOL: usize = 64;
    const HINT: &'static str = "read their streams to the end, or run commands without a stream";

    fn whose(&self) -> &Whose {
        &self.whose
    }
}

struct State {
    kept: VecDeque<Told>,
    /// The number of the first that is kept. Numbers begin at 1.
    first: u64,
    /// The number of the last that a reader has had.
    had: u64,
    /// Which reader reads: a later one takes its place.
    reader: u64,
    /// Nobody reads since then.
    alone_since: Option<Instant>,
    is_over: bool,
    /// Nobody read it for too long: it is not there any more.
    is_forgotten: bool,
    /// What it takes to keep what no reader has had.
    ahead_bytes: usize,
    /// What it takes to keep what one has had.
    had_bytes: usize,
}

impl State {
    fn new() -> Self {
        Self {
            kept: VecDeque::new(),
            first: 1,
            had: 0,
            reader: 0,
            alone_since: Some(Instant::now()),
            is_over: false,
            is_forgotten: false,
            ahead_bytes: 0,
            had_bytes: 0,
        }
    }

    /// The number that comes next.
    fn end(&self) -> u64 {
        self.first + self.kept.len() as u64
    }

    fn push(&mut self, told: Told) {
        self.ahead_bytes += told.cost();
        self.is_over = told.is_last();
        self.kept.push_back(told);
    }

    fn has_room(&self) -> bool {
        self.ahead_bytes < KEPT_BYTES
    }

    /// Notes what a reader has had, and lets go of the oldest of it.
    fn had(&mut self, number: u64) {
        while self.had < number {
            self.had += 1;
            let cost = self.at(self.had).map_or(0, Told::cost);
            self.ahead_bytes -= cost;
            self.had_bytes += cost;
        }
        while self.first <= self.had && self.had_bytes > KEPT_BYTES {
            self.had_bytes -= self.kept.pop_front().map_or(0, |told| told.cost());
            self.first += 1;
        }
    }

    /// What has this number. `None`: nothing yet.
    fn at(&self, number: u64) -> Option<&Told> {
        self.kept.get(usize::try_from(number - self.first).ok()?)
    }
}

impl Run {
    pub fn id(&self) -> &str {
        &self.whose.id
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let changed = change(&mut self.state());
        self.changed.send_replace(());
        changed
    }

    /// What comes behind this number, each with its own; whoever has read before reads no more. `conflict`: some of it is not
    /// kept any more.
    pub fn read(self: Arc<Self>, behind: u64) -> Result<impl Stream<Item = (u64, Told)> + Send + use<>> {
        let reader = self.change(|state| {
            if state.is_forgotten {
                return Err(none::<Self>(self.id()));
            }
            let next = behind.saturating_add(1);
            if next < state.first {
                let message =
                    format!("event {next} is not kept any more; the first that is, is {}", state.first);
                return Err(Error::new(ErrorKind::Conflict, message));
            }
            if next > state.end() {
                return Err(Error::invalid("Last-Event-ID", "is a number that no event has had"));
            }
            state.reader += 1;
            state.alone_since = None;
            Ok(state.reader)
        })?;
        let changed = self.changed.subscribe();
        Ok(futures_util::stream::unfold(Reading { run: self, reader, behind, changed }, Reading::next))
    }
}

struct Reading {
    run: Arc<Run>,
    reader: u64,
    behind: u64,
    changed: watch::Receiver<()>,
}

impl Reading {
    async fn next(mut self) -> Option<((u64, Told), Self)> {
        loop {
            self.changed.borrow_and_update();
            match self.look()? {
                Some(told) => {
                    self.behind += 1;
                    return Some(((self.behind, told), self));
                }
                None => self.changed.changed().await.ok()?,
            }
        }
    }

    /// `None`: nothing will ever come; `Some(None)`: nothing yet.
    fn look(&self) -> Option<Option<Told>> {
        let mut state = self.run.state();
        if state.reader != self.reader {
            return None;
        }
        let next = state.at(self.behind + 1).cloned();
        if next.is_none() && state.is_over {
            return None;
        }
        // What was handed out before is had, now that more is asked for.
        if state.had < self.behind {
            state.had(self.behind);
            drop(state);
            self.run.changed.send_replace(());
        }
        Some(next)
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        self.run.change(|state| {
            if state.reader == self.reader {
                state.alone_since = Some(Instant::now());
            }
        });
    }
}

impl Streamed {
    /// Takes up a command that was started, which `cancel` ends. It is killed once nobody has read it for
    /// `linger`; `ended` hears what came of it. `quota`: there are too many.
    pub fn take_up(
        &self,
        pool: SandboxName,
        sandbox: &Sandbox,
        events: ExecStream,
        cancel: CancellationToken,
        linger: Duration,
        ended: impl Fn(&ExecResult) + Send + 'static,
    ) -> Result<Arc<Run>> {
        let run = Arc::new(Run {
            whose: Whose::new("ex", pool, sandbox)?,
            cancel,
            state: Mutex::new(State::new()),
            changed: watch::Sender::new(()),
        });
        self.add(&run)?;
        tokio::spawn(keep(self.clone(), Arc::clone(&run), events, linger, ended));
        Ok(run)
    }
}

/// Keeps what the command writes, until nobody wants it any more.
async fn keep(
    streamed: Streamed,
    run: Arc<Run>,
    mut events: ExecStream,
    linger: Duration,
    ended: impl Fn(&ExecResult),
) {
    let mut changed = run.changed.subscribe();
    loop {
        changed.borrow_and_update();
        let (is_over, has_room, alone_since) = {
            let state = run.state();
            (state.is_over, state.has_room(), state.alone_since)
        };
        // What is to be ended need not wait for a reader.
        let takes = !is_over && (has_room || run.cancel.is_cancelled());
        let forgotten_at = alone_since.map(|since| since + linger);
        tokio::select! {
            event = events.next(), if takes => {
                if let Some(Ok(ExecEvent::End(result))) = &event {
                    ended(result);
                }
                let told = Told::of(event);
                run.change(|state| state.push(told));
            }
            _ = changed.changed() => {}
            () = run.cancel.cancelled(), if !takes && !is_over => {}
            () = tokio::time::sleep_until(forgotten_at.unwrap_or_else(Instant::now)), if forgotten_at.is_some() => {
                // Somebody may have come just now.
                let mut state = run.state();
                if state.alone_since == alone_since {
                    state.is_forgotten = true;
                    break;
                }
            }
        }
    }
    // Its events go now, and the command with them.
    streamed.remove(&run);
}
