//! `eyot man`: writes the man pages, from the same table as the help.

use std::path::Path;

use clap::{Command, CommandFactory};
use clap_mangen::Man;

use super::help::find;
use crate::args::{Cli, ManArgs};
use crate::errors::Failure;
use crate::output::Output;

pub fn run(args: &ManArgs, output: Output) -> Result<u8, Failure> {
    let mut program = Cli::command();
    program.build();
    match &args.dir {
        Some(folder) => {
            std::fs::create_dir_all(folder)
                .map_err(|error| Failure::host(format!("make the folder `{}`", folder.display()), error))?;
            write_all(&program, folder)?;
        }
        None => output.bytes(&page(find(&mut program, &args.command)?)?)?,
    }
    Ok(0)
}

/// Writes the page of a command and those of its commands.
fn write_all(command: &Command, folder: &Path) -> Result<(), Failure> {
    let file = folder.join(format!("{}.1", title(command)));
    let written = std::fs::write(&file, page(command)?);
    written.map_err(|error| Failure::host(format!("write `{}`", file.display()), error))?;
    command.get_subcommands().try_for_each(|inner| write_all(inner, folder))
}

fn title(command: &Command) -> String {
    command.get_bin_name().unwrap_or_else(|| command.get_name()).replace(' ', "-")
}

fn page(command: &Command) -> Result<Vec<u8>, Failure> {
    let mut page = Vec::new();
    let man = Man::new(command.clone()).title(title(command).to_uppercase());
    man.source(concat!("eyot ", env!("CARGO_PKG_VERSION"))).manual("Eyot").render(&mut page)?;
    Ok(in_ascii(&String::from_utf8_lossy(&page)).into_bytes())
}

/// Writes each letter beyond ASCII as an escape of roff: not every `man` reads UTF-8.
fn in_ascii(page: &str) -> String {
    page.chars().fold(String::with_capacity(page.len()), |mut text, letter| {
        match letter {
            letter if letter.is_ascii() => text.push(letter),
            letter => text.push_str(&format!("\\[u{:04X}]", u32::from(letter))),
        }
        text
    })
}
