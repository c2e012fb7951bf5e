//! The parser of `awk` expressions, from the weakest operators to the strongest.

use std::rc::Rc;

use super::lexer::AwkToken;
use super::names::NameUse;
use super::parser::{AwkParser, Parsed};
use super::pattern::AwkPattern;
use super::syntax::{Arithmetic, AwkExpr, AwkTarget, Comparison, LineSource};
use super::text::AwkText;

/// The most operators in one level of an expression.
const MAX_CHAIN: usize = 5000;

pub(super) fn boxed(expression: AwkExpr) -> Box<AwkExpr> {
    Box::new(expression)
}

impl AwkParser {
    pub(super) fn expression(&mut self) -> Parsed<AwkExpr> {
        self.nested(Self::choice)
    }

    fn choice(&mut self) -> Parsed<AwkExpr> {
        let test = self.either()?;
        if !self.take("?") {
            return Ok(test);
        }
        self.skip_lines();
        let yes = self.expression()?;
        self.skip_lines();
        self.expect(":")?;
        self.skip_lines();
        let no = self.expression()?;
        Ok(AwkExpr::Choose(boxed(test), boxed(yes), boxed(no)))
    }

    /// Reads operands with operators between them, from left to right.
    fn chain(
        &mut self,
        operand: fn(&mut Self) -> Parsed<AwkExpr>,
        more: fn(&mut Self, AwkExpr) -> Parsed<Result<AwkExpr, AwkExpr>>,
    ) -> Parsed<AwkExpr> {
        let mut left = operand(self)?;
        for _ in 0..MAX_CHAIN {
            match more(self, left)? {
                Ok(joined) => left = joined,
                Err(whole) => return Ok(whole),
            }
        }
        Err(self.error("the expression is too long"))
    }

    fn either(&mut self) -> Parsed<AwkExpr> {
        self.chain(Self::both, |parser, left| {
            if !parser.take("||") {
                return Ok(Err(left));
            }
            parser.skip_lines();
            Ok(Ok(AwkExpr::Or(boxed(left), boxed(parser.both()?))))
        })
    }

    fn both(&mut self) -> Parsed<AwkExpr> {
        self.chain(Self::membership, |parser, left| {
            if !parser.take("&&") {
                return Ok(Err(left));
            }
            parser.skip_lines();
            Ok(Ok(AwkExpr::And(boxed(left), boxed(parser.membership()?))))
        })
    }

    fn membership(&mut self) -> Parsed<AwkExpr> {
        self.chain(Self::matching, |parser, left| {
            if parser.no_in || !parser.take("in") {
                return Ok(Err(left));
            }
            parser.has(vec![left]).map(Ok)
        })
    }

    fn has(&mut self, key: Vec<AwkExpr>) -> Parsed<AwkExpr> {
        let AwkToken::Name(name) = self.peek().clone() else { return Err(self.unexpected()) };
        let array = self.array_name(&name)?;
        self.advance();
        Ok(AwkExpr::Has(array, key))
    }

    fn matching(&mut self) -> Parsed<AwkExpr> {
        self.chain(Self::comparison, |parser, left| {
            let is_negated = parser.is_at("!~");
            if !is_negated && !parser.is_at("~") {
                return Ok(Err(left));
            }
            parser.advance();
            let pattern = parser.comparison()?;
            let pattern = boxed(parser.compiled(pattern)?);
            Ok(Ok(AwkExpr::Matches { text: boxed(left), pattern, is_negated }))
        })
    }

    /// Compiles a constant text that is used as a pattern.
    pub(super) fn compiled(&mut self, pattern: AwkExpr) -> Parsed<AwkExpr> {
        match pattern {
            AwkExpr::Text(text) => self.pattern(text.bytes()),
            other => Ok(other),
        }
    }

    fn pattern(&mut self, source: &[u8]) -> Parsed<AwkExpr> {
        let pattern = AwkPattern::new(source).map_err(|reason| {
            let shown = String::from_utf8_lossy(source).into_owned();
            self.error(format!("regular expression compile failed ({reason})\n{shown}"))
        })?;
        Ok(AwkExpr::Pattern(Rc::new(pattern)))
    }

