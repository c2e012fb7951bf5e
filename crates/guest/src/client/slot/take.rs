//! The caller's side of a call: takes what arrived, and uses the credit that was granted.

use std::os::fd::OwnedFd;
use std::task::{Context, Poll};

use eyot::{Error, ErrorKind, Result};

use super::{AbandonAction, Phase, Slot, State};
use crate::client::lock;
use crate::client::pieces::DataPiece;
use crate::protocol::{Event, Reply, WINDOW};

impl Slot {
    /// The call's event, or the error that came instead. `None`: it ended well, or has data,
    /// without an event, as a call that announces nothing may.
    pub(in crate::client) fn poll_event(&self, context: &Context<'_>) -> Poll<Result<Option<Event>>> {
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

    /// Takes the descriptor that came with the call's event.
    pub(in crate::client) fn take_descriptor(&self) -> Option<OwnedFd> {
        lock(&self.state).descriptor.take()
    }

    /// The next piece, and how much credit to grant for what was taken. `None` when no more come:
    /// the channels are over or the call has ended.
    pub(in crate::client) fn poll_piece(&self, context: &Context<'_>) -> Poll<Option<(DataPiece, u32)>> {
        let mut state = lock(&self.state);
        if let Some(piece) = state.pieces.pop() {
            let granted = state.take_back(&piece);
            return Poll::Ready(Some((piece, granted)));
        }
        let mut channels = self.shape.channels.iter();
        if state.phase == Phase::Ended || channels.all(|channel| state.incoming[usize::from(*channel)].over) {
            Poll::Ready(None)
        } else {
            state.wait_consumer(context)
        }
    }

    /// The call's end; once.
    pub(in crate::client) fn poll_end(&self, context: &Context<'_>) -> Poll<Result<Reply>> {
        let mut state = lock(&self.state);
        if state.phase == Phase::Ended { Poll::Ready(state.take_end()) } else { state.wait_consumer(context) }
    }

    /// Ready once the call has ended; its end stays to be taken.
    pub(in crate::client) fn poll_ended(&self, context: &Context<'_>) -> Poll<()> {
        let mut state = lock(&self.state);
        if state.phase == Phase::Ended { Poll::Ready(()) } else { state.wait_consumer(context) }
    }

    /// Returns how many bytes the guest will take; `None` when it will never take any more.
    pub(in crate::client) fn poll_credit(&self, context: &Context<'_>) -> Poll<Option<usize>> {
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
    pub(in crate::client) fn use_credit(&self, bytes: usize) {
        let mut state = lock(&self.state);
        state.credit = state.credit.saturating_sub(u32::try_from(bytes).unwrap_or(u32::MAX));
    }

    /// Tells whether the guest still knows the call.
    pub(in crate::client) fn is_open(&self) -> bool {
        lock(&self.state).phase == Phase::Open
    }

    /// Abandons the call. Returns the work left to do.
    pub(in crate::client) fn abandon(&self) -> AbandonAction {
        let mut state = lock(&self.state);
        state.pieces.clear();
        state.descriptor = None;
        match state.phase {
            Phase::Unsent => AbandonAction::Forget,
            Phase::Open => {
                state.phase = Phase::Abandoned;
                AbandonAction::Cancel
            }
            Phase::Abandoned | Phase::Ended => AbandonAction::Nothing,
        }
    }
}

impl State {
    fn take_end(&mut self) -> Result<Reply> {
        let connection_lost = || Err(Error::new(ErrorKind::Internal, "the call's end was taken before"));
        self.end.take().unwrap_or_else(connection_lost)
    }

    fn wait_consumer<T>(&mut self, context: &Context<'_>) -> Poll<T> {
        self.consumer = Some(context.waker().clone());
        Poll::Pending
    }

    /// Counts what the caller took; says how much to grant again, in few large steps so as to save
    /// frames.
    fn take_back(&mut self, piece: &DataPiece) -> u32 {
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
