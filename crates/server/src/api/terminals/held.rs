//! What is held of each terminal: what it wrote last, who reads it, and how it is ended when nobody does any more.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use eyot::wire::{SocketEvent, TerminalAnswer};
use eyot::{
    CancellationToken, Error, ErrorKind, ExecControl, ExecEvent, ExecResult, ExecStream, Result, Sandbox,
    SandboxName,
};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use crate::api::exec::answer;
use crate::api::kept::{Keepable, Kept, Whose};
use crate::problem::Refusal;

/// How much of what a terminal wrote is kept for who connects later, and how far it may be ahead of who is connected, in bytes.
pub(super) const KEPT_BYTES: usize = 256 << 10;
/// How much of it is told at once, in bytes.
const PIECE_BYTES: usize = 32 << 10;
/// What is typed waits in pieces of at most so much.
const TYPED_PIECE_BYTES: usize = 4 << 10;
/// How long one goes on to which nobody is connected.
const LINGER: Duration = Duration::from_secs(600);

/// The terminals of a server.
pub(in crate::api) type Terminals = Kept<Terminal>;

/// One terminal.
pub(in crate::api) struct Terminal {
    whose: Whose,
    command: Option<String>,
    started_ms: i64,
    pub control: ExecControl,
    typed: mpsc::Sender<Bytes>,
    /// Ends it.
    pub cancel: CancellationToken,
    state: Mutex<State>,
    /// Told whenever the state has changed.
    changed: watch::Sender<()>,
}

impl Keepable for Terminal {
    const WORD: &'static str = "terminal";
    const MAX_OF_POOL: usize = 64;
    const HINT: &'static str = "close one, or wait: one that nobody looks at ends after 10 minutes";

    fn whose(&self) -> &Whose {
        &self.whose
    }
}

struct State {
    /// Bytes, not pieces: a program may write one at a time.
    kept: VecDeque<u8>,
    /// How many bytes were written before the first that is kept.
    first: u64,
    /// How many were written in all.
    written: u64,
    /// How many its reader has had.
    had: u64,
    /// Which reader reads: a later one takes its place.
    reader: u64,
    /// Nobody is connected since then.
    alone_since: Option<Instant>,
    end: Option<SocketEvent>,
    is_forgotten: bool,
}

impl State {
    fn push(&mut self, bytes: &[u8]) {
        self.written += bytes.len() as u64;
        self.kept.extend(bytes);
        let too_many = self.kept.len().saturating_sub(KEPT_BYTES);
        self.kept.drain(..too_many);
        self.first += too_many as u64;
    }

    /// Whether its reader is not too far behind. Without one it need not wait.
    fn has_room(&self) -> bool {
        self.alone_since.is_some() || self.written - self.had.max(self.first) < KEPT_BYTES as u64 / 2
    }

    /// What was written behind this many bytes, up to a piece of it, and how many bytes that is behind. What is not kept any
    /// more is left out.
    fn behind(&self, had: u64) -> Option<(u64, Bytes)> {
        let from = usize::try_from(had.saturating_sub(self.first)).unwrap_or(usize::MAX);
        let to = self.kept.len().min(from.saturating_add(PIECE_BYTES));
        if from >= to {
            return None;
        }
        let piece: Vec<u8> = self.kept.range(from..to).copied().collect();
        Some((self.first + to as u64, piece.into()))
    }
}

/// What a reader is told.
pub(in crate::api) enum Piece {
    /// What was there before was told; from here on it is what comes. A client need not answer what a program asked long ago.
    Started,
    Output(Bytes),
    End(Box<SocketEvent>),
}