    fn comparison(&mut self) -> Parsed<AwkExpr> {
        self.chain(Self::joined, |parser, left| {
            let comparison = match parser.peek() {
                AwkToken::Sign("<") => Comparison::Less,
                AwkToken::Sign("<=") => Comparison::LessOrEqual,
                AwkToken::Sign("==") => Comparison::Equal,
                AwkToken::Sign("!=") => Comparison::NotEqual,
                AwkToken::Sign(">") if !parser.is_printing => Comparison::Greater,
                AwkToken::Sign(">=") => Comparison::GreaterOrEqual,
                _ => return Ok(Err(left)),
            };
            parser.advance();
            Ok(Ok(AwkExpr::Compare(comparison, boxed(left), boxed(parser.joined()?))))
        })
    }

    fn joined(&mut self) -> Parsed<AwkExpr> {
        self.chain(Self::sum, |parser, left| {
            if !parser.begins_operand() {
                return Ok(Err(left));
            }
            Ok(Ok(AwkExpr::Join(boxed(left), boxed(parser.sum()?))))
        })
    }

    fn begins_operand(&self) -> bool {
        match self.peek() {
            AwkToken::Number(..)
            | AwkToken::Text(_)
            | AwkToken::Pattern(_)
            | AwkToken::Name(_)
            | AwkToken::CalledName(_) => true,
            AwkToken::Sign(sign) => matches!(*sign, "$" | "!" | "(" | "++" | "--" | "-" | "+"),
            _ => false,
        }
    }

    fn sum(&mut self) -> Parsed<AwkExpr> {
        self.chain(Self::product, |parser, left| {
            let arithmetic = match parser.peek() {
                AwkToken::Sign("+") => Arithmetic::Add,
                AwkToken::Sign("-") => Arithmetic::Subtract,
                _ => return Ok(Err(left)),
            };
            parser.advance();
            Ok(Ok(AwkExpr::Calculate(arithmetic, boxed(left), boxed(parser.product()?))))
        })
    }

    fn product(&mut self) -> Parsed<AwkExpr> {
        self.chain(Self::signed, |parser, left| {
            let arithmetic = match parser.peek() {
                AwkToken::Sign("*") => Arithmetic::Multiply,
                AwkToken::Sign("/") => Arithmetic::Divide,
                AwkToken::Sign("%") => Arithmetic::Remainder,
                _ => return Ok(Err(left)),
            };
            parser.advance();
            Ok(Ok(AwkExpr::Calculate(arithmetic, boxed(left), boxed(parser.signed()?))))
        })
    }

    fn signed(&mut self) -> Parsed<AwkExpr> {
        let make: fn(Box<AwkExpr>) -> AwkExpr = match self.peek() {
            AwkToken::Sign("!") => AwkExpr::Not,
            AwkToken::Sign("-") => AwkExpr::Negate,
            AwkToken::Sign("+") => AwkExpr::AsNumber,
            _ => return self.piped(),
        };
        self.advance();
        Ok(make(boxed(self.nested(Self::signed)?)))
    }

    /// Reads an operand, which may be a command before `| getline`.
    fn piped(&mut self) -> Parsed<AwkExpr> {
        self.chain(Self::power, |parser, left| {
            if !parser.is_at("|") || !matches!(parser.ahead(1), AwkToken::Sign("getline")) {
                return Ok(Err(left));
            }
            parser.advance();
            parser.advance();
            let target = parser.optional_target()?;
            Ok(Ok(AwkExpr::Getline(LineSource::Command(boxed(left)), target)))
        })
    }

    fn power(&mut self) -> Parsed<AwkExpr> {
        let base = self.stepped()?;
        if !self.take("^") {
            return Ok(base);
        }
        let exponent = self.nested(Self::signed)?;
        Ok(AwkExpr::Calculate(Arithmetic::Power, boxed(base), boxed(exponent)))
    }

    /// Reads an operand with `++` or `--` before or after it, or an assignment.
    fn stepped(&mut self) -> Parsed<AwkExpr> {
        for (sign, by) in [("++", 1.0), ("--", -1.0)] {
            if self.take(sign) {
                let Some(target) = self.optional_target()? else { return Err(self.unexpected()) };
                return Ok(AwkExpr::Step { target, by, is_behind: false });
            }
        }
        let target = match self.primary()? {
            AwkExpr::Get(target) => Box::new(target),
            other => return Ok(other),
        };
        for (sign, by) in [("++", 1.0), ("--", -1.0)] {
            if self.take(sign) {
                return Ok(AwkExpr::Step { target, by, is_behind: true });
            }
        }
        self.assigned(target)
    }

