//! `eyot man`: writes the man pages, from the same table as the help.

use std::path::Path;

use clap::{Command, CommandFactory};
use clap_mangen::Man;

use crate::args::{Cli, ManArgs};
use crate::errors::Failure;
use crate::output::Output;

pub fn run(args: &ManArgs, output: Output) -> Result<u8, Failure> {
    let mut program = Cli::command();
    program.build();
    match (&args.dir, &args.command) {
        (Some(folder), _) => write_all(&program, folder)?,
        (None, None) => output.bytes(&page(&program)?)?,
        (None, Some(name)) => {
            let command = program.find_subcommand(name);
            let command = command.ok_or_else(|| Failure::usage(format!("there is no command `{name}`")))?;
            output.bytes(&page(command)?)?;
        }
    }
    Ok(0)
}

fn write_all(program: &Command, folder: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(folder)
        .map_err(|error| Failure::host(format!("make the folder `{}`", folder.display()), error))?;
    for command in std::iter::once(program).chain(program.get_subcommands()) {
        let file = folder.join(format!("{}.1", title(command)));
        let written = std::fs::write(&file, page(command)?);
        written.map_err(|error| Failure::host(format!("write `{}`", file.display()), error))?;
    }
    Ok(())
}

fn title(command: &Command) -> String {
    command.get_bin_name().unwrap_or_else(|| command.get_name()).replace(' ', "-")
}

fn page(command: &Command) -> Result<Vec<u8>, Failure> {
    let mut page = Vec::new();
    Man::new(command.clone()).title(title(command)).render(&mut page)?;
    Ok(page)
}
