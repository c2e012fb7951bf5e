//! `eyot completions`: prints a shell's completions of this program.

use clap::CommandFactory;

use crate::args::{Cli, CompletionsArgs};
use crate::errors::Failure;
use crate::output::Output;

pub fn run(args: &CompletionsArgs, output: Output) -> Result<u8, Failure> {
    // Into memory first: the generator panics when a pipe is closed.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "eyot", &mut script);
    output.bytes(&script)?;
    Ok(0)
}
