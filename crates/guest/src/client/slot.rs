//! One call as the reader and the caller share it: what arrived, what may still come, and how it ended.
//!
//! The reader delivers, and every delivery is checked against the call's [`Shape`]. The caller takes. Nothing
//! here touches the stream.

use std::sync::Mutex;
use std::task::{Context, Poll, Waker};

use eyot::{Error, Result};

use super::fault::Violation;
use super::lanes::Permits;
use super::lock;
use super::pieces::{Piece, Pieces};
use super::shape::{Announce, CHANNELS, Framing, Shape};
use crate::protocol::{CHANNEL_MAIN, Event, Reply, WINDOW};

/// A call.
#[derive(Debug)]
pub(super) struct Slot {
    shape: Shape,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    phase: Phase,
    event: Option<Event>,
    announced: bool,
    pieces: Pieces,
    incoming: [Incoming; CHANNELS],
    data_bytes: u64,
    credit: u32,
    input_refused: bool,
    end: Option<Result<Reply>>,
    consumer: Option<Waker>,
    producer: Option<Waker>,
    permits: Option<Permits>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Its request has not left yet.
    Unsent,
    /// It is under way.
    Open,
    /// Nobody waits for it; the guest has still to end it.
    Abandoned,
    /// The guest ended it, or its connection did.
    Ended,
}

#[derive(Debug, Clone, Copy)]
struct Incoming {
    /// What the guest may still send.
    window: u32,
    /// What was taken and not granted again yet.
    taken: u32,
    /// The guest said that nothing more comes.
    over: bool,
}

impl Slot {
    /// A call whose request is not sent yet.
    pub(super) fn new(shape: Shape, permits: Permits) -> Self {
        let state = State {
            phase: Phase::Unsent,
            event: None,
            announced: false,
            pieces: Pieces::default(),
            incoming: [Incoming {
                window: WINDOW,
                taken: 0,
                over: false,
            }; CHANNELS],
            data_bytes: 0,
            credit: WINDOW,
            input_refused: false,
            end: None,
            consumer: None,
            producer: None,
            permits: Some(permits),
        };
        Self {
            shape,
            state: Mutex::new(state),
        }
    }

    /// What its traffic may look like.
    pub(super) fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The request is on its way.
    pub(super) fn mark_sent(&self) {
        let mut state = lock(&self.state);
        if state.phase == Phase::Unsent {
            state.phase = Phase::Open;
        }
    }
}

/// The reader's side.
impl Slot {
    /// Something happened to the call.
    pub(super) fn deliver_event(&self, event: Event) -> Result<(), Violation> {
        let right = matches!(
            (self.shape.announce, &event),
            (Announce::Started, Event::Started(_)) | (Announce::Opened | Announce::MayOpen, Event::Opened(_))
        );
        let mut state = lock(&self.state);
        if !right || state.announced {
            return Err(Violation::new("an event that its call does not have"));
        }
        state.announced = true;
        state.event = Some(event);
        state.wake_consumer();
        Ok(())
    }

    /// Bytes arrived on a channel.
    pub(super) fn deliver_data(&self, channel: u8, bytes: Vec<u8>) -> Result<(), Violation> {
        let mut state = lock(&self.state);
        self.check_data(&state, channel, &bytes)?;
        let incoming = &mut state.incoming[usize::from(channel)];
        let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        let Some(window) = incoming.window.checked_sub(length) else {
            return Err(Violation::new("data beyond the granted credit"));
        };
        incoming.window = window;
        state.data_bytes += u64::from(length);
        if state.phase != Phase::Abandoned {
            state.pieces.push(channel, bytes, self.shape.framing);
            state.wake_consumer();
        }
        Ok(())
    }

