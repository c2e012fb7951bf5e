//! The targets of assignments.

use super::machine::{AwkMachine, SharedTable, Step};
use super::syntax::{AwkTarget, VariableRef};
use super::table::TableKey;
use super::value::AwkValue;

/// The evaluated target of an assignment.
pub(super) enum ValuePlace {
    Variable(VariableRef),
    Element(SharedTable, TableKey),
    Field(f64),
}

impl<'p> AwkMachine<'p> {
    /// Evaluates the target of an assignment. This happens before its value is evaluated.
    pub(super) fn place(&mut self, target: &'p AwkTarget) -> Step<ValuePlace> {
        Ok(match target {
            AwkTarget::Variable(variable) => ValuePlace::Variable(*variable),
            AwkTarget::Element(array, key) => {
                let key = self.key(key)?;
                ValuePlace::Element(self.array(*array), key)
            }
            AwkTarget::Field(number) => ValuePlace::Field(self.evaluate(number)?.number()),
        })
    }

    pub(super) fn get_from(&mut self, place: &ValuePlace) -> Step<AwkValue> {
        Ok(match place {
            ValuePlace::Variable(variable) => {
                let value = self.get(*variable);
                self.check_fields()?;
                value
            }
            ValuePlace::Element(table, key) => table.borrow_mut().value(key).clone(),
            ValuePlace::Field(number) => self.field(*number)?,
        })
    }

    pub(super) fn put(&mut self, place: &ValuePlace, value: AwkValue) -> Step<()> {
        match place {
            ValuePlace::Variable(variable) => self.set(*variable, value),
            ValuePlace::Element(table, key) => {
                *table.borrow_mut().value(key) = value;
                Ok(())
            }
            ValuePlace::Field(number) => self.set_field(*number, value),
        }
    }
}
