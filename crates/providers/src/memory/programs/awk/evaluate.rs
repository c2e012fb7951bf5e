//! The evaluation of `awk` expressions.

use std::cmp::Ordering;
use std::rc::Rc;

use super::machine::{AwkHalt, AwkMachine, Step, VariableSlot};
use super::number::settled;
use super::pattern::AwkPattern;
use super::statements::Flow;
use super::syntax::{Arithmetic, AwkExpr, CallArgument, Comparison};
use super::text::AwkText;
use super::value::AwkValue;

impl<'p> AwkMachine<'p> {
    pub(super) fn evaluate(&mut self, expression: &'p AwkExpr) -> Step<AwkValue> {
        Ok(match expression {
            AwkExpr::Number(number) => AwkValue::Number(*number),
            AwkExpr::Text(text) => AwkValue::Text(text.clone()),
            AwkExpr::Pattern(pattern) => {
                let record = self.field(0.0)?;
                AwkValue::truth(pattern.is_match(self.text_of(&record).bytes()))
            }
            AwkExpr::Get(target) => {
                let place = self.place(target)?;
                self.get_from(&place)?
            }
            AwkExpr::Group(inner) => self.evaluate(inner)?,
            AwkExpr::List(all) => match all.last() {
                Some(last) => self.evaluate(last)?,
                None => AwkValue::Unset,
            },
            AwkExpr::Assign(..) | AwkExpr::Change(..) | AwkExpr::Step { .. } => self.change(expression)?,
            AwkExpr::Calculate(arithmetic, left, right) => {
                let left = self.number(left)?;
                let right = self.number(right)?;
                AwkValue::Number(calculate(*arithmetic, left, right))
            }
            AwkExpr::Negate(operand) => AwkValue::Number(-self.number(operand)?),
            AwkExpr::AsNumber(operand) => AwkValue::Number(self.number(operand)?),
            AwkExpr::Not(operand) => AwkValue::truth(!self.is_true(operand)?),
            AwkExpr::And(left, right) => AwkValue::truth(self.is_true(left)? && self.is_true(right)?),
            AwkExpr::Or(left, right) => AwkValue::truth(self.is_true(left)? || self.is_true(right)?),
            AwkExpr::Choose(test, yes, no) => {
                if self.is_true(test)? {
                    self.evaluate(yes)?
                } else {
                    self.evaluate(no)?
                }
            }
            AwkExpr::Compare(comparison, left, right) => {
                let left = self.evaluate(left)?;
                let right = self.evaluate(right)?;
                let order = left.compare(&right, &self.settings.conversion);
                AwkValue::truth(holds(*comparison, order))
            }
            AwkExpr::Join(left, right) => self.join(left, right)?,
            AwkExpr::Matches { text, pattern, is_negated } => {
                let text = self.evaluate(text)?;
                let pattern = self.pattern_of(pattern)?;
                AwkValue::truth(pattern.is_match(self.text_of(&text).bytes()) != *is_negated)
            }
            AwkExpr::Has(array, key) => {
                let key = self.key(key)?;
                AwkValue::truth(self.array(*array).borrow_mut().has(&key))
            }
            AwkExpr::LengthOf(variable) => self.length_of(*variable),
            AwkExpr::Call(function, args) => self.call(*function, args)?,
            AwkExpr::Function(function, args) => self.function(*function, args)?,
            AwkExpr::Split(text, array, separator) => self.split(text, *array, separator.as_deref())?,
            AwkExpr::Substitute { is_global, pattern, replacement, target } => {
                self.substitute(*is_global, pattern, replacement, target)?
            }
            AwkExpr::Getline(source, target) => self.getline(source, target.as_deref())?,
        })
    }

    /// Evaluates an expression with side effects.
    fn change(&mut self, expression: &'p AwkExpr) -> Step<AwkValue> {
        Ok(match expression {
            AwkExpr::Assign(target, value) => {
                let place = self.place(target)?;
                let value = self.evaluate(value)?;
                self.put(&place, value.clone())?;
                value
            }
            AwkExpr::Change(arithmetic, target, operand) => {
                let place = self.place(target)?;
                let operand = self.number(operand)?;
                let before = self.get_from(&place)?.number();
                let value = AwkValue::Number(calculate(*arithmetic, before, operand));
                self.put(&place, value.clone())?;
                value
            }
            AwkExpr::Step { target, by, is_behind } => {
                let place = self.place(target)?;
                let before = self.get_from(&place)?.number();
                self.put(&place, AwkValue::Number(before + by))?;
                AwkValue::Number(if *is_behind { before } else { before + by })
            }
            other => self.evaluate(other)?,
        })
    }

