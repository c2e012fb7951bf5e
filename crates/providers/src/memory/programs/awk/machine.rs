//! The state of a running `awk` program: its variables, and the settings that depend on them.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use super::input::{RecordReader, RecordRule};
use super::pattern::AwkPattern;
use super::record::{AwkRecord, FieldRule};
use super::streams::AwkStreams;
use super::syntax::{self, AwkExpr, AwkProgram, VariableRef};
use super::table::{AwkTable, TableKey};
use super::text::{AwkText, MAX_BYTES, used_bytes};
use super::value::AwkValue;
use crate::memory::programs::run::Ending;
use crate::memory::programs::worker::STACK_BYTES;

/// The most compiled patterns that are cached.
const MAX_PATTERNS: usize = 64;
/// The most stack that nested calls may take.
const MAX_STACK_BYTES: usize = STACK_BYTES / 2;
const LIMIT: &str = "program limit exceeded";
const TOO_MANY_FIELDS: &str = "maximum number of fields size=1048576";
/// The number of steps between two checks for the end of the run.
const LOOK_EVERY: u32 = 256;

/// The reason for leaving the current statements.
pub(super) enum AwkHalt {
    Next,
    Exit,
    /// An error, with the text after the program's name.
    Fatal(String),
    Ending(Ending),
}

impl From<Ending> for AwkHalt {
    fn from(ending: Ending) -> Self {
        Self::Ending(ending)
    }
}

pub(super) type Step<T> = Result<T, AwkHalt>;
pub(super) type SharedTable = Rc<RefCell<AwkTable>>;

/// The storage of a variable.
#[derive(Clone)]
pub(super) enum VariableSlot {
    Value(AwkValue),
    Array(SharedTable),
}

impl VariableSlot {
    pub(super) fn new(is_array: bool) -> Self {
        if is_array { Self::Array(SharedTable::default()) } else { Self::Value(AwkValue::Unset) }
    }
}

/// The special variables, in the form in which they are used.
pub(super) struct AwkSettings {
    pub record: RecordRule,
    pub field_separator: AwkText,
    pub record_separator: AwkText,
    pub key_separator: AwkText,
    pub conversion: AwkText,
    pub output: AwkText,
}

/// The inputs that the command line names.
#[derive(Default)]
pub(super) struct MainInput {
    pub reader: Option<RecordReader>,
    pub next_operand: usize,
    pub has_read: bool,
    pub is_over: bool,
}

pub(super) struct AwkMachine<'p> {
    pub program: &'p AwkProgram,
    pub streams: AwkStreams<'p>,
    pub globals: Vec<VariableSlot>,
    pub locals: Vec<VariableSlot>,
    pub base: usize,
    pub record: AwkRecord,
    pub settings: AwkSettings,
    pub input: MainInput,
    pub ranges: Vec<bool>,
    pub exit_status: i32,
    /// The value of a function that returns.
    pub returned: AwkValue,
    pub random: u64,
    pub seed: AwkValue,
    patterns: HashMap<Vec<u8>, Rc<AwkPattern>>,
    steps: u32,
    stack: usize,
}

impl<'p> AwkMachine<'p> {
    pub(super) fn new(program: &'p AwkProgram, streams: AwkStreams<'p>) -> Self {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let mut machine = Self {
            program,
            streams,
            globals: program.globals.iter().map(|(_, is_array)| VariableSlot::new(*is_array)).collect(),
            locals: Vec::new(),
            base: 0,
            record: AwkRecord::new(),
            settings: AwkSettings {
                record: RecordRule::Byte(b'\n'),
                field_separator: AwkText::from(" "),
                record_separator: AwkText::from("\n"),
                key_separator: AwkText::from("\x1c"),
                conversion: AwkText::from("%.6g"),
                output: AwkText::from("%.6g"),
            },
            input: MainInput::default(),
            ranges: vec![false; program.ranges],
            exit_status: 0,
            returned: AwkValue::Unset,
            random: u64::from(now.subsec_nanos()) ^ now.as_secs(),
            seed: AwkValue::Number(f64::from(now.subsec_nanos())),
            patterns: HashMap::new(),
            steps: 0,
            stack: stack_address(),
        };
        let texts = [
            (syntax::FS, " "),
            (syntax::OFS, " "),
            (syntax::ORS, "\n"),
            (syntax::RS, "\n"),
            (syntax::SUBSEP, "\x1c"),
            (syntax::CONVFMT, "%.6g"),
            (syntax::OFMT, "%.6g"),
            (syntax::FILENAME, ""),
        ];
        for (at, text) in texts {
            machine.globals[at] = VariableSlot::Value(AwkValue::text(text.as_bytes()));
        }
        for (at, number) in
            [(syntax::NR, 0.0), (syntax::FNR, 0.0), (syntax::RSTART, 0.0), (syntax::RLENGTH, -1.0)]
        {
            machine.globals[at] = VariableSlot::Value(AwkValue::Number(number));
        }
        machine
    }

