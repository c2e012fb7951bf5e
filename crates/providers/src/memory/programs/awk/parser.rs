//! The reader of a program of `awk`: rules, functions and statements.

use super::lexer::{AwkToken, PlacedToken, tokens};
use super::names::{NameUse, ProgramNames};
use super::syntax::{
    AwkExpr, AwkProgram, AwkRule, AwkStatement, AwkTarget, DefinedFunction, OutputKind, RulePattern,
};

/// Expressions and statements within others.
const MAX_DEPTH: usize = 1000;
const TOO_DEEP: &str = "the program is nested too deep";

/// Where a statement stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ProgramPart {
    /// In `BEGIN` or `END`.
    Around,
    Rule,
    Function,
}

/// The words about a program that can't be read, line by line.
pub(super) type SyntaxError = Vec<String>;
pub(super) type Parsed<T> = Result<T, SyntaxError>;

/// Reads a program.
pub(super) fn parse(program: &[u8]) -> Parsed<AwkProgram> {
    let tokens = tokens(program);
    let last_line = tokens.last().map_or(1, |last| last.line) + 1;
    let mut names = ProgramNames::new();
    for pair in tokens.windows(2) {
        if let [PlacedToken { token: AwkToken::Sign("function"), line }, name] = pair
            && let AwkToken::Name(name) | AwkToken::CalledName(name) = &name.token
        {
            names.function(name, *line);
        }
    }
    let mut parser = AwkParser {
        tokens,
        at: 0,
        last_line,
        names,
        program: AwkProgram::default(),
        part: ProgramPart::Rule,
        loops: 0,
        depth: 0,
        blocks: 0,
        open: 0,
        is_printing: false,
        no_in: false,
        errors: Vec::new(),
    };
    let read = parser.items();
    let mut errors = std::mem::take(&mut parser.errors);
    match read {
        Ok(()) if errors.is_empty() => parser.finish(),
        Ok(()) => Err(errors),
        Err(more) => {
            errors.extend(more);
            Err(errors)
        }
    }
}

pub(super) struct AwkParser {
    tokens: Vec<PlacedToken>,
    at: usize,
    last_line: usize,
    pub names: ProgramNames,
    program: AwkProgram,
    part: ProgramPart,
    loops: usize,
    depth: usize,
    /// The blocks that are open.
    blocks: usize,
    /// The parentheses that are open.
    pub open: usize,
    /// A `>` is where `print` prints to.
    pub is_printing: bool,
    /// An `in` is that of a loop.
    pub no_in: bool,
    errors: SyntaxError,
}

impl AwkParser {
    pub(super) fn peek(&self) -> &AwkToken {
        self.ahead(0)
    }

    pub(super) fn ahead(&self, count: usize) -> &AwkToken {
        let rest = self.tokens.get(self.at..).unwrap_or_default().iter();
        let mut rest = rest.filter(|placed| !matches!(placed.token, AwkToken::Extra(_)));
        rest.nth(count).map_or(&AwkToken::End, |placed| &placed.token)
    }

    pub(super) fn line(&self) -> usize {
        match self.tokens.get(self.at) {
            Some(placed) if placed.token != AwkToken::End => placed.line,
            _ => self.last_line,
        }
    }

    pub(super) fn advance(&mut self) -> AwkToken {
        while let Some(PlacedToken { token, line }) = self.tokens.get(self.at) {
            self.at += 1;
            match token {
                AwkToken::Extra(sign) => self.errors.push(format!("line {line}: extra '{sign}'")),
                other => return other.clone(),
            }
        }
        AwkToken::End
    }

    pub(super) fn is_at(&self, sign: &str) -> bool {
        matches!(self.peek(), AwkToken::Sign(own) if *own == sign)
    }

    pub(super) fn take(&mut self, sign: &str) -> bool {
        let is_here = self.is_at(sign);
        if is_here {
            self.advance();
        }
        is_here
    }

    pub(super) fn expect(&mut self, sign: &str) -> Parsed<()> {
        if self.take(sign) { Ok(()) } else { Err(self.unexpected()) }
    }

    pub(super) fn error(&self, reason: impl std::fmt::Display) -> SyntaxError {
        vec![format!("line {}: {reason}", self.line())]
    }

    /// The words about the next word, which does not belong here.
    pub(super) fn unexpected(&self) -> SyntaxError {
        let shown = match self.peek() {
            AwkToken::Wrong(reason) => return vec![reason.clone()],
            AwkToken::End if self.blocks == 0 => {
                return vec![format!("line {}: syntax error at or near end of line", self.last_line - 1)];
            }
            AwkToken::End => return self.error("missing } near end of file"),
            AwkToken::Sign("\n") => "end of line".to_owned(),
            AwkToken::Sign(sign) | AwkToken::Extra(sign) => (*sign).to_owned(),
            AwkToken::Number(_, shown) => shown.clone(),
            AwkToken::Name(name) | AwkToken::CalledName(name) => name.clone(),
            AwkToken::Text(text) => String::from_utf8_lossy(text).into_owned(),
            AwkToken::Pattern(pattern) => format!("/{}/", String::from_utf8_lossy(pattern)),
        };
        if self.open > 0 && matches!(shown.as_str(), "}" | ";" | "end of line") {
            return self.error(format!("missing ) near {shown}"));
        }
        self.error(format!("syntax error at or near {shown}"))
    }