    pub(super) fn number(&mut self, expression: &'p AwkExpr) -> Step<f64> {
        Ok(self.evaluate(expression)?.number())
    }

    pub(super) fn text(&mut self, expression: &'p AwkExpr) -> Step<AwkText> {
        let value = self.evaluate(expression)?;
        Ok(self.text_of(&value))
    }

    pub(super) fn is_true(&mut self, expression: &'p AwkExpr) -> Step<bool> {
        Ok(self.evaluate(expression)?.is_true())
    }

    fn join(&mut self, left: &'p AwkExpr, right: &'p AwkExpr) -> Step<AwkValue> {
        let left = self.evaluate(left)?;
        let right = self.evaluate(right)?;
        let mut text = Vec::new();
        if let (
            AwkValue::Text(left) | AwkValue::Input(left),
            AwkValue::Text(right) | AwkValue::Input(right),
        ) = (&left, &right)
        {
            let len = left.bytes().len() + right.bytes().len();
            self.check_room(len)?;
            text.reserve_exact(len);
        }
        left.append_to(&mut text, &self.settings.conversion);
        right.append_to(&mut text, &self.settings.conversion);
        Ok(AwkValue::text(text))
    }

    /// Evaluates an expression as a pattern.
    pub(super) fn pattern_of(&mut self, expression: &'p AwkExpr) -> Step<Rc<AwkPattern>> {
        match expression {
            AwkExpr::Pattern(pattern) => Ok(pattern.clone()),
            other => {
                let text = self.text(other)?;
                self.pattern(text.bytes())
            }
        }
    }

    fn call(&mut self, function: usize, args: &'p [CallArgument]) -> Step<AwkValue> {
        self.check_stack()?;
        self.tick()?;
        let program = self.program;
        let function = &program.functions[function];
        let mut slots = Vec::with_capacity(function.parameters.len());
        for (argument, is_array) in args.iter().zip(&function.parameters) {
            slots.push(match argument {
                CallArgument::Name(variable) if *is_array => VariableSlot::Array(self.array(*variable)),
                CallArgument::Name(variable) => self.passed(*variable),
                CallArgument::Value(value) => VariableSlot::Value(self.evaluate(value)?),
            });
        }
        slots.extend(function.parameters[slots.len()..].iter().map(|is_array| VariableSlot::new(*is_array)));
        let base = std::mem::replace(&mut self.base, self.locals.len());
        self.locals.append(&mut slots);
        let flow = self.execute(&function.body);
        self.locals.truncate(self.base);
        self.base = base;
        Ok(match flow? {
            Flow::Return => std::mem::replace(&mut self.returned, AwkValue::Unset),
            _ => AwkValue::Unset,
        })
    }

    /// Returns a run-time error with this reason.
    pub(super) fn run_time_error(&mut self, reason: &str) -> AwkHalt {
        self.fatal("run time error", reason)
    }
}

fn calculate(arithmetic: Arithmetic, left: f64, right: f64) -> f64 {
    let result = match arithmetic {
        Arithmetic::Add => left + right,
        Arithmetic::Subtract => left - right,
        Arithmetic::Multiply => left * right,
        Arithmetic::Divide => left / right,
        Arithmetic::Remainder => left % right,
        Arithmetic::Power => left.powf(right),
    };
    settled(result, [left, right])
}

fn holds(comparison: Comparison, order: Ordering) -> bool {
    match comparison {
        Comparison::Less => order.is_lt(),
        Comparison::LessOrEqual => order.is_le(),
        Comparison::Equal => order.is_eq(),
        Comparison::NotEqual => order.is_ne(),
        Comparison::Greater => order.is_gt(),
        Comparison::GreaterOrEqual => order.is_ge(),
    }
}
