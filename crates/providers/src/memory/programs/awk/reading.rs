//! Reading of records from the files of the command line, and with `getline`.

use super::input::{InputSource, RecordReader};
use super::lexer::{is_name, unescaped};
use super::machine::{AwkHalt, AwkMachine, Step, VariableSlot};
use super::syntax::{self, AwkTarget, LineSource, VariableRef};
use super::table::TableKey;
use super::value::AwkValue;
use crate::memory::programs::read_bytes::ReadError;

impl<'p> AwkMachine<'p> {
    /// Reads the next record of the files that the command line names.
    fn main_record(&mut self) -> Step<Option<Vec<u8>>> {
        loop {
            if self.input.reader.is_none() && !self.open_next()? {
                return Ok(None);
            }
            self.tick()?;
            let Some(reader) = &mut self.input.reader else { return Ok(None) };
            if let Some(record) = reader.read(self.streams.worker, &self.settings.record)? {
                self.check_room(record.len())?;
                return Ok(Some(record));
            }
            self.input.reader = None;
        }
    }

    /// Opens the next file of the command line. Returns `false` after the last.
    fn open_next(&mut self) -> Step<bool> {
        if self.input.is_over {
            return Ok(false);
        }
        let operands = self.get(VariableRef::Global(syntax::ARGC)).number();
        loop {
            self.input.next_operand += 1;
            let at = super::number::whole(operands.min(f64::from(i32::MAX)));
            let number = i32::try_from(self.input.next_operand).unwrap_or(i32::MAX);
            if number >= at {
                self.input.is_over = true;
                if self.input.has_read {
                    return Ok(false);
                }
                return self.open(b"").map(|()| true);
            }
            let key = TableKey::Number(number);
            let arguments = self.array(VariableRef::Global(syntax::ARGV));
            let operand = if arguments.borrow_mut().has(&key) {
                arguments.borrow_mut().value(&key).clone()
            } else {
                AwkValue::Unset
            };
            let operand = self.text_of(&operand);
            if operand.bytes().is_empty() || self.assign_operand(operand.bytes())? {
                continue;
            }
            return self.open(operand.bytes()).map(|()| true);
        }
    }

    fn open(&mut self, name: &[u8]) -> Step<()> {
        self.input.has_read = true;
        let source = if matches!(name, b"" | b"-" | b"/dev/stdin") {
            self.streams.has_whole_input = false;
            InputSource::Standard
        } else {
            let shown = String::from_utf8_lossy(name).into_owned();
            match self.streams.worker.read(&shown)? {
                Ok(content) => InputSource::File(content.reader()),
                Err(ReadError::IsDirectory) => {
                    return Err(AwkHalt::Fatal("read error (Is a directory)".to_owned()));
                }
                Err(reason) => return Err(AwkHalt::Fatal(format!("cannot open {shown} ({reason})"))),
            }
        };
        self.input.reader = Some(RecordReader::new(source));
        self.set_global(syntax::FNR, AwkValue::Number(0.0))?;
        self.set_global(syntax::FILENAME, AwkValue::text(name))
    }

    /// Carries out an operand such as `name=value`. Returns `false` if the operand is a file.
    pub(super) fn assign_operand(&mut self, operand: &[u8]) -> Step<bool> {
        let Some(at) = operand.iter().position(|byte| *byte == b'=') else { return Ok(false) };
        let name = &operand[..at];
        if !is_name(name) {
            return Ok(false);
        }
        let name = String::from_utf8_lossy(name).into_owned();
        let program = self.program;
        if let Some(global) = program.globals.iter().position(|(own, _)| *own == name) {
            if program.globals[global].1 {
                return Err(AwkHalt::Fatal(format!(
                    "cannot command line assign to {name}\n\ttype clash or keyword"
                )));
            }
            self.set_global(global, AwkValue::input(unescaped(&operand[at + 1..])))?;
        }
        Ok(true)
    }

    fn count_up(&mut self, variable: usize) -> Step<()> {
        let number = self.get(VariableRef::Global(variable)).number();
        self.set_global(variable, AwkValue::Number(number + 1.0))
    }

    /// Takes the next record of the command line's files.
    pub(super) fn next_record(&mut self) -> Step<bool> {
        let Some(record) = self.main_record()? else { return Ok(false) };
        self.count_up(syntax::NR)?;
        self.count_up(syntax::FNR)?;
        self.record.set(AwkValue::input(record));
        Ok(true)
    }

    pub(super) fn getline(
        &mut self,
        source: &'p LineSource,
        target: Option<&'p AwkTarget>,
    ) -> Step<AwkValue> {
        let (record, counts) = match source {
            LineSource::Input => (Ok(self.main_record()?), &[syntax::NR, syntax::FNR][..]),
            LineSource::File(name) => {
                let name = self.text(name)?;
                (self.line_of(false, name.bytes())?, &[][..])
            }
            LineSource::Command(command) => {
                let command = self.text(command)?;
                (self.line_of(true, command.bytes())?, &[][..])
            }
        };
        let record = match record {
            Ok(Some(record)) => record,
            Ok(None) => return Ok(AwkValue::Number(0.0)),
            Err(()) => return Ok(AwkValue::Number(-1.0)),
        };
        for variable in counts {
            self.count_up(*variable)?;
        }
        let record = AwkValue::input(record);
        match target {
            None => self.record.set(record),
            Some(target) => {
                let place = self.place(target)?;
                self.put(&place, record)?;
            }
        }
        Ok(AwkValue::Number(1.0))
    }

    /// Returns the next record of a file or command. The inner error means that it can't be read.
    fn line_of(&mut self, is_command: bool, name: &[u8]) -> Step<Result<Option<Vec<u8>>, ()>> {
        self.tick()?;
        let worker = self.streams.worker;
        let Some(reader) = self.streams.input(is_command, name)? else { return Ok(Err(())) };
        let record = reader.read(worker, &self.settings.record)?;
        self.check_room(record.as_ref().map_or(0, Vec::len))?;
        Ok(Ok(record))
    }

    /// Gives the program its arguments and environment.
    pub(super) fn set_surroundings(&mut self, arguments: Vec<String>, environment: Vec<(String, String)>) {
        let count = i32::try_from(arguments.len()).unwrap_or(i32::MAX);
        self.globals[syntax::ARGC] = VariableSlot::Value(AwkValue::Number(f64::from(count)));
        let table = self.array(VariableRef::Global(syntax::ARGV));
        for (number, argument) in (0..).zip(arguments) {
            *table.borrow_mut().value(&TableKey::Number(number)) = AwkValue::input(argument.into_bytes());
        }
        let table = self.array(VariableRef::Global(syntax::ENVIRON));
        for (name, value) in environment {
            *table.borrow_mut().value(&TableKey::Text(name.as_str().into())) =
                AwkValue::input(value.into_bytes());
        }
    }
}
