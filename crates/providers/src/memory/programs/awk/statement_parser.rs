//! The parser of `awk` statements.

use super::lexer::AwkToken;
use super::names::NameUse;
use super::parser::{AwkParser, Parsed, ProgramPart};
use super::syntax::{AwkExpr, AwkStatement, AwkTarget, OutputKind, VariableRef};

impl AwkParser {
    pub(super) fn block(&mut self) -> Parsed<Vec<AwkStatement>> {
        self.expect("{")?;
        self.blocks += 1;
        let mut all = Vec::new();
        self.nested(|parser| {
            loop {
                while parser.take("\n") || parser.take(";") {}
                if parser.take("}") {
                    return Ok(());
                }
                if matches!(parser.peek(), AwkToken::End) {
                    return Err(parser.unexpected());
                }
                parser.statement(&mut all)?;
            }
        })?;
        self.blocks -= 1;
        Ok(all)
    }

    /// Reads the statement or block inside another statement.
    fn body(&mut self) -> Parsed<Vec<AwkStatement>> {
        self.skip_lines();
        if self.is_at("{") {
            return self.block();
        }
        let mut all = Vec::new();
        if !self.is_at("}") && !self.take(";") {
            self.nested(|parser| parser.statement(&mut all))?;
        }
        Ok(all)
    }

    fn loop_body(&mut self) -> Parsed<Vec<AwkStatement>> {
        self.loops += 1;
        let body = self.body();
        self.loops -= 1;
        body
    }

    fn end_simple(&mut self) -> Parsed<()> {
        let ends =
            self.take(";") || self.take("\n") || self.is_at("}") || matches!(self.peek(), AwkToken::End);
        if ends { Ok(()) } else { Err(self.unexpected()) }
    }

    fn statement(&mut self, all: &mut Vec<AwkStatement>) -> Parsed<()> {
        let AwkToken::Sign(sign) = *self.peek() else {
            all.push(self.simple()?);
            return self.end_simple();
        };
        match sign {
            "{" => all.append(&mut self.block()?),
            "if" => all.push(self.if_statement()?),
            "while" => {
                self.advance();
                let test = self.condition()?;
                all.push(AwkStatement::While(test, self.loop_body()?));
            }
            "do" => {
                self.advance();
                let body = self.loop_body()?;
                while self.take("\n") || self.take(";") {}
                self.expect("while")?;
                all.push(AwkStatement::DoWhile(body, self.condition()?));
                self.end_simple()?;
            }
            "for" => all.push(self.for_statement()?),
            _ => {
                all.push(self.simple()?);
                self.end_simple()?;
            }
        }
        Ok(())
    }

    fn condition(&mut self) -> Parsed<AwkExpr> {
        if !self.take("(") {
            return Err(self.unexpected());
        }
        self.open += 1;
        let condition = self.expression()?;
        self.expect(")")?;
        self.open -= 1;
        Ok(condition)
    }

    fn if_statement(&mut self) -> Parsed<AwkStatement> {
        self.advance();
        let test = self.condition()?;
        let body = self.body()?;
        let mut behind = 0;
        while matches!(self.ahead(behind), AwkToken::Sign("\n" | ";")) {
            behind += 1;
        }
        let mut other = Vec::new();
        if matches!(self.ahead(behind), AwkToken::Sign("else")) {
            (0..=behind).for_each(|_| drop(self.advance()));
            other = self.body()?;
        }
        Ok(AwkStatement::If(test, body, other))
    }

    fn for_statement(&mut self) -> Parsed<AwkStatement> {
        self.advance();
        self.expect("(")?;
        self.open += 1;
        if let Some((key, array)) = self.key_loop()? {
            self.open -= 1;
            return Ok(AwkStatement::ForKeys(key, array, self.loop_body()?));
        }
        let clause = |parser: &mut Self, end: &str| -> Parsed<Vec<AwkStatement>> {
            let clause = if parser.is_at(end) { Vec::new() } else { vec![parser.simple()?] };
            parser.expect(end)?;
            Ok(clause)
        };
        let first = clause(self, ";")?;
        self.skip_lines();
        let test = if self.is_at(";") { None } else { Some(self.expression()?) };
        self.expect(";")?;
        self.skip_lines();
        let step = clause(self, ")")?;
        self.open -= 1;
        Ok(AwkStatement::For { first, test, step, body: self.loop_body()? })
    }

