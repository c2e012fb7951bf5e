//! The stacks of a reaper and its child.

mod sys;

pub use sys::Stacks;
