//! Messages about started processes that have input, a terminal or a deadline.

use minicbor::{Decode, Encode};

/// The minor version of the protocol from which on guests know these.
pub const STARTS_ON_TERMS: u16 = 3;

/// The terms of a started process.
#[derive(Debug, Clone, Default, PartialEq, Eq, Encode, Decode)]
pub struct ProcessTerms {
    /// The deadline from its start, in milliseconds.
    #[n(0)]
    pub timeout_ms: Option<u64>,
    /// The beginning of its input; without `input_follows` all of it.
    #[cbor(n(1), with = "minicbor::bytes")]
    pub input: Vec<u8>,
    /// `ProcessInput` brings more, or its end.
    #[n(2)]
    pub input_follows: bool,
}
