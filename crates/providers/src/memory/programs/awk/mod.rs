//! `awk`, as mawk 1.3.4, the version in Debian. It counts bytes, and its messages and numbers are those of mawk.

mod calls;
mod evaluate;
mod expressions;
mod functions;
mod input;
mod lexer;
mod machine;
mod names;
mod number;
mod options;
mod parser;
mod pattern;
mod places;
mod printf;
mod reading;
mod record;
mod statement_parser;
mod statements;
mod streams;
mod syntax;
mod table;
#[cfg(test)]
mod tests;
mod text;
mod value;

use async_trait::async_trait;

use super::run::{Ending, ProgramRun, ShellProgram};
use super::worker::{Worker, work};
use machine::{AwkHalt, AwkMachine, Step};
use options::{AwkOptions, FAILURE};
use streams::AwkStreams;
use syntax::AwkProgram;
use value::AwkValue;

/// The largest size of a program, in bytes.
const MAX_PROGRAM_BYTES: u64 = 4 << 20;
const USAGE: &str = "Usage: mawk [Options] [Program] [file ...]\n";
const VERSION: &str = "mawk 1.3.4 20200120 (Eyot, in memory)\n";

/// Runs a program over the records of its input.
pub(super) struct Awk;

#[async_trait]
impl ShellProgram for Awk {
    async fn run(&self, run: &ProgramRun<'_>) -> Result<i32, Ending> {
        let options = AwkOptions::read(run.args)?;
        if options.shows_version {
            run.print(VERSION).await?;
            return Ok(0);
        }
        if options.program.is_none() && options.files.is_empty() {
            run.write_error(USAGE).await?;
            return Ok(0);
        }
        let name = run.name.to_owned();
        let environment = run.env.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        work(run, move |worker| {
            let mut script = Script { worker, name: &name };
            script.run(options, environment)
        })
        .await
    }
}

/// A run of a program.
struct Script<'a> {
    worker: &'a Worker,
    name: &'a str,
}

impl Script<'_> {
    fn complain(&self, reason: &str) -> Result<i32, Ending> {
        self.worker.print_error(format!("{}: {reason}\n", self.name))?;
        Ok(FAILURE)
    }

    fn run(&mut self, options: AwkOptions, environment: Vec<(String, String)>) -> Result<i32, Ending> {
        let program = match self.program_text(&options)? {
            Ok(text) => text,
            Err(reason) => return self.complain(&reason),
        };
        let program = match parser::parse(&program) {
            Ok(program) => program,
            Err(errors) => {
                // Errors in a file's line name the file.
                let file = options.files.last().map(|file| format!("{file}: ")).unwrap_or_default();
                for error in errors {
                    self.complain(&format!("{file}{error}"))?;
                }
                return Ok(FAILURE);
            }
        };
        let mut machine = AwkMachine::new(&program, AwkStreams::new(self.worker));
        let mut arguments = vec![self.name.to_owned()];
        arguments.extend(options.operands.iter().cloned());
        machine.set_surroundings(arguments, environment);
        let ended = prepare(&mut machine, &options).and_then(|()| run_all(&mut machine, &program));
        let finished = machine.streams.finish()?;
        match (ended, finished) {
            (Err(AwkHalt::Ending(ending)), _) => Err(ending),
            (Err(AwkHalt::Fatal(reason)), _) => self.complain(&reason),
            (_, Err(reason)) => self.complain(&format!("write failure ({reason})")),
            _ => Ok(machine.exit_status),
        }
    }

    /// Returns the text of the program, or the reason for its absence.
    fn program_text(&self, options: &AwkOptions) -> Result<Result<Vec<u8>, String>, Ending> {
        if let Some(program) = &options.program {
            return Ok(Ok(program.clone().into_bytes()));
        }
        let mut text = Vec::new();
        for file in &options.files {
            let content = match self.worker.read(file)? {
                Ok(content) => content.to_vec(MAX_PROGRAM_BYTES).ok_or("File too large"),
                Err(error) => Err(error.reason()),
            };
            match content {
                Ok(content) => text.extend(content),
                Err(reason) => return Ok(Err(format!("cannot open {file} ({reason})"))),
            }
            if options.files.len() > 1 && !text.ends_with(b"\n") {
                text.push(b'\n');
            }
        }
        Ok(Ok(text))
    }
}

fn prepare(machine: &mut AwkMachine<'_>, options: &AwkOptions) -> Step<()> {
    if let Some(separator) = &options.field_separator {
        let separator = lexer::unescaped(separator.as_bytes());
        machine.set_global(syntax::FS, AwkValue::text(separator))?;
    }
    for assignment in &options.assignments {
        machine.assign_operand(assignment.as_bytes())?;
    }
    Ok(())
}

/// Runs a program to its end. `exit` is an end like others.
fn run_all<'p>(machine: &mut AwkMachine<'p>, program: &'p AwkProgram) -> Step<()> {
    match begin_and_rules(machine, program) {
        Ok(()) | Err(AwkHalt::Exit) => {}
        other => return other,
    }
    for body in &program.end {
        match machine.execute(body) {
            Ok(_) => {}
            Err(AwkHalt::Exit) => return Ok(()),
            Err(halt) => return Err(halt),
        }
    }
    Ok(())
}

fn begin_and_rules<'p>(machine: &mut AwkMachine<'p>, program: &'p AwkProgram) -> Step<()> {
    for body in &program.begin {
        machine.execute(body)?;
    }
    if program.rules.is_empty() && program.end.is_empty() {
        return Ok(());
    }
    while machine.next_record()? {
        match machine.rules() {
            Ok(()) | Err(AwkHalt::Next) => {}
            Err(halt) => return Err(halt),
        }
    }
    Ok(())
}
