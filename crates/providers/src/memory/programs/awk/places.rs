//! The targets of assignments.

use super::machine::{AwkMachine, SharedTable, Step};
use super::syntax::{AwkTarget, VariableRef};
use super::table::TableKey;
use super::value::AwkValue;

/// The evaluated target of an assignment.
pub(super) enum AssignmentTarget {
    Variable(VariableRef),
    Element(SharedTable, TableKey),
    Field(f64),
}

impl<'p> AwkMachine<'p> {
    /// Evaluates the target of an assignment. This happens before its value is evaluated.
    pub(super) fn place(&mut self, target: &'p AwkTarget) -> Step<AssignmentTarget> {
        Ok(match target {
            AwkTarget::Variable(variable) => AssignmentTarget::Variable(*variable),
            AwkTarget::Element(array, key) => {
                let key = self.key(key)?;
                AssignmentTarget::Element(self.array(*array), key)
            }
            AwkTarget::Field(number) => AssignmentTarget::Field(self.evaluate(number)?.number()),
        })
    }

    pub(super) fn get_from(&mut self, place: &AssignmentTarget) -> Step<AwkValue> {
        Ok(match place {
            AssignmentTarget::Variable(variable) => {
                let value = self.get(*variable);
                self.check_fields()?;
                value
            }
            AssignmentTarget::Element(table, key) => table.borrow_mut().value(key).clone(),
            AssignmentTarget::Field(number) => self.field(*number)?,
        })
    }

    pub(super) fn put(&mut self, place: &AssignmentTarget, value: AwkValue) -> Step<()> {
        match place {
            AssignmentTarget::Variable(variable) => self.set(*variable, value),
            AssignmentTarget::Element(table, key) => {
                *table.borrow_mut().value(key) = value;
                Ok(())
            }
            AssignmentTarget::Field(number) => self.set_field(*number, value),
        }
    }
}
