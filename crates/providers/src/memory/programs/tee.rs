//! `tee`: copies its input to files and to its output while it arrives.

use std::path::PathBuf;

use async_trait::async_trait;

use super::options::{OptionWord, complete, unknown};
use super::read_bytes::ReadError;
use super::run::{Ending, ProgramRun, ShellProgram};

const LONG: &[&str] = &["append", "ignore-interrupts", "output-error"];

pub(super) struct Tee;

#[async_trait]
impl ShellProgram for Tee {
    async fn run(&self, run: &ProgramRun<'_>) -> Result<i32, Ending> {
        let (mut is_added, mut names) = (false, Vec::new());
        let mut words = run.words();
        while let Some(word) = words.next()? {
            match &word {
                OptionWord::Short('a') => is_added = true,
                OptionWord::Short('i' | 'p') => {}
                OptionWord::Short(_) => return Err(unknown(&word)),
                OptionWord::Operand(operand) => names.push(operand.clone()),
                OptionWord::Long(name) => match complete(name, LONG)? {
                    "append" => is_added = true,
                    "output-error" => drop(words.attached()?),
                    _ => {}
                },
            }
        }
        let (files, status) = open(run, &names, is_added).await?;
        while let Some(bytes) = run.read_input().await? {
            for file in &files {
                run.fs.append_file(file, &bytes).await?;
            }
            run.print(&bytes).await?;
        }
        Ok(status)
    }
}

/// Creates or empties the files. Files that can't be written are reported.
async fn open(run: &ProgramRun<'_>, names: &[String], is_added: bool) -> Result<(Vec<PathBuf>, i32), Ending> {
    let (mut files, mut status) = (Vec::new(), 0);
    for name in names {
        let path = run.cwd.join(name);
        let opened =
            if is_added { run.fs.append_file(&path, b"").await } else { run.fs.write_file(&path, b"").await };
        match opened {
            Ok(()) => files.push(path),
            Err(error) => {
                status = 1;
                let reason = match &error {
                    bashkit::Error::Io(error) => ReadError::from(error).reason(),
                    _ => return Err(error.into()),
                };
                run.complain(format!("{name}: {reason}")).await?;
            }
        }
    }
    Ok((files, status))
}
