//! The guest: the small static program inside every sandbox, which serves commands, files,
//! processes and ports.
//!
//! One thread waits for everything and never blocks (`guest`). File calls run on worker threads
//! (`workers`), commands below a small reaper process each (`spawn`), so that a command's whole
//! tree can be found and killed without cgroups. The guest is PID 1 of a native sandbox; elsewhere,
//! and in tests, it is an ordinary process that adopts its orphaned descendants.

mod accept;
mod access;
mod account_files;
mod activity;
mod call_handle;
mod call_ids;
mod call_io;
mod command;
mod commands;
mod connection;
mod container;
mod deadlines;
mod dial;

mod failure;
mod file_call;
mod files;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod group_memory;
mod guest;
mod hold;
mod incoming;
mod input_queue;
mod input_writer;
mod keeping;
mod kept_commands;
mod kept_reader;
mod last_words;
mod live_processes;
mod log_reader;
mod memory_events;
mod open_files;
mod outbox;
mod output_stream;
mod poll;
mod proc_table;
mod processes;
mod reap;
mod reaping;
mod requests;
mod spawn;
mod start_terms;
mod start_up;
mod streams;
mod sys;
mod system_v;
mod tree_kill;
mod usage;
mod wire;
mod workers;

use std::process::ExitCode;

use guest::Guest;

use crate::protocol::container::{INIT, RELAY};
use crate::protocol::pod::{INSTALL, POD};
use crate::protocol::terminal::{BESIDE, TERMINAL};

/// Runs the guest until its sandbox ends. It finds its stream, its listener and its configuration
/// on the descriptors that [`crate::protocol`] names; in a container, as
/// [`crate::protocol::container`] says.
pub fn main() -> ExitCode {
    match std::env::args().nth(1).as_deref() {
        None => exit_code(
            start_up::start_up().and_then(Guest::new).and_then(Guest::run).map(|_| ExitCode::SUCCESS),
        ),
        Some(INIT) => exit_code(container::init()),
        Some(RELAY) => exit_code(container::relay()),
        Some(POD) => exit_code(container::pod()),
        Some(BESIDE) => exit_code(container::beside()),
        Some(TERMINAL) => exit_code(container::terminal()),
        Some(INSTALL) => exit_code(container::install()),
        Some(other) => {
            exit_code(Err(std::io::Error::other(format!("there is no way to run it called `{other}`"))))
        }
    }
}

fn exit_code(ended: std::io::Result<ExitCode>) -> ExitCode {
    ended.unwrap_or_else(|error| {
        eprintln!("eyot-guest: {error}");
        ExitCode::FAILURE
    })
}
