//! The parser of `awk` programs: rules, functions and statements.

use super::lexer::{AwkToken, PlacedToken, tokens};
use super::names::ProgramNames;
use super::syntax::{AwkProgram, AwkRule, AwkStatement, DefinedFunction, RulePattern};

/// The most levels that expressions and statements may nest.
const MAX_DEPTH: usize = 1000;
const TOO_DEEP: &str = "the program is nested too deep";

/// The part of the program that a statement is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProgramPart {
    /// A `BEGIN` or `END` block.
    Around,
    Rule,
    Function,
}

/// The error messages about a program, one per line.
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
    pub part: ProgramPart,
    pub loops: usize,
    depth: usize,
    /// The number of open blocks.
    pub blocks: usize,
    /// The number of open parentheses.
    pub open: usize,
    /// Set while a `>` redirects `print` instead of comparing.
    pub is_printing: bool,
    /// Set while an `in` belongs to a loop.
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

    /// Returns the error for an unexpected token.
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

    /// Reads something one level deeper.
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
}
