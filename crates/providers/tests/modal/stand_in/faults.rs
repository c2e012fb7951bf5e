//! Faults of the service that a test plans.

#[allow(clippy::duplicate_mod, reason = "a test may use several stand-ins")]
#[path = "../../vendor/planned.rs"]
mod planned;

use planned::PlannedFaults;

/// A fault of one call.
#[derive(Clone, Copy, Debug)]
pub enum Fault {
    /// It is refused with this status of gRPC, and perhaps told when to come again, in seconds.
    Refused(i32, Option<f32>),
    /// It is refused with this status of HTTP, as by a proxy, and perhaps with `Retry-After`, in seconds.
    Http(u16, Option<u32>),
    /// It is carried out, and its answer is lost.
    AnswerLost,
    /// The answer is cut off after so many bytes.
    Cut(usize),
    /// The answer ends after so many bytes, without a status.
    NoStatus(usize),
    /// All but the last message of the answer comes, and then it breaks off.
    LastLost,
    /// The answer ends well, without a message.
    Empty,
    /// It is sent to the port of another server.
    Redirected(u16),
    /// The answer is one message that never ends.
    Endless,
    /// It is carried out once it is released.
    Held,
    /// It is carried out, and its answer comes once it is released.
    AnswerHeld,
    /// It is never answered.
    Silent,
}

/// The faults to come, and the calls that came.
pub type Faults = PlannedFaults<Fault>;