    /// Checks, from time to time, that the run may continue.
    pub(super) fn tick(&mut self) -> Step<()> {
        self.steps = self.steps.wrapping_add(1);
        if self.steps.is_multiple_of(LOOK_EVERY) {
            self.streams.worker.breathe()?;
            self.check_room(0)?;
        }
        Ok(())
    }

    /// Checks that there is memory for a value of this size.
    pub(super) fn check_room(&self, bytes: usize) -> Step<()> {
        if used_bytes().saturating_add(bytes) > MAX_BYTES {
            return Err(AwkHalt::Fatal("out of memory".to_owned()));
        }
        Ok(())
    }

    /// Checks that there is stack for one more call.
    pub(super) fn check_stack(&self) -> Step<()> {
        if self.stack.abs_diff(stack_address()) > MAX_STACK_BYTES {
            return Err(AwkHalt::Fatal("program limit exceeded: eval stack size=1024".to_owned()));
        }
        Ok(())
    }

    /// Returns a run-time error in mawk's words.
    pub(super) fn fatal(&mut self, kind: &str, reason: &str) -> AwkHalt {
        let shown = |slot: &VariableSlot| match slot {
            VariableSlot::Value(value) => {
                String::from_utf8_lossy(value.to_text(&AwkText::from("%.6g")).bytes()).into_owned()
            }
            VariableSlot::Array(_) => String::new(),
        };
        let [file, record, all] =
            [syntax::FILENAME, syntax::FNR, syntax::NR].map(|at| shown(&self.globals[at]));
        AwkHalt::Fatal(format!("{kind}: {reason}\n\tFILENAME=\"{file}\" FNR={record} NR={all}"))
    }

    pub(super) fn text_of(&self, value: &AwkValue) -> AwkText {
        value.to_text(&self.settings.conversion)
    }

    fn slot(&mut self, variable: VariableRef) -> &mut VariableSlot {
        match variable {
            VariableRef::Global(at) => &mut self.globals[at],
            VariableRef::Local(at) => &mut self.locals[self.base + at],
        }
    }

    pub(super) fn passed(&mut self, variable: VariableRef) -> VariableSlot {
        match variable {
            VariableRef::Global(syntax::NF) => VariableSlot::Value(self.get(variable)),
            _ => self.slot(variable).clone(),
        }
    }

    pub(super) fn array(&mut self, variable: VariableRef) -> SharedTable {
        let slot = self.slot(variable);
        if let VariableSlot::Array(table) = slot {
            return table.clone();
        }
        let table = SharedTable::default();
        *slot = VariableSlot::Array(table.clone());
        table
    }

    pub(super) fn get(&mut self, variable: VariableRef) -> AwkValue {
        if variable == VariableRef::Global(syntax::NF) {
            return AwkValue::Number(f64::from(u32::try_from(self.record.count()).unwrap_or(u32::MAX)));
        }
        match self.slot(variable) {
            VariableSlot::Value(value) => value.clone(),
            VariableSlot::Array(_) => AwkValue::Unset,
        }
    }

    pub(super) fn set(&mut self, variable: VariableRef, value: AwkValue) -> Step<()> {
        match variable {
            VariableRef::Global(at) => self.set_global(at, value),
            VariableRef::Local(_) => {
                *self.slot(variable) = VariableSlot::Value(value);
                Ok(())
            }
        }
    }

