//! The guest: the small static program inside every sandbox, which serves commands, files, processes and ports.
//!
//! One thread waits for everything and never blocks (`guest`). File calls run on worker threads (`workers`), commands
//! below a small reaper process each (`spawn`), so that a command's whole tree can be found and killed without
//! cgroups. The guest is PID 1 of a native sandbox; elsewhere, and in tests, it is an ordinary process that adopts
//! its orphaned descendants.

mod accept;
mod activity;
mod call_handle;
mod call_ids;
mod call_io;
mod command;
mod commands;
mod connection;
mod deadlines;
mod dial;
mod failure;
mod file_call;
mod files;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod guest;
mod incoming;
mod input_queue;
mod input_writer;
mod live_processes;
mod log_reader;
mod log_ring;
mod memory_events;
mod outbox;
mod output_stream;
mod poll;
mod proc_table;
mod processes;
mod reap;
mod reaping;
mod requests;
mod spawn;
mod start_up;
mod streams;
mod sys;
mod tree_kill;
mod usage;
mod wire;
mod workers;

use std::process::ExitCode;

use guest::Guest;

/// Runs the guest until its sandbox ends. It finds its stream, its listener and its configuration on the descriptors
/// that [`crate::protocol`] names.
pub fn main() -> ExitCode {
    match start_up::start_up().and_then(Guest::new).and_then(Guest::run) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("eyot-guest: {error}");
            ExitCode::FAILURE
        }
    }
}
