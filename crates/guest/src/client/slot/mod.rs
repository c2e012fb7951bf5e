//! The state that the reader and the caller of a call share: the data that arrived, the traffic
//! that may still come, and the end.
//!
//! The reader delivers, and every delivery is checked against the call's [`CallShape`]. The caller
//! takes. Nothing here touches the stream.

mod deliver;
mod take;

use std::os::fd::OwnedFd;
use std::sync::Mutex;
use std::task::Waker;

use eyot::Result;

use super::lanes::Permits;
use super::lock;
use super::pieces::PieceQueue;
use super::shape::{CHANNELS, CallShape};
use crate::protocol::{Event, Reply, WINDOW};

/// A call.
#[derive(Debug)]
pub(super) struct Slot {
    shape: CallShape,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    phase: Phase,
    event: Option<Event>,
    announced: bool,
    /// A descriptor came instead of data.
    is_passed: bool,
    descriptor: Option<OwnedFd>,
    pieces: PieceQueue,
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
    /// The request has not left yet.
    Unsent,
    /// It is under way.
    Open,
    /// The caller is gone; the guest has still to end the call.
    Abandoned,
    /// The guest ended it, or its connection did.
    Ended,
}

#[derive(Debug, Clone, Copy)]
struct Incoming {
    /// The bytes that the guest may still send.
    window: u32,
    /// The bytes that were taken and not granted again yet.
    taken: u32,
    /// The guest said that nothing more comes.
    over: bool,
}

impl Slot {
    /// A call whose request is not sent yet.
    pub(super) fn new(shape: CallShape, permits: Permits) -> Self {
        let state = State {
            phase: Phase::Unsent,
            event: None,
            announced: false,
            is_passed: false,
            descriptor: None,
            pieces: PieceQueue::default(),
            incoming: [Incoming { window: WINDOW, taken: 0, over: false }; CHANNELS],
            data_bytes: 0,
            credit: WINDOW,
            input_refused: false,
            end: None,
            consumer: None,
            producer: None,
            permits: Some(permits),
        };
        Self { shape, state: Mutex::new(state) }
    }

    /// Returns the traffic that the call may have.
    pub(super) fn shape(&self) -> &CallShape {
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
}

/// The work left to do for a call whose caller is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AbandonAction {
    /// The guest must be told.
    Cancel,
    /// The guest never heard of it.
    Forget,
    /// Nothing.
    Nothing,
}