impl Terminal {
    pub fn new(
        pool: SandboxName,
        sandbox: &Sandbox,
        command: Option<String>,
        control: ExecControl,
        typed: mpsc::Sender<Bytes>,
        cancel: CancellationToken,
    ) -> Result<Arc<Self>> {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let state = State {
            kept: VecDeque::new(),
            first: 0,
            written: 0,
            had: 0,
            reader: 0,
            alone_since: Some(Instant::now()),
            end: None,
            is_forgotten: false,
        };
        Ok(Arc::new(Self {
            whose: Whose::new("tm", pool, sandbox)?,
            command,
            started_ms: i64::try_from(since_1970.as_millis()).unwrap_or(i64::MAX),
            control,
            typed,
            cancel,
            state: Mutex::new(state),
            changed: watch::Sender::new(()),
        }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let changed = change(&mut self.state());
        self.changed.send_replace(());
        changed
    }

    /// What is known of it.
    pub fn answer(&self) -> TerminalAnswer {
        let attached = self.state().alone_since.is_none();
        let (id, command) = (self.whose.id.clone(), self.command.clone());
        TerminalAnswer { id, command, started_ms: self.started_ms, attached }
    }

    /// Types the beginning of this, once the program has room for it, and takes it out. What the program does not read any
    /// more, since it has ended, is taken out too.
    pub async fn typed(&self, ahead: &mut Bytes) {
        match self.typed.reserve().await {
            Ok(room) => {
                let piece = ahead.split_to(ahead.len().min(TYPED_PIECE_BYTES));
                // A copy: a part of a message holds all of it in memory.
                room.send(Bytes::copy_from_slice(&piece));
            }
            Err(_) => ahead.clear(),
        }
    }

    /// From what is kept on; whoever has read before reads no more.
    pub fn read(self: &Arc<Self>) -> Reading {
        let (reader, had, now) = self.change(|state| {
            state.reader += 1;
            state.alone_since = None;
            state.had = state.first;
            (state.reader, state.first, state.written)
        });
        let (terminal, changed) = (Arc::clone(self), self.changed.subscribe());
        Reading { terminal, reader, had, past_until: Some(now), changed }
    }
}

/// Somebody who is connected.
pub(in crate::api) struct Reading {
    terminal: Arc<Terminal>,
    reader: u64,
    had: u64,
    /// Up to here it is what was there before; `None`: that was told.
    past_until: Option<u64>,
    changed: watch::Receiver<()>,
}

impl Reading {
    /// What comes next; `None`: somebody else has taken this one's place, or it was ended.
    pub async fn next(&mut self) -> Option<Piece> {
        loop {
            self.changed.borrow_and_update();
            match self.look()? {
                Some(piece) => return Some(piece),
                None => self.changed.changed().await.ok()?,
            }
        }
    }

    /// `Some(None)`: nothing yet.
    fn look(&mut self) -> Option<Option<Piece>> {
        let mut state = self.terminal.state();
        if state.reader != self.reader || state.is_forgotten {
            return None;
        }
        // What was handed out before is had, now that more is asked for.
        let is_behind = std::mem::replace(&mut state.had, self.had) != self.had;
        let next = match self.past_until.filter(|until| self.had >= *until) {
            Some(_) => {
                self.past_until = None;
                Some(Piece::Started)
            }
            None => state.behind(self.had).map(|(had, bytes)| {
                self.had = had;
                Piece::Output(bytes)
            }),
        };
        let next = next.or_else(|| state.end.clone().map(|end| Piece::End(Box::new(end))));
        drop(state);
        if is_behind {
            self.terminal.changed.send_replace(());
        }
        Some(next)
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        self.terminal.change(|state| {
            if state.reader == self.reader {
                state.alone_since = Some(Instant::now());
            }
        });
    }
}

impl Terminals {
    /// Takes up one whose command was started; `ended` hears what came of it. `quota`: there are too many.
    pub fn take_up(
        &self,
        terminal: Arc<Terminal>,
        events: ExecStream,
        ended: impl Fn(&ExecResult) + Send + 'static,
    ) -> Result<()> {
        self.add(&terminal)?;
        tokio::spawn(keep(self.clone(), terminal, events, ended));
        Ok(())
    }

    /// Those of a sandbox, by id or name, the oldest first.
    pub fn told(&self, pool: &SandboxName, sandbox: &str) -> Vec<TerminalAnswer> {
        let mut answers: Vec<TerminalAnswer> =
            self.of(pool, sandbox).iter().map(|terminal| terminal.answer()).collect();
        answers.sort_by(|one, other| (one.started_ms, &one.id).cmp(&(other.started_ms, &other.id)));
        answers
    }

    /// Ends one, and knows it no more.
    pub fn forget(&self, terminal: &Terminal) {
        self.remove(terminal);
        terminal.change(|state| state.is_forgotten = true);
    }
}

/// Keeps what a terminal writes until nobody wants it any more.
async fn keep(
    terminals: Terminals,
    terminal: Arc<Terminal>,
    mut events: ExecStream,
    ended: impl Fn(&ExecResult),
) {
    let mut changed = terminal.changed.subscribe();
    loop {
        changed.borrow_and_update();
        let (takes, forgotten_at) = {
            let state = terminal.state();
            if state.is_forgotten {
                break;
            }
            (state.end.is_none() && state.has_room(), state.alone_since.map(|since| since + LINGER))
        };
        tokio::select! {
            event = events.next(), if takes => told(&terminal, event, &ended),
            _ = changed.changed() => {}
            () = tokio::time::sleep_until(forgotten_at.unwrap_or_else(Instant::now)), if forgotten_at.is_some() => {
                // Somebody may have come just now.
                if terminal.state().alone_since.map(|since| since + LINGER) == forgotten_at {
                    break;
                }
            }
        }
    }
    // Its events go now, and what runs in it with them.
    terminals.forget(&terminal);
}

fn told(terminal: &Terminal, event: Option<Result<ExecEvent>>, ended: &impl Fn(&ExecResult)) {
    let problem = |error: Error| SocketEvent::Problem(Refusal::from(error).problem());
    let end = match event {
        Some(Ok(ExecEvent::Stdout(bytes) | ExecEvent::Stderr(bytes))) => {
            return terminal.change(|state| state.push(&bytes));
        }
        Some(Ok(ExecEvent::End(result))) => {
            ended(&result);
            SocketEvent::End(Box::new(answer(result).without_output()))
        }
        Some(Err(error)) => problem(error),
        None => problem(Error::new(ErrorKind::Internal, "a terminal ended without an outcome")),
    };
    terminal.change(|state| state.end = Some(end));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state() -> State {
        let (kept, first, written, had, reader, end, is_forgotten) = Default::default();
        State { kept, first, written, had, reader, alone_since: None, end, is_forgotten }
    }

    #[test]
    fn the_last_of_what_was_written_is_kept_and_read_from_anywhere_in_it() {
        let mut state = state();
        state.push(b"abc");
        state.push(b"de");
        assert_eq!(state.behind(0), Some((5, Bytes::from_static(b"abcde"))));
        assert_eq!(state.behind(2), Some((5, Bytes::from_static(b"cde"))));
        assert_eq!(state.behind(5), None);
        state.push(&vec![b'x'; KEPT_BYTES - 2]);
        assert_eq!((state.first, state.written), (3, 3 + KEPT_BYTES as u64));
        // What is not kept any more is left out, and what is long comes in pieces.
        let (had, piece) = state.behind(0).unwrap();
        assert_eq!((had, piece.len(), &piece[..3]), (3 + PIECE_BYTES as u64, PIECE_BYTES, &b"dex"[..]));
        assert_eq!(state.behind(state.written - 1).unwrap().1, "x");
    }

    #[test]
    fn a_terminal_waits_for_who_is_connected_and_for_nobody_else() {
        let mut state = state();
        state.push(&[0; KEPT_BYTES / 2]);
        assert!(!state.has_room());
        state.had = 1;
        assert!(state.has_room());
        state.had = 0;
        state.alone_since = Some(Instant::now());
        assert!(state.has_room());
    }
}
