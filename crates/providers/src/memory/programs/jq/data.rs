//! The data of a run, beside its values.

use jaq_core::Lut;
use jaq_core::data::{DataT, HasLut};

use super::inputs::{Printer, RunInputs};
use super::meter;
use super::value::JqValue;

/// The data that filters work on.
pub(super) struct Kind;

impl DataT for Kind {
    type V<'a> = JqValue;
    type Data<'a> = RunData<'a>;
}

/// The state of a run, beside its values.
pub(super) struct State<'a> {
    pub printer: &'a Printer<'a>,
    pub inputs: &'a dyn RunInputs,
    pub env: JqValue,
}

/// The data of one run. The library clones it wherever it calls a definition or goes on with another
/// value, and so every filter that does not end comes by here.
pub(super) struct RunData<'a> {
    pub lut: &'a Lut<Kind>,
    pub state: &'a State<'a>,
}

impl Clone for RunData<'_> {
    fn clone(&self) -> Self {
        meter::tick();
        Self { lut: self.lut, state: self.state }
    }
}

impl<'a> HasLut<'a, Kind> for RunData<'a> {
    fn lut(&self) -> &'a Lut<Kind> {
        self.lut
    }
}
