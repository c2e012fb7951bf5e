//! A minute of 64 clients that run one command after the other while sandboxes come and go: no
//! request is refused, and the server uses no more resources at the end than in the middle. `cargo
//! xtask soak load` runs it.
#![allow(clippy::unwrap_used, reason = "a test's own plumbing fails the test")]

mod clients;
#[allow(dead_code, reason = "other tests use the rest")]
#[path = "../cli/machine.rs"]
mod machine;
mod samples;
#[allow(dead_code, reason = "other tests use the rest")]
#[path = "../cli/server.rs"]
mod server;

use std::process::ExitCode;
use std::time::Duration;

use libtest_mimic::{Arguments, Failed, Trial};

use clients::Clients;
use samples::Sample;

const CLIENTS: usize = 64;
const SANDBOXES: usize = 16;
const COME_AND_GO: usize = 2;
const SECONDS: usize = 60;

fn main() -> ExitCode {
    let name = "soak::a_minute_of_64_clients_has_no_error_and_leaves_the_server_as_it_was";
    let trial = Trial::test(name, a_minute_of_64_clients_has_no_error_and_leaves_the_server_as_it_was);
    libtest_mimic::run(&Arguments::from_args(), vec![trial.with_ignored_flag(true)]).exit_code()
}

fn a_minute_of_64_clients_has_no_error_and_leaves_the_server_as_it_was() -> Result<(), Failed> {
    let machine = machine::Machine::new();
    let server = server::Server::start(&machine, &[], &[], &[]);
    let clients = Clients::start(&server, CLIENTS, SANDBOXES, COME_AND_GO);
    // One sample a second: this is the clock of the test, not a wait for anything.
    let samples: Vec<Sample> = (0..SECONDS)
        .map(|_| {
            std::thread::sleep(Duration::from_secs(1));
            Sample::of(server.pid())
        })
        .collect();
    let done = clients.stop();
    let [early, middle, late] = [0, 1, 2].map(|third| Sample::most(&samples[third * 20..(third + 1) * 20]));
    println!("{done}");
    println!("most of each third: {early}; {middle}; {late}");
    assert!(done.errors.is_empty(), "{} errors, the first: {}", done.errors.len(), done.errors[0]);
    assert!(done.execs() > 1000 && done.came_and_went > 20, "{done}");
    assert!(late.is_like(&middle), "it grows: {middle}, then {late}");
    Ok(())
}
