//! The files and commands that an `awk` program reads and writes.

use std::collections::HashMap;

use super::input::{InputSource, RecordReader};
use super::syntax::OutputKind;
use super::text::{return_bytes, take_bytes};
use crate::memory::programs::children::ChildInput;
use crate::memory::programs::run::{Ending, reason};
use crate::memory::programs::worker::Worker;

/// The size of the output buffer.
const WAITING_BYTES: usize = 64 << 10;
/// The most output that is kept for a command.
const MAX_COMMAND_BYTES: usize = 128 << 20;

/// A file or command that is open for output.
struct OpenOutput {
    name: Vec<u8>,
    kind: OutputKind,
    waiting: Vec<u8>,
}

/// The open files and commands.
pub(super) struct AwkStreams<'w> {
    pub worker: &'w Worker,
    stdout: Vec<u8>,
    /// The open outputs, the last used one first.
    outputs: Vec<OpenOutput>,
    inputs: HashMap<(bool, Vec<u8>), RecordReader>,
    /// Set while nothing of the standard input has been read.
    pub has_whole_input: bool,
}

/// The reason for a failure to open an output.
pub(super) type OpenFailure = &'static str;

impl<'w> AwkStreams<'w> {
    pub(super) fn new(worker: &'w Worker) -> Self {
        Self {
            worker,
            stdout: Vec::new(),
            outputs: Vec::new(),
            inputs: HashMap::new(),
            has_whole_input: true,
        }
    }

    /// Writes to the standard output.
    pub(super) fn print(&mut self, bytes: &[u8]) -> Result<(), Ending> {
        self.stdout.extend_from_slice(bytes);
        if self.stdout.len() >= WAITING_BYTES { self.flush_stdout() } else { Ok(()) }
    }

    fn flush_stdout(&mut self) -> Result<(), Ending> {
        if self.stdout.is_empty() {
            return Ok(());
        }
        self.worker.print(std::mem::take(&mut self.stdout))
    }

    /// Writes to a file or command, and opens it if needed.
    pub(super) fn print_to(
        &mut self,
        kind: OutputKind,
        name: &[u8],
        bytes: &[u8],
    ) -> Result<Result<(), OpenFailure>, Ending> {
        if kind != OutputKind::Command {
            match name {
                b"/dev/stdout" | b"-" => return self.print(bytes).map(Ok),
                b"/dev/stderr" => return self.worker.print_error(bytes).map(Ok),
                _ => {}
            }
        }
        let is_command = kind == OutputKind::Command;
        let is_it = |open: &OpenOutput| (open.kind == OutputKind::Command) == is_command && open.name == name;
        let open = match self.outputs.iter().position(is_it) {
            Some(at) => self.outputs.remove(at),
            None => {
                if is_command {
                    self.flush_stdout()?;
                } else if let Err(error) = self.worker.open_output(name, kind == OutputKind::File) {
                    return Ok(Err(reason(&error)));
                }
                OpenOutput { name: name.to_vec(), kind, waiting: Vec::new() }
            }
        };
        self.outputs.insert(0, open);
        let open = &mut self.outputs[0];
        open.waiting.extend_from_slice(bytes);
        take_bytes(bytes.len());
        if is_command && open.waiting.len() > MAX_COMMAND_BYTES {
            return Err(Ending::with_status("the output for a command takes too much memory", 2));
        }
        if !is_command && open.waiting.len() >= WAITING_BYTES {
            return flush_file(self.worker, open).map_or_else(|failure| Ok(Err(failure)), |()| Ok(Ok(())));
        }
        Ok(Ok(()))
    }

    /// Writes the buffered output, except for commands. The inner error: a file can't be written.
    pub(super) fn flush(&mut self) -> Result<Result<(), OpenFailure>, Ending> {
        self.flush_stdout()?;
        for open in self.outputs.iter_mut().filter(|open| open.kind != OutputKind::Command) {
            if let Err(failure) = flush_file(self.worker, open) {
                return Ok(Err(failure));
            }
        }
        Ok(Ok(()))
    }

    /// Closes an output.
    fn end_output(&mut self, mut open: OpenOutput) -> Result<i32, Ending> {
        if open.kind != OutputKind::Command {
            return Ok(flush_file(self.worker, &mut open).map_or(-1, |()| 0));
        }
        return_bytes(open.waiting.len());
        self.worker.run_command(text_of(&open.name), ChildInput::Bytes(open.waiting))
    }

    /// Closes everything that is open under a name. Returns the status, or -1 if nothing was open.
    pub(super) fn close(&mut self, name: &[u8]) -> Result<i32, Ending> {
        let mut status = -1;
        while let Some(at) = self.outputs.iter().position(|open| open.name == name) {
            if self.outputs[at].kind == OutputKind::Command {
                self.flush()?.unwrap_or_default();
            }
            let open = self.outputs.remove(at);
            status = self.end_output(open)?;
        }
        for is_command in [false, true] {
            if let Some(reader) = self.inputs.remove(&(is_command, name.to_vec())) {
                status = reader.status;
            }
        }
        Ok(status)
    }

    /// Closes everything.
    pub(super) fn finish(&mut self) -> Result<Result<(), OpenFailure>, Ending> {
        let commands = self.outputs.iter().any(|open| open.kind == OutputKind::Command);
        if !commands {
            return self.flush();
        }
        let mut files = Ok(());
        for open in std::mem::take(&mut self.outputs) {
            let is_command = open.kind == OutputKind::Command;
            if self.end_output(open)? < 0 && !is_command {
                files = Err("No space left on device");
            }
        }
        self.flush_stdout()?;
        Ok(files)
    }

    /// Runs a command to its end.
    pub(super) fn system(&mut self, command: &[u8]) -> Result<i32, Ending> {
        self.flush()?.unwrap_or_default();
        let input = if self.has_whole_input { ChildInput::Caller } else { ChildInput::Empty };
        self.worker.run_command(text_of(command), input)
    }

    /// Returns the input with a name, and opens it if needed. `None`: it can't be read.
    pub(super) fn input(
        &mut self,
        is_command: bool,
        name: &[u8],
    ) -> Result<Option<&mut RecordReader>, Ending> {
        let key = (is_command, name.to_vec());
        if !self.inputs.contains_key(&key) {
            let reader = if is_command {
                self.flush()?.unwrap_or_default();
                let (output, status) = self.worker.command_output(text_of(name))?;
                RecordReader::whole(output, status)
            } else if matches!(name, b"-" | b"/dev/stdin") {
                self.has_whole_input = false;
                RecordReader::new(InputSource::Standard)
            } else {
                self.flush()?.unwrap_or_default();
                match self.worker.read(&text_of(name))? {
                    Ok(content) => RecordReader::new(InputSource::File(content.reader())),
                    Err(_) => return Ok(None),
                }
            };
            self.inputs.insert(key.clone(), reader);
        }
        Ok(self.inputs.get_mut(&key))
    }
}

fn text_of(name: &[u8]) -> String {
    String::from_utf8_lossy(name).into_owned()
}

fn flush_file(worker: &Worker, open: &mut OpenOutput) -> Result<(), OpenFailure> {
    let waiting = std::mem::take(&mut open.waiting);
    return_bytes(waiting.len());
    if waiting.is_empty() {
        return Ok(());
    }
    worker.append_output(&open.name, &waiting).map_err(|error| reason(&error))
}