    pub(super) fn set_global(&mut self, at: usize, value: AwkValue) -> Step<()> {
        match at {
            syntax::NF => {
                let count = usize::try_from(super::number::whole(value.number())).unwrap_or(0);
                if !self.record.set_count(count) {
                    return Err(self.fatal(LIMIT, TOO_MANY_FIELDS));
                }
                return Ok(());
            }
            syntax::FS => {
                let text = self.text_of(&value);
                let rule = self.field_rule(text.bytes())?;
                self.record.set_rule(rule);
            }
            syntax::RS => {
                let text = self.text_of(&value);
                self.settings.record = match text.bytes() {
                    [] => RecordRule::Paragraphs,
                    [byte] => RecordRule::Byte(*byte),
                    more => RecordRule::Pattern(self.pattern(more)?),
                };
            }
            syntax::OFS => self.settings.field_separator = self.text_of(&value),
            syntax::ORS => self.settings.record_separator = self.text_of(&value),
            syntax::SUBSEP => self.settings.key_separator = self.text_of(&value),
            syntax::CONVFMT => self.settings.conversion = self.text_of(&value),
            syntax::OFMT => self.settings.output = self.text_of(&value),
            _ => {}
        }
        self.globals[at] = VariableSlot::Value(value);
        Ok(())
    }

    /// Returns the rule for a field separator that is given as text.
    pub(super) fn field_rule(&mut self, separator: &[u8]) -> Step<FieldRule> {
        Ok(match separator {
            [] => FieldRule::Bytes,
            [b' '] => FieldRule::Blanks,
            [byte] => FieldRule::Byte(*byte),
            more => FieldRule::Pattern(self.pattern(more)?),
        })
    }

    /// Compiles a pattern that is given as text.
    pub(super) fn pattern(&mut self, source: &[u8]) -> Step<Rc<AwkPattern>> {
        if let Some(known) = self.patterns.get(source) {
            return Ok(known.clone());
        }
        let pattern = AwkPattern::new(source).map_err(|reason| {
            let shown = String::from_utf8_lossy(source).into_owned();
            self.fatal("run time error", &format!("regular expression compile failed ({reason})\n{shown}"))
        })?;
        if self.patterns.len() == MAX_PATTERNS {
            self.patterns.clear();
        }
        let pattern = Rc::new(pattern);
        self.patterns.insert(source.to_vec(), pattern.clone());
        Ok(pattern)
    }

    pub(super) fn field(&mut self, number: f64) -> Step<AwkValue> {
        let number = self.field_number(number)?;
        if number == 0 {
            return Ok(self.record.text(&self.settings.field_separator, &self.settings.conversion));
        }
        let value = self.record.field(number);
        self.check_fields()?;
        Ok(value)
    }

    pub(super) fn check_fields(&mut self) -> Step<()> {
        if self.record.has_too_many() { Err(self.fatal(LIMIT, TOO_MANY_FIELDS)) } else { Ok(()) }
    }

    fn field_number(&mut self, number: f64) -> Step<usize> {
        let number = super::number::whole(number);
        usize::try_from(number)
            .map_err(|_| self.fatal("run time error", &format!("negative field index ${number}")))
    }

    pub(super) fn set_field(&mut self, number: f64, value: AwkValue) -> Step<()> {
        let number = self.field_number(number)?;
        if number == 0 {
            // A number becomes text when it is put into the record.
            let value = match value {
                AwkValue::Number(_) => AwkValue::Input(self.text_of(&value)),
                AwkValue::Text(text) => AwkValue::Input(text),
                other => other,
            };
            self.record.set(value);
            return Ok(());
        }
        if !self.record.set_field(number, value) {
            return Err(self.fatal(LIMIT, TOO_MANY_FIELDS));
        }
        Ok(())
    }

    /// Evaluates the key of an element.
    pub(super) fn key(&mut self, key: &'p [AwkExpr]) -> Step<TableKey> {
        if let [only] = key {
            let value = self.evaluate(only)?;
            return Ok(self.key_of(&value));
        }
        let mut text = Vec::new();
        for (at, part) in key.iter().enumerate() {
            if at > 0 {
                text.extend_from_slice(self.settings.key_separator.bytes());
            }
            let value = self.evaluate(part)?;
            value.append_to(&mut text, &self.settings.conversion);
        }
        Ok(TableKey::Text(AwkText::new(text)))
    }

    pub(super) fn key_of(&self, value: &AwkValue) -> TableKey {
        match value {
            AwkValue::Number(number) => match super::number::as_whole(*number) {
                Some(whole) => TableKey::Number(whole),
                None => TableKey::Text(self.text_of(value)),
            },
            other => TableKey::Text(self.text_of(other)),
        }
    }
}

#[inline(never)]
fn stack_address() -> usize {
    let here = 0_u8;
    std::ptr::from_ref(&here).addr()
}
