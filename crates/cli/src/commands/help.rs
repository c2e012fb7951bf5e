//! `eyot help`: prints the help of the program or of a command.

use clap::{Command, CommandFactory};

use crate::args::{Cli, HelpArgs};
use crate::errors::Failure;

pub fn run(args: &HelpArgs) -> Result<u8, Failure> {
    let mut program = Cli::command();
    program.build();
    find(&mut program, &args.command)?.print_help()?;
    Ok(0)
}

/// Finds the command, or the command of a command, that the words name.
pub(super) fn find<'a>(program: &'a mut Command, words: &[String]) -> Result<&'a mut Command, Failure> {
    let mut command = program;
    for word in words {
        let found = command.find_subcommand_mut(word);
        command = found.ok_or_else(|| {
            let shown = words.join(" ");
            Failure::usage(format!("there is no command `{shown}`")).hint("`eyot --help` lists the commands")
        })?;
    }
    Ok(command)
}