    fn check_data(&self, state: &State, channel: u8, bytes: &[u8]) -> Result<(), Violation> {
        self.check_channel(state, channel)?;
        let least = if self.shape.framing == Framing::Prefixed {
            9
        } else {
            1
        };
        if bytes.len() < least {
            return Err(Violation::new(format!("a data frame of {} bytes", bytes.len())));
        }
        match self.shape.max_data {
            Some(most) if state.data_bytes + bytes.len() as u64 > most => Err(Violation::new(format!(
                "more data than the {most} bytes that were asked for"
            ))),
            _ => Ok(()),
        }
    }

    fn check_channel(&self, state: &State, channel: u8) -> Result<(), Violation> {
        if !self.shape.channels.contains(&channel) {
            return Err(Violation::new(format!(
                "something on channel {channel}, which its call does not have"
            )));
        }
        if state.incoming[usize::from(channel)].over {
            return Err(Violation::new("something on a channel that has ended"));
        }
        self.check_announced(state)
    }

    fn check_announced(&self, state: &State) -> Result<(), Violation> {
        match self.shape.announce {
            Announce::Started | Announce::Opened if !state.announced => {
                Err(Violation::new("data or a reply before the call had begun"))
            }
            _ => Ok(()),
        }
    }

    /// A channel ended. On a command's input, whose bytes go the other way, it means that nobody reads them
    /// any more.
    pub(super) fn deliver_end(&self, channel: u8) -> Result<(), Violation> {
        let mut state = lock(&self.state);
        if channel == CHANNEL_MAIN && self.shape.input && !self.shape.channels.contains(&channel) {
            state.input_refused = true;
            state.wake_producer();
            return Ok(());
        }
        self.check_channel(&state, channel)?;
        state.incoming[usize::from(channel)].over = true;
        state.wake_consumer();
        Ok(())
    }

    /// The guest takes this many bytes more.
    pub(super) fn deliver_credit(&self, channel: u8, payload: &[u8]) -> Result<(), Violation> {
        let granted = payload.try_into().map(u32::from_le_bytes).unwrap_or_default();
        if channel != CHANNEL_MAIN || !self.shape.input || granted == 0 {
            return Err(Violation::new("a credit that means nothing"));
        }
        let mut state = lock(&self.state);
        let Some(credit) = state.credit.checked_add(granted) else {
            return Err(Violation::new("more credit than a number can hold"));
        };
        state.credit = credit;
        state.wake_producer();
        Ok(())
    }

    /// The guest ended the call.
    pub(super) fn finish(&self, end: Result<Reply>) -> Result<(), Violation> {
        let mut state = lock(&self.state);
        if end.is_ok() {
            self.check_announced(&state)?;
        }
        state.end(end);
        Ok(())
    }

    /// The connection ended, and the call with it.
    pub(super) fn fail(&self, error: Error) {
        lock(&self.state).end(Err(error));
    }
}

impl State {
    fn end(&mut self, end: Result<Reply>) {
        self.phase = Phase::Ended;
        self.end = Some(end);
        self.permits = None;
        self.wake_consumer();
        self.wake_producer();
    }

    fn wake_consumer(&mut self) {
        if let Some(waker) = self.consumer.take() {
            waker.wake();
        }
    }

    fn wake_producer(&mut self) {
        if let Some(waker) = self.producer.take() {
            waker.wake();
        }
    }

    fn wait_consumer<T>(&mut self, context: &Context<'_>) -> Poll<T> {
        self.consumer = Some(context.waker().clone());
        Poll::Pending
    }

    /// Counts what the caller took; says how much to grant again, in few large steps so as to save frames.
    fn take_back(&mut self, piece: &Piece) -> u32 {
        let incoming = &mut self.incoming[usize::from(piece.channel)];
        incoming.taken += u32::try_from(piece.bytes.len()).unwrap_or(u32::MAX);
        if incoming.taken < WINDOW / 2 || incoming.over || self.phase != Phase::Open {
            return 0;
        }
        let granted = std::mem::take(&mut incoming.taken);
        incoming.window += granted;
        granted
    }
}

