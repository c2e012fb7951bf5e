//! `eyot`, the command line: it reads arguments and configuration, drives sandboxes through the
//! library, and prints the results. The library decides what a sandbox is and does; nothing here
//! knows how one is made.

mod addresses;
mod args;
mod attach;
mod backup;
mod bars;
mod bench;
mod branch_names;
mod build_info;
mod client_folder;
mod command_end;
mod command_hint;
mod commands;
mod config;
mod confirm;
mod context;
mod copy;
mod departed;
mod differences;
mod durations;
mod errors;
mod logging;
mod open_files;
mod output;
mod parent;
mod partial;
mod pools;
mod port_note;
mod provider;
mod provider_hint;
mod redaction;
mod repairs;
mod sandbox_names;
mod served_agents;
mod signals;
mod sizes;
mod stdio;
mod table;
mod terminal;
mod toolsets;
mod usual_quotas;
mod variables;
mod verify;

use clap::Parser;

use args::Cli;
use errors::Failure;

fn main() {
    if let Some(code) = verify::attack() {
        std::process::exit(code);
    }
    let words = args::with_signal_option(std::env::args_os());
    let written =
        || -> Vec<String> { std::env::args_os().skip(1).map(|word| word.to_string_lossy().into()).collect() };
    let cli = Cli::try_parse_from(words).unwrap_or_else(|error| {
        let words = written();
        errors::exit_with(&args::with_our_word(error, &words), &words)
    });
    let reporter = errors::Reporter::new(&cli.global, written());
    let code = match commands::run(cli) {
        Ok(code) => code,
        Err(failure) => report(&reporter, &failure),
    };
    std::process::exit(i32::from(code));
}

fn report(reporter: &errors::Reporter, failure: &Failure) -> u8 {
    reporter.report(failure);
    failure.exit_code()
}