    /// Reads `key in array)`, if it is here.
    fn key_loop(&mut self) -> Parsed<Option<(AwkTarget, VariableRef)>> {
        let ahead = [self.ahead(0), self.ahead(1), self.ahead(2), self.ahead(3)];
        let [AwkToken::Name(key), AwkToken::Sign("in"), AwkToken::Name(array), AwkToken::Sign(")")] = ahead
        else {
            return Ok(None);
        };
        let (key, array) = (key.clone(), array.clone());
        let key = self.value_name(&key)?;
        let array = self.array_name(&array)?;
        (0..4).for_each(|_| drop(self.advance()));
        Ok(Some((AwkTarget::Variable(key), array)))
    }

    fn value_name(&mut self, name: &str) -> Parsed<VariableRef> {
        let found = self.names.variable(name).map_err(|reason| self.error(reason))?;
        self.names.use_as(found, NameUse::Value).map_err(|reason| self.error(reason))?;
        Ok(found)
    }

    pub(super) fn array_name(&mut self, name: &str) -> Parsed<VariableRef> {
        let found = self.names.variable(name).map_err(|reason| self.error(reason))?;
        self.names.use_as(found, NameUse::Array).map_err(|reason| self.error(reason))?;
        Ok(found)
    }

    /// Reads a statement that contains no others.
    fn simple(&mut self) -> Parsed<AwkStatement> {
        let AwkToken::Sign(sign) = *self.peek() else {
            return Ok(AwkStatement::Expression(self.expression()?));
        };
        let jump = match sign {
            "print" | "printf" => return self.print(sign == "printf"),
            "break" => self.jump(AwkStatement::Break, self.loops > 0, "break statement outside of loop")?,
            "continue" => {
                self.jump(AwkStatement::Continue, self.loops > 0, "continue statement outside of loop")?
            }
            "next" => {
                self.jump(AwkStatement::Next, self.part == ProgramPart::Rule, "improper use of next")?
            }
            "nextfile" => return Err(self.error("improper use of nextfile")),
            "exit" => {
                self.advance();
                AwkStatement::Exit(self.optional_expression()?)
            }
            "return" => {
                if !self.names.is_in_function() {
                    return Err(self.error("return outside function body"));
                }
                self.advance();
                AwkStatement::Return(self.optional_expression()?)
            }
            "delete" => self.delete()?,
            _ => AwkStatement::Expression(self.expression()?),
        };
        Ok(jump)
    }

    fn jump(&mut self, statement: AwkStatement, is_allowed: bool, reason: &str) -> Parsed<AwkStatement> {
        if !is_allowed {
            return Err(self.error(reason));
        }
        self.advance();
        Ok(statement)
    }

    fn optional_expression(&mut self) -> Parsed<Option<AwkExpr>> {
        if matches!(self.peek(), AwkToken::End | AwkToken::Sign("\n" | ";" | "}")) {
            return Ok(None);
        }
        self.expression().map(Some)
    }

    fn delete(&mut self) -> Parsed<AwkStatement> {
        self.advance();
        let AwkToken::Name(name) = self.peek().clone() else { return Err(self.unexpected()) };
        let array = self.array_name(&name)?;
        self.advance();
        if !self.take("[") {
            return Ok(AwkStatement::Delete(array, None));
        }
        let key = self.list("]")?;
        Ok(AwkStatement::Delete(array, Some(key)))
    }

    fn print(&mut self, is_formatted: bool) -> Parsed<AwkStatement> {
        self.advance();
        self.is_printing = true;
        let args = self.print_args();
        self.is_printing = false;
        let mut args = args?;
        if let [AwkExpr::List(_)] = args.as_slice()
            && let Some(AwkExpr::List(all)) = args.pop()
        {
            args = all;
        }
        if is_formatted && args.is_empty() {
            return Err(self.error("no arguments in call to printf"));
        }
        let kind = match self.peek() {
            AwkToken::Sign(">") => Some(OutputKind::File),
            AwkToken::Sign(">>") => Some(OutputKind::Appended),
            AwkToken::Sign("|") => Some(OutputKind::Command),
            _ => None,
        };
        let output = match kind {
            Some(kind) => {
                self.advance();
                Some((kind, self.expression()?))
            }
            None => None,
        };
        Ok(AwkStatement::Print { args, is_formatted, output })
    }

    /// Returns whether the arguments of `print` end here.
    pub(super) fn ends_print(&self) -> bool {
        matches!(self.peek(), AwkToken::End | AwkToken::Sign("\n" | ";" | "}" | ">" | ">>" | "|"))
    }

    fn print_args(&mut self) -> Parsed<Vec<AwkExpr>> {
        let mut args = Vec::new();
        if self.ends_print() {
            return Ok(args);
        }
        loop {
            args.push(self.expression()?);
            if !self.take(",") {
                return Ok(args);
            }
            self.skip_lines();
        }
    }
}
