//! The parser of calls, to the functions of `awk` and to those of the program.

use super::expressions::boxed;
use super::lexer::AwkToken;
use super::parser::{AwkParser, Parsed};
use super::syntax::{AwkExpr, AwkFunction, AwkTarget, CallArgument, FUNCTIONS, VariableRef};

impl AwkParser {
    pub(super) fn function_of(&self, name: &str) -> Option<(AwkFunction, usize, usize)> {
        let known = FUNCTIONS.iter().find(|(own, ..)| *own == name);
        known.map(|(_, function, least, most)| (*function, *least, *most))
    }

    pub(super) fn name(&mut self, name: &str) -> Parsed<AwkExpr> {
        let line = self.line();
        let is_called = matches!(self.peek(), AwkToken::CalledName(_));
        self.advance();
        if let Some((function, least, most)) = self.function_of(name) {
            return self.known_function(name, function, [least, most]);
        }
        let is_function = self.names.has_function(name) || (is_called && !self.names.has_variable(name));
        if is_function && self.is_at("(") {
            return self.call(name, line);
        }
        self.named(name).map(AwkExpr::Get)
    }

    pub(super) fn args(&mut self) -> Parsed<Vec<AwkExpr>> {
        self.expect("(")?;
        self.open += 1;
        let args = self.list(")")?;
        self.open -= 1;
        Ok(args)
    }

    fn known_function(&mut self, name: &str, function: AwkFunction, counts: [usize; 2]) -> Parsed<AwkExpr> {
        match function {
            AwkFunction::Length => return self.length(),
            AwkFunction::Split => return self.split(),
            AwkFunction::Sub | AwkFunction::Gsub => return self.substitute(function == AwkFunction::Gsub),
            _ => {}
        }
        let line = self.line();
        self.expect("(")?;
        self.open += 1;
        let mut args = Vec::new();
        if function == AwkFunction::Match {
            args = self.two_for_match()?;
        } else {
            args.extend(self.list(")")?);
        }
        self.open -= 1;
        if args.len() < counts[0] || args.len() > counts[1] {
            return Err(vec![format!("line {line}: wrong number of arguments in call to {name}")]);
        }
        Ok(AwkExpr::Function(function, args))
    }

    /// Reads an argument, with line breaks around it. Inside of parentheses, `>` and `in` have their usual meaning.
    fn argument(&mut self) -> Parsed<AwkExpr> {
        let was = (std::mem::take(&mut self.is_printing), std::mem::take(&mut self.no_in));
        self.skip_lines();
        let argument = self.expression()?;
        self.skip_lines();
        (self.is_printing, self.no_in) = was;
        Ok(argument)
    }

    fn two_for_match(&mut self) -> Parsed<Vec<AwkExpr>> {
        let text = self.argument()?;
        self.expect(",")?;
        let pattern = self.argument()?;
        let pattern = self.compiled(pattern)?;
        self.expect(")")?;
        Ok(vec![text, pattern])
    }

    fn length(&mut self) -> Parsed<AwkExpr> {
        if !self.is_at("(") {
            return Ok(AwkExpr::Function(AwkFunction::Length, Vec::new()));
        }
        if let (AwkToken::Name(name), AwkToken::Sign(")")) = (self.ahead(1).clone(), self.ahead(2))
            && self.function_of(&name).is_none()
            && !self.names.has_function(&name)
        {
            let found = self.names.variable(&name).map_err(|reason| self.error(reason))?;
            (0..3).for_each(|_| drop(self.advance()));
            return Ok(AwkExpr::LengthOf(found));
        }
        let args = self.args()?;
        if args.len() > 1 {
            return Err(self.error("wrong number of arguments in call to length"));
        }
        Ok(AwkExpr::Function(AwkFunction::Length, args))
    }

    fn split(&mut self) -> Parsed<AwkExpr> {
        self.expect("(")?;
        self.open += 1;
        let text = self.argument()?;
        self.expect(",")?;
        self.skip_lines();
        let AwkToken::Name(name) = self.peek().clone() else { return Err(self.unexpected()) };
        let array = self.array_name(&name)?;
        self.advance();
        let separator = if self.take(",") { Some(boxed(self.argument()?)) } else { None };
        self.expect(")")?;
        self.open -= 1;
        Ok(AwkExpr::Split(boxed(text), array, separator))
    }

    fn substitute(&mut self, is_global: bool) -> Parsed<AwkExpr> {
        self.expect("(")?;
        self.open += 1;
        let pattern = self.argument()?;
        let pattern = boxed(self.compiled(pattern)?);
        self.expect(",")?;
        let replacement = boxed(self.argument()?);
        let target = if self.take(",") {
            self.skip_lines();
            let Some(target) = self.optional_target()? else { return Err(self.unexpected()) };
            target
        } else {
            Box::new(AwkTarget::Field(boxed(AwkExpr::Number(0.0))))
        };
        self.expect(")")?;
        self.open -= 1;
        Ok(AwkExpr::Substitute { is_global, pattern, replacement, target })
    }

    fn call(&mut self, name: &str, line: usize) -> Parsed<AwkExpr> {
        let function = self.names.function(name, line);
        self.expect("(")?;
        self.open += 1;
        let mut args = Vec::new();
        loop {
            self.skip_lines();
            if self.is_at(")") {
                break;
            }
            args.push(self.call_argument()?);
            if !self.take(",") {
                break;
            }
        }
        self.skip_lines();
        self.expect(")")?;
        self.open -= 1;
        let variable = |argument: &CallArgument| match argument {
            CallArgument::Name(variable) => Some(*variable),
            CallArgument::Value(_) => None,
        };
        self.names.call(function, args.iter().map(variable).collect(), line);
        Ok(AwkExpr::Call(function, args))
    }

    fn call_argument(&mut self) -> Parsed<CallArgument> {
        if let (AwkToken::Name(name), AwkToken::Sign("," | ")")) = (self.peek().clone(), self.ahead(1))
            && self.function_of(&name).is_none()
            && !self.names.has_function(&name)
        {
            let found: VariableRef = self.names.variable(&name).map_err(|reason| self.error(reason))?;
            self.advance();
            return Ok(CallArgument::Name(found));
        }
        self.argument().map(CallArgument::Value)
    }
}
