//! A command's memory: what its two processes read, owned until they are gone.

mod sys;

pub use sys::{LaunchedCommand, OomScoreWriter, Reaper, Recipe};
