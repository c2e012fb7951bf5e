//! `eyot help`: prints the help of the program or of a command.

use clap::{Command, CommandFactory};
use eyot::internal::nearest;

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
        let names: Vec<String> = command.get_subcommands().map(|known| known.get_name().to_owned()).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let called = command.get_bin_name().unwrap_or("eyot").to_owned();
        let found = command.find_subcommand_mut(word);
        command = found.ok_or_else(|| {
            let meant = nearest(word, &names).into_iter().next();
            let meant = meant.map(|meant| format!("did you mean `{meant}`? ")).unwrap_or_default();
            let hint = format!("{meant}`{called} --help` lists the commands");
            Failure::usage(format!("there is no command `{}`", words.join(" "))).hint(hint)
        })?;
    }
    Ok(command)
}