    /// Goes one level down.
    pub(super) fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth == MAX_DEPTH {
            return Err(self.error(TOO_DEEP));
        }
        self.depth += 1;
        let read = read(self);
        self.depth -= 1;
        read
    }

    pub(super) fn skip_lines(&mut self) {
        while self.take("\n") {}
    }

    fn items(&mut self) -> Parsed<()> {
        loop {
            self.skip_lines();
            match self.peek() {
                AwkToken::End => {
                    self.advance();
                    return Ok(());
                }
                AwkToken::Sign("function") => self.function()?,
                AwkToken::Sign("BEGIN") => {
                    let body = self.part(ProgramPart::Around)?;
                    self.program.begin.push(body);
                }
                AwkToken::Sign("END") => {
                    let body = self.part(ProgramPart::Around)?;
                    self.program.end.push(body);
                }
                _ => self.rule()?,
            }
            self.take(";");
        }
    }

    fn part(&mut self, part: ProgramPart) -> Parsed<Vec<AwkStatement>> {
        self.advance();
        self.part = part;
        self.block()
    }

    fn rule(&mut self) -> Parsed<()> {
        self.part = ProgramPart::Rule;
        let pattern = if self.is_at("{") {
            RulePattern::Always
        } else {
            let first = self.expression()?;
            if self.take(",") {
                self.skip_lines();
                let last = self.expression()?;
                self.program.ranges += 1;
                RulePattern::Range(self.program.ranges - 1, first, last)
            } else {
                RulePattern::If(first)
            }
        };
        let body = if self.is_at("{") {
            Some(self.block()?)
        } else if matches!(self.peek(), AwkToken::End | AwkToken::Sign("\n" | ";")) {
            None
        } else {
            return Err(self.unexpected());
        };
        self.program.rules.push(AwkRule { pattern, body });
        Ok(())
    }

    fn function(&mut self) -> Parsed<()> {
        self.advance();
        let (AwkToken::Name(name) | AwkToken::CalledName(name)) = self.peek().clone() else {
            return Err(self.unexpected());
        };
        let line = self.line();
        self.advance();
        self.expect("(")?;
        let mut parameters = Vec::new();
        while let AwkToken::Name(parameter) = self.peek() {
            parameters.push(parameter.clone());
            self.advance();
            if !self.take(",") {
                break;
            }
            self.skip_lines();
        }
        self.expect(")")?;
        self.skip_lines();
        let at = self.names.define(&name, parameters, line).map_err(|reason| self.error(reason))?;
        self.part = ProgramPart::Function;
        let body = self.block()?;
        self.names.end_function();
        if self.program.functions.len() <= at {
            self.program.functions.resize_with(at + 1, DefinedFunction::default);
        }
        self.program.functions[at].body = body;
        Ok(())
    }

    fn finish(self) -> Parsed<AwkProgram> {
        let (globals, parameters) = self
            .names
            .finish(self.last_line)
            .map_err(|(line, reason)| vec![format!("line {line}: {reason}")])?;
        let mut program = self.program;
        program.globals = globals;
        program.functions.resize_with(parameters.len(), DefinedFunction::default);
        for (function, parameters) in program.functions.iter_mut().zip(parameters) {
            function.parameters = parameters;
        }
        Ok(program)
    }

    fn block(&mut self) -> Parsed<Vec<AwkStatement>> {
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

    /// The statement or block below another one.
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

    /// Reads `key in array)`, if it stands here.
    fn key_loop(&mut self) -> Parsed<Option<(AwkTarget, super::syntax::VariableRef)>> {
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

    fn value_name(&mut self, name: &str) -> Parsed<super::syntax::VariableRef> {
        let found = self.names.variable(name).map_err(|reason| self.error(reason))?;
        self.names.use_as(found, NameUse::Value).map_err(|reason| self.error(reason))?;
        Ok(found)
    }

    pub(super) fn array_name(&mut self, name: &str) -> Parsed<super::syntax::VariableRef> {
        let found = self.names.variable(name).map_err(|reason| self.error(reason))?;
        self.names.use_as(found, NameUse::Array).map_err(|reason| self.error(reason))?;
        Ok(found)
    }

    /// A statement without others in it.
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

    /// Tells whether the values of `print` end here.
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
