//! The reader's side of a call: every delivery is checked against the call's shape.

use std::os::fd::OwnedFd;

use eyot::{Error, Result};

use super::{Phase, Slot, State};
use crate::client::fault::Violation;
use crate::client::lock;
use crate::client::shape::{Announcement, Framing};
use crate::protocol::{CHANNEL_MAIN, Event, LOG_PREFIX_BYTES, Reply};

impl Slot {
    /// Something happened to the call. The descriptor belongs to [`Event::Passed`].
    pub(in crate::client) fn deliver_event(
        &self,
        event: Event,
        descriptor: Option<OwnedFd>,
    ) -> Result<(), Violation> {
        let right = matches!(
            (self.shape.announce, &event),
            (Announcement::Started, Event::Started(_))
                | (Announcement::Opened | Announcement::OpenedOrPassed, Event::Opened(_))
                | (Announcement::OpenedOrPassed, Event::Passed(_))
                | (Announcement::Log, Event::Log(_))
                | (Announcement::Kept, Event::Kept(_))
        );
        let mut state = lock(&self.state);
        if !right || state.announced {
            return Err(Violation::new("an event that its call does not have"));
        }
        state.announced = true;
        state.is_passed = descriptor.is_some();
        if state.phase != Phase::Abandoned {
            state.descriptor = descriptor;
        }
        state.event = Some(event);
        state.wake_consumer();
        Ok(())
    }

    /// Bytes arrived on a channel.
    pub(in crate::client) fn deliver_data(&self, channel: u8, bytes: Vec<u8>) -> Result<(), Violation> {
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
        let least = if self.shape.framing == Framing::Prefixed { LOG_PREFIX_BYTES + 1 } else { 1 };
        if bytes.len() < least {
            return Err(Violation::new(format!("a data frame of {} bytes", bytes.len())));
        }
        match self.shape.max_data {
            Some(most) if state.data_bytes + bytes.len() as u64 > most => {
                Err(Violation::new(format!("more data than the {most} bytes that were asked for")))
            }
            _ => Ok(()),
        }
    }

    fn check_channel(&self, state: &State, channel: u8) -> Result<(), Violation> {
        if !self.shape.channels.contains(&channel) {
            return Err(Violation::new(format!(
                "something on channel {channel}, which its call does not have"
            )));
        }
        if state.is_passed {
            return Err(Violation::new("the content of a file that was passed"));
        }
        if state.incoming[usize::from(channel)].over {
            return Err(Violation::new("something on a channel that has ended"));
        }
        self.check_announced(state)
    }

    fn check_announced(&self, state: &State) -> Result<(), Violation> {
        match self.shape.announce {
            Announcement::Never => Ok(()),
            _ if state.announced => Ok(()),
            _ => Err(Violation::new("data or a reply before the call had begun")),
        }
    }

    /// Delivers the end of a channel. On a command's input, whose bytes go the other way, it means
    /// that no reader is left.
    pub(in crate::client) fn deliver_end(&self, channel: u8) -> Result<(), Violation> {
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
    pub(in crate::client) fn deliver_credit(&self, channel: u8, payload: &[u8]) -> Result<(), Violation> {
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
    pub(in crate::client) fn finish(&self, end: Result<Reply>) -> Result<(), Violation> {
        let mut state = lock(&self.state);
        if end.is_ok() {
            self.check_announced(&state)?;
        }
        state.end(end);
        Ok(())
    }

    /// The connection ended, and the call with it.
    pub(in crate::client) fn fail(&self, error: Error) {
        let mut state = lock(&self.state);
        state.descriptor = None;
        state.end(Err(error));
    }
}
