//! The reader task: takes what the guest sends, checks it, and delivers it to the calls. It trusts
//! nothing, and holds no more than one frame, one read and the beginnings of messages.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use tokio::io::AsyncRead;

use super::assembly::Assembly;
use super::connection_state::ConnectionState;
use super::convert::failure_error;
use super::fault::{Fault, Violation};
use super::frames::{FrameReadError, FrameReader};
use super::lock;
use super::slot::Slot;
use crate::protocol::{Event, Failure, Frame, Header, Kind, MAX_PAYLOAD_BYTES, decode};

/// Delivers until the stream ends or the guest breaks the protocol; says why it ended.
pub(super) async fn read_to_end(
    state: &Arc<ConnectionState>,
    mut stream: impl AsyncRead + Unpin,
    mut frames: FrameReader,
) -> Fault {
    let mut assembly = Assembly::default();
    loop {
        if state.has_stray_descriptor(frames.is_drained()) {
            return Fault::broken("a descriptor without a message");
        }
        let next = frames.next(&mut stream).await;
        if state.has_excess_descriptors() {
            return Fault::broken("more than one descriptor with a message");
        }
        let frame = match next {
            Ok(frame) => frame,
            Err(FrameReadError::Ended | FrameReadError::Failed(_)) => return Fault::stopped(),
            Err(FrameReadError::Malformed(error)) => return Fault::broken(&error.to_string()),
        };
        if frame.header.call == 0 {
            match farewell(&frame) {
                Farewell::Ending(begun) => state.note_begun(begun),
                Farewell::Over(fault) => return fault,
            }
            continue;
        }
        if let Err(Violation(what)) = deliver(state, frame, &mut assembly) {
            return Fault::broken(&what);
        }
    }
}

/// A frame of the connection itself: the guest may only end it.
enum Farewell {
    /// The guest ends. Of the calls that have no answer yet it had begun these.
    Ending(Vec<u32>),
    /// The connection ends.
    Over(Fault),
}

fn farewell(frame: &Frame) -> Farewell {
    let broken = |what: &str| Farewell::Over(Fault::broken(what));
    match (frame.header.kind, frame.header.more) {
        (Kind::Failure, false) => match decode::<Failure>(&frame.payload) {
            Ok(Failure { message, .. }) => Farewell::Over(Fault::new(
                eyot::ErrorKind::Unavailable,
                format!("the sandbox ended the connection: {message}"),
            )),
            Err(what) => broken(&what),
        },
        (Kind::Event, false) => match decode::<Event>(&frame.payload) {
            Ok(Event::Ending(begun)) => Farewell::Ending(begun),
            Ok(_) => broken("Event outside of a call"),
            Err(what) => broken(&what),
        },
        (kind, _) => broken(&format!("{kind:?} outside of a call")),
    }
}

fn deliver(state: &ConnectionState, frame: Frame, assembly: &mut Assembly) -> Result<(), Violation> {
    let Header { kind, channel, more, call } = frame.header;
    match kind {
        Kind::Reply | Kind::Failure | Kind::Event => deliver_message(state, frame, assembly),
        Kind::Data | Kind::End | Kind::Credit if more => Err(Violation::new(format!("{kind:?} in parts"))),
        Kind::Data => state.find_slot(call)?.deliver_data(channel, frame.payload),
        Kind::End if frame.payload.is_empty() => state.find_slot(call)?.deliver_end(channel),
        Kind::End => Err(Violation::new("End with a payload")),
        Kind::Credit => state.find_slot(call)?.deliver_credit(channel, &frame.payload),
        Kind::Hello | Kind::Welcome | Kind::Request | Kind::Control | Kind::Cancel => {
            Err(Violation::new(format!("{kind:?} from a guest in the middle of a connection")))
        }
    }
}

fn deliver_message(state: &ConnectionState, frame: Frame, assembly: &mut Assembly) -> Result<(), Violation> {
    let Header { kind, call, .. } = frame.header;
    let slot = state.find_slot(call)?;
    let max_bytes = if kind == Kind::Reply { slot.shape().answer.max_bytes() } else { MAX_PAYLOAD_BYTES };
    let Some(message) = assembly.add(frame, max_bytes)? else {
        return Ok(());
    };
    match kind {
        Kind::Event => {
            let event = decode::<Event>(&message).map_err(Violation)?;
            let descriptor = descriptor_of(state, &event)?;
            slot.deliver_event(event, descriptor)
        }
        Kind::Failure => {
            let failure = decode::<Failure>(&message).map_err(Violation)?;
            end(state, call, assembly, |slot| slot.finish(Err(failure_error(failure))))
        }
        _ => {
            let reply = slot.shape().answer.decode(&message)?;
            end(state, call, assembly, |slot| slot.finish(Ok(reply)))
        }
    }
}

/// Takes the descriptor that an event announces.
fn descriptor_of(state: &ConnectionState, event: &Event) -> Result<Option<OwnedFd>, Violation> {
    if !matches!(event, Event::Passed(_)) {
        return Ok(None);
    }
    let received = state.received.as_ref().and_then(|received| received.take());
    received.map(Some).ok_or_else(|| Violation::new("a message without its descriptor"))
}

fn end(
    state: &ConnectionState,
    call: u32,
    assembly: &Assembly,
    finish: impl FnOnce(&Slot) -> Result<(), Violation>,
) -> Result<(), Violation> {
    if assembly.is_midway(call) {
        return Err(Violation::new("a call that ended in the middle of a message"));
    }
    let slot = state.find_slot(call)?;
    // A refused end leaves the call in the table, where the connection's own end finds and settles
    // it.
    finish(&slot)?;
    lock(&state.table).remove_ended(call).map(drop)
}