/// The caller's side.
impl Slot {
    /// The call's event, or the error that came instead. `None`: it ended well, or has data, without an
    /// event, as a call that announces nothing may.
    pub(super) fn poll_event(&self, context: &Context<'_>) -> Poll<Result<Option<Event>>> {
        let mut state = lock(&self.state);
        if let Some(event) = state.event.take() {
            return Poll::Ready(Ok(Some(event)));
        }
        if state.data_bytes > 0 {
            return Poll::Ready(Ok(None));
        }
        match &state.end {
            Some(Ok(_)) => Poll::Ready(Ok(None)),
            Some(Err(_)) => Poll::Ready(state.take_end().map(|_| None)),
            None => state.wait_consumer(context),
        }
    }

    /// The next piece, and how much credit to grant for what was taken. `None` when no more come: the
    /// channels are over or the call has ended.
    pub(super) fn poll_piece(&self, context: &Context<'_>) -> Poll<Option<(Piece, u32)>> {
        let mut state = lock(&self.state);
        if let Some(piece) = state.pieces.pop() {
            let granted = state.take_back(&piece);
            return Poll::Ready(Some((piece, granted)));
        }
        let mut channels = self.shape.channels.iter();
        match state.phase == Phase::Ended
            || channels.all(|channel| state.incoming[usize::from(*channel)].over)
        {
            true => Poll::Ready(None),
            false => state.wait_consumer(context),
        }
    }

    /// The call's end; once.
    pub(super) fn poll_end(&self, context: &Context<'_>) -> Poll<Result<Reply>> {
        let mut state = lock(&self.state);
        match state.phase == Phase::Ended {
            true => Poll::Ready(state.take_end()),
            false => state.wait_consumer(context),
        }
    }

    /// Ready once the call has ended; its end stays to be taken.
    pub(super) fn poll_ended(&self, context: &Context<'_>) -> Poll<()> {
        let mut state = lock(&self.state);
        match state.phase == Phase::Ended {
            true => Poll::Ready(()),
            false => state.wait_consumer(context),
        }
    }

    /// How many bytes the guest will take; `None` when it will never take any more.
    pub(super) fn poll_credit(&self, context: &Context<'_>) -> Poll<Option<usize>> {
        let mut state = lock(&self.state);
        if state.phase == Phase::Ended || state.input_refused {
            return Poll::Ready(None);
        }
        match state.credit {
            0 => {
                state.producer = Some(context.waker().clone());
                Poll::Pending
            }
            credit => Poll::Ready(Some(credit as usize)),
        }
    }

    /// Uses credit that [`Self::poll_credit`] has shown.
    pub(super) fn use_credit(&self, bytes: usize) {
        let mut state = lock(&self.state);
        state.credit = state
            .credit
            .saturating_sub(u32::try_from(bytes).unwrap_or(u32::MAX));
    }

    /// Whether the guest still knows the call.
    pub(super) fn is_open(&self) -> bool {
        lock(&self.state).phase == Phase::Open
    }

    /// Nobody waits any more. Says what is left to do.
    pub(super) fn abandon(&self) -> Leftover {
        let mut state = lock(&self.state);
        state.pieces.clear();
        match state.phase {
            Phase::Unsent => Leftover::Forget,
            Phase::Open => {
                state.phase = Phase::Abandoned;
                Leftover::Cancel
            }
            Phase::Abandoned | Phase::Ended => Leftover::Nothing,
        }
    }
}

impl State {
    fn take_end(&mut self) -> Result<Reply> {
        let gone = || {
            Err(Error::new(
                eyot::ErrorKind::Internal,
                "the call's end was taken before",
            ))
        };
        self.end.take().unwrap_or_else(gone)
    }
}

/// What is left to do for a call that nobody waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Leftover {
    /// The guest must be told.
    Cancel,
    /// The guest never heard of it.
    Forget,
    /// Nothing.
    Nothing,
}
