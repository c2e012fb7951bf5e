//! The execution of `awk` statements.

use super::machine::{AwkHalt, AwkMachine, Step};
use super::printf::FormatError;
use super::syntax::{AwkExpr, AwkStatement, OutputKind, RulePattern};
use super::value::AwkValue;

/// The control flow after a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flow {
    On,
    Break,
    Continue,
    Return,
}

impl<'p> AwkMachine<'p> {
    pub(super) fn execute(&mut self, statements: &'p [AwkStatement]) -> Step<Flow> {
        for statement in statements {
            let flow = self.statement(statement)?;
            if flow != Flow::On {
                return Ok(flow);
            }
        }
        Ok(Flow::On)
    }

    fn statement(&mut self, statement: &'p AwkStatement) -> Step<Flow> {
        self.tick()?;
        match statement {
            AwkStatement::Expression(expression) => drop(self.evaluate(expression)?),
            AwkStatement::Print { args, is_formatted, output } => {
                self.print(args, *is_formatted, output.as_ref())?
            }
            AwkStatement::If(test, body, other) => {
                let chosen = if self.is_true(test)? { body } else { other };
                return self.execute(chosen);
            }
            AwkStatement::While(test, body) => return self.repeat(Some(test), &[], body),
            AwkStatement::DoWhile(body, test) => loop {
                match self.execute(body)? {
                    Flow::Break => break,
                    Flow::Return => return Ok(Flow::Return),
                    _ => self.tick()?,
                }
                if !self.is_true(test)? {
                    break;
                }
            },
            AwkStatement::For { first, test, step, body } => {
                self.execute(first)?;
                return self.repeat(test.as_ref(), step, body);
            }
            AwkStatement::ForKeys(key, array, body) => {
                let keys = self.array(*array).borrow_mut().keys();
                for text in keys {
                    let place = self.place(key)?;
                    self.put(&place, AwkValue::Text(text))?;
                    match self.execute(body)? {
                        Flow::Break => break,
                        Flow::Return => return Ok(Flow::Return),
                        _ => self.tick()?,
                    }
                }
            }
            AwkStatement::Delete(array, None) => self.array(*array).borrow_mut().clear(),
            AwkStatement::Delete(array, Some(key)) => {
                let key = self.key(key)?;
                self.array(*array).borrow_mut().remove(&key);
            }
            AwkStatement::Break => return Ok(Flow::Break),
            AwkStatement::Continue => return Ok(Flow::Continue),
            AwkStatement::Next => return Err(AwkHalt::Next),
            AwkStatement::Exit(status) => {
                if let Some(status) = status {
                    self.exit_status = super::number::whole(self.number(status)?) & 0xff;
                }
                return Err(AwkHalt::Exit);
            }
            AwkStatement::Return(value) => {
                self.returned = match value {
                    Some(value) => self.evaluate(value)?,
                    None => AwkValue::Unset,
                };
                return Ok(Flow::Return);
            }
        }
        Ok(Flow::On)
    }

    fn repeat(
        &mut self,
        test: Option<&'p AwkExpr>,
        step: &'p [AwkStatement],
        body: &'p [AwkStatement],
    ) -> Step<Flow> {
        loop {
            if let Some(test) = test
                && !self.is_true(test)?
            {
                return Ok(Flow::On);
            }
            match self.execute(body)? {
                Flow::Break => return Ok(Flow::On),
                Flow::Return => return Ok(Flow::Return),
                _ => self.tick()?,
            }
            self.execute(step)?;
        }
    }

    fn print(
        &mut self,
        args: &'p [AwkExpr],
        is_formatted: bool,
        output: Option<&'p (OutputKind, AwkExpr)>,
    ) -> Step<()> {
        let line = if is_formatted { self.formatted(args)? } else { self.line(args)? };
        let Some((kind, name)) = output else { return Ok(self.streams.print(&line)?) };
        let name = self.text(name)?;
        match self.streams.print_to(*kind, name.bytes(), &line)? {
            Ok(()) => Ok(()),
            Err(reason) => {
                let shown = String::from_utf8_lossy(name.bytes());
                Err(AwkHalt::Fatal(format!("cannot open \"{shown}\" for output ({reason})")))
            }
        }
    }

    fn line(&mut self, args: &'p [AwkExpr]) -> Step<Vec<u8>> {
        let mut line = Vec::new();
        if args.is_empty() {
            let record = self.field(0.0)?;
            record.append_to(&mut line, &self.settings.output);
        }
        for (at, argument) in args.iter().enumerate() {
            if at > 0 {
                line.extend_from_slice(self.settings.field_separator.bytes());
            }
            let value = self.evaluate(argument)?;
            value.append_to(&mut line, &self.settings.output);
        }
        line.extend_from_slice(self.settings.record_separator.bytes());
        Ok(line)
    }

    /// Fills a format. Text from before an error is printed too.
    fn formatted(&mut self, args: &'p [AwkExpr]) -> Step<Vec<u8>> {
        let mut values = Vec::with_capacity(args.len());
        for argument in args {
            values.push(self.evaluate(argument)?);
        }
        let mut line = Vec::new();
        match self.fill(&mut line, &values, "printf") {
            Ok(()) => Ok(line),
            Err(halt) => {
                self.streams.print(&line)?;
                Err(halt)
            }
        }
    }

    /// Fills the format in the first value with the other values.
    pub(super) fn fill(&mut self, out: &mut Vec<u8>, values: &[AwkValue], name: &str) -> Step<()> {
        let Some((format, values)) = values.split_first() else { return Ok(()) };
        let format = self.text_of(format);
        super::printf::fill(out, format.bytes(), values, &self.settings.conversion).map_err(|error| {
            let shown = String::from_utf8_lossy(format.bytes()).into_owned();
            self.run_time_error(&match error {
                FormatError::TooFewArguments => {
                    format!("not enough arguments passed to {name}(\"{shown}\")")
                }
                FormatError::Conversion(number) => {
                    format!("improper conversion(number {number}) in {name}(\"{shown}\")")
                }
            })
        })
    }

    /// Runs the rules for the current record.
    pub(super) fn rules(&mut self) -> Step<()> {
        let program = self.program;
        for rule in &program.rules {
            self.tick()?;
            let applies = match &rule.pattern {
                RulePattern::Always => true,
                RulePattern::If(test) => self.is_true(test)?,
                RulePattern::Range(number, first, last) => {
                    let applies = self.ranges[*number] || self.is_true(first)?;
                    if applies {
                        self.ranges[*number] = !self.is_true(last)?;
                    }
                    applies
                }
            };
            if !applies {
                continue;
            }
            match &rule.body {
                Some(body) => drop(self.execute(body)?),
                None => {
                    let line = self.line(&[])?;
                    self.streams.print(&line)?;
                }
            }
        }
        Ok(())
    }
}
