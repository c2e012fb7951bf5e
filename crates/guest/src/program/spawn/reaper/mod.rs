//! The process between the guest and a command, and the child that becomes the command.

mod sys;

pub use sys::{
    Candidate, RECORD_ENDED, RECORD_ENDED_WHOLE, RECORD_FAILED, RECORD_STARTED, ReaperPlan, ReaperRecord,
    ReaperSeat, SEAT_BUSY, SEAT_FREE, SEAT_LEFT, STATE_PENDING, STATE_STARTED, STATE_WANTED, STEP_BENEATH,
    STEP_CWD, STEP_EXEC, STEP_FORK, STEP_USER, start,
};