    fn assigned(&mut self, target: Box<AwkTarget>) -> Parsed<AwkExpr> {
        let arithmetic = match self.peek() {
            AwkToken::Sign("=") => None,
            AwkToken::Sign("+=") => Some(Arithmetic::Add),
            AwkToken::Sign("-=") => Some(Arithmetic::Subtract),
            AwkToken::Sign("*=") => Some(Arithmetic::Multiply),
            AwkToken::Sign("/=") => Some(Arithmetic::Divide),
            AwkToken::Sign("%=") => Some(Arithmetic::Remainder),
            AwkToken::Sign("^=") => Some(Arithmetic::Power),
            _ => return Ok(AwkExpr::Get(*target)),
        };
        self.advance();
        let value = boxed(self.expression()?);
        Ok(match arithmetic {
            None => AwkExpr::Assign(target, value),
            Some(arithmetic) => AwkExpr::Change(arithmetic, target, value),
        })
    }

    /// Reads an assignable expression, if there is one here.
    pub(super) fn optional_target(&mut self) -> Parsed<Option<Box<AwkTarget>>> {
        match self.peek().clone() {
            AwkToken::Sign("$") => self.field().map(|field| Some(Box::new(field))),
            AwkToken::Name(name) if self.function_of(&name).is_none() => {
                self.advance();
                self.named(&name).map(|target| Some(Box::new(target)))
            }
            _ => Ok(None),
        }
    }

    fn field(&mut self) -> Parsed<AwkTarget> {
        self.expect("$")?;
        let number = self.nested(|parser| match parser.peek() {
            AwkToken::Sign("++" | "--" | "-" | "+" | "!") => {
                if matches!(parser.peek(), AwkToken::Sign("++" | "--")) {
                    parser.stepped()
                } else {
                    parser.signed()
                }
            }
            _ => parser.primary(),
        })?;
        Ok(AwkTarget::Field(boxed(number)))
    }

    /// Reads a variable or an element of an array.
    pub(super) fn named(&mut self, name: &str) -> Parsed<AwkTarget> {
        if self.is_at("[") {
            let array = self.array_name(name)?;
            self.advance();
            let key = self.list("]")?;
            return Ok(AwkTarget::Element(array, key));
        }
        let found = self.names.variable(name).map_err(|reason| self.error(reason))?;
        self.names.use_as(found, NameUse::Value).map_err(|reason| self.error(reason))?;
        Ok(AwkTarget::Variable(found))
    }

    /// Reads expressions up to a closing sign.
    pub(super) fn list(&mut self, end: &str) -> Parsed<Vec<AwkExpr>> {
        let was = (std::mem::take(&mut self.is_printing), std::mem::take(&mut self.no_in));
        let mut all = Vec::new();
        if !self.is_at(end) {
            loop {
                self.skip_lines();
                all.push(self.expression()?);
                if !self.take(",") {
                    break;
                }
            }
        }
        self.skip_lines();
        self.expect(end)?;
        (self.is_printing, self.no_in) = was;
        if end == "]" && all.is_empty() {
            return Err(self.error("syntax error at or near ]"));
        }
        Ok(all)
    }

    fn primary(&mut self) -> Parsed<AwkExpr> {
        match self.peek().clone() {
            AwkToken::Number(number, _) => {
                self.advance();
                Ok(AwkExpr::Number(number))
            }
            AwkToken::Text(text) => {
                self.advance();
                Ok(AwkExpr::Text(AwkText::new(text)))
            }
            AwkToken::Pattern(source) => {
                let pattern = self.pattern(&source)?;
                self.advance();
                Ok(pattern)
            }
            AwkToken::Sign("$") => self.field().map(AwkExpr::Get),
            AwkToken::Sign("(") => self.group(),
            AwkToken::Sign("getline") => self.getline(),
            AwkToken::Name(name) | AwkToken::CalledName(name) => self.name(&name),
            _ => Err(self.unexpected()),
        }
    }

    fn group(&mut self) -> Parsed<AwkExpr> {
        self.advance();
        self.open += 1;
        let mut all = self.list(")")?;
        self.open -= 1;
        if all.len() == 1
            && let Some(only) = all.pop()
        {
            return Ok(AwkExpr::Group(boxed(only)));
        }
        if self.take("in") {
            return self.has(all);
        }
        if all.is_empty() || !self.is_printing || !self.ends_print() {
            return Err(self.unexpected());
        }
        Ok(AwkExpr::List(all))
    }

    fn getline(&mut self) -> Parsed<AwkExpr> {
        self.advance();
        let target = self.optional_target()?;
        if !self.take("<") {
            return Ok(AwkExpr::Getline(LineSource::Input, target));
        }
        let file = boxed(self.nested(|parser| parser.primary())?);
        Ok(AwkExpr::Getline(LineSource::File(file), target))
    }
}
